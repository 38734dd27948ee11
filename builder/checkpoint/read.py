"""Reading a checkpoint, whatever kind it is."""

from pathlib import Path
from typing import Any

from builder.checkpoint.gguf import read_gguf
from builder.checkpoint.hf import read_huggingface
from builder.checkpoint.model import Checkpoint
from builder.checkpoint.nearest import nearest_sibling
from builder.checkpoint.tensorrt_llm import is_converted, is_engine, read_converted, read_engine
from builder.checkpoint.values import parse_json
from builder.errors import RefusedError

FETCH_DEMO = "make demo makes the demo checkpoints; otherwise correct the path"


def read_checkpoint(path: Path, field: str) -> Checkpoint:
    """Read a checkpoint folder, or a GGUF file; `field` is the pair file's field that names it.

    Only small files and tensor headers are read, and the numbers of KV cache scales. What leaves nothing to plan with raises
    RefusedError with a CKPT- code; everything else that is wrong stands in the result's findings.
    """
    if path.suffix == ".gguf" and path.is_file():
        return read_gguf(path, field)
    if not path.is_dir():
        raise _missing(path, field)
    if not (path / "config.json").is_file():
        return _without_config(path, field)
    config = _read_config(path / "config.json", field)
    if is_engine(config):
        return read_engine(path, config, field)
    if is_converted(path, config):
        return read_converted(path, config, field)
    return read_huggingface(path, config, field)


def _missing(path: Path, field: str) -> RefusedError:
    near = nearest_sibling(path)
    message = f"{path} is a file, no folder" if path.is_file() else f"there is no folder {path}"
    fix = f"did you mean {path.parent / near}?" if near else FETCH_DEMO
    return RefusedError("CKPT-MISSING", message, field=field, found=str(path), needed="a checkpoint folder", fix=fix)


def _without_config(path: Path, field: str) -> Checkpoint:
    files = sorted(path.glob("*.gguf"))
    if len(files) == 1:
        return read_gguf(files[0], field)
    present = ", ".join(sorted(p.name for p in path.iterdir())[:8]) or "nothing"
    if files:
        message, fix = f"{path} holds several GGUF files and no config.json", f"name one of them: {path / files[0].name}"
    elif (path / "adapter_config.json").is_file():
        message, fix = f"{path} holds an adapter (LoRA), no model", "merge the adapter into its model and save that"
    else:
        message, fix = f"{path} holds no config.json", "name the folder that holds the model's config.json"
    raise RefusedError("CKPT-CONFIG", message, field=field, found=present, needed="config.json", fix=fix, file=str(path))


def _read_config(file: Path, field: str) -> dict[str, Any]:
    try:
        config = parse_json(file.read_bytes())
    except (ValueError, OSError) as error:
        message = f"{file} is not JSON: {error}"
        raise RefusedError("CKPT-CONFIG", message, field=field, found=str(error), needed="JSON", file=str(file)) from None
    if not isinstance(config, dict):
        message = f"{file} holds no object"
        raise RefusedError("CKPT-CONFIG", message, field=field, found=type(config).__name__, needed="an object", file=str(file))
    return config
