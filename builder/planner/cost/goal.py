"""Speed as it is served, and the batch that meets a goal."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from builder.planner.cost.model import GoalPoint
from builder.planner.cost.words import rate
from builder.planner.speed import BatchRow, SpeedPlan
from builder.spec import PairSpec
from builder.spec.model import GoalSpec


def served_tokens_per_s(spec: PairSpec, row: BatchRow) -> float:
    """Tokens a second at one batch: an adaptive deployment stops drafting where drafting loses, another one does not."""
    if spec.draft.method == "none":
        return row.plain_tokens_per_s
    if spec.speculation.adaptive and row.adaptive:
        return max(row.plain_tokens_per_s, row.speculative_tokens_per_s)
    return row.speculative_tokens_per_s


def goal_is_stated(goal: GoalSpec) -> bool:
    """Whether the pair file asks for a rate at all."""
    return goal.tokens_per_s is not None or goal.tokens_per_s_per_user is not None


def batch_limits(spec: PairSpec) -> dict[str, int]:
    """Fields of the pair file that limit how many users are served at once; requests wait in the orchestrator alone."""
    orchestrated = {"serve.max_concurrent_requests": spec.serve.max_concurrent_requests} if spec.serve.topology == "orchestrated" else {}
    return {"limits.max_batch_size": spec.limits.max_batch_size, **orchestrated}


def goal_in_words(goal: GoalSpec) -> str:
    """`50 tokens/s per user and 2,000 tokens/s in all`."""
    parts = ((goal.tokens_per_s_per_user, "per user"), (goal.tokens_per_s, "in all"))
    return " and ".join(f"{rate(value)} {of}" for value, of in parts if value is not None)


def goal_reach(goal: GoalSpec, tokens_per_s_per_user: float, tokens_per_s: float) -> float:
    """Share of the goal that is reached, of two stated ones the smaller; 1 or more is met, infinite where none is stated."""
    return min(_of_user(goal, tokens_per_s_per_user), _of_all(goal, tokens_per_s))


def goal_row(spec: PairSpec, speed: SpeedPlan) -> BatchRow:
    """Of the batches that fit and meet the goal the one with most tokens a second; if none does, the one that comes closest."""
    return max(goal_rows(spec, speed), key=lambda row: _merit(_point(spec, row)))


def goal_rows(spec: PairSpec, speed: SpeedPlan) -> list[BatchRow]:
    """Rows of all batches that a goal may ask for, by batch.

    A larger batch gives each user less and makes more in all. So between two batches of the plan's rows the borders are found by halving:
    the largest batch that gives a user enough, and the one from which on a user's share of the goal is less than that of all.
    """
    goal, rows = spec.planning.goal, _fitting(speed)

    def user_is_ahead(row: BatchRow) -> bool:
        served = served_tokens_per_s(spec, row)
        return _of_user(goal, served / row.batch) >= _of_all(goal, served)

    found = {row.batch: row for row in rows}
    for keeps in (lambda row: _user_has_enough(spec, row), user_is_ahead):
        found |= {row.batch: row for row in _border(speed, rows, keeps)}
    return sorted(found.values(), key=lambda row: row.batch)


def most_for_users(spec: PairSpec, speed: SpeedPlan) -> BatchRow | None:
    """Of the batches that give each user enough the one that makes most in all; None where none does."""
    rows = [row for row in goal_rows(spec, speed) if _user_has_enough(spec, row)]
    return max(rows, key=lambda row: served_tokens_per_s(spec, row), default=None)


def smallest_for_users(spec: PairSpec, speed: SpeedPlan, tokens_per_s: float) -> BatchRow | None:
    """Of the batches that give each user enough the smallest that makes `tokens_per_s` in all; None where none does."""
    rows = goal_rows(spec, speed)
    border = _border(speed, rows, lambda row: served_tokens_per_s(spec, row) < tokens_per_s)
    able = [row for row in (*rows, *border) if _user_has_enough(spec, row) and served_tokens_per_s(spec, row) >= tokens_per_s]
    return min(able, key=lambda row: row.batch, default=None)


def replicas_needed(spec: PairSpec, tokens_per_s: float) -> int:
    """Instances that make the goal in all when one makes `tokens_per_s`."""
    return max(1, math.ceil((spec.planning.goal.tokens_per_s or 0.0) / tokens_per_s))


def goal_point(spec: PairSpec, speed: SpeedPlan) -> GoalPoint:
    """The rate as served at `goal_row`, how much of the goal it reaches, and how many such deployments would meet it."""
    point, most = _point(spec, goal_row(spec, speed)), most_for_users(spec, speed)
    return replace(point, replicas=replicas_needed(spec, served_tokens_per_s(spec, most)) if most else None)


def _point(spec: PairSpec, row: BatchRow) -> GoalPoint:
    served = served_tokens_per_s(spec, row)
    return GoalPoint(goal_reach(spec.planning.goal, served / row.batch, served), row.batch, served)


def _user_has_enough(spec: PairSpec, row: BatchRow) -> bool:
    return _of_user(spec.planning.goal, served_tokens_per_s(spec, row) / row.batch) >= 1


def _merit(point: GoalPoint) -> tuple[bool, float]:
    return point.met, point.tokens_per_s if point.met else point.reach


def _of_user(goal: GoalSpec, tokens_per_s_per_user: float) -> float:
    return tokens_per_s_per_user / goal.tokens_per_s_per_user if goal.tokens_per_s_per_user else math.inf


def _of_all(goal: GoalSpec, tokens_per_s: float) -> float:
    return tokens_per_s / goal.tokens_per_s if goal.tokens_per_s else math.inf


def _fitting(speed: SpeedPlan) -> list[BatchRow]:
    rows = {row.batch: row for row in (*speed.rows, speed.saturation) if row.batch <= speed.saturation.batch}
    return [rows[batch] for batch in sorted(rows)]


def _border(speed: SpeedPlan, rows: list[BatchRow], keeps: Callable[[BatchRow], bool]) -> Iterator[BatchRow]:
    """The last row that keeps a rule which small batches keep and large ones break, and the first one that breaks it."""
    kept = [row for row in rows if keeps(row)]
    if speed.row_at is None or not kept or kept[-1] is rows[-1]:
        return
    low, high = kept[-1], next(row for row in rows if row.batch > kept[-1].batch)
    while high.batch - low.batch > 1:
        middle = speed.row_at((low.batch + high.batch) // 2)
        if middle is None:
            break
        low, high = (middle, high) if keeps(middle) else (low, middle)
    yield from (low, high)
