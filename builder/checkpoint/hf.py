"""A Hugging Face checkpoint folder, from its small files alone."""

import json
from pathlib import Path
from typing import Any

from builder.api.model import ModelShape
from builder.checkpoint.geometry import Geometry, SizeError, read_geometry
from builder.checkpoint.model import Checkpoint
from builder.checkpoint.safetensors import HeaderError, Tensor, read_header
from builder.errors import RefusedError

FETCH_DEMO = "make demo makes the demo checkpoints; otherwise correct the path"


def read_checkpoint(path: Path, field: str) -> Checkpoint:
    """Read a checkpoint folder; `field` is the pair file's field that names it. Raises RefusedError with a CKPT- code."""
    if not path.is_dir():
        raise RefusedError(
            "CKPT-MISSING",
            f"{field}: there is no folder {path}",
            field=field,
            found=str(path),
            needed="a checkpoint folder",
            fix=FETCH_DEMO,
        )
    config = _read_config(path, field)
    tensors = _read_tensors(path, field)
    if not (path / "tokenizer.json").is_file():
        fix = "copy it from the model, or save the tokenizer with transformers, which writes it"
        raise _missing("CKPT-TOKENIZER", path, field, "tokenizer.json", fix)
    geometry = _read_geometry(config, path, field)
    shape = ModelShape(
        sum(t.elements for t in tensors),
        geometry.layers,
        geometry.kv_heads,
        geometry.head_dim,
        vocab_size=geometry.vocab_size,
        max_positions=geometry.max_positions,
    )
    return Checkpoint(path, config, str(config.get("model_type", "")), shape, tensors=tensors)


def _read_geometry(config: dict[str, Any], path: Path, field: str) -> Geometry:
    try:
        return read_geometry(config)
    except SizeError as error:
        message = f"{field}: {path / 'config.json'} (model_type {config.get('model_type')}) has {error}"
        needed = f"{' or '.join(error.names)} > 0"
        raise RefusedError("CKPT-CONFIG", message, field=field, found=error.found, needed=needed) from None


def _read_config(path: Path, field: str) -> dict[str, Any]:
    file = path / "config.json"
    if not file.is_file():
        raise _missing("CKPT-CONFIG", path, field, "config.json", "name the folder that holds the model's config.json")
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise RefusedError(
            "CKPT-CONFIG", f"{field}: {file} is not JSON: {error}", field=field, found=str(error), needed="JSON", file=str(file)
        ) from None
    if not isinstance(config, dict):
        raise RefusedError("CKPT-CONFIG", f"{field}: {file} holds no object", field=field, found=type(config).__name__, needed="an object")
    return config


def _read_tensors(path: Path, field: str) -> tuple[Tensor, ...]:
    files = _weight_files(path, field)
    tensors: list[Tensor] = []
    for file in files:
        try:
            tensors += read_header(file)
        except HeaderError as error:
            fix = "fetch the file again"
            raise RefusedError(
                "CKPT-WEIGHTS", f"{field}: {file}: {error}", field=field, found=str(error), needed="a whole file", fix=fix
            ) from None
    return tuple(tensors)


def _weight_files(path: Path, field: str) -> list[Path]:
    index = path / "model.safetensors.index.json"
    if index.is_file():
        names = _shards(index, field)
        for name in names:
            if not (path / name).is_file():
                raise _missing("CKPT-WEIGHTS", path, field, name, "fetch the missing shard")
        return [path / name for name in names]
    files = sorted(path.glob("*.safetensors"))
    if not files:
        raise _missing("CKPT-WEIGHTS", path, field, "*.safetensors", "save the model with safe_serialization")
    return files


def _shards(index: Path, field: str) -> list[str]:
    try:
        return sorted({str(name) for name in json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()})
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"{field}: {index} is no index of shards: {error}"
        raise RefusedError("CKPT-WEIGHTS", message, field=field, found=str(error), needed="weight_map", file=str(index)) from None


def _missing(code: str, path: Path, field: str, needed: str, fix: str) -> RefusedError:
    present = ", ".join(sorted(p.name for p in path.iterdir())[:8]) or "nothing"
    return RefusedError(code, f"{field}: {path} holds no {needed}", field=field, found=present, needed=needed, fix=fix, file=str(path))
