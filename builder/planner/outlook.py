"""What a pair will take and give on its chips: memory, speed, cost."""

from dataclasses import dataclass
from typing import Any

from builder.api import Chip, Engine, EngineRequest, ModelFacts
from builder.errors import Finding, RefusedError
from builder.planner.cost import CostPlan, check_cost, plan_cost
from builder.planner.memory import EngineShare, MemoryPlan, check_memory, plan_memory
from builder.planner.speed import ModelOnChips, SpeedPlan, check_speed, plan_speed
from builder.spec import Pair

Models = tuple[tuple[EngineRequest, ModelFacts], ...]
"""The target's request and checkpoint, then the draft's when there is one."""


@dataclass(frozen=True)
class Outlook:
    """Memory, speed and cost, with what they give to say; None where it was not worked out."""

    memory: MemoryPlan | None = None
    speed: SpeedPlan | None = None
    cost: CostPlan | None = None
    findings: tuple[Finding, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        parts = (("memory", self.memory), ("speed", self.speed), ("cost", self.cost))
        return {name: part.as_dict() if part else {} for name, part in parts}


def look_ahead(pair: Pair, engine: Engine, chip: Chip, models: Models) -> Outlook:
    """Work out memory, then speed within that memory, then what it costs."""
    spec = pair.spec
    memory = plan_memory(spec, chip, engine, models)
    findings = [*check_memory(spec, memory)]
    try:
        speed = _speed(pair, engine, chip, models, memory)
    except RefusedError as error:
        return Outlook(memory, None, None, (*findings, *error.findings, *check_cost(spec, None, file=pair.shown)))
    cost = plan_cost(spec, speed, spec.hardware.count)
    findings += [*check_speed(spec, speed), *check_cost(spec, cost, file=pair.shown)]
    return Outlook(memory, speed, cost, tuple(findings))


def _speed(pair: Pair, engine: Engine, chip: Chip, models: Models, memory: MemoryPlan) -> SpeedPlan:
    placed = [_placed(chip, request, facts, share) for (request, facts), share in zip(models, memory.engines, strict=True)]
    target, draft = placed[0], placed[1] if len(placed) > 1 else None
    pool_tokens, lane_adapts = memory.engines[0].pool_tokens, engine.adapts_draft_length
    return plan_speed(pair.spec, target, draft, pool_tokens=pool_tokens, measured=pair.measured_times, lane_adapts=lane_adapts)


def _placed(chip: Chip, request: EngineRequest, facts: ModelFacts, share: EngineShare) -> ModelOnChips:
    return ModelOnChips(
        role=request.role,
        facts=facts,
        weights=request.weights,
        kv_cache=share.kv_cache,
        weights_bytes=share.weights_bytes,
        kv_bytes_per_token=share.kv_bytes_per_token,
        chip=chip,
        tensor_parallel=request.tensor_parallel,
        pipeline_parallel=request.pipeline_parallel,
        lookup_bytes=share.lookup_bytes,
    )
