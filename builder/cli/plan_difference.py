"""`tandem plan --diff OLD`."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from builder.cli.console import show_table
from builder.planner.difference import Change, PlanDifference, difference
from builder.planner.old_plan import read_old_plan

MOST_ROWS = 20
SMALL = 0.01
"""A smaller change of a figure is not worth a row."""
HASH_LENGTH = 64

diff_option = click.option(
    "--diff",
    "old",
    type=click.Path(path_type=Path),
    metavar="OLD",
    help="Show what changes against a plan.json, a build folder or a deployed model repository.",
)


def show_difference(old: Path, new: Mapping[str, Any], *, as_json: bool) -> None:
    """Print what changes from the plan at `old` to `new`, the object of `tandem plan --json`. Raises RefusedError PLAN-DIFF-*."""
    found = difference(read_old_plan(old), new)
    if as_json:
        click.echo(json.dumps({"old": str(old), **found.as_dict()}, default=str))
    else:
        _show(found, old)


def _show(found: PlanDifference, old: Path) -> None:
    if found.same:
        click.echo(f"nothing changes against {old}")
    _show_changes("settings", found.settings)
    _show_stages(found)
    for name, changes in found.figures.items():
        _show_changes(name, changes)
    for word, findings in (("new", found.findings_new), ("gone", found.findings_gone)):
        for finding in findings:
            click.echo(f"{word} finding: {finding}")
    if found.unknown:
        click.echo(f"not compared, because the old side does not state them: {', '.join(found.unknown)}")


def _show_changes(title: str, changes: Sequence[Change]) -> None:
    from rich.markup import escape
    from rich.table import Table

    shown = [change for change in changes if abs(growth(change) or 1) >= SMALL][:MOST_ROWS]
    if shown:
        table = Table("field", "old", "new", "change", title=f"{title}: what changes", title_justify="left")
        for change in shown:
            table.add_row(*map(escape, (change.field, *_pair(change), relative(change))))
        show_table(table)
    if len(changes) > len(shown):
        click.echo(f"{title}: {len(changes) - len(shown)} more changes, shown by --json")


def _show_stages(found: PlanDifference) -> None:
    from rich.markup import escape
    from rich.table import Table

    table = Table("stage", "what happens", "why", title="stages", title_justify="left")
    words = {True: "runs", False: "does not run", None: "not known"}
    for stage in found.stages:
        details = [f"{c.field}: {' -> '.join(_pair(c))}" for c in stage.inputs]
        table.add_row(stage.name, words[stage.runs], escape("\n".join((stage.reason, *details))))
    show_table(table)


def _pair(change: Change) -> tuple[str, str]:
    return in_words(change.field, change.old), in_words(change.field, change.new)


def in_words(field: str, value: Any) -> str:
    """A value as people read it: bytes in MB, digests cut, floats to four digits."""
    if value is None or isinstance(value, Mapping):
        return "none" if value is None else "a row"
    if isinstance(value, int | float) and not isinstance(value, bool):
        if field.endswith("_bytes"):
            return f"{value / 1e6:,.1f} MB"
        return f"{value:.4g}" if isinstance(value, float) else str(value)
    text = str(value)
    return f"{text[:12]}…" if len(text) == HASH_LENGTH and " " not in text else text


def relative(change: Change) -> str:
    """How much a number grew, in words."""
    share = growth(change)
    return "" if share is None else f"{share:+.1%}"


def growth(change: Change) -> float | None:
    """How much a number grew, as a share of the old one; None for what is no number."""
    old, new = (v if isinstance(v, int | float) and not isinstance(v, bool) else None for v in (change.old, change.new))
    return new / old - 1 if old and new is not None else None
