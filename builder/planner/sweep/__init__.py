"""Many plans of one pair side by side: settings swept, capacity against speed, and which row to take."""

from builder.planner.sweep.advice import smallest_hardware
from builder.planner.sweep.model import Sweep, SweepRow
from builder.planner.sweep.plot import write_plot
from builder.planner.sweep.rows import Evaluate, PlanLike, run_sweep, sweep
from builder.planner.sweep.settings import SHORT_NAMES, default_axes, parse_axes, with_settings

__all__ = [
    "SHORT_NAMES",
    "Evaluate",
    "PlanLike",
    "Sweep",
    "SweepRow",
    "default_axes",
    "parse_axes",
    "run_sweep",
    "smallest_hardware",
    "sweep",
    "with_settings",
    "write_plot",
]
