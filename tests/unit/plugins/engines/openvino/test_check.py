"""What the CPU lane refuses before anything is built."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from builder.api import EngineRequest
from plugins.engines.openvino import ENGINE
from plugins.engines.openvino.families import families

LLAMA = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "num_attention_heads": 4, "hidden_size": 64, "num_hidden_layers": 2}
Make = Callable[..., EngineRequest]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Request for a checkpoint of which only config.json exists."""

    def make(config: dict[str, object] | None = None, **changes: object) -> EngineRequest:
        (tmp_path / "config.json").write_text(json.dumps(LLAMA | (config or {})))
        values: dict[str, object] = {
            "role": "target",
            "checkpoint": tmp_path,
            "weights": "int8",
            "kv_cache": "auto",
            "tokens_per_block": 32,
            "max_batch_size": 4,
            "max_input_tokens": 384,
            "max_sequence_tokens": 512,
            "max_batched_tokens": 384,
            "max_draft_tokens": 5,
        }
        return EngineRequest(**values | changes)  # type: ignore[arg-type]

    return make


def codes(request: EngineRequest) -> list[str]:
    return [f.code for f in ENGINE.check(request)]


@pytest.mark.parametrize("weights", ["none", "int8", "int4"])
@pytest.mark.parametrize("kv_cache", ["auto", "int8", "int4", "fp32", "bf16"])
def test_supported_words_pass(make: Make, weights: str, kv_cache: str) -> None:
    assert codes(make(weights=weights, kv_cache=kv_cache)) == []


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"weights": "fp8"}, "ENGINE-WEIGHTS"),
        ({"kv_cache": "nvfp4"}, "ENGINE-KV-DTYPE"),
        ({"kv_cache": "fp8"}, "ENGINE-KV-DTYPE"),
        ({"tokens_per_block": 64}, "ENGINE-BLOCK-SIZE"),
        ({"max_batched_tokens": 5}, "ENGINE-BATCHED-TOKENS"),
        ({"options": {"speed": 9}}, "ENGINE-OPTION"),
        ({"config": {"model_type": "t5", "is_encoder_decoder": True}}, "ENGINE-ARCHITECTURE"),
        ({"config": {"model_type": "deepseek_v3", "kv_lora_rank": 512}}, "ENGINE-ARCHITECTURE"),
        ({"config": {"model_type": "llava", "vision_config": {}}}, "ENGINE-ARCHITECTURE"),
        ({"config": {"model_type": "qwen3_next", "layer_types": ["linear_attention", "full_attention"]}}, "ENGINE-ARCHITECTURE"),
        ({"config": {"model_type": "mamba", "num_attention_heads": None}}, "ENGINE-ARCHITECTURE"),
        ({"config": {"model_type": "mamba_like", "ssm_cfg": {"layer": "Mamba1"}}}, "ENGINE-ARCHITECTURE"),
        ({"config": {"model_type": "new_mla", "kv_lora_rank": 512}}, "ENGINE-ARCHITECTURE"),
        ({"config": {"auto_map": {}}}, "ENGINE-ARCHITECTURE"),
        ({"config": {"model_type": "gemma2", "attn_logit_softcapping": 50.0}}, "ENGINE-SOFTCAP"),
        ({"config": {"rope_scaling": {"type": "dynamic"}, "max_position_embeddings": 511}}, "ENGINE-ROPE"),
        ({"config": {"rope_parameters": {"rope_type": "longrope", "original_max_position_embeddings": 256}}}, "ENGINE-ROPE"),
        ({"config": {"rope_parameters": {"full_attention": {"rope_type": "dynamic"}}, "max_position_embeddings": 256}}, "ENGINE-ROPE"),
    ],
    ids=str,
)
def test_refusal_has_a_code_a_finding_and_what_is_needed(make: Make, changes: dict[str, object], code: str) -> None:
    findings = ENGINE.check(make(**changes))
    assert [f.code for f in findings] == [code]
    assert findings[0].severity == "error"
    assert findings[0].message
    assert findings[0].found
    assert findings[0].needed
    assert findings[0].fix


@pytest.mark.parametrize(
    "config",
    [
        {"sliding_window": 256},
        {"sliding_window": 256, "layer_types": ["full_attention", "sliding_attention"]},
        {"rope_parameters": {"rope_type": "llama3"}},
        {"rope_scaling": {"type": "dynamic"}, "max_position_embeddings": 512},
        {"rope_scaling": {"type": "longrope"}, "original_max_position_embeddings": 512, "max_position_embeddings": 9999},
    ],
    ids=str,
)
def test_windows_and_rotations_that_do_not_grow_pass(make: Make, config: dict[str, object]) -> None:
    assert codes(make(config)) == []


@pytest.mark.parametrize("family", sorted(families().refused))
def test_family_that_cannot_run_is_refused_by_name(make: Make, family: str) -> None:
    (finding,) = ENGINE.check(make({"model_type": family}))
    assert (finding.code, finding.severity, finding.found) == ("ENGINE-ARCHITECTURE", "error", family)
    assert families().refused[family] in finding.message


@pytest.mark.parametrize("family", sorted(families().tried))
def test_family_that_was_tried_passes(make: Make, family: str) -> None:
    assert codes(make({"model_type": family})) == []


def test_family_that_nobody_tried_is_a_warning(make: Make) -> None:
    (finding,) = ENGINE.check(make({"model_type": "llama9"}))
    assert (finding.code, finding.severity) == ("ENGINE-UNTRIED", "warning")


def test_all_refusals_at_once(make: Make) -> None:
    assert codes(make({"is_encoder_decoder": True}, weights="fp8", kv_cache="fp8")) == [
        "ENGINE-WEIGHTS",
        "ENGINE-KV-DTYPE",
        "ENGINE-ARCHITECTURE",
    ]


def test_unreadable_config_is_a_refusal(make: Make, tmp_path: Path) -> None:
    request = make()
    (tmp_path / "config.json").write_text("{")
    assert codes(request) == ["ENGINE-CONFIG"]
