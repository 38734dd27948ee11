"""Which memory is moved into huge pages."""

import sys

import numpy as np
import pytest

from plugins.engines.openvino.runtime.huge_pages import PAGE_BYTES, large_areas, use_huge_pages

MAPS = """\
55d0c0000000-55d0c0a10000 rw-p 00000000 00:00 0                          [heap]
7f0000000000-7f0000200000 rw-p 00000000 00:00 0
7f0000201000-7f0000a01000 rw-p 00000000 00:00 0
7f0001000000-7f0001001000 rw-p 00000000 00:00 0
7f0002000000-7f0003000000 r--p 00000000 00:00 0
7f0003000000-7f0004000000 rw-p 00000000 08:01 131                        /usr/lib/libfoo.so with space
7f0004000000-7f0005000000 rw-s 00000000 00:01 7                          /dev/shm/x
7ffc00000000-7ffc00a00000 rw-p 00000000 00:00 0                          [stack]
"""


def test_whole_huge_pages_of_private_memory_only() -> None:
    expected = [(0x55D0C0000000, 0x55D0C0A00000), (0x7F0000000000, 0x7F0000200000), (0x7F0000400000, 0x7F0000A00000)]
    assert list(large_areas(MAPS)) == expected
    assert all(start % PAGE_BYTES == end % PAGE_BYTES == 0 for start, end in expected)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_keeps_its_content() -> None:
    values = np.arange(4 * PAGE_BYTES, dtype=np.int64)
    use_huge_pages()
    assert (values == np.arange(len(values))).all()
