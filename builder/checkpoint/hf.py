"""A Hugging Face checkpoint folder, from its small files and tensor headers."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from builder.checkpoint.generation import read_end_ids
from builder.checkpoint.geometry import Geometry, SizeError, read_geometry, text_config
from builder.checkpoint.head import check_head
from builder.checkpoint.layout import check_dtypes, check_layout
from builder.checkpoint.model import Checkpoint
from builder.checkpoint.names import OTHER_PARTS, PACKED_32, embedding_of
from builder.checkpoint.quantization import bits_of, check_agreement, check_files, read_format
from builder.checkpoint.rope import check_rope, most_positions, read_rope
from builder.checkpoint.scales import read_cache_scales
from builder.checkpoint.shape import shape_of
from builder.checkpoint.shards import Stored, read_stored
from builder.errors import Finding, RefusedError


def read_huggingface(path: Path, config: Mapping[str, Any], field: str) -> Checkpoint:
    """Raises RefusedError when sizes or every header are missing; whatever else is wrong becomes a finding."""
    geometry = sizes_of(config, path, field)
    weights = read_stored(path, field)
    stored = read_format(path, config)
    scales = read_cache_scales(stored, weights.tensors, geometry.layers, field) if weights.whole else None
    rope = read_rope(config)
    embedding = embedding_of(weights.tensors)
    bits = bits_of(stored)
    if bits == 16 and any(t.name.rsplit(".", 1)[-1] in PACKED_32 for t in weights.tensors):
        bits = 4
    tensors = weights.tensors if weights.whole else ()
    return Checkpoint(
        path=path,
        config=config,
        model_type=str(config.get("model_type", "")),
        shape=shape_of(geometry, tensors, bits=bits, max_positions=most_positions(rope, geometry.max_positions)),
        stored=replace(stored, kv_scales=scales.state if scales else ""),
        rope=rope,
        tensors=weights.tensors,
        embedding_rows=embedding.shape[0] if embedding and len(embedding.shape) == 2 else 0,
        end_ids=read_end_ids(path, config),
        findings=(
            *weights.findings,
            *_tokenizer(path, field),
            *check_rope(rope, field),
            *(_check_tensors(config, geometry, weights, stored.weights, bits, field)),
            *check_files(path, field),
            *check_agreement(path, config, field),
            *(scales.findings if scales else ()),
        ),
    )


def sizes_of(config: Mapping[str, Any], path: Path, field: str) -> Geometry:
    """The configuration's sizes. Raises RefusedError CKPT-CONFIG, naming every spelling of a missing one."""
    try:
        return read_geometry(config)
    except SizeError as error:
        message = f"{path / 'config.json'} (model_type {config.get('model_type')}) has {error}"
        needed = f"{' or '.join(error.names)} > 0"
        raise RefusedError("CKPT-CONFIG", message, field=field, found=error.found, needed=needed) from None


def _check_tensors(
    config: Mapping[str, Any], geometry: Geometry, weights: Stored, quantization: str, bits: int, field: str
) -> tuple[Finding, ...]:
    """Only of a complete checkpoint: what is missing from an incomplete one has been said."""
    if not weights.whole:
        return ()
    text = [t for t in weights.tensors if not OTHER_PARTS.search(t.name)]
    kind = str(text_config(config).get("model_type") or config.get("model_type") or "")
    dtypes = () if quantization else tuple(check_dtypes(text, bits, field))
    return (*check_layout(kind, geometry, text, field), *check_head(geometry, text, field), *dtypes)


def _tokenizer(path: Path, field: str) -> tuple[Finding, ...]:
    if (path / "tokenizer.json").is_file():
        return ()
    present = ", ".join(sorted(p.name for p in path.iterdir())[:8])
    message = f"{path.name} holds no tokenizer.json: text cannot be turned into token ids."
    fix = "copy it from the model, or save the tokenizer with transformers, which writes it"
    return (Finding("CKPT-TOKENIZER", "error", message, field, present, "tokenizer.json", fix),)
