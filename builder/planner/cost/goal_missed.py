"""A goal that the pair misses: by how much, what limits it, and what to try."""

import shlex
from collections.abc import Iterator
from pathlib import Path

from builder.errors import Finding
from builder.hardware.chips import chips
from builder.planner.cost.goal import batch_limits, goal_in_words
from builder.planner.cost.model import CostPlan, GoalPoint
from builder.planner.cost.search import counts_of
from builder.planner.cost.words import rate
from builder.spec import PairSpec

MOST_CHIPS = 3
"""Other chips that the way out names."""


def goal_missed(spec: PairSpec, cost: CostPlan, file: Path) -> Iterator[Finding]:
    """COST-GOAL-MISSED, when a goal is stated and no batch that fits reaches it. `file` is the pair file, as in a command to type."""
    point = cost.goal
    if point is None or point.met:
        return
    needed, limit = goal_in_words(spec.planning.goal), _limit(spec, cost, point)
    found = f"{rate(point.tokens_per_s_per_user)} per user and {rate(point.tokens_per_s)} in all at batch {point.batch}"
    message = f"the goal is {needed}, and the nearest that {spec.hardware.count} x {spec.hardware.chip} comes is {found}, {limit}"
    fix = _ways_out(spec, cost, point, file)
    yield Finding("COST-GOAL-MISSED", "warning", message, "planning.goal", found, needed, fix)


def _limit(spec: PairSpec, cost: CostPlan, point: GoalPoint) -> str:
    if _more_is_missing(spec, cost, point):
        fields = _fields_that_limit(spec, point)
        allow = "allows" if len(fields) == 1 else "allow"
        return f"the largest batch that {' and '.join(fields)} {allow}" if fields else "all that the KV pool holds"
    if point.batch == 1 and not spec.planning.goal.tokens_per_s:
        return "where a user is served fastest"
    return "since a larger batch gives each user less and a smaller one makes less in all"


def _more_is_missing(spec: PairSpec, cost: CostPlan, point: GoalPoint) -> bool:
    """Whether the largest batch makes too little in all."""
    wanted = spec.planning.goal.tokens_per_s
    return wanted is not None and point.batch == cost.points[-1].batch and point.tokens_per_s < wanted


def _fields_that_limit(spec: PairSpec, point: GoalPoint) -> list[str]:
    return [field for field, value in batch_limits(spec).items() if value == point.batch]


def _ways_out(spec: PairSpec, cost: CostPlan, point: GoalPoint, file: Path) -> str:
    """The command stands last, so that it can be copied to the line's end."""
    wanted = spec.planning.goal.tokens_per_s_per_user
    user_has_enough = wanted is None or point.tokens_per_s_per_user >= wanted
    raised = _fields_that_limit(spec, point) if _more_is_missing(spec, cost, point) and user_has_enough else []
    ways = [f"raise {' and '.join(raised)}"] if raised else []
    if point.replicas is not None and point.replicas > 1:
        ways.append(f"run {point.replicas} of it side by side")
    return ", or ".join([*ways, _comparison(spec, file)])


def _comparison(spec: PairSpec, file: Path) -> str:
    """Own chip and the next ones that are faster and no older, on the counts that the pipeline allows; other settings on a processor."""
    name = shlex.quote(str(file))
    own = chips().get(spec.hardware.chip)
    if own is None or not own.sm:
        return f"compare settings: tandem plan {name} --sweep k=1,2,4,8 --sweep batch=1,8,32,64"
    faster = [c for c in chips().values() if c.sm >= own.sm and c.bandwidth_bytes_per_s > own.bandwidth_bytes_per_s]
    faster.sort(key=lambda c: (c.bandwidth_bytes_per_s, c.name))
    names = ",".join([own.name, *(chip.name for chip in faster[:MOST_CHIPS])])
    counts = ",".join(map(str, counts_of(spec)))
    return f"compare hardware: tandem plan {name} --sweep chip={names} --sweep count={counts}"
