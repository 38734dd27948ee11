"""Folders as upstream's tools leave them, read by the core and judged by the lane: draft lengths, splits, releases, precisions."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builder.api import Deployment, Finding, ModelFacts
from builder.checkpoint import read_checkpoint
from plugins.engines.tensorrt_llm import ENGINE
from tests.conftest import write_safetensors
from tests.unit.plugins.nvidia.pairs import deployment

MODEL: dict[str, Any] = {
    "architecture": "LlamaForCausalLM",
    "dtype": "bfloat16",
    "vocab_size": 64,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "head_size": 8,
    "hidden_act": "silu",
    "max_position_embeddings": 4096,
    "position_embedding_type": "rope_gpt_neox",
    "mapping": {"world_size": 2, "tp_size": 2, "pp_size": 1},
    "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"},
}
BUILD: dict[str, Any] = {
    "max_batch_size": 16,
    "max_num_tokens": 8192,
    "max_seq_len": 8202,
    "max_draft_len": 10,
    "speculative_decoding_mode": 2,
    "kv_cache_type": "PAGED",
    "plugin_config": {"use_paged_context_fmha": True},
}


def facts(folder: Path, config: dict[str, Any], *files: str) -> ModelFacts:
    """What the core reads of a folder with this config.json and these empty files."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    for file in files:
        (folder / file).touch()
    return read_checkpoint(folder, "target.checkpoint").facts


def with_engine(folder: Path, drafts: int, split: int = 2, **build: Any) -> Deployment:
    """The pair on two chips with this engine as its target."""
    record = {"version": "1.2.1", "pretrained_config": MODEL, "build_config": {**BUILD, **build}}
    target = facts(folder, record, "rank0.engine", "rank1.engine")
    made = deployment(chip_count=split, target={"tensor_parallel": split}, max_draft_tokens=drafts)
    return replace(made, target_facts=target)


def errors(made: Deployment) -> list[Finding]:
    return [f for f in ENGINE.check_deployment(made) if f.severity == "error"]


def test_an_engine_that_fits(tmp_path: Path) -> None:
    assert errors(with_engine(tmp_path / "engine", drafts=10)) == []


def test_more_drafts_than_the_engine_takes(tmp_path: Path) -> None:
    (found,) = errors(with_engine(tmp_path / "engine", drafts=12))
    assert found.message == "The plan asks for 12 draft tokens, and the target's engine takes 10: such a request is rejected."
    assert found.fix == (
        "set speculation.max_draft_tokens to 10 or less, or build the target again with --speculative_decoding_mode draft_tokens_external "
        "--max_draft_len 12"
    )


@pytest.mark.parametrize("mode", [1, "none", "SpeculativeDecodingMode.NONE"])
def test_an_engine_without_the_mode_takes_none(tmp_path: Path, mode: object) -> None:
    (found,) = errors(with_engine(tmp_path / "engine", drafts=5, speculative_decoding_mode=mode))
    assert found.message.startswith("The plan asks for 5 draft tokens, and the target's engine takes 0 (it was built without")


def test_the_split_is_the_engines(tmp_path: Path) -> None:
    found = errors(with_engine(tmp_path / "engine", drafts=5, split=4))
    assert [f.code for f in found] == ["RULE-STORED-SPLIT"]


def test_a_modelopt_checkpoint_without_a_calibrated_cache(tmp_path: Path) -> None:
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        **{name: MODEL[name] for name in ("vocab_size", "hidden_size", "intermediate_size", "max_position_embeddings")},
        "num_hidden_layers": 2,
        "num_attention_heads": 8,
        "num_key_value_heads": 8,
    }
    folder = tmp_path / "modelopt"
    folder.mkdir()
    write_safetensors(folder / "model.safetensors", {"model.embed_tokens.weight": (64, 64)})
    quantization = {"quant_algo": "FP8", "kv_cache_quant_algo": None}
    (folder / "hf_quant_config.json").write_text(json.dumps({"producer": {"name": "modelopt"}, "quantization": quantization}))
    made = replace(deployment(), target_facts=facts(folder, config))
    assert [f.code for f in ENGINE.check_deployment(made) if f.severity != "info"] == ["RULE-KV-SCALES"]
