"""`tandem plan --diff OLD`."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from builder.cli.columns import show_columns
from builder.cli.figure_words import people_rows
from builder.planner.difference import Change, PlanDifference, StageChange, difference
from builder.planner.old_plan import read_old_plan

MOST_ROWS = 20
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
    elif found.same_as_far_as_known:
        click.echo(f"nothing is known to have changed against {old}; a change of weights shows when they are hashed, at the build")
    _show_rows("settings", [(c.field, *_pair(c)) for c in found.settings], len(found.settings), ("setting", "old", "new"))
    _show_stages(found)
    for name, changes in found.figures.items():
        _show_rows(name, people_rows(name, changes), len(changes), ("figure", "old", "new", "change"))
    for word, findings in (("new", found.findings_new), ("gone:", found.findings_gone)):
        for finding in findings:
            click.echo(f"{word} {finding}")
    if found.unknown:
        click.echo(f"not compared, because the old side does not state them: {', '.join(found.unknown)}")


def _show_rows(title: str, rows: Sequence[Sequence[str]], changes: int, head: Sequence[str]) -> None:
    """At most `MOST_ROWS`, and how many changes there are besides."""
    if rows:
        show_columns(f"{title}: what changes", head, rows[:MOST_ROWS])
    rest = changes - min(len(rows), MOST_ROWS)
    if rest > 0:
        click.echo(f"{title}: {rest} more change{'s' * (rest > 1)}, shown by --json")


def _show_stages(found: PlanDifference) -> None:
    words = {True: "runs", False: "does not run", None: "not known"}
    names = {stage.name for stage in found.stages}
    rows = [(stage.name, words[stage.runs], line) for stage in found.stages for line in _why(stage, names)]
    shown = [row if i == 0 or rows[i - 1][0] != row[0] else ("", "", row[2]) for i, row in enumerate(rows)]
    if shown:
        show_columns("stages", ("stage", "what happens", "why"), shown, left=3)


def _why(stage: StageChange, names: set[str]) -> Iterator[str]:
    """The inputs that differ in words, or the reason where none is named."""
    made_from = [change.field for change in stage.inputs if change.field in names]
    own = [change for change in stage.inputs if change.field not in names]
    if made_from:
        yield f"made from {' and '.join(made_from)}, which changed" if stage.runs else stage.reason
    for change in own:
        request, _, asked = change.field.rpartition("request.")
        name = asked.replace("_", " ") if request == "" and asked != change.field else change.field
        plain = not any(isinstance(value, Mapping | list) for value in (change.old, change.new))
        yield f"{name}: {' -> '.join(_pair(change))}" if plain else f"{name} changed"
    if not stage.inputs:
        yield stage.reason


def _pair(change: Change) -> tuple[str, str]:
    return in_words(change.field, change.old), in_words(change.field, change.new)


def in_words(field: str, value: Any) -> str:
    """A setting's or an input's value as people read it: bytes in MB, digests cut, structures named as such."""
    if value is None or isinstance(value, Mapping):
        return "none" if value is None else "a section"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        if field.endswith("_bytes"):
            return f"{value / 1e6:,.1f} MB"
        return f"{value:.4g}" if isinstance(value, float) else str(value)
    text = str(value)
    return f"{text[:12]}…" if len(text) == HASH_LENGTH and " " not in text else text
