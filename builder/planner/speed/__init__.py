"""Speed of the pair before anything is built: step times, cycles of drafts and verification, and what they make at each batch."""

from builder.planner.speed.anchors import Anchor, anchors, nearest_anchor
from builder.planner.speed.checks import check_speed
from builder.planner.speed.model import BatchRow, ModelOnChips, SpeedPlan, Steps, StepTime
from builder.planner.speed.plan import plan_speed

__all__ = [
    "Anchor",
    "BatchRow",
    "ModelOnChips",
    "SpeedPlan",
    "StepTime",
    "Steps",
    "anchors",
    "check_speed",
    "nearest_anchor",
    "plan_speed",
]
