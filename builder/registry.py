"""Plug-ins by name, through entry points: found late, imported on first use."""

import difflib
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, cast

from builder.api import API_VERSION, Demo, Engine, EngineRequest
from builder.errors import MissingError, RefusedError

ENGINES = "tandem.engines"
DEMOS = "tandem.demos"


def names(group: str) -> tuple[str, ...]:
    """Names of the plug-ins that are installed for a group."""
    return tuple(sorted({e.name for e in entry_points(group=group)}))


def engine(kind: str) -> Engine:
    """The engine plug-in of a pair file's `engine.kind`. Raises RefusedError, MissingError."""
    found = cast("Engine", _load(ENGINES, kind, "engine.kind"))
    if found.api_version != API_VERSION:
        raise RefusedError(
            "PLUGIN-API",
            f"the engine plug-in {kind} speaks version {found.api_version} of the plug-in api",
            field="engine.kind",
            found=str(found.api_version),
            needed=str(API_VERSION),
            fix="install a version of the plug-in that fits this release of trt-tandem",
        )
    return found


def demo(name: str) -> Demo:
    """The demo pair of that name. Raises RefusedError, MissingError."""
    return cast("Demo", _load(DEMOS, name, "demo"))


def _load(group: str, name: str, field: str) -> object:
    found = [e for e in entry_points(group=group) if e.name == name]
    if not found:
        known = names(group)
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
        hint = f"; did you mean {near[0]}?" if near else ""
        message = f"{field}: no plug-in is called {name}{hint}"
        raise RefusedError(
            "PLUGIN-UNKNOWN", message, field=field, found=name, needed=" | ".join(known), fix="pip install the plug-in, or take a known one"
        )
    try:
        return found[0].load()
    except ImportError as error:
        message = f"the plug-in {name} ({found[0].value}) cannot be imported: {error}"
        raise MissingError(
            "PLUGIN-BROKEN", message, field=field, found=str(error), needed="an importable plug-in", fix="reinstall it"
        ) from error


def engine_request(data: dict[str, Any]) -> EngineRequest:
    """An EngineRequest out of its JSON form."""
    return EngineRequest(**{**data, "checkpoint": Path(data["checkpoint"])})
