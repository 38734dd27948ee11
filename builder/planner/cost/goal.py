"""Speed as it is served, and the batch that meets a goal."""

import math

from builder.planner.cost.model import GoalPoint
from builder.planner.cost.words import rate
from builder.planner.speed import BatchRow, SpeedPlan
from builder.spec import PairSpec
from builder.spec.model import GoalSpec


def served_tokens_per_s(spec: PairSpec, row: BatchRow) -> float:
    """Tokens a second at one batch: an adaptive deployment stops drafting where drafting loses, another one does not."""
    if spec.draft.method == "none":
        return row.plain_tokens_per_s
    if spec.speculation.adaptive:
        return max(row.plain_tokens_per_s, row.speculative_tokens_per_s)
    return row.speculative_tokens_per_s


def goal_is_stated(goal: GoalSpec) -> bool:
    """Whether the pair file asks for a rate at all."""
    return goal.tokens_per_s is not None or goal.tokens_per_s_per_user is not None


def goal_in_words(goal: GoalSpec) -> str:
    """`50 tokens/s per user and 2,000 tokens/s in all`."""
    parts = ((goal.tokens_per_s_per_user, "per user"), (goal.tokens_per_s, "in all"))
    return " and ".join(f"{rate(value)} {of}" for value, of in parts if value is not None)


def goal_reach(goal: GoalSpec, tokens_per_s_per_user: float, tokens_per_s: float) -> float:
    """Share of the goal that is reached, of two stated ones the smaller; 1 or more is met, infinite where none is stated."""
    of_user = tokens_per_s_per_user / goal.tokens_per_s_per_user if goal.tokens_per_s_per_user else math.inf
    of_all = tokens_per_s / goal.tokens_per_s if goal.tokens_per_s else math.inf
    return min(of_user, of_all)


def goal_row(spec: PairSpec, speed: SpeedPlan) -> BatchRow:
    """Of the batches that fit and meet the goal the one with most tokens a second; if none does, the one that comes closest."""
    rows = [row for row in (*speed.rows, speed.saturation) if row.batch <= speed.saturation.batch]
    return max(rows, key=lambda row: _merit(_point(spec, row)))


def goal_point(spec: PairSpec, speed: SpeedPlan) -> GoalPoint:
    """The rate as served at `goal_row`, and how much of the goal it reaches."""
    return _point(spec, goal_row(spec, speed))


def _merit(point: GoalPoint) -> tuple[bool, float]:
    return point.met, point.tokens_per_s if point.met else point.reach


def _point(spec: PairSpec, row: BatchRow) -> GoalPoint:
    rate_of_all = served_tokens_per_s(spec, row)
    return GoalPoint(goal_reach(spec.planning.goal, rate_of_all / row.batch, rate_of_all), row.batch, rate_of_all)
