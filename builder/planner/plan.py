"""The plan: what will be built, from what, what is reused and why, and every reason to refuse."""

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builder.api import Engine, EngineRequest, Role
from builder.checkpoint import Checkpoint, digest_folder, read_checkpoint
from builder.errors import Finding, RefusedError
from builder.planner.checks import check_pair
from builder.planner.keys import digest_sources, engine_inputs, key_of
from builder.planner.memory import PoolMemory, memory_of, pool_tokens
from builder.planner.speed import predict
from builder.spec import Pair


@dataclass(frozen=True)
class PlannedStage:
    """One stage: its key, the parts the key is made of, and the folder it fills."""

    name: str
    key: str
    inputs: Mapping[str, Any]
    output: str


@dataclass(frozen=True)
class Plan:
    """Everything later stages use. `findings` holds every error and warning; a plan with errors has no stages."""

    pair: Pair
    findings: tuple[Finding, ...]
    target: Checkpoint | None = None
    draft: Checkpoint | None = None
    requests: tuple[EngineRequest, ...] = ()
    memory: tuple[PoolMemory, ...] = ()
    speed: Mapping[str, Any] | None = None
    stages: tuple[PlannedStage, ...] = ()

    @property
    def ok(self) -> bool:
        return not any(f.severity == "error" for f in self.findings)

    def as_dict(self) -> dict[str, Any]:
        """The object that `tandem plan --json` prints, schema 1."""
        return {
            "schema": 1,
            "ok": self.ok,
            "name": self.pair.spec.name,
            "findings": [f.as_dict() for f in self.findings],
            "memory": {m.role: m.as_dict() for m in self.memory},
            "speed": dict(self.speed or {}),
            "stages": [{"name": s.name, "key": s.key, "output": s.output} for s in self.stages],
            "pair": self.pair.spec.model_dump(mode="json"),
        }


def make_plan(pair: Pair, load_engine: Callable[[str], Engine], *, location: Path, digest_cache: Path | None = None) -> Plan:
    """Read both checkpoints, check the pair, decide the stages. Refusals become findings; all are returned at once.

    `location` is the folder that the deployment will lie in: the model repository names its engines by absolute path.
    """
    findings: list[Finding] = []
    engine = _collect(findings, lambda: load_engine(pair.spec.engine.kind))
    target = _collect(findings, lambda: read_checkpoint(pair.target_checkpoint, "target.checkpoint"))
    draft_path = pair.draft_checkpoint
    draft = _collect(findings, lambda: read_checkpoint(draft_path, "draft.checkpoint")) if draft_path else None
    if target is not None and (draft is not None or draft_path is None):
        findings += _collect(findings, lambda: list(check_pair(pair, target, draft))) or []
    if engine is None or target is None:
        return Plan(pair, tuple(findings))
    models = [(_request(pair, "target"), target)] + ([(_request(pair, "draft"), draft)] if draft else [])
    for request, _ in models:
        findings += engine.check(request)
    if any(f.severity == "error" for f in findings):
        return Plan(pair, tuple(findings), target, draft)
    memory = tuple(memory_of(engine, request, checkpoint, pool_tokens(pair.spec)) for request, checkpoint in models)
    speed = predict(memory[0], memory[1] if draft else None)
    requests = tuple(request for request, _ in models)
    stages = _stages(pair, engine, models, location, digest_cache)
    return Plan(pair, tuple(findings), target, draft, requests, memory, speed, stages)


def _collect(findings: list[Finding], read: Callable[[], Any]) -> Any:
    try:
        return read()
    except RefusedError as error:
        findings += error.findings
        return None


def _request(pair: Pair, role: Role) -> EngineRequest:
    spec = pair.spec
    model = spec.target if role == "target" else spec.draft
    checkpoint = pair.target_checkpoint if role == "target" else pair.draft_checkpoint
    assert checkpoint is not None
    return EngineRequest(
        role=role,
        checkpoint=checkpoint,
        weights=model.weights,
        kv_cache=model.kv_cache,
        tokens_per_block=spec.kv_cache.tokens_per_block,
        max_batch_size=spec.limits.max_batch_size,
        # the orchestrator sends the grown sequence as a prompt in every round
        max_input_tokens=spec.limits.max_sequence_tokens - 1,
        max_sequence_tokens=spec.limits.max_sequence_tokens,
        max_batched_tokens=spec.limits.max_batched_tokens,
        max_draft_tokens=spec.speculation.max_draft_tokens if role == "target" and spec.draft.method != "none" else 0,
        options=dict(spec.engine.options),
        release=spec.engine.release,
        chip=spec.hardware.chip,
        tensor_parallel=model.tensor_parallel,
        pipeline_parallel=spec.target.pipeline_parallel if role == "target" else 1,
    )


def _stages(
    pair: Pair, engine: Engine, models: list[tuple[EngineRequest, Checkpoint]], location: Path, cache: Path | None
) -> tuple[PlannedStage, ...]:
    stages: list[PlannedStage] = []
    for request, checkpoint in models:
        inputs = engine_inputs(request, digest_folder(checkpoint.path, cache), engine.versions())
        stages.append(PlannedStage(f"build-{request.role}", key_of(f"build-{request.role}", inputs), inputs, f"engines/{request.role}"))
    spec = pair.spec
    packaged: dict[str, Any] = {f"{s.name}": s.key for s in stages}
    packaged |= {part: getattr(spec, part).model_dump(mode="json") for part in ("speculation", "kv_cache", "limits")}
    packaged |= {
        "location": str(location),
        "lookup": spec.uses_lookup,
        "concurrency": spec.serve.max_concurrent_requests,
        "sources": _package_digest("triton_repo"),
    }
    stages.append(PlannedStage("package", key_of("package", packaged), packaged, "model_repository"))
    return tuple(stages)


def _package_digest(package: str) -> str:
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        return ""
    return digest_sources(Path(next(iter(found.submodule_search_locations))))
