"""GGUF files: metadata and tensor names from the header, without the tensors' bytes."""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from builder.api.model import StoredFormat
from builder.checkpoint.hf import sizes_of
from builder.checkpoint.model import Checkpoint
from builder.checkpoint.rope import check_rope, read_rope
from builder.checkpoint.safetensors import Tensor
from builder.checkpoint.shape import shape_of
from builder.errors import Finding, RefusedError

MAGIC = b"GGUF"
VERSIONS = (2, 3)
NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""struct's letter of each scalar type."""
STRING, ARRAY = 8, 9
MOST_VALUES = 4096
"""Arrays longer than this (token texts, merges) are counted and skipped."""
TYPES = {
    **dict(enumerate(("F32", "F16", "Q4_0", "Q4_1"))),
    **dict(enumerate(("Q5_0", "Q5_1", "Q8_0", "Q8_1", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "Q8_K"), 6)),
    **dict(enumerate(("IQ2_XXS", "IQ2_XS", "IQ3_XXS", "IQ1_S", "IQ4_NL", "IQ3_S", "IQ2_S", "IQ4_XS"), 16)),
    **dict(enumerate(("I8", "I16", "I32", "I64", "F64", "IQ1_M", "BF16"), 24)),
    34: "TQ1_0",
    35: "TQ2_0",
    39: "MXFP4",
    40: "NVFP4",
}
"""ggml's tensor types by number."""
SCALING = {"linear": "linear", "yarn": "yarn", "longrope": "longrope"}


@dataclass(frozen=True)
class _Header:
    metadata: Mapping[str, Any]
    lengths: Mapping[str, int]
    tensors: tuple[Tensor, ...]


def read_gguf(file: Path, field: str) -> Checkpoint:
    """Sizes, storage and tensors of a GGUF file. Raises RefusedError CKPT-GGUF, CKPT-CONFIG."""
    try:
        header = _read(file)
    except (OSError, ValueError, struct.error, UnicodeDecodeError, MemoryError, OverflowError) as error:
        message = f"{file} is no whole GGUF file: {error}"
        fix = "fetch the file again"
        raise RefusedError("CKPT-GGUF", message, field=field, found=str(error), needed="GGUF version 2 or 3", fix=fix) from None
    config = _config(header)
    geometry = sizes_of(config, file.parent, field)
    rope = read_rope(config)
    counts: dict[str, int] = {}
    for tensor in header.tensors:
        counts[tensor.dtype] = counts.get(tensor.dtype, 0) + (tensor.elements if len(tensor.shape) > 1 else 0)
    most = max(counts, key=lambda word: counts[word], default="")
    plain = most in ("F32", "F16", "BF16", "")
    details = {"main_type": most, "tokens": str(header.lengths.get("tokenizer.ggml.tokens", 0))}
    rows = next((t.shape[0] for t in header.tensors if t.name == "token_embd.weight"), 0)
    return Checkpoint(
        path=file,
        config=config,
        model_type=str(config["model_type"]),
        shape=shape_of(geometry, header.tensors),
        stored=StoredFormat("gguf", "" if plain else f"GGUF_{most}", details=details),
        rope=rope,
        tensors=header.tensors,
        embedding_rows=rows,
        end_ids=(config["eos_token_id"],) if isinstance(config.get("eos_token_id"), int) else (),
        findings=(*check_rope(rope, field), *_short(file, header, field)),
    )


def _short(file: Path, header: _Header, field: str) -> Iterator[Finding]:
    end = max((t.begin for t in header.tensors), default=0)
    if end > file.stat().st_size:
        message = f"{file.name} has {file.stat().st_size} bytes, its last tensor begins at {end}: the file is cut short."
        yield Finding("CKPT-WEIGHTS", "error", message, field, file.name, "a whole file", f"fetch {file.name} again")


def _config(header: _Header) -> dict[str, Any]:
    """The metadata under the names of a Hugging Face configuration."""
    meta = header.metadata
    kind = str(meta.get("general.architecture", ""))

    def of(name: str) -> Any:
        return meta.get(f"{kind}.{name}")

    rows = next((t.shape[0] for t in header.tensors if t.name == "token_embd.weight"), None)
    scaling = SCALING.get(str(of("rope.scaling.type")))
    config = {
        "model_type": kind,
        "vocab_size": of("vocab_size") or rows or header.lengths.get("tokenizer.ggml.tokens"),
        "hidden_size": of("embedding_length"),
        "num_hidden_layers": of("block_count"),
        "intermediate_size": of("feed_forward_length"),
        "num_attention_heads": of("attention.head_count"),
        "num_key_value_heads": of("attention.head_count_kv"),
        "head_dim": of("attention.key_length"),
        "max_position_embeddings": of("context_length"),
        "rope_theta": of("rope.freq_base"),
        "num_local_experts": of("expert_count"),
        "num_experts_per_tok": of("expert_used_count"),
        "moe_intermediate_size": of("expert_feed_forward_length"),
        "kv_lora_rank": of("attention.kv_lora_rank"),
        "qk_rope_head_dim": of("rope.dimension_count") if of("attention.kv_lora_rank") else None,
        "eos_token_id": meta.get("tokenizer.ggml.eos_token_id"),
        "tie_word_embeddings": not any(t.name == "output.weight" for t in header.tensors),
        "rope_scaling": scaling
        and {"rope_type": scaling, "factor": of("rope.scaling.factor"), "original_max_position_embeddings": _original(meta, kind)},
    }
    return {name: value for name, value in config.items() if value is not None or name in ("num_key_value_heads", "head_dim")}


def _original(meta: Mapping[str, Any], kind: str) -> Any:
    return meta.get(f"{kind}.rope.scaling.original_context_length")


def _read(file: Path) -> _Header:
    with file.open("rb") as stream:
        if stream.read(4) != MAGIC:
            raise ValueError("it does not begin with GGUF")
        version, tensor_count, value_count = _unpack(stream, "<IQQ")
        if version not in VERSIONS:
            raise ValueError(f"version {version}")
        metadata: dict[str, Any] = {}
        lengths: dict[str, int] = {}
        for _ in range(value_count):
            name = _string(stream)
            value, length = _value(stream, *_unpack(stream, "<I"))
            metadata[name] = value
            lengths[name] = length
        raw = [_tensor(stream) for _ in range(tensor_count)]
        alignment = int(metadata.get("general.alignment") or 32)
        start = -(-stream.tell() // alignment) * alignment
    tensors = tuple(Tensor(name, word, shape, 0, file, start + offset) for name, word, shape, offset in raw)
    return _Header(metadata, lengths, tensors)


def _tensor(stream: BinaryIO) -> tuple[str, str, tuple[int, ...], int]:
    """Name, type word, shape with the outermost dimension first, and offset."""
    name = _string(stream)
    (rank,) = _unpack(stream, "<I")
    if rank > 8:
        raise ValueError(f"tensor {name} has {rank} dimensions")
    shape = _unpack(stream, f"<{rank}Q")
    number, offset = _unpack(stream, "<IQ")
    word = TYPES.get(number, f"TYPE_{number}")
    return name, word, tuple(reversed(shape)), offset


def _value(stream: BinaryIO, kind: int) -> tuple[Any, int]:
    """A value and, for an array, its length; long arrays are skipped."""
    if kind == STRING:
        return _string(stream), 1
    if kind == ARRAY:
        inner, count = _unpack(stream, "<IQ")
        return _array(stream, inner, count), count
    if kind not in NUMBERS:
        raise ValueError(f"value type {kind}")
    return _unpack(stream, f"<{NUMBERS[kind]}")[0], 1


def _array(stream: BinaryIO, inner: int, count: int) -> list[Any] | None:
    if inner in NUMBERS:
        code = NUMBERS[inner]
        if count > MOST_VALUES:
            stream.seek(struct.calcsize(code) * count, 1)
            return None
        return list(_unpack(stream, f"<{count}{code}"))
    if count <= MOST_VALUES:
        return [_value(stream, inner)[0] for _ in range(count)]
    for _ in range(count):
        _skip(stream, inner)
    return None


def _skip(stream: BinaryIO, kind: int) -> None:
    if kind != STRING:
        raise ValueError(f"a long array of type {kind}")
    stream.seek(_unpack(stream, "<Q")[0], 1)


def _string(stream: BinaryIO) -> str:
    (length,) = _unpack(stream, "<Q")
    if length > 1 << 24:
        raise ValueError(f"a text of {length} bytes")
    return _exactly(stream, length).decode("utf-8", "replace")


def _unpack(stream: BinaryIO, pattern: str) -> tuple[Any, ...]:
    return struct.unpack(pattern, _exactly(stream, struct.calcsize(pattern)))


def _exactly(stream: BinaryIO, count: int) -> bytes:
    data = stream.read(count)
    if len(data) < count:
        raise ValueError("it ends inside its header")
    return data
