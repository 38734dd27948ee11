"""The smallest hardware for the pair's goal, through whole plans."""

from builder.planner.cost import HardwareAdvice, hardware_for_goal
from builder.planner.cost.goal import goal_is_stated
from builder.planner.speed import SpeedPlan
from builder.planner.sweep.rows import Evaluate
from builder.planner.sweep.settings import with_settings
from builder.spec import Pair


def smallest_hardware(pair: Pair, evaluate: Evaluate) -> HardwareAdvice | None:
    """Plan the pair on every chip like its own, 1, 2, 4 and 8 of it; None where `planning.goal` asks for nothing."""
    if not goal_is_stated(pair.spec.planning.goal):
        return None

    def on(chip: str, count: int) -> tuple[bool, SpeedPlan | None]:
        plan = evaluate(with_settings(pair, {"hardware.chip": chip, "hardware.count": count}))
        return plan.ok, plan.speed

    return hardware_for_goal(pair.spec, on)
