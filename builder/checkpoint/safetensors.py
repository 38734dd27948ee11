"""Headers of safetensors files: names, dtypes and shapes of the tensors, without their bytes."""

import json
import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MAX_HEADER_BYTES = 100_000_000
"""Bound that the format's own reader sets."""


class HeaderError(ValueError):
    """The file is no whole safetensors file."""


@dataclass(frozen=True)
class Tensor:
    """Name, dtype word (F32, BF16, ...) and shape of one stored tensor."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    size_bytes: int

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


def read_header(file: Path) -> tuple[Tensor, ...]:
    """Tensors of a file. Raises HeaderError when the header is broken or the file shorter than its tensors."""
    try:
        return _read(file)
    except OSError as error:
        raise HeaderError(f"cannot be read: {error}") from None


def _read(file: Path) -> tuple[Tensor, ...]:
    size = file.stat().st_size
    with file.open("rb") as stream:
        prefix = stream.read(8)
        if len(prefix) < 8:
            raise HeaderError("shorter than its 8-byte length prefix")
        (length,) = struct.unpack("<Q", prefix)
        if length > min(MAX_HEADER_BYTES, size - 8):
            raise HeaderError(f"header of {length} bytes in a file of {size} bytes")
        try:
            header = json.loads(stream.read(length))
            tensors = tuple(_tensor(name, entry) for name, entry in header.items() if name != "__metadata__")
        except (UnicodeDecodeError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise HeaderError(f"header is not the format's JSON ({error})") from None
    stored = sum(t.size_bytes for t in tensors)
    if 8 + length + stored > size:
        raise HeaderError(f"{size} bytes, but its header names {8 + length + stored}: the file is cut short")
    return tensors


def _tensor(name: str, entry: Any) -> Tensor:
    begin, end = entry["data_offsets"]
    return Tensor(name, str(entry["dtype"]), tuple(entry["shape"]), end - begin)
