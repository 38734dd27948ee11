"""An earlier plan, read from where people have it: a file, a build folder, a deployed model repository."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from builder.errors import RefusedError

PLAN, MANIFEST, RECORDS = "plan.json", "manifest.json", "stages"
PLAN_KEYS = {"schema", "stages"}


def read_old_plan(place: Path) -> dict[str, Any]:
    """The plan in `place`. In a folder, what the stages' records say was built goes before what the plan wanted.

    A manifest in place of a plan gives the stages alone. Raises RefusedError PLAN-DIFF-MISSING or PLAN-DIFF-FORMAT.
    """
    if place.is_file():
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


def _folders(place: Path) -> Iterator[Path]:
    """The folder, and the one that holds it when it is a model repository: what it was made from stands beside it."""
    if place.is_dir():
        yield place
        if any(place.glob("*/config.pbtxt")):
            yield place.absolute().parent


def _plan(file: Path) -> dict[str, Any]:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _no_plan(file, str(error)) from None
    if not isinstance(data, dict) or not data.keys() >= PLAN_KEYS:
        found = ", ".join(sorted(data)[:5]) if isinstance(data, dict) else type(data).__name__
        raise _no_plan(file, found)
    stages = data["stages"]
    if isinstance(stages, dict):  # a manifest: keys by stage
        return {"schema": data["schema"], "stages": [{"name": name, "key": key} for name, key in stages.items()]}
    if not isinstance(stages, list) or not all(isinstance(s, dict) and s.keys() >= {"name", "key"} for s in stages):
        raise _no_plan(file, "stages without name and key")
    return data


def _no_plan(file: Path, found: str) -> RefusedError:
    fix = "name a plan.json, or save one: tandem plan PAIR.yaml --json > old.json"
    return RefusedError("PLAN-DIFF-FORMAT", f"{file} is no plan", found=found, needed="the object that tandem plan --json prints", fix=fix)


def _records(folder: Path) -> Iterator[dict[str, Any]]:
    """Stages that were built. A record that cannot be read is a stage that was not: the pipeline builds it again, too."""
    for file in sorted(folder.glob("*.json")):
        try:
            record = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(record, dict) and record.keys() >= {"stage", "key", "inputs"}:
            yield {"name": record["stage"], "key": record["key"], "inputs": record["inputs"]}
