"""Reading checkpoint folders: whole ones, and every way in which they are not."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from builder.checkpoint import read_checkpoint
from builder.errors import RefusedError

Write = Callable[..., Path]


def refused(folder: Path) -> str:
    with pytest.raises(RefusedError) as caught:
        read_checkpoint(folder, "target.checkpoint")
    assert caught.value.finding.field == "target.checkpoint"
    return caught.value.finding.code


def test_geometry_and_sizes(write_checkpoint: Write) -> None:
    checkpoint = read_checkpoint(write_checkpoint("target", layers=3), "target.checkpoint")
    assert (checkpoint.layers, checkpoint.kv_heads, checkpoint.head_dim, checkpoint.vocab_size) == (3, 2, 8, 64)
    layer = 2 * 32 * 32 + 2 * 16 * 32 + 3 * 64 * 32 + 2 * 32
    assert checkpoint.parameters == 64 * 32 + 3 * layer + 32
    assert checkpoint.findings == ()
    assert not checkpoint.has_chat_template


@pytest.mark.parametrize(("file", "code"), [("config.json", "CKPT-CONFIG"), ("model.safetensors", "CKPT-WEIGHTS")])
def test_missing_file(write_checkpoint: Write, file: str, code: str) -> None:
    folder = write_checkpoint("target")
    (folder / file).unlink()
    assert refused(folder) == code


def test_missing_tokenizer_leaves_a_plan(write_checkpoint: Write) -> None:
    folder = write_checkpoint("target")
    (folder / "tokenizer.json").unlink()
    assert [f.code for f in read_checkpoint(folder, "target.checkpoint").findings] == ["CKPT-TOKENIZER"]


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ((), "{folder} holds no config.json"),
        (("adapter_config.json",), "{folder} holds an adapter (LoRA), no model"),
        (("a.gguf", "b.gguf"), "{folder} holds several GGUF files and no config.json"),
    ],
    ids=str,
)
def test_folders_that_hold_something_else(tmp_path: Path, files: tuple[str, ...], sentence: str) -> None:
    for name in files:
        (tmp_path / name).write_text("{}")
    with pytest.raises(RefusedError) as caught:
        read_checkpoint(tmp_path, "target.checkpoint")
    assert (caught.value.finding.code, str(caught.value)) == ("CKPT-CONFIG", sentence.format(folder=tmp_path))


def test_weights_of_another_format_are_named(write_checkpoint: Write) -> None:
    folder = write_checkpoint("target")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(RefusedError, match="holds no tensors") as caught:
        read_checkpoint(folder, "target.checkpoint")
    assert "pytorch_model.bin" in caught.value.finding.found


def test_missing_folder(tmp_path: Path) -> None:
    assert refused(tmp_path / "none") == "CKPT-MISSING"


@pytest.mark.parametrize("text", [b"short", b"\xff" * 64])
def test_no_header_can_be_read(write_checkpoint: Write, text: bytes) -> None:
    folder = write_checkpoint("target")
    (folder / "model.safetensors").write_bytes(text)
    assert refused(folder) == "CKPT-WEIGHTS"


@pytest.mark.parametrize("text", ["{", "[]", '{"vocab_size": 0}', '{"vocab_size": "many"}'])
def test_broken_config(write_checkpoint: Write, text: str) -> None:
    folder = write_checkpoint("target")
    (folder / "config.json").write_text(text)
    assert refused(folder) == "CKPT-CONFIG"


def test_model_without_heads_is_named(write_checkpoint: Write) -> None:
    folder = write_checkpoint("target")
    (folder / "config.json").write_text(json.dumps({"model_type": "mamba", "hidden_size": 32, "num_hidden_layers": 2}))
    with pytest.raises(RefusedError, match=r"\(model_type mamba\) has no usable num_attention_heads"):
        read_checkpoint(folder, "target.checkpoint")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"weight_map": 3}'])
def test_broken_index(write_checkpoint: Write, text: str) -> None:
    folder = write_checkpoint("target")
    (folder / "model.safetensors.index.json").write_text(text)
    assert refused(folder) == "CKPT-WEIGHTS"


@pytest.mark.parametrize("header", [b"[]", b"3", b'{"a": 1}', b'{"a": {"data_offsets": [0]}}'])
def test_header_of_another_shape(write_checkpoint: Write, header: bytes) -> None:
    folder = write_checkpoint("target")
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    assert refused(folder) == "CKPT-WEIGHTS"


def test_chat_template_beside_or_inside_the_tokenizer_config(write_checkpoint: Write) -> None:
    folder = write_checkpoint("target")
    (folder / "tokenizer_config.json").write_text('{"chat_template": "{{ messages }}"}')
    assert read_checkpoint(folder, "target.checkpoint").has_chat_template
    (folder / "tokenizer_config.json").write_text("{}")
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    assert read_checkpoint(folder, "target.checkpoint").has_chat_template
