"""A pair of round numbers: an engine lane that takes what the test says, and a card of 80 GiB."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from builder.api import (
    BuildNeeds,
    Chip,
    Deployment,
    EngineMemory,
    EngineRequest,
    Finding,
    ModelFacts,
    ModelShape,
    ServerNeeds,
    StoredFormat,
)
from builder.planner.memory import MemoryPlan, plan_memory
from builder.spec.model import PairSpec

GIB = 2**30
CARD = Chip("card", "a card of 80 GiB", "test", "9.0", 80 * GIB, 1e12, {"fp8": 1e15})
HOST = replace(CARD, name="host", memory_bytes=0)
BUILD = BuildNeeds(3 * GIB, 5 * GIB)
SIZES = {"none": 1.0, "fp8": 0.5, "nvfp4": 0.25}


@dataclass
class RoundEngine:
    """Weights and bytes a token as given for 16 bits, halved by fp8, quartered by nvfp4; refuses what `refused` names."""

    weights_bytes: Mapping[str, int]
    kv_bytes: Mapping[str, int]
    activation_bytes: int = 0
    backends: Mapping[str, Path] = field(default_factory=dict)
    refused: tuple[str, ...] = ()
    build: BuildNeeds = BUILD
    kind: str = "round"
    default_pool_fraction: float | None = 0.9
    adapts_draft_length: bool = True

    def check(self, request: EngineRequest) -> Sequence[Finding]:
        return [self._no(f"{request.role}.weights")] if request.weights not in SIZES else []

    def check_deployment(self, deployment: Deployment) -> Sequence[Finding]:
        engines = [engine for engine in (deployment.target, deployment.draft) if engine]
        words = {f"{e.role}.kv_cache": e.kv_cache for e in engines} | {f"{e.role}.weights": e.weights for e in engines}
        words |= {"hardware.chip": deployment.chip.name}
        return [self._no(name) for name, word in words.items() if word in self.refused]

    def memory(self, request: EngineRequest, shape: ModelShape, stored: StoredFormat | None = None) -> EngineMemory:
        kv = {"auto": 1.0, "bf16": 1.0, "fp8": 0.5, "int8": 0.5, "nvfp4": 0.25}[request.kv_cache]
        return EngineMemory(
            weights_bytes=int(self.weights_bytes[request.role] * SIZES.get(request.weights, 1.0) / request.tensor_parallel),
            kv_bytes_per_token=int(self.kv_bytes[request.role] * kv / request.tensor_parallel),
            activation_bytes=self.activation_bytes,
            kv_cache="bf16" if request.kv_cache == "auto" else request.kv_cache,
        )

    def build_needs(self, request: EngineRequest, shape: ModelShape, stored: StoredFormat | None = None) -> BuildNeeds:
        return self.build

    def server_needs(self) -> ServerNeeds:
        return ServerNeeds(self.backends)

    def _no(self, name: str) -> Finding:
        return Finding("RULE-TEST", "error", "no", name)


def spec_of(**sections: Any) -> PairSpec:
    draft = sections.pop("draft", {"checkpoint": "d"})
    return PairSpec.model_validate({"name": "pair", "target": {"checkpoint": "t"}, "draft": draft, **sections})


def request_of(spec: PairSpec, role: Any, **changes: Any) -> EngineRequest:
    values: dict[str, Any] = {
        "role": role,
        "checkpoint": Path("nowhere"),
        "weights": "none",
        "kv_cache": "auto",
        "tokens_per_block": spec.kv_cache.tokens_per_block,
        "max_batch_size": spec.limits.max_batch_size,
        "max_input_tokens": spec.limits.max_sequence_tokens - 1,
        "max_sequence_tokens": spec.limits.max_sequence_tokens,
        "max_batched_tokens": spec.limits.max_batched_tokens,
        "max_draft_tokens": spec.speculation.max_draft_tokens,
    }
    return EngineRequest(**values | changes)


PlanPair = Callable[..., tuple[PairSpec, MemoryPlan]]


@pytest.fixture
def plan_pair() -> PlanPair:
    """Plans a pair; sizes in GiB and bytes a token, sections of the pair file by name."""

    def plan(
        *,
        target_gib: float = 40,
        draft_gib: float = 14,
        kv: tuple[int, int] = (160 * 1024, 16 * 1024),
        chip: Chip = CARD,
        chips: Mapping[str, Chip] | None = None,
        target_parallel: int = 1,
        stages: int = 1,
        heads: int = 64,
        engine: Mapping[str, Any] | None = None,
        **sections: Any,
    ) -> tuple[PairSpec, MemoryPlan]:
        spec = spec_of(**sections)
        weights = {"target": int(target_gib * GIB), "draft": int(draft_gib * GIB)}
        lane = RoundEngine(weights, dict(zip(("target", "draft"), kv, strict=True)), **engine or {})
        target = request_of(spec, "target", tensor_parallel=target_parallel, pipeline_parallel=stages, kv_cache=spec.target.kv_cache)
        models = [(target, ModelFacts(Path(), {}, ModelShape(1, 1, 8, 128, heads=heads)))]
        if spec.has_draft_model:
            models.append((request_of(spec, "draft"), ModelFacts(Path(), {}, ModelShape(1, 1, 8, 128, heads=32))))
        return spec, plan_memory(spec, chip, lane, models, chips=chips or {})  # type: ignore[arg-type]

    return plan
