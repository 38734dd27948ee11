"""A goal that the pair misses: by how much, what limits it, and what to try."""

import shlex
from collections.abc import Iterator
from pathlib import Path

from builder.errors import Finding
from builder.hardware.chips import chips
from builder.planner.cost.goal import batch_limits, goal_in_words
from builder.planner.cost.model import CostPlan, GoalPoint
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
    fix = _way_out(spec, point, file)
    yield Finding("COST-GOAL-MISSED", "warning", message, "planning.goal", found, needed, fix)


def _limit(spec: PairSpec, cost: CostPlan, point: GoalPoint) -> str:
    goal, largest = spec.planning.goal, cost.points[-1].batch
    if point.batch == largest and goal.tokens_per_s and point.tokens_per_s < goal.tokens_per_s:
        fields = [field for field, value in batch_limits(spec).items() if value == largest]
        return f"the largest batch that {' and '.join(fields)} {_allow(fields)}" if fields else "all that the KV pool holds"
    if point.batch == 1 and not goal.tokens_per_s:
        return "where a user is served fastest"
    return "since a larger batch gives each user less and a smaller one makes less in all"


def _allow(fields: list[str]) -> str:
    return "allows" if len(fields) == 1 else "allow"


def _way_out(spec: PairSpec, point: GoalPoint, file: Path) -> str:
    """The command stands last, so that it can be copied to the line's end."""
    cwd = Path.cwd()
    name = shlex.quote(str(file.relative_to(cwd) if file.is_relative_to(cwd) else file))
    replicas = f"run {point.replicas} of it side by side, or " if point.replicas is not None and point.replicas > 1 else ""
    own = chips().get(spec.hardware.chip)
    if own is None or not own.sm:
        return f"{replicas}compare settings: tandem plan {name} --sweep k=1,2,4,8 --sweep batch=1,8,32,64"
    larger = sorted((c for c in chips().values() if c.sm and c.memory_bytes > own.memory_bytes), key=lambda c: (c.memory_bytes, c.name))
    names = ",".join([own.name, *(chip.name for chip in larger[:MOST_CHIPS])])
    return f"{replicas}compare hardware: tandem plan {name} --sweep chip={names} --sweep count=1,2,4,8"
