"""What changes between two plans, as `tandem plan --json` prints them: settings, predicted figures, and why each stage runs or does not."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from builder.errors import RefusedError

SAME_AS_FAR_AS_KNOWN = "nothing is known to have changed; weights are hashed when they are built"
FIGURES = ("memory", "speed", "cost")
"""Sections of a plan that hold predictions."""


@dataclass(frozen=True)
class Change:
    """One value that differs, by its dotted name; None stands for null and for a value that is not there."""

    field: str
    old: Any
    new: Any

    def as_dict(self) -> dict[str, Any]:
        return dict(self.__dict__)


@dataclass(frozen=True)
class StageChange:
    """One stage: whether it will run, None when that is not known yet; why; and the inputs that differ."""

    name: str
    runs: bool | None
    reason: str
    inputs: tuple[Change, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        return {**self.__dict__, "inputs": [change.as_dict() for change in self.inputs]}


@dataclass(frozen=True)
class PlanDifference:
    """All differences. `unknown` names the sections that the old side does not state, which are not compared."""

    settings: tuple[Change, ...]
    figures: Mapping[str, tuple[Change, ...]]
    stages: tuple[StageChange, ...]
    findings_new: tuple[str, ...] = ()
    findings_gone: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """Whether nothing changed and nothing runs."""
        return self.same_as_far_as_known and not any(stage.runs is None for stage in self.stages)

    @property
    def same_as_far_as_known(self) -> bool:
        """Whether nothing is known to have changed: weights that are not hashed may have."""
        return not (self.settings or any(self.figures.values()) or any(stage.runs for stage in self.stages))

    def as_dict(self) -> dict[str, Any]:
        """The object that `tandem plan --diff OLD --json` prints, schema 1."""
        return {
            "schema": 1,
            "same": self.same,
            "settings": [change.as_dict() for change in self.settings],
            **{name: [change.as_dict() for change in changes] for name, changes in self.figures.items()},
            "findings": {"new": list(self.findings_new), "gone": list(self.findings_gone)},
            "stages": [stage.as_dict() for stage in self.stages],
            "unknown": list(self.unknown),
        }


def difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> PlanDifference:
    """Compare two plans. Raises RefusedError PLAN-DIFF-SCHEMA when they are of different schemas."""
    if old.get("schema") != new.get("schema"):
        raise RefusedError(
            "PLAN-DIFF-SCHEMA",
            f"the old plan is of schema {old.get('schema')}, this version writes schema {new.get('schema')}",
            found=str(old.get("schema")),
            needed=str(new.get("schema")),
            fix="plan the old pair file again with this version (tandem plan OLD.yaml --json > old.json) and compare with that",
        )
    sections = ("pair", *FIGURES)
    known = [name for name in sections if name in old]
    changes = {name: tuple(changed(old[name], new.get(name) or {})) for name in known}
    before, after = _findings(old), _findings(new)
    return PlanDifference(
        settings=changes.get("pair", ()),
        figures={name: changes.get(name, ()) for name in FIGURES},
        stages=_stages(old, new),
        findings_new=tuple(after[key] for key in after if key not in before) if "findings" in old else (),
        findings_gone=tuple(before[key] for key in before if key not in after),
        unknown=tuple("settings" if name == "pair" else name for name in sections if name not in known and new.get(name)),
    )


def changed(old: Any, new: Any, field: str = "") -> Iterator[Change]:
    """Leaves that differ between two nested values; a table's row that only one side has is one change."""
    old_parts, new_parts = _beside(_parts(old), old, _parts(new)), _beside(_parts(new), new, _parts(old))
    if old_parts is None or new_parts is None:
        if old != new:
            yield Change(field, old, new)
        return
    for name in dict.fromkeys((*old_parts, *new_parts)):
        row = name.startswith("[")
        inner = f"{field}{name}" if row or not field else f"{field}.{name}"
        if row and (name not in old_parts or name not in new_parts):
            yield Change(inner, old_parts.get(name), new_parts.get(name))
        else:
            yield from changed(old_parts.get(name), new_parts.get(name), inner)


def _parts(value: Any) -> Mapping[str, Any] | None:
    """Named parts of a value that has some."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, list) and value and all(isinstance(row, Mapping) and row for row in value):
        return _rows(value)
    return None


def _beside(parts: Mapping[str, Any] | None, value: Any, others: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Nothing beside something that has parts lacks each of them."""
    return {} if others is not None and value in (None, []) else parts


def _rows(rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Rows of a table by their first column, so that a row that was put in does not shift the others; by number where it repeats."""
    first = next(iter(rows[0]))
    labels = [f"[{first} {row.get(first)}]" for row in rows]
    return dict(zip(labels if len(set(labels)) == len(rows) else [f"[{i}]" for i in range(len(rows))], rows, strict=True))


def _findings(plan: Mapping[str, Any]) -> Mapping[tuple[str, str, str], str]:
    """Sentences by severity, code and field: other numbers, or another file, do not make another finding."""
    found: dict[tuple[str, str, str], str] = {}
    for finding in plan.get("findings") or ():
        severity, code, field = (finding.get(name, "") for name in ("severity", "code", "field"))
        found[severity, code, field] = f"{severity or 'finding'} [{code}] {finding.get('message', '')}"
    return found


def _stages(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[StageChange, ...]:
    before = {stage["name"]: stage for stage in old.get("stages") or ()}
    after = {stage["name"]: stage for stage in new.get("stages") or ()}
    if not new.get("ok", True):
        return tuple(StageChange(name, False, "the new plan is refused") for name in before)
    dropped = (StageChange(name, False, "no longer part of the plan") for name in before if name not in after)
    return (*_run(before, after), *dropped)


def _run(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[StageChange]:
    runs: dict[str, bool | None] = {}
    for name, stage in after.items():
        change = _stage(before.get(name), stage, runs)
        runs[name] = change.runs
        yield change


def _stage(old: Mapping[str, Any] | None, new: Mapping[str, Any], runs: Mapping[str, bool | None]) -> StageChange:
    """`runs` holds the stages before this one: their keys are inputs of later stages."""
    name = new["name"]
    if old is None:
        return StageChange(name, True, "not built yet")
    if old["key"] is not None and old["key"] == new["key"]:
        return StageChange(name, False, "same inputs")
    if "inputs" not in old or "inputs" not in new:
        side = "old" if "inputs" not in old else "new"
        return StageChange(name, True, f"its key changed; the {side} side does not say what it is made of")
    hidden = old["key"] is None or new["key"] is None
    changes = tuple(changed(old["inputs"], new["inputs"]))
    if hidden and not changes:
        return StageChange(name, None, SAME_AS_FAR_AS_KNOWN)
    certain = tuple(change for change in changes if not (hidden and None in (change.old, change.new)))
    reason = _reason(certain, runs)
    if certain or any(runs.get(change.field) for change in changes):
        return StageChange(name, True, reason or "a stage that it takes from runs", certain or changes)
    if hidden:
        return StageChange(name, None, "weights of a checkpoint are not hashed yet, so it is not known whether they are the same")
    return StageChange(name, True, "another version of Tandem")


def _reason(changes: Sequence[Change], runs: Mapping[str, bool | None]) -> str:
    before = [change.field for change in changes if change.field in runs]
    own = [change.field for change in changes if change.field not in runs]
    parts = ([f"changed: {', '.join(own)}"] if own else []) + ([f"made from {' and '.join(before)}, which changed"] if before else [])
    return "; ".join(parts)
