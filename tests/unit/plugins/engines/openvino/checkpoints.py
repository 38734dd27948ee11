"""Tiny random checkpoints of several families, stored in a chosen type."""

from pathlib import Path
from typing import Any

SMALL: dict[str, Any] = {
    "vocab_size": 128,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "initializer_range": 0.3,
}
FAMILIES: dict[str, dict[str, Any]] = {
    "llama": SMALL | {"tie_word_embeddings": True},
    "gpt2": {"vocab_size": 128, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 512, "initializer_range": 0.3},
    "qwen3_moe": SMALL | {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "head_dim": 16},
    "gemma3_text": SMALL | {"head_dim": 16},
}


def save_checkpoint(family: str, dtype: str, folder: Path) -> None:
    """Random weights in `float32 | bfloat16 | float16`, the same ones each time."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(family, **FAMILIES[family]), dtype=torch.float32)
    model.to(getattr(torch, dtype)).save_pretrained(folder)
