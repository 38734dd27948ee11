"""Tiny models that transformers itself saves: nothing to find fault with, and every weight counted."""

from pathlib import Path
from typing import Any

import pytest

from builder.checkpoint import Checkpoint, read_checkpoint

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

SIZES: dict[str, object] = {
    "vocab_size": 96,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 128,
    "num_experts": 4,
    "num_local_experts": 4,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": [2, 3],
}
"""Given where a family's configuration knows the word."""
DENSE = ("llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text", "phi3", "gpt2", "gpt_neox", "starcoder2", "smollm3")
EXPERTS = ("mixtral", "qwen3_moe", "olmoe", "granitemoe", "deepseek_v2", "gpt_oss")
SOFT_CAP = {"gemma2": {"attn_logit_softcapping": None}}


def save(folder: Path, family: str, **changes: object) -> tuple[Any, Checkpoint]:
    """The model as transformers loads it again, and the folder as it is read here."""
    kind = transformers.CONFIG_MAPPING[family]
    usual = kind()
    known = {name: value for name, value in SIZES.items() if hasattr(usual, name)}
    if getattr(usual, "layer_types", None):
        known["layer_types"] = ["full_attention", "full_attention"]
    config = kind(**known | SOFT_CAP.get(family, {}) | changes)
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    (folder / "tokenizer.json").write_text("{}")
    return transformers.AutoModelForCausalLM.from_pretrained(folder), read_checkpoint(folder, "target.checkpoint")


def count(model: Any, part: str = "") -> int:
    return sum(weights.numel() for name, weights in model.named_parameters() if part in name)


@pytest.mark.parametrize("family", [*DENSE, *EXPERTS])
def test_every_weight_is_counted_once(tmp_path: Path, family: str) -> None:
    model, checkpoint = save(tmp_path / "model", family)
    head, embedding = model.get_output_embeddings().weight, model.get_input_embeddings().weight
    assert checkpoint.findings == ()
    assert checkpoint.parameters == count(model)
    assert checkpoint.shape.tied_head is (head.data_ptr() == embedding.data_ptr())
    assert checkpoint.shape.embedding_parameters == embedding.numel()
    assert checkpoint.end_ids == (2, 3)


@pytest.mark.parametrize("family", ["mixtral", "qwen3_moe", "olmoe", "granitemoe", "gpt_oss"])
def test_a_token_meets_two_of_four_experts(tmp_path: Path, family: str) -> None:
    model, checkpoint = save(tmp_path / "model", family, tie_word_embeddings=False)
    part = "block_sparse_moe." if family == "granitemoe" else ".experts."
    experts = count(model, part) - count(model, "router") * (family == "granitemoe")
    assert checkpoint.shape.active_parameters == count(model) - experts // 2 - 96 * 32


@pytest.mark.parametrize("tied", [True, False])
def test_positions_that_are_learnt_are_no_work(tmp_path: Path, tied: bool) -> None:
    model, checkpoint = save(tmp_path / "model", "gpt2", tie_word_embeddings=tied)
    assert checkpoint.parameters == count(model)
    assert checkpoint.shape.active_parameters == count(model) - count(model, "wpe") - (0 if tied else count(model, "wte"))
