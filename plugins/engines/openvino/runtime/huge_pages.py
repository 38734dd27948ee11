"""Huge pages for weights.

A pass reads every weight once. Through pages of 4 KiB, finding them takes a tenth of a decode step (SmolLM2-135M, int8, EPYC 9004: 10.6 ms
became 9.6); OpenVINO's allocations are too small to get larger pages by themselves.
"""

import ctypes
import sys
from collections.abc import Iterator
from pathlib import Path

PAGE_BYTES = 2 << 20
_COLLAPSE = 25  # MADV_COLLAPSE, since Linux 6.1
_MAPS = Path("/proc/self/maps")


def use_huge_pages() -> None:
    """Move what this process has allocated so far into huge pages; where the kernel cannot, everything stays as it is."""
    if sys.platform != "linux" or not _MAPS.is_file():
        return
    madvise = ctypes.CDLL(None).madvise
    for start, end in large_areas(_MAPS.read_text(encoding="utf-8")):
        madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), _COLLAPSE)


def large_areas(maps: str) -> Iterator[tuple[int, int]]:
    """First and last address of the huge pages that fit into private, writable memory without a file; `maps` as in proc(5)."""
    for line in maps.splitlines():
        addresses, access, _, _, inode, *name = line.split(maxsplit=5)
        if (access == "rw-p" and inode == "0" and not name) or name == ["[heap]"]:
            start, end = (int(address, 16) for address in addresses.split("-"))
            start, end = -(-start // PAGE_BYTES) * PAGE_BYTES, end // PAGE_BYTES * PAGE_BYTES
            if start < end:
                yield start, end
