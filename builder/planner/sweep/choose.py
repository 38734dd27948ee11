"""Which rows no other row beats, which one to take, and one sentence that says why."""

import math
from collections import Counter
from collections.abc import Sequence

from builder.planner.cost.goal import goal_in_words, goal_is_stated, goal_reach
from builder.planner.cost.words import count, money, rate
from builder.planner.sweep.model import RowFigures, SweepRow
from builder.spec import PairSpec
from builder.spec.model import GoalSpec

CLOSE = 0.02
"""Predicted rates that differ by less are taken as equal; choosing k by prediction lost up to 3 % on the published runs."""

Merits = tuple[float, float, float]
Working = Sequence[tuple[SweepRow, RowFigures]]


def front(rows: Sequence[SweepRow], recommended: int | None = None) -> tuple[int, ...]:
    """Numbers of the rows that no other beats in capacity, speed per user and rate per chip; the recommended one is always among them.

    Of rows that are close in all three one is kept, so that figures which differ by a rounding do not all count.
    """
    kept: list[tuple[int, Merits]] = []
    best_first = sorted(_working(rows), key=lambda pair: (pair[0].number != recommended, -math.prod(_merits(pair[1])), pair[0].number))
    for row, figures in best_first:
        own = _merits(figures)
        if not any(_covers(other, own) for _, other in kept):
            kept.append((row.number, own))
    return tuple(sorted(number for number, _ in kept))


def choose(spec: PairSpec, rows: Sequence[SweepRow]) -> tuple[int | None, str]:
    """Number of the row to take, and the sentence.

    Of the rows that meet the goal (all where none is stated): the cheapest per token, which is the one with most tokens per chip hour;
    of those that are close, the one that holds most; of those that are close in both, the one that serves each user fastest.
    """
    working, goal = _working(rows), spec.planning.goal
    if not working:
        return None, _nothing_works(rows)
    meeting = [(row, figures) for row, figures in working if _reach(goal, figures) >= 1]
    if not meeting:
        row, figures = max(working, key=lambda pair: _reach(goal, pair[1]))
        return None, f"No row meets {goal_in_words(goal)}; row {row.number} ({row.label}) comes closest with {_speeds(figures)}."
    most = max(figures.tokens_per_s_per_chip for _, figures in meeting)
    close = [(row, figures) for row, figures in meeting if figures.tokens_per_s_per_chip >= most * (1 - CLOSE)]
    largest = max(figures.capacity_tokens for _, figures in close)
    holding = [(row, figures) for row, figures in close if figures.capacity_tokens >= largest * (1 - CLOSE)]
    row, figures = max(holding, key=lambda pair: (pair[1].tokens_per_s_per_user, -pair[0].number))
    return row.number, _sentence(spec, row, figures, meeting, working)


def _working(rows: Sequence[SweepRow]) -> Working:
    return [(row, row.figures) for row in rows if row.figures is not None]


def _merits(figures: RowFigures) -> Merits:
    return figures.capacity_tokens, figures.tokens_per_s_per_user, figures.tokens_per_s_per_chip


def _covers(left: Merits, right: Merits) -> bool:
    """Whether `left` is at least as good as `right` in everything, or so close that it does not matter."""
    return all(a >= b * (1 - CLOSE) for a, b in zip(left, right, strict=True))


def _reach(goal: GoalSpec, figures: RowFigures) -> float:
    return goal_reach(goal, figures.tokens_per_s_per_user, figures.tokens_per_s)


def _nothing_works(rows: Sequence[SweepRow]) -> str:
    refusals = Counter(row.codes[0] for row in rows)
    return "No row works: " + ", ".join(f"{code} refuses {n}" for code, n in refusals.most_common()) + "."


def _sentence(spec: PairSpec, row: SweepRow, figures: RowFigures, meeting: Working, working: Working) -> str:
    goal = spec.planning.goal
    among = _among(goal, meeting)
    idle = "; drafting does not pay there" if spec.draft.method != "none" and figures.speedup <= 1 else ""
    made = f"{count(figures.tokens_per_s_per_chip * 3600)}{_cost(spec, figures, meeting)}{idle}"
    users = f"gives each of {figures.batch} users" if figures.batch > 1 else "gives its one user"
    return (
        f"Take row {row.number} ({row.label}): {among} it makes the most tokens per chip hour ({made}), {users} "
        f"{rate(figures.tokens_per_s_per_user)} and has room for {figures.sequences:,} requests; {_given_up(row, figures, working)}."
    )


def _among(goal: GoalSpec, meeting: Working) -> str:
    if not goal_is_stated(goal):
        return "of all rows that work"
    return f"of the {len(meeting)} rows that meet {goal_in_words(goal)}" if len(meeting) > 1 else f"alone to meet {goal_in_words(goal)},"


def _cost(spec: PairSpec, figures: RowFigures, meeting: Working) -> str:
    """Money per 1M tokens; for a chip without a price, the price below which it beats the best row of the chip that has one."""
    price = spec.planning.price
    if price is None:
        return ""
    if figures.per_million is not None:
        return f", {money(figures.per_million, price.currency)} per 1M"
    priced = [(row, other) for row, other in meeting if other.per_million is not None]
    if not priced:
        return ", its price not given"
    row, best = max(priced, key=lambda pair: pair[1].tokens_per_s_per_chip)
    equal = price.per_chip_hour * figures.tokens_per_s_per_chip / best.tokens_per_s_per_chip
    return f", cheaper per token than row {row.number} below {money(equal, price.currency)} per chip hour"


def _given_up(row: SweepRow, figures: RowFigures, working: Working) -> str:
    fastest, fast = max(working, key=lambda pair: pair[1].tokens_per_s_per_user)
    largest, large = max(working, key=lambda pair: pair[1].capacity_tokens)
    slower = 1 - figures.tokens_per_s_per_user / fast.tokens_per_s_per_user
    smaller = 1 - figures.capacity_tokens / large.capacity_tokens
    losses: list[str] = []
    if slower > CLOSE:
        losses.append(f"{slower:.0%} of the speed per user of row {fastest.number} ({fastest.label}: {rate(fast.tokens_per_s_per_user)})")
    if smaller > CLOSE:
        losses.append(f"{smaller:.0%} of the capacity of row {largest.number} ({largest.label}: {count(large.capacity_tokens)} tokens)")
    return "it gives up " + " and ".join(losses) if losses else "no other row holds more or serves a user faster"


def _speeds(figures: RowFigures) -> str:
    return f"{rate(figures.tokens_per_s_per_user)} per user, {rate(figures.tokens_per_s)} in all at batch {figures.batch}"
