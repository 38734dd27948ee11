"""Checkpoints of hundreds of gigabytes are read in seconds and little memory: sparse files with real headers."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import llama_shapes, write_safetensors

SHARDS = 100
MOST_S = 3.0
MOST_BYTES = 150 << 20
READ = """
import json, pathlib, sys, time
begin = time.perf_counter()
from builder.checkpoint import known_digest, read_checkpoint
folder = pathlib.Path(sys.argv[1])
checkpoint = read_checkpoint(folder, "target.checkpoint")
digest = known_digest(folder, None)
status = dict(line.split(":", 1) for line in pathlib.Path("/proc/self/status").read_text().splitlines())
print(json.dumps({
    "seconds": time.perf_counter() - begin, "bytes": int(status["VmHWM"].split()[0]) * 1024, "parameters": checkpoint.parameters,
    "findings": [f.message for f in checkpoint.findings], "tensors": len(checkpoint.tensors), "digest": digest,
}))
"""
"""Reads in a process of its own, which tells the most memory that it had."""


def write_sharded(folder: Path, config: dict[str, Any], shapes: dict[str, tuple[int, ...]]) -> int:
    """100 shards with an index; their apparent size in bytes."""
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").unlink()
    names = list(shapes)
    index = {name: f"model-{number * SHARDS // len(names) + 1:05}-of-00100.safetensors" for number, name in enumerate(names)}
    by_shard: dict[str, dict[str, tuple[int, ...]]] = {}
    for name, shard in index.items():
        by_shard.setdefault(shard, {})[name] = shapes[name]
    for shard, held in by_shard.items():
        write_safetensors(folder / shard, held)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}))
    return sum(file.stat().st_size for file in folder.glob("*.safetensors"))


LLAMA_405B = {
    "model_type": "llama",
    "vocab_size": 128256,
    "hidden_size": 16384,
    "intermediate_size": 53248,
    "num_hidden_layers": 126,
    "num_attention_heads": 128,
    "num_key_value_heads": 8,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
}
EXPERTS = {
    "model_type": "mixtral",
    "vocab_size": 32000,
    "hidden_size": 4096,
    "intermediate_size": 1024,
    "num_hidden_layers": 60,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "max_position_embeddings": 32768,
    "num_local_experts": 256,
    "num_experts_per_tok": 8,
    "tie_word_embeddings": False,
}


def experts_shapes(config: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    shapes = {name: shape for name, shape in llama_shapes(config).items() if ".mlp." not in name}
    for layer in range(config["num_hidden_layers"]):
        moe = f"model.layers.{layer}.block_sparse_moe"
        shapes[f"{moe}.gate.weight"] = (config["num_local_experts"], hidden)
        for expert in range(config["num_local_experts"]):
            names = {"w1": (inner, hidden), "w2": (hidden, inner), "w3": (inner, hidden)}
            shapes |= {f"{moe}.experts.{expert}.{name}.weight": shape for name, shape in names.items()}
    return shapes


@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="needs Linux's record of a process's memory")
@pytest.mark.parametrize(
    ("config", "shapes", "parameters"),
    [(LLAMA_405B, llama_shapes, 405_853_388_800), (EXPERTS, experts_shapes, 196_115_664_896)],
    ids=["810 GB", "46,000 tensors"],
)
def test_headers_alone_are_read(
    write_checkpoint: Callable[..., Path],
    config: dict[str, Any],
    shapes: Callable[[dict[str, Any]], dict[str, tuple[int, ...]]],
    parameters: int,
) -> None:
    folder = write_checkpoint("large")
    size = write_sharded(folder, config, shapes(config))
    assert size > 390e9
    done = subprocess.run([sys.executable, "-c", READ, str(folder)], capture_output=True, text=True, check=True)
    read = json.loads(done.stdout)
    assert (read["findings"], read["digest"], read["parameters"]) == ([], None, parameters)
    assert read["tensors"] == len(shapes(config))
    assert read["seconds"] < MOST_S
    assert read["bytes"] < MOST_BYTES
