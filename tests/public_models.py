"""Folders that look to a reader of headers like public checkpoints: their real configuration, shapes and shard sizes, no weights.

The configurations under tests/data/models are facts of public ones. Shards are sparse files: 800 GB of apparent size take no disk. The
tokenizer is made up, but has as many entries as the family's own, and its special tokens at the same ids.
"""

import json
import shutil
from pathlib import Path
from typing import Any

from tests.conftest import llama_shapes, write_safetensors

DATA = Path(__file__).parent / "data" / "models"
SHARD_BYTES = 5_000_000_000
BASE_TOKENS = {"llama": 128_000, "qwen2": 151_643, "qwen3": 151_643}
SPECIAL_TOKENS = {"llama": 256, "qwen2": 22, "qwen3": 26}

Shapes = dict[str, tuple[int, ...]]


def public_model(models: Path, name: str) -> Path:
    """Write `models/owner/name` as that public checkpoint and return it."""
    folder = models / name
    folder.mkdir(parents=True)
    for file in (DATA / name).iterdir():
        shutil.copy(file, folder / file.name)
    config = json.loads((folder / "config.json").read_text())
    _write_shards(folder, _tensors(config))
    _write_tokenizer(folder, config)
    return folder


def _tensors(config: dict[str, Any]) -> Shapes:
    """Every tensor of the checkpoint: llama's, and what a family adds to each layer."""
    head = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    queries, keys = head * config["num_attention_heads"], head * config["num_key_value_heads"]
    added = {
        "qwen2": {"q_proj.bias": queries, "k_proj.bias": keys, "v_proj.bias": keys},
        "qwen3": {"q_norm.weight": head, "k_norm.weight": head},
    }.get(config["model_type"], {})
    layers = range(config["num_hidden_layers"])
    return llama_shapes(config) | {f"model.layers.{i}.self_attn.{name}": (size,) for i in layers for name, size in added.items()}


def _write_shards(folder: Path, tensors: Shapes) -> None:
    shards: list[Shapes] = [{}]
    size_bytes = 0
    for name, shape in tensors.items():
        tensor_bytes = 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        if size_bytes + tensor_bytes > SHARD_BYTES and shards[-1]:
            shards.append({})
            size_bytes = 0
        shards[-1][name] = shape
        size_bytes += tensor_bytes
    names = [f"model-{i + 1:05}-of-{len(shards):05}.safetensors" for i in range(len(shards))]
    for file, shard in zip(names, shards, strict=True):
        write_safetensors(folder / file, shard)
    index = {tensor: file for file, shard in zip(names, shards, strict=True) for tensor in shard}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}))


def _write_tokenizer(folder: Path, config: dict[str, Any]) -> None:
    family = config["model_type"]
    base = BASE_TOKENS[family]
    special = [{"id": base + i, "content": f"<|special_{i}|>", "special": True} for i in range(SPECIAL_TOKENS[family])]
    tokenizer = {"model": {"type": "BPE", "vocab": {f"t{i}": i for i in range(base)}}, "added_tokens": special}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "chat_template": "{{ messages[0]['content'] }}", "eos_token": "<|special_1|>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
