"""A sound pair on an H200, and changes to it: the rules are tried on what differs."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from builder.api import Deployment, EngineRequest, Finding, ModelFacts, ModelShape, Role, StoredFormat
from builder.hardware.chips import find_chip

LLAMA_70B = ModelShape(
    parameters=70_553_706_496,
    layers=80,
    kv_heads=8,
    head_dim=128,
    heads=64,
    hidden_size=8192,
    intermediate_size=28672,
    vocab_size=128256,
    max_positions=131072,
    embedding_parameters=128256 * 8192,
)
LLAMA_1B = ModelShape(
    parameters=1_235_814_400,
    layers=16,
    kv_heads=8,
    head_dim=64,
    heads=32,
    hidden_size=2048,
    intermediate_size=8192,
    vocab_size=128256,
    max_positions=131072,
    embedding_parameters=128256 * 2048,
    tied_head=True,
)
CONFIG = {"architectures": ["LlamaForCausalLM"]}
Changes = Mapping[str, Any]


def request(role: Role, chip: str = "h200_sxm", **changes: Any) -> EngineRequest:
    """FP8 weights in 16 sequences of 8192 tokens; the target with an FP8 cache and 5 draft tokens."""
    target = role == "target"
    values: dict[str, Any] = {
        "role": role,
        "checkpoint": Path(role),
        "weights": "fp8",
        "kv_cache": "fp8" if target else "auto",
        "tokens_per_block": 32,
        "max_batch_size": 16,
        "max_input_tokens": 8191,
        "max_sequence_tokens": 8192,
        "max_batched_tokens": 8192,
        "max_draft_tokens": 5 if target else 0,
        "release": "1.2.1",
        "chip": chip,
    }
    return EngineRequest(**{**values, **changes})


def deployment(chip: str = "h200_sxm", **changes: Any) -> Deployment:
    """The pair with changes: fields of Deployment as they are, or `both`, `target` and `draft` (of the request), `target_shape`,
    `draft_shape`, `target_stored`, `draft_stored`, `target_config` and `path`. `draft=None` leaves the draft model out."""
    both, path = changes.pop("both", {}), changes.pop("path", Path("target"))
    target_changes, draft_changes = changes.pop("target", {}), changes.pop("draft", {})
    target_facts = _facts(path, LLAMA_70B, changes, "target")
    draft_facts = _facts(Path("draft"), LLAMA_1B, changes, "draft")
    alone = draft_changes is None
    values: dict[str, Any] = {
        "chip": find_chip(chip),
        "chip_count": 1,
        "target": request("target", chip, **{**both, **target_changes}),
        "target_facts": target_facts,
        "draft": None if alone else request("draft", chip, **{**both, **draft_changes}),
        "draft_facts": None if alone else draft_facts,
        "method": "draft_target",
        "acceptance": "tokens",
        "max_draft_tokens": 5,
        "reuse": True,
        "host_offload_bytes": 0,
        "topology": "orchestrated",
    }
    return Deployment(**{**values, **changes})


def alone(**changes: Any) -> dict[str, Any]:
    """Changes that leave drafting out."""
    return {"method": "none", "draft": None, "max_draft_tokens": 0, **changes}


def _facts(path: Path, shape: ModelShape, changes: dict[str, Any], role: str) -> ModelFacts:
    shape = replace(shape, **changes.pop(f"{role}_shape", {}))
    return ModelFacts(path, changes.pop(f"{role}_config", CONFIG), shape, changes.pop(f"{role}_stored", StoredFormat()))


def with_code(findings: list[Finding], code: str) -> list[Finding]:
    return [f for f in findings if f.code == code]
