"""The fewest chips of one kind that meet a goal: one instance split over some of them, or replicas of it side by side."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from builder.planner.cost.goal import batch_limits, most_for_users, replicas_needed, served_tokens_per_s, smallest_for_users
from builder.planner.speed import BatchRow, SpeedPlan
from builder.spec import PairSpec

COUNTS = (1, 2, 4, 8)
LARGEST_BATCH_TRIED = 1024


@dataclass(frozen=True)
class Instance:
    """One copy of the pair on its chips: its speed, and how many sequences of full length its pool holds."""

    speed: SpeedPlan
    full_sequences: int


Evaluate = Callable[[str, int, int | None], Instance | None]
"""Chip name, chips of one instance, and limits.max_batch_size (None: as in the pair file) to the instance; None where it cannot work."""


@dataclass(frozen=True)
class Found:
    """Replicas of `chips_each` chips that meet the goal together, each at the batch of `row`."""

    chips_each: int
    replicas: int
    row: BatchRow
    tokens_per_s_each: float
    full_sequences: int
    provider: str

    @property
    def chips(self) -> int:
        return self.chips_each * self.replicas


def counts_of(spec: PairSpec) -> tuple[int, ...]:
    """Chips of one instance that are tried: 1, 2, 4, 8 times the pipeline's stages, and what the pair file says."""
    return tuple(sorted({*(count * spec.target.pipeline_parallel for count in COUNTS), spec.hardware.count}))


def fewest(spec: PairSpec, chip: str, evaluate: Evaluate, counts: Sequence[int]) -> Found | None:
    """Try one instance on each of `counts` chips, and replicas of it; of equally many chips the smaller instance is kept."""
    best: Found | None = None
    for count in counts:
        if best is not None and count >= best.chips:
            break
        found = _on(spec, chip, count, evaluate)
        if found is not None and (best is None or found.chips < best.chips):
            best = found
    return best


def _on(spec: PairSpec, chip: str, count: int, evaluate: Evaluate) -> Found | None:
    """With the pair file's limits; with larger batches where that takes fewer replicas."""
    instance = evaluate(chip, count, None)
    if instance is None:
        return None
    found, most = _replicas(spec, count, instance), _largest_batch(spec)
    limit = min(batch_limits(spec).values())
    if found is None or found.replicas == 1 or found.row.batch < limit or most <= limit:
        return found
    larger = evaluate(chip, count, most)
    more = _replicas(spec, count, larger) if larger else None
    if larger is None or more is None or more.replicas >= found.replicas:
        return found
    enough = smallest_for_users(spec, larger.speed, (spec.planning.goal.tokens_per_s or 0.0) / more.replicas)
    return _found(spec, count, more.replicas, larger, enough) if enough else more


def _replicas(spec: PairSpec, count: int, instance: Instance) -> Found | None:
    """As few as make the goal together at the batch that makes most, of those that give each user enough."""
    row = most_for_users(spec, instance.speed)
    return _found(spec, count, replicas_needed(spec, served_tokens_per_s(spec, row)), instance, row) if row else None


def _found(spec: PairSpec, count: int, replicas: int, instance: Instance, row: BatchRow) -> Found:
    return Found(count, replicas, row, served_tokens_per_s(spec, row), instance.full_sequences, instance.speed.provider)


def _largest_batch(spec: PairSpec) -> int:
    """The largest batch worth trying: what a pass may verify, and no more users than the goal in all has room for."""
    goal, drafts = spec.planning.goal, spec.speculation.max_draft_tokens if spec.draft.method != "none" else 0
    users = math.ceil(goal.tokens_per_s / goal.tokens_per_s_per_user) if goal.tokens_per_s and goal.tokens_per_s_per_user else math.inf
    return int(min(LARGEST_BATCH_TRIED, spec.limits.max_batched_tokens // (drafts + 1), users if goal.tokens_per_s else 0))
