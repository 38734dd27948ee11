"""What tokens cost, when the draft pays for itself, and the smallest hardware that meets a goal."""

from builder.planner.cost.checks import check_cost
from builder.planner.cost.goal import goal_is_stated
from builder.planner.cost.hardware import HardwareAdvice, HardwareChoice, hardware_for_goal
from builder.planner.cost.model import CostPlan, CostPoint, GoalPoint, Payback
from builder.planner.cost.predict import plan_cost
from builder.planner.cost.words import money

__all__ = [
    "CostPlan",
    "CostPoint",
    "GoalPoint",
    "HardwareAdvice",
    "HardwareChoice",
    "Payback",
    "check_cost",
    "goal_is_stated",
    "hardware_for_goal",
    "money",
    "plan_cost",
]
