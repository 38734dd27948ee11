"""Headers of safetensors files: names, dtypes and shapes of the tensors, without their bytes."""

import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builder.checkpoint.values import parse_json

MAX_HEADER_BYTES = 100_000_000
"""Bound that the format's own reader sets."""
PREFIX_BYTES = 8
DTYPE_BITS = {
    **dict.fromkeys(("F64", "I64", "U64", "C64"), 64),
    **dict.fromkeys(("F32", "I32", "U32"), 32),
    **dict.fromkeys(("F16", "BF16", "I16", "U16"), 16),
    **dict.fromkeys(("F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "I8", "U8", "BOOL"), 8),
    **dict.fromkeys(("F6_E2M3", "F6_E3M2"), 6),
    "F4": 4,
}
"""Bits of one number by the format's dtype word."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """Name, dtype word (F32, BF16, ...), shape and place of one stored tensor; `begin` counts bytes from the file's first."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    size_bytes: int
    file: Path | None = None
    begin: int = 0

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


class HeaderError(ValueError):
    """The file is no whole safetensors file; `tensors` holds what its header names when that much can be read."""

    def __init__(self, message: str, tensors: tuple[Tensor, ...] = ()) -> None:
        super().__init__(message)
        self.tensors = tensors


def read_header(file: Path) -> tuple[Tensor, ...]:
    """Tensors of a file. Raises HeaderError when the header is broken or the file shorter than its tensors."""
    try:
        return _read(file)
    except OSError as error:
        raise HeaderError(f"cannot be read: {error}") from None


def read_bytes(tensor: Tensor, most_bytes: int, skip_bytes: int = 0) -> bytes:
    """At most `most_bytes` of a stored tensor from `skip_bytes` on; fewer where the file is cut short."""
    if tensor.file is None:
        return b""
    with tensor.file.open("rb") as stream:
        stream.seek(tensor.begin + skip_bytes)
        return stream.read(min(most_bytes, max(0, tensor.size_bytes - skip_bytes)))


def _read(file: Path) -> tuple[Tensor, ...]:
    size = file.stat().st_size
    with file.open("rb") as stream:
        prefix = stream.read(PREFIX_BYTES)
        if len(prefix) < PREFIX_BYTES:
            raise HeaderError("shorter than its 8-byte length prefix")
        (length,) = struct.unpack("<Q", prefix)
        if length > min(MAX_HEADER_BYTES, size - PREFIX_BYTES):
            raise HeaderError(f"header of {length} bytes in a file of {size} bytes")
        tensors, end = parse_header(stream.read(length), file)
    if end > size:
        raise HeaderError(f"{size} bytes, but its header names {end}: the file is cut short", tensors)
    return tensors


def parse_header(text: bytes, file: Path) -> tuple[tuple[Tensor, ...], int]:
    """Tensors that a header names, and the length in bytes of the file that it describes. Raises HeaderError."""
    start = PREFIX_BYTES + len(text)
    try:
        header = parse_json(text)
        tensors = tuple(_tensor(name, entry, file, start) for name, entry in header.items() if name != "__metadata__")
        wrong = next((t for t in tensors if not _fits(t)), None)
    except (UnicodeDecodeError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise HeaderError(f"header is not the format's JSON ({error})") from None
    if wrong:
        raise HeaderError(f"{wrong.name} is {wrong.dtype} of shape {list(wrong.shape)} in {wrong.size_bytes} bytes")
    return tensors, max((t.begin + t.size_bytes for t in tensors), default=start)


def _tensor(name: str, entry: Any, file: Path, start: int) -> Tensor:
    begin, end = entry["data_offsets"]
    return Tensor(name, str(entry["dtype"]), tuple(entry["shape"]), end - begin, file, start + begin)


def _fits(tensor: Tensor) -> bool:
    bits = DTYPE_BITS.get(tensor.dtype)
    counts = all(type(number) is int and number >= 0 for number in (*tensor.shape, tensor.begin, tensor.size_bytes))
    return counts and (bits is None or tensor.size_bytes * 8 == tensor.elements * bits)
