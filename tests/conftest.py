"""Fixtures that every test may use."""

import json
import signal
import struct
from collections.abc import Callable
from pathlib import Path

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


@pytest.fixture
def write_checkpoint(tmp_path: Path) -> WriteCheckpoint:
    """Writes a small llama checkpoint folder of zeros; keyword arguments change its config."""

    def write(name: str, *, layers: int = 4, vocabulary: dict[str, int] | None = None, **config: object) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        values = {
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
        shapes = {"model.embed_tokens.weight": (64, 32)} | {f"model.layers.{i}.mlp.up_proj.weight": (64, 32) for i in range(layers)}
        write_safetensors(folder / "model.safetensors", shapes)
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
