"""A planner that follows a simple law, so that the right rows are known beforehand."""

from dataclasses import dataclass

import pytest

from builder.api import Finding
from builder.planner.speed import SpeedPlan
from builder.planner.sweep import Evaluate
from builder.spec import Pair
from tests.unit.builder.planner.conftest import speed

KV_BYTES = {"bf16": 4.0, "fp8": 2.0, "nvfp4": 1.125}
CHIPS = {"h200_sxm": 1.0, "b200_sxm": 2.0}


@dataclass(frozen=True)
class FakeMemory:
    """All that a sweep asks of a memory plan."""

    pool_tokens: int


@dataclass(frozen=True)
class FakePlan:
    ok: bool
    findings: tuple[Finding, ...]
    memory: FakeMemory | None
    speed: SpeedPlan | None


def evaluate_by_law(pair: Pair) -> FakePlan:
    """400,000 bytes of pool a chip; a step takes a second and 0.01 s for each of the batch; k drafts win k / 2 at batch 1, less above."""
    spec = pair.spec
    if spec.target.kv_cache == "nvfp4" and spec.hardware.chip != "b200_sxm":
        refused = Finding("RULE-KV-NVFP4", "error", "an NVFP4 cache needs the sm_100 family", "target.kv_cache")
        return FakePlan(False, (Finding("RULE-NOTE", "warning", "a warning first"), refused), None, None)
    pace = CHIPS[spec.hardware.chip] * spec.hardware.count
    batch, k = spec.limits.max_batch_size, spec.speculation.max_draft_tokens
    plain = pace * batch / (1 + 0.01 * batch)
    rates = speed((1, pace / 1.01, pace / 1.01), (batch, plain, plain * (1 + k / 2 / batch**0.5 - 0.01 * batch)))
    tokens = int(400_000 * pace / KV_BYTES[spec.target.kv_cache])
    return FakePlan(True, (), FakeMemory(tokens), rates)


@pytest.fixture
def evaluate() -> Evaluate:
    return evaluate_by_law
