"""A checkpoint as a transformers model whose weights stay in the file's memory where they can."""

import json
from pathlib import Path
from typing import Any

HALF_TYPES = {"BF16": "bfloat16", "F16": "float16"}
"""Stored types that are loaded as they are: the tracer widens such weights only where they are used."""


def load_model(checkpoint: Path, **options: Any) -> Any:
    """The causal language model, for computing in float32. What transformers raises is passed on.

    Weights stored in 16 bits are mapped, not copied, unless the model also makes 16-bit buffers: those would be rounded constants.
    """
    import torch
    from transformers import AutoModelForCausalLM
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    stored = stored_type(checkpoint)
    if stored in HALF_TYPES:
        half = getattr(torch, HALF_TYPES[stored])
        model = AutoModelForCausalLM.from_pretrained(checkpoint, dtype=half, **options).eval()
        if not any(buffer.dtype == half for buffer in model.buffers()):
            return model
    return AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32, **options).eval()


def stored_type(checkpoint: Path) -> str | None:
    """The type of all tensors in the checkpoint's safetensors files (`BF16`, `F32`, ...); None when they differ or there is no file."""
    types: set[str] = set()
    for file in sorted(checkpoint.glob("*.safetensors")):
        types |= {entry["dtype"] for name, entry in _header(file).items() if name != "__metadata__"}
    return types.pop() if len(types) == 1 else None


def _header(file: Path) -> dict[str, Any]:
    """A safetensors header: eight bytes of length, little-endian, then JSON."""
    with file.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        header: dict[str, Any] = json.loads(stream.read(length))
    return header
