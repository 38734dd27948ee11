"""Every family that is said to be tried: transformers' logits from a tiny random model, in chunks over shuffled blocks, beyond windows."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from builder.api import EngineRequest
from plugins.engines.openvino import ENGINE
from plugins.engines.openvino.families import families
from plugins.engines.openvino.record import EngineRecord
from plugins.engines.openvino.runtime.runner import Feed, Runner

IDS = [int(i) for i in np.random.default_rng(0).integers(3, 96, 70)]
CHUNKS = (40, 1, 5, 24)
BLOCKS = (2, 0, 1)
SIZES: dict[str, object] = {
    "vocab_size": 96,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 128,
    "initializer_range": 0.3,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "num_experts": 4,
    "num_local_experts": 4,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
}
"""Given where a family's configuration knows the word."""
WINDOW = 20
OWN: dict[str, dict[str, object]] = {
    "codegen": {"rotary_dim": 4},
    "gemma2": {"attn_logit_softcapping": None},
    "gptj": {"rotary_dim": 4},
    "gpt_bigcode": {"num_key_value_heads": 1},
    "granite": {"logits_scaling": 4.0},
    "opt": {"word_embed_proj_dim": 32, "ffn_dim": 48},
    "qwen2": {"use_sliding_window": True},
    "qwen3": {"use_sliding_window": True},
    "vaultgemma": {"attn_logit_softcapping": None},
}
LONG = {"rope_type": "longrope", "rope_theta": 10000.0, "short_factor": [1.1] * 4, "long_factor": [4.0] * 4, "factor": 4.0}
VARIANTS: dict[str, tuple[str, dict[str, object]]] = {
    "llama with one head a query": ("llama", {"num_key_value_heads": 4}),
    "llama with tied embeddings": ("llama", {"tie_word_embeddings": True}),
    "llama with scaled rotation": ("llama", {"rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 10000.0}}),
    "llama with dynamic rotation": ("llama", {"rope_parameters": {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 10000.0}}),
    "phi3 with long rotation": (
        "phi3",
        {"rope_parameters": LONG | {"original_max_position_embeddings": 128}, "max_position_embeddings": 512},
    ),
    "mistral with a window in all layers": ("mistral", {"sliding_window": 5}),
    "gpt_bigcode with all heads": ("gpt_bigcode", {"multi_query": False, "num_key_value_heads": 4}),
}


def make_checkpoint(folder: Path, family: str, **changes: object) -> None:
    """A tiny random model in the family's own words."""
    import torch
    from transformers import CONFIG_MAPPING, AutoModelForCausalLM

    kind = CONFIG_MAPPING[family]
    usual = kind()
    values: dict[str, Any] = {name: value for name, value in SIZES.items() if hasattr(usual, name)}
    if getattr(usual, "sliding_window", None) or family in ("qwen2", "qwen3"):
        values["sliding_window"] = WINDOW
        if getattr(usual, "layer_types", None):
            values["layer_types"] = ["sliding_attention", "full_attention"]
    torch.manual_seed(0)
    config = kind(**values | OWN.get(family, {}) | changes)
    AutoModelForCausalLM.from_config(config, dtype=torch.float32).save_pretrained(folder)


def engine_logits(folder: Path) -> NDArray[np.float32]:
    runner = Runner(folder, EngineRecord.read(folder), len(BLOCKS), 1, pinned=False)
    rows, start = [], 0
    for size in CHUNKS:
        rows.append(runner.forward([Feed(IDS[start : start + size], start, BLOCKS, 0)]).copy())
        start += size
    return np.concatenate(rows)


@pytest.mark.parametrize("name", sorted(families().tried) + sorted(VARIANTS))
def test_family_gives_transformers_logits(name: str, tmp_path: Path) -> None:
    family, changes = VARIANTS.get(name, (name, {}))
    make_checkpoint(tmp_path, family, **changes)
    request = EngineRequest("target", tmp_path, "none", "fp32", 32, 2, 96, 128, 96, 0)
    assert list(ENGINE.check(request)) == []
    ENGINE.build(request, tmp_path / "engine", lambda what, share: None)
    expected = next(iter(ENGINE.parent_logits(tmp_path, [IDS])))
    difference = np.abs(engine_logits(tmp_path / "engine") - expected).max()
    assert difference < 3e-5 * np.abs(expected).max()


def test_no_family_is_both_tried_and_refused() -> None:
    assert not families().tried & set(families().refused)
