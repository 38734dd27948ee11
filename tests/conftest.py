"""Fixtures that every test may use."""

import json
import signal
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

# A shell that starts the tests in the background has SIGINT ignored, and children inherit that; tests of Ctrl-C need it as in a terminal.
signal.signal(signal.SIGINT, signal.default_int_handler)

WriteCheckpoint = Callable[..., Path]


def write_safetensors(file: Path, shapes: dict[str, tuple[int, ...]], dtype: str = "BF16", itemsize: int = 2) -> None:
    """A whole safetensors file of zeros, sparse on disk."""
    header, offset = {}, 0
    for name, shape in shapes.items():
        size = itemsize
        for dimension in shape:
            size *= dimension
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    with file.open("wb") as stream:
        stream.write(struct.pack("<Q", len(text)) + text)
        stream.truncate(8 + len(text) + offset)


def llama_shapes(config: dict[str, Any], prefix: str = "model.") -> dict[str, tuple[int, ...]]:
    """Every tensor of a llama model with the sizes of its configuration."""
    hidden, inner, heads = config["hidden_size"], config["intermediate_size"], config["num_attention_heads"]
    head_dim = config.get("head_dim") or hidden // heads
    queries, keys = heads * head_dim, (config.get("num_key_value_heads") or heads) * head_dim
    layer = {
        "self_attn.q_proj": (queries, hidden),
        "self_attn.k_proj": (keys, hidden),
        "self_attn.v_proj": (keys, hidden),
        "self_attn.o_proj": (hidden, queries),
        "mlp.gate_proj": (inner, hidden),
        "mlp.up_proj": (inner, hidden),
        "mlp.down_proj": (hidden, inner),
        "input_layernorm": (hidden,),
        "post_attention_layernorm": (hidden,),
    }
    shapes: dict[str, tuple[int, ...]] = {f"{prefix}embed_tokens.weight": (config["vocab_size"], hidden)}
    for number in range(config["num_hidden_layers"]):
        shapes |= {f"{prefix}layers.{number}.{name}.weight": shape for name, shape in layer.items()}
    shapes[f"{prefix}norm.weight"] = (hidden,)
    if not config.get("tie_word_embeddings"):
        shapes["lm_head.weight"] = (config["vocab_size"], hidden)
    return shapes


@pytest.fixture
def write_checkpoint(tmp_path: Path) -> WriteCheckpoint:
    """Writes a small llama checkpoint folder of zeros; keyword arguments change its config."""

    def write(name: str, *, layers: int = 4, vocabulary: dict[str, int] | None = None, **config: object) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        values: dict[str, Any] = {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "vocab_size": 64,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": layers,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 4096,
            "tie_word_embeddings": True,
            **config,
        }
        (folder / "config.json").write_text(json.dumps(values))
        words = vocabulary if vocabulary is not None else {f"t{i}": i for i in range(64)}
        (folder / "tokenizer.json").write_text(json.dumps({"model": {"vocab": words}, "added_tokens": []}))
        write_safetensors(folder / "model.safetensors", llama_shapes(values))
        return folder

    return write


@pytest.fixture
def write_pair(tmp_path: Path) -> Callable[[str], Path]:
    """Writes a pair file and returns its path."""

    def write(text: str) -> Path:
        file = tmp_path / "pair.yaml"
        file.write_text(text)
        return file

    return write
