"""A pair that the lane accepts, and changes to it by dotted name."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builder.api import Chip, Deployment, EngineRequest, Finding, ModelFacts, ModelShape, StoredFormat
from plugins.engines.tensorrt_llm_pytorch import ENGINE

H100 = Chip("h100_sxm", "NVIDIA H100 SXM", "hopper", "9.0", 85_520_809_984, 3.35e12, {"fp8": 1.98e15})
B200 = replace(H100, name="b200_sxm", family="blackwell", compute_capability="10.0")
RTX = replace(H100, name="rtx_pro_6000_server", family="blackwell", compute_capability="12.0")
A100 = replace(H100, name="a100_sxm", family="ampere", compute_capability="8.0")

TARGET = ModelShape(70_553_706_496, 80, 8, 128, 64, 8192, 28672, 128256, 131072, 128256 * 8192)
DRAFT = ModelShape(1_235_814_400, 16, 8, 64, 32, 2048, 8192, 128256, 131072, 128256 * 2048, tied_head=True)


def request(role: Any) -> EngineRequest:
    return EngineRequest(
        role=role,
        checkpoint=Path(role),
        weights="fp8",
        kv_cache="auto",
        tokens_per_block=32,
        max_batch_size=16,
        max_input_tokens=4095,
        max_sequence_tokens=4096,
        max_batched_tokens=8192,
        max_draft_tokens=5,
        release="1.2.1",
        tensor_parallel=2,
    )


def facts(role: str, shape: ModelShape, **stored: Any) -> ModelFacts:
    return ModelFacts(Path(role), {"architectures": ["LlamaForCausalLM"]}, shape, StoredFormat(**stored))


PAIR = Deployment(
    chip=H100,
    chip_count=2,
    target=request("target"),
    target_facts=facts("target", TARGET),
    draft=request("draft"),
    draft_facts=facts("draft", DRAFT),
    method="draft_target",
    acceptance="tokens",
    max_draft_tokens=5,
    reuse=True,
    host_offload_bytes=0,
    topology="single",
)

Judge = Callable[..., list[Finding]]


@pytest.fixture
def judge() -> Judge:
    """Findings of the accepted pair with fields changed; names like target__kv_cache or both__kv_cache reach into the requests."""

    def findings(**changes: Any) -> list[Finding]:
        pair = replace(PAIR, **{name: value for name, value in changes.items() if "__" not in name})
        for name, value in changes.items():
            role, _, field = name.partition("__")
            for part in (("target", "draft") if role == "both" else (role,)) if field else ():
                pair = replace(pair, **{part: replace(getattr(pair, part), **{field: value})})
        return list(ENGINE.check_deployment(pair))

    return findings
