"""Rows that differ in a limit alone and come out alike."""

from collections.abc import Iterator, Sequence

from builder.planner.cost.goal import goal_is_stated
from builder.planner.sweep.model import RowFigures, SweepRow
from builder.spec.model import GoalSpec

MOST_GROUPS = 4


def alike(rows: Sequence[SweepRow], goal: GoalSpec) -> Iterator[str]:
    """A sentence for each limit whose larger values change nothing: the draft length, the batch."""
    reached = "that meets the goal" if goal_is_stated(goal) else "that fits"
    for field, what in (("speculation.max_draft_tokens", "the best draft length"), ("limits.max_batch_size", f"the batch {reached}")):
        groups = [group for group in _groups(rows, field) if len(group) > 1]
        named = [f"rows {' = '.join(str(row.number) for row, _ in group)} ({_used(field, group[0][1])})" for group in groups[:MOST_GROUPS]]
        more = f" and {len(groups) - MOST_GROUPS} more such groups" if len(groups) > MOST_GROUPS else ""
        if named:
            yield f"{field} is a limit, and {what} lies below it: {', '.join(named)}{more}"


def _used(field: str, figures: RowFigures) -> str:
    return f"batch {figures.batch}" if field == "limits.max_batch_size" else f"{figures.draft_tokens} drafted"


def _groups(rows: Sequence[SweepRow], field: str) -> list[list[tuple[SweepRow, RowFigures]]]:
    """Rows with one speed whose settings differ in `field` alone."""
    groups: dict[tuple[object, ...], list[tuple[SweepRow, RowFigures]]] = {}
    for row in rows:
        if row.figures is not None and field in row.settings:
            others = tuple((name, value) for name, value in row.settings.items() if name != field)
            speed = (row.figures.batch, row.figures.draft_tokens, row.figures.tokens_per_s)
            groups.setdefault((others, speed), []).append((row, row.figures))
    return list(groups.values())
