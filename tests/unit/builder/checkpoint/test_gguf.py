"""GGUF files written by the format's own package."""

import struct
from pathlib import Path

import pytest

from builder.checkpoint import read_checkpoint
from builder.errors import RefusedError

gguf = pytest.importorskip("gguf")
np = pytest.importorskip("numpy")

LAYERS, HIDDEN, VOCABULARY = 2, 64, 5000


def write(file: Path, *, tied: bool = True, quantized: bool = True, tokens: int = VOCABULARY, **more: object) -> Path:
    writer = gguf.GGUFWriter(file, "llama")
    writer.add_block_count(LAYERS)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(128)
    writer.add_head_count(8)
    writer.add_head_count_kv(2)
    writer.add_context_length(8192)
    writer.add_rope_freq_base(100000.0)
    writer.add_eos_token_id(2)
    writer.add_token_list([f"token {number}" for number in range(tokens)])
    writer.add_token_scores([0.5] * tokens)
    for name, value in more.items():
        writer.add_string(name, str(value))
    kind = gguf.GGMLQuantizationType.Q8_0
    rows = {"token_embd.weight": VOCABULARY, **({} if tied else {"output.weight": VOCABULARY})}
    rows |= {f"blk.{layer}.ffn_up.weight": 128 for layer in range(LAYERS)}
    for name, count in rows.items():
        values = np.zeros((count, HIDDEN), np.float32)
        writer.add_tensor(name, gguf.quantize(values, kind) if quantized else values, raw_dtype=kind if quantized else None)
    writer.add_tensor("output_norm.weight", np.zeros(HIDDEN, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize(("quantized", "word"), [(True, "GGUF_Q8_0"), (False, "")])
def test_sizes_and_storage(tmp_path: Path, tied: bool, quantized: bool, word: str) -> None:
    checkpoint = read_checkpoint(write(tmp_path / "model.gguf", tied=tied, quantized=quantized), "target.checkpoint")
    shape, stored = checkpoint.shape, checkpoint.stored
    assert (shape.layers, shape.heads, shape.kv_heads, shape.head_dim, shape.hidden_size) == (LAYERS, 8, 2, 8, HIDDEN)
    assert (shape.vocab_size, shape.max_positions, shape.intermediate_size) == (VOCABULARY, 8192, 128)
    assert shape.parameters == (1 if tied else 2) * VOCABULARY * HIDDEN + LAYERS * 128 * HIDDEN + HIDDEN
    assert (shape.tied_head, shape.embedding_parameters) == (tied, VOCABULARY * HIDDEN)
    assert (stored.kind, stored.weights, stored.details["tokens"]) == ("gguf", word, str(VOCABULARY))
    assert (checkpoint.model_type, checkpoint.end_ids, checkpoint.embedding_rows, checkpoint.findings) == ("llama", (2,), VOCABULARY, ())
    assert checkpoint.rope is not None
    assert checkpoint.rope.theta == 100000.0


def test_folder_of_one_file_and_of_several(tmp_path: Path) -> None:
    write(tmp_path / "a.gguf")
    assert read_checkpoint(tmp_path, "x").path == tmp_path / "a.gguf"
    write(tmp_path / "b.gguf")
    with pytest.raises(RefusedError, match="several GGUF files") as caught:
        read_checkpoint(tmp_path, "x")
    assert caught.value.finding.fix == f"name one of them: {tmp_path / 'a.gguf'}"


@pytest.mark.parametrize("content", [b"", b"GGML", b"GGUF", b"GGUF" + struct.pack("<IQQ", 1, 0, 0), b"GGUF" + struct.pack("<IQQ", 3, 0, 5)])
def test_no_gguf_file(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.gguf").write_bytes(content)
    with pytest.raises(RefusedError) as caught:
        read_checkpoint(tmp_path, "x")
    assert caught.value.finding.code == "CKPT-GGUF"


def test_cut_short(tmp_path: Path) -> None:
    file = write(tmp_path / "model.gguf")
    with file.open("r+b") as stream:
        stream.truncate(file.stat().st_size // 2)
    assert [f.code for f in read_checkpoint(file, "x").findings] == ["CKPT-WEIGHTS"]
