"""Scales of a quantized KV cache, the only tensors whose numbers are read."""

import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from builder.api.model import StoredFormat
from builder.checkpoint.names import layer_of
from builder.checkpoint.safetensors import DTYPE_BITS, Tensor, read_bytes
from builder.errors import Finding, Severity

NAMES = (".k_scale", ".v_scale", ".kv_scale", ".kv_cache_scaling_factor", ".k_cache_scaling_factor", ".v_cache_scaling_factor")
QUANTIZED = frozenset({"FP8", "INT8", "NVFP4"})
MOST_NUMBERS = 4096
"""Numbers read of one scale: a scalar, or one for each head."""


@dataclass(frozen=True)
class CacheScales:
    """State of all scales together ("" when none are due), and the findings."""

    state: str
    findings: tuple[Finding, ...]


def read_cache_scales(stored: StoredFormat, tensors: Sequence[Tensor], layers: int, field: str) -> CacheScales:
    """`layers` must each have a scale. Only the scales' own bytes are read."""
    if stored.kv_cache not in QUANTIZED:
        return CacheScales("", ())
    scales = scale_tensors(tensors)
    if not scales:
        return CacheScales("absent", (_absent(stored, field),))
    values = {tensor.name: _numbers(tensor) for tensor in scales}
    findings = [*_missing(stored, scales, layers, field), *_broken(values, field)]
    numbers = [number for some in values.values() for number in some]
    state = _state(numbers)
    if state == "all_one":
        findings.append(_all_one(stored, len(numbers), field))
    return CacheScales(state, tuple(findings))


def scale_tensors(tensors: Sequence[Tensor]) -> list[Tensor]:
    """The scales of the KV cache among a checkpoint's tensors."""
    return [tensor for tensor in tensors if tensor.name.endswith(NAMES)]


def _state(numbers: Sequence[float]) -> str:
    if any(not math.isfinite(n) for n in numbers):
        return "nan"
    if any(n <= 0 for n in numbers):
        return "zero"
    return "all_one" if all(n == 1.0 for n in numbers) else "good"


def _numbers(tensor: Tensor) -> tuple[float, ...]:
    """The scale's numbers; NaN where its dtype is no floating point or the file ends before them."""
    width = DTYPE_BITS.get(tensor.dtype, 8) // 8
    count = min(tensor.elements, MOST_NUMBERS)
    data = read_bytes(tensor, count * width)
    if len(data) < count * width:
        return (math.nan,)
    if tensor.dtype == "BF16":
        return struct.unpack(f"<{count}f", b"".join(b"\0\0" + data[i : i + 2] for i in range(0, len(data), 2)))
    code = {"F64": "d", "F32": "f", "F16": "e"}.get(tensor.dtype)
    return struct.unpack(f"<{count}{code}", data) if code else (math.nan,)


def _needs_scales(stored: StoredFormat) -> bool:
    """INT8 has no meaning without them; TensorRT-LLM's converter refuses a checkpoint folder that lacks them."""
    return stored.kv_cache == "INT8" or stored.kind == "tensorrt_llm"


def _absent(stored: StoredFormat, field: str) -> Finding:
    fix = f"calibrate the {stored.kv_cache} cache again with modelopt, or leave the cache unquantized"
    if _needs_scales(stored):
        message = f"The checkpoint says that its KV cache is {stored.kv_cache} and stores no scale for it: the engine cannot be built."
        return Finding("CKPT-KV-SCALES-ABSENT", "error", message, field, "no scales", "a scale for each layer", fix)
    message = f"The checkpoint says that its KV cache is {stored.kv_cache} and stores no scale for it: the runtime will take 1.0."
    return Finding("CKPT-KV-SCALES-ABSENT", "warning", message, field, "no scales", "a scale for each layer", fix)


def _missing(stored: StoredFormat, scales: Sequence[Tensor], layers: int, field: str) -> Iterator[Finding]:
    held = {layer for tensor in scales if (layer := layer_of(tensor.name)) is not None and layer < layers}
    absent = layers - len(held)
    if absent:
        first = next(layer for layer in range(len(held) + 1) if layer not in held)
        message = (
            f"{absent} of {layers} layers have no scale for their {stored.kv_cache} KV cache; the first is layer {first}. "
            "The others have one, so the export was not complete."
        )
        found = f"scales of {len(held)} layers"
        severity: Severity = "error" if _needs_scales(stored) else "warning"
        fix = "export the checkpoint again"
        yield Finding("CKPT-KV-SCALES-MISSING", severity, message, field, found, f"scales of {layers} layers", fix)


def _broken(values: dict[str, tuple[float, ...]], field: str) -> Iterator[Finding]:
    kinds = (
        ("CKPT-KV-SCALES-NAN", "not a finite number", lambda n: not math.isfinite(n), "every key and value of the layer would be lost"),
        ("CKPT-KV-SCALES-ZERO", "zero or below", lambda n: n <= 0, "every key and value would be divided by it"),
    )
    for code, words, is_wrong, consequence in kinds:
        wrong = [name for name, numbers in values.items() if any(map(is_wrong, numbers))]
        if wrong:
            message = f"{len(wrong)} of {len(values)} stored KV cache scales are {words}; the first is {wrong[0]}: {consequence}."
            yield Finding(code, "error", message, field, f"{values[wrong[0]][0]}", "a number above 0", "calibrate the KV cache again")


def _all_one(stored: StoredFormat, count: int, field: str) -> Finding:
    int8 = stored.kv_cache == "INT8"
    consequence = (
        "INT8 with a scale of 1.0 rounds keys and values to whole numbers"
        if int8
        else "either nothing was calibrated or the export raised smaller scales to 1.0, and small keys and values lose precision"
    )
    message = f"All {count} stored KV cache scales are exactly 1.0: {consequence}."
    severity: Severity = "error" if int8 else "warning"
    fix = "calibrate the KV cache again" if int8 else "compare answers with an unquantized cache before serving (the accuracy gate does)"
    return Finding("CKPT-KV-SCALES-ONE", severity, message, field, "1.0", "calibrated scales", fix)
