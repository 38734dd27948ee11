"""An earlier plan, read from where people have it: a file, a build folder, a deployed model repository."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from builder.checkpoint.values import parse_json
from builder.errors import RefusedError

PLAN, MANIFEST, RECORDS = "plan.json", "manifest.json", "stages"
PLAN_KEYS = {"schema", "stages"}
SECTIONS = ("pair", "memory", "speed", "cost")
FINDING_TEXTS = ("code", "severity", "message", "field")
MOST_BYTES = 64 << 20
MOST_DEPTH = 40
"""A plan's values are nested less than half as deeply."""


def read_old_plan(place: Path) -> dict[str, Any]:
    """The plan in `place`. In a folder, what the stages' records say was built goes before what the plan wanted.

    A manifest in place of a plan gives the stages alone. Raises RefusedError PLAN-DIFF-MISSING or PLAN-DIFF-FORMAT.
    """
    if _is_readable(place):
        return _plan(place)
    for folder in _folders(place):
        plan = next((folder / name for name in (PLAN, MANIFEST) if (folder / name).is_file()), None)
        records = list(_records(folder / RECORDS))
        if plan is not None or records:
            return {**({"schema": 1} if plan is None else _plan(plan)), **({"stages": records} if records else {})}
    raise RefusedError(
        "PLAN-DIFF-MISSING",
        f"there is no plan in {place}" if place.is_dir() else f"there is no file or folder {place}",
        found="no plan.json, manifest.json or stages/" if place.is_dir() else "nothing",
        needed="a plan.json, a build folder, or a model repository with one of them beside it",
        fix="name the build folder, or save a plan first: tandem plan PAIR.yaml --json > old.json",
    )


def _is_readable(place: Path) -> bool:
    """Whether it is a file, or a pipe (`--diff <(...)`). Raises RefusedError PLAN-DIFF-MISSING for what can be no path."""
    try:
        return place.is_file() or place.is_fifo()
    except (OSError, ValueError) as error:
        reason = str((isinstance(error, OSError) and error.strerror) or error)
        message = f"{str(place)[:60]!r}... cannot be read: {reason}"
        fix = "name a plan.json, or save one: tandem plan PAIR.yaml --json > old.json"
        raise RefusedError("PLAN-DIFF-MISSING", message, found=reason, needed="a file or a folder", fix=fix) from None


def _folders(place: Path) -> Iterator[Path]:
    """The folder, and the one that holds it when it is a model repository: what it was made from stands beside it."""
    if place.is_dir():
        yield place
        if any(place.glob("*/config.pbtxt")):
            yield place.absolute().parent


def _plan(file: Path) -> dict[str, Any]:
    try:
        data = _read(file)
    except (OSError, ValueError) as error:
        raise _no_plan(file, str(error)) from None
    if not isinstance(data, dict) or not data.keys() >= PLAN_KEYS:
        found = ", ".join(sorted(data)[:5]) if isinstance(data, dict) else type(data).__name__
        raise _no_plan(file, found)
    stages = data["stages"]
    if isinstance(stages, dict):  # a manifest: keys by stage
        data = {"schema": data["schema"], "stages": [{"name": name, "key": key} for name, key in stages.items()]}
    fault = _fault(data)
    if fault:
        raise _no_plan(file, fault)
    return data


def _read(file: Path) -> Any:
    """JSON of a bounded size and depth. Raises OSError, ValueError."""
    with file.open("rb") as stream:
        text = stream.read(MOST_BYTES + 1)
    if len(text) > MOST_BYTES:
        raise ValueError(f"it has more than {MOST_BYTES} bytes")
    data = parse_json(text)
    level = [data]
    for _ in range(MOST_DEPTH):
        level = [inner for value in level for inner in _inside(value)]
    if level:
        raise ValueError("its values are nested too deeply")
    return data


def _inside(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        yield from value.values() if isinstance(value, dict) else value


def _fault(plan: Mapping[str, Any]) -> str:
    """What keeps a plan's parts from being compared; "" when nothing does."""
    if not isinstance(plan["stages"], list) or not all(map(_is_stage, plan["stages"])):
        return "stages without name and key"
    findings = plan.get("findings") or []
    if not isinstance(findings, list) or not all(map(_is_finding, findings)):
        return "findings that are none"
    odd = [name for name in SECTIONS if not isinstance(plan.get(name) or {}, dict)]
    return f"{odd[0]} that is no object" if odd else ""


def _is_stage(stage: object) -> bool:
    if not isinstance(stage, dict) or not stage.keys() >= {"name", "key"}:
        return False
    return isinstance(stage["name"], str) and isinstance(stage["key"], str | None) and isinstance(stage.get("inputs", {}), dict)


def _is_finding(finding: object) -> bool:
    return isinstance(finding, dict) and all(isinstance(finding.get(name, ""), str) for name in FINDING_TEXTS)


def _no_plan(file: Path, found: str) -> RefusedError:
    fix = "name a plan.json, or save one: tandem plan PAIR.yaml --json > old.json"
    return RefusedError("PLAN-DIFF-FORMAT", f"{file} is no plan", found=found, needed="the object that tandem plan --json prints", fix=fix)


def _records(folder: Path) -> Iterator[dict[str, Any]]:
    """Stages that were built. A record that cannot be read is a stage that was not: the pipeline builds it again, too."""
    for file in sorted(folder.glob("*.json")):
        try:
            record = _read(file)
        except (OSError, ValueError):
            continue
        if isinstance(record, dict) and record.keys() >= {"stage", "key", "inputs"}:
            stage = {"name": record["stage"], "key": record["key"], "inputs": record["inputs"]}
            if _is_stage(stage):
                yield stage
