"""The stages of a plan: what each is made of, and the key that follows from it."""

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builder.api import Engine, EngineRequest
from builder.planner.keys import digest_sources, engine_inputs, key_of
from builder.spec import PairSpec

Digest = Callable[[Path], str | None]
"""SHA-256 over a checkpoint folder's content; None when it is not known and would take long to find out."""


@dataclass(frozen=True)
class PlannedStage:
    """One stage: its key, the parts the key is made of, and the folder it fills. `key` is None while weights are not hashed."""

    name: str
    key: str | None
    inputs: Mapping[str, Any]
    output: str

    def as_dict(self) -> dict[str, Any]:
        return {"name": self.name, "key": self.key, "output": self.output, "inputs": dict(self.inputs)}


def plan_stages(
    spec: PairSpec, engine: Engine, requests: Sequence[EngineRequest], location: Path, digest: Digest
) -> tuple[PlannedStage, ...]:
    """A build stage for each engine, then the package; `location` is where the model repository names its engines by path."""
    builds = tuple(_build(engine, request, digest(request.checkpoint)) for request in requests)
    return (*builds, _package(spec, builds, location))


def _build(engine: Engine, request: EngineRequest, digest: str | None) -> PlannedStage:
    name = f"build-{request.role}"
    inputs = engine_inputs(request, digest, engine.versions())
    return PlannedStage(name, None if digest is None else key_of(name, inputs), inputs, f"engines/{request.role}")


def _package(spec: PairSpec, builds: tuple[PlannedStage, ...], location: Path) -> PlannedStage:
    inputs: dict[str, Any] = {stage.name: stage.key for stage in builds}
    inputs |= {part: getattr(spec, part).model_dump(mode="json") for part in ("speculation", "kv_cache", "limits")}
    inputs |= {
        "location": str(location),
        "lookup": spec.uses_lookup,
        "concurrency": spec.serve.max_concurrent_requests,
        "sources": _package_digest("triton_repo"),
    }
    known = all(stage.key is not None for stage in builds)
    return PlannedStage("package", key_of("package", inputs) if known else None, inputs, "model_repository")


def _package_digest(package: str) -> str:
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        return ""
    return digest_sources(Path(next(iter(found.submodule_search_locations))))
