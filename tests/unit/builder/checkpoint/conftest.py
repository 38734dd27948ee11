"""Checkpoints with contents of their own."""

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

Contents = Mapping[str, tuple[str, Sequence[int], bytes]]
"""Name to dtype word, shape and bytes."""


def write_contents(file: Path, contents: Contents) -> None:
    """A safetensors file of small tensors with the given bytes."""
    header, data = {}, b""
    for name, (dtype, shape, content) in contents.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + data)


@pytest.fixture
def write_scales() -> Callable[..., Path]:
    """Puts scales of the KV cache beside a checkpoint's weights, as modelopt's export does; 4 layers, a key's and a value's each."""

    def write(folder: Path, scales: Sequence[float] = (0.5,) * 8, *, cache: str = "FP8", weights: str = "FP8") -> Path:
        quantization = {"quant_algo": weights, "kv_cache_quant_algo": cache}
        producer = {"name": "modelopt", "version": "0.47.0"}
        (folder / "hf_quant_config.json").write_text(json.dumps({"producer": producer, "quantization": quantization}))
        names = [f"model.layers.{i // 2}.self_attn.{'kv'[i % 2]}_proj.{'kv'[i % 2]}_scale" for i in range(len(scales))]
        if (folder / "model.safetensors").is_file():
            (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
        tensors: dict[str, tuple[str, Sequence[int], bytes]] = {
            name: ("F32", (), struct.pack("<f", scale)) for name, scale in zip(names, scales, strict=True)
        }
        write_contents(folder / "model-00002-of-00002.safetensors", tensors or {"unused": ("F32", (), bytes(4))})
        return folder

    return write
