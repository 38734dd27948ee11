"""Many plans of one pair side by side: settings swept, capacity against speed, and which row to take."""

from builder.planner.sweep.advice import smallest_hardware
from builder.planner.sweep.axes import DEFAULT_AXES, SHORT_NAMES, default_axes, parse_axes
from builder.planner.sweep.model import Sweep, SweepRow
from builder.planner.sweep.plot import check_plot_file, write_plot
from builder.planner.sweep.rows import Evaluate, PlanLike, run_sweep, sweep
from builder.planner.sweep.settings import with_settings

__all__ = [
    "DEFAULT_AXES",
    "SHORT_NAMES",
    "Evaluate",
    "PlanLike",
    "Sweep",
    "SweepRow",
    "check_plot_file",
    "default_axes",
    "parse_axes",
    "run_sweep",
    "smallest_hardware",
    "sweep",
    "with_settings",
    "write_plot",
]
