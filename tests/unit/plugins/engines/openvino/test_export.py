"""Export of other families than llama: experts, query-key norms, learned positions, tied embeddings, scaled logits."""

from pathlib import Path

import numpy as np
import pytest

from builder.api import EngineRequest
from plugins.engines.openvino import ENGINE
from plugins.engines.openvino.runtime.llm import Engine, Request, Result

SMALL = {
    "vocab_size": 128,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "initializer_range": 0.3,
}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "head_dim": 16}
GPT2 = {"vocab_size": 128, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 512, "initializer_range": 0.3}
FAMILIES = {
    "qwen3_moe": SMALL | EXPERTS,
    "gpt2": GPT2,
    "granite": SMALL | {"logits_scaling": 4.0, "tie_word_embeddings": True},
}


@pytest.mark.parametrize("family", FAMILIES)
def test_family_gives_transformers_logits(family: str, tmp_path: Path) -> None:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(AutoConfig.for_model(family, **FAMILIES[family]), dtype=torch.float32).save_pretrained(tmp_path)
    request = EngineRequest("target", tmp_path, "none", "fp32", 32, 2, 256, 300, 48, 4)
    assert list(ENGINE.check(request)) == []
    ENGINE.build(request, tmp_path / "engine", lambda what, share: None)
    prompt = tuple(int(i) for i in np.random.default_rng(0).integers(3, 128, 90))
    result = Engine.load(tmp_path / "engine", threads=1).generate([Request(prompt, 6, want_generation_logits=True)])[0]
    assert isinstance(result, Result)
    assert result.generation_logits is not None
    expected = next(iter(ENGINE.parent_logits(tmp_path, [(*prompt, *result.output_ids)])))[89:-1]
    assert np.abs(result.generation_logits - expected).max() < 1e-4
