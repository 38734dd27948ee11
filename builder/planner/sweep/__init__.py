"""Many plans of one pair side by side: settings swept, capacity against speed, and which row to take."""

from builder.planner.sweep.model import Sweep, SweepRow
from builder.planner.sweep.plot import write_plot
from builder.planner.sweep.rows import Evaluate, PlanLike, run_sweep, sweep
from builder.planner.sweep.settings import default_axes, parse_axes, with_settings

__all__ = [
    "Evaluate",
    "PlanLike",
    "Sweep",
    "SweepRow",
    "default_axes",
    "parse_axes",
    "run_sweep",
    "sweep",
    "with_settings",
    "write_plot",
]
