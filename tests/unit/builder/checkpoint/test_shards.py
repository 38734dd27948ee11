"""Shards against the index: what is missing, cut short, renamed or unknown is named."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from builder.checkpoint import Checkpoint, read_checkpoint
from builder.errors import Finding, RefusedError
from tests.conftest import llama_shapes, write_safetensors

Write = Callable[..., Path]
SHARDS = 3


def split(folder: Path) -> dict[str, str]:
    """Put the weights into three shards with an index, and return its map."""
    shapes = llama_shapes(json.loads((folder / "config.json").read_text()))
    names = list(shapes)
    weight_map = {name: f"model-{number * SHARDS // len(names) + 1:05}-of-{SHARDS:05}.safetensors" for number, name in enumerate(names)}
    for shard in set(weight_map.values()):
        write_safetensors(folder / shard, {name: shapes[name] for name in names if weight_map[name] == shard})
    (folder / "model.safetensors").unlink()
    write_index(folder, weight_map)
    return weight_map


def write_index(folder: Path, weight_map: dict[str, str]) -> None:
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))


def shard(number: int) -> str:
    return f"model-{number:05}-of-{SHARDS:05}.safetensors"


def read(folder: Path) -> Checkpoint:
    return read_checkpoint(folder, "target.checkpoint")


def only(folder: Path) -> Finding:
    (finding,) = read(folder).findings
    assert finding.field == "target.checkpoint"
    return finding


def test_whole_set(write_checkpoint: Write) -> None:
    folder = write_checkpoint("target")
    whole = read(folder).shape
    split(folder)
    assert (read(folder).findings, read(folder).shape) == ((), whole)


@pytest.mark.parametrize("indexed", [True, False])
def test_missing_shard_is_named_and_counted(write_checkpoint: Write, indexed: bool) -> None:
    folder = write_checkpoint("target")
    split(folder)
    whole = read(folder).parameters
    (folder / shard(2)).unlink()
    if not indexed:
        (folder / "model.safetensors.index.json").unlink()
    finding = only(folder)
    assert (finding.code, finding.severity, finding.needed) == ("CKPT-SHARD-MISSING", "error", shard(2))
    source = "model.safetensors.index.json" if indexed else "the name of the other shards"
    assert finding.message == f"By {source}, {shard(2)} is not there: 2 of 3 shards are present. Was the download interrupted?"
    assert read(folder).parameters == whole, "sizes follow from the configuration when weights are missing"


def test_no_shard_at_all_leaves_nothing_to_plan_with(write_checkpoint: Write) -> None:
    folder = write_checkpoint("target")
    split(folder)
    for number in (1, 2, 3):
        (folder / shard(number)).unlink()
    with pytest.raises(RefusedError, match=r"0 of 3 shards are present. Was the download interrupted\?"):
        read(folder)


def test_shard_cut_short_still_gives_a_plan(write_checkpoint: Write) -> None:
    folder = write_checkpoint("target")
    split(folder)
    file = folder / shard(2)
    size = file.stat().st_size
    with file.open("r+b") as stream:
        stream.truncate(size - 1)
    finding = only(folder)
    assert finding.code == "CKPT-WEIGHTS"
    assert finding.message == f"{shard(2)}: {size - 1} bytes, but its header names {size}: the file is cut short."


def test_stale_index_over_shards_of_other_names(write_checkpoint: Write) -> None:
    folder = write_checkpoint("target")
    split(folder)
    whole = read(folder).shape
    for number in (1, 2, 3):
        (folder / shard(number)).rename(folder / f"part-{number}.safetensors")
    finding = only(folder)
    assert (finding.code, finding.severity) == ("CKPT-INDEX-STALE", "error")
    assert finding.message == (
        f"model.safetensors.index.json is stale: it names {shard(1)}, {shard(2)}, {shard(3)}, while every tensor it lists stands in files "
        "of other names (part-1.safetensors, part-2.safetensors, part-3.safetensors). A loader follows the index and finds nothing."
    )
    assert read(folder).shape == whole


def test_index_lists_a_tensor_that_the_header_lacks(write_checkpoint: Write) -> None:
    folder = write_checkpoint("target")
    write_index(folder, split(folder) | {"model.extra.weight": shard(2)})
    finding = only(folder)
    assert (finding.code, finding.severity) == ("CKPT-INDEX-TENSOR", "error")
    assert finding.message == (
        "By model.safetensors.index.json, 1 of 39 tensors stand in shards whose headers lack them; "
        f"the first is model.extra.weight in {shard(2)}."
    )


def test_shard_holds_a_tensor_that_the_index_does_not_know(write_checkpoint: Write) -> None:
    folder = write_checkpoint("target")
    weight_map = split(folder)
    del weight_map["model.norm.weight"]
    write_index(folder, weight_map)
    finding = only(folder)
    assert (finding.code, finding.severity) == ("CKPT-INDEX-UNKNOWN", "warning")
    assert finding.message == (
        f"The shards hold 1 tensors that model.safetensors.index.json does not place there; the first is model.norm.weight in {shard(3)}."
    )


def test_other_files_of_a_folder_are_no_shards(write_checkpoint: Write) -> None:
    folder = write_checkpoint("target")
    for name in ("consolidated.safetensors", "adapter_model.safetensors"):
        write_safetensors(folder / name, {"anything": (64, 64)})
    assert read(folder).findings == ()
    (folder / "model.safetensors").rename(folder / "weights.safetensors")
    assert read(folder).findings == ()


def test_size_that_contradicts_shape_and_dtype(write_checkpoint: Write) -> None:
    folder = write_checkpoint("target")
    header = b'{"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}'
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    with pytest.raises(RefusedError, match=r"a is F32 of shape \[2\] in 4 bytes"):
        read(folder)
