"""One forward pass over several sequences: OpenVINO computes, rows of logits come back."""

import contextlib
import math
import mmap
from collections.abc import Sequence as SequenceOf
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plugins.engines.openvino.head import read_head_ids
from plugins.engines.openvino.kv_cache import compile_properties
from plugins.engines.openvino.record import MODEL_FILE, EngineRecord
from plugins.engines.openvino.runtime.batch import Batch, Feed
from plugins.engines.openvino.runtime.graph import compile_paged
from plugins.engines.openvino.runtime.huge_pages import use_huge_pages
from plugins.engines.openvino.runtime.program import Program
from plugins.engines.openvino.widths import pinned_widths

__all__ = ["Feed", "Runner"]

_CHUNKS = 4


class Runner:
    """The compiled models and the memory of their cache.

    A kernel for one row differs in the last bits from the kernel for several. So an exact engine feeds at least 2 rows in a pass, 2 to the
    output layer, and attention is computed by one of its kernels only: by the one for single rows, or, tuned for long context, by the one
    for several rows, of which each sequence then feeds at least `min_rows` = 2.
    """

    def __init__(self, engine_dir: Path, record: EngineRecord, blocks: int, threads: int | None, *, pinned: bool = True) -> None:
        """A cache of `blocks` blocks. Without `pinned` the model is compiled once: it loads faster and runs slower."""
        self._by_row = record.tuned_for == "decoding"
        self._least_rows = 2 if record.exact else 1
        self.min_rows = 1 if self._by_row else self._least_rows
        self._tokens_per_block, self._scratch = record.tokens_per_block, blocks
        weights = (engine_dir / MODEL_FILE).with_suffix(".bin")
        widths = pinned_widths(record.role, record.max_draft_tokens, weights.stat().st_size) if pinned else ()
        cache = compile_properties(record.kv_cache, record.head_dim)
        compiled = compile_paged(engine_dir / MODEL_FILE, cache, threads, widths, fixed_shapes=record.fixed_shapes)
        programs = [Program(one) for one in compiled]
        self._any, self._pinned = programs[0], dict(zip(widths, programs[1:], strict=True))
        self._caches = _make_caches(compiled[0], programs, blocks + 1)
        head_ids = read_head_ids(engine_dir, record.vocab_size)
        self._head_ids = None if head_ids is None else np.array(head_ids)
        self._full = np.full((0, record.vocab_size), -np.inf, dtype=np.float32)
        self._warm_up()
        use_huge_pages()

    def _warm_up(self) -> None:
        """One pass of each model into the scratch block: the first arranges weights and compiles kernels, which no request should pay."""
        for rows in (*self._pinned, 1 + max(self._pinned, default=1)):
            self.forward([Feed([0] * rows, 0, [], 0)])

    def copy_block(self, source: int, destination: int) -> None:
        """Copy one block of every layer."""
        for cache in self._caches:
            cache[destination] = cache[source]

    def forward(self, feeds: SequenceOf[Feed]) -> NDArray[np.float32]:
        """Logits [wanted rows of all feeds, vocab]; valid until the next call."""
        rows = [max(len(feed.tokens), self.min_rows) for feed in feeds]
        width = self._width(sum(rows))
        least = width or self._least_rows
        rows[-1] += max(0, least - sum(rows))
        batch = Batch(self._tokens_per_block, self._scratch, self._by_row)
        for feed, count in zip(feeds, rows, strict=True):
            batch.add(feed, count)
        program = self._any if width is None else self._pinned[width]
        sampled = batch.rows + [0] * (least - len(batch.rows))
        return self._whole_vocabulary(program.forward(batch, sampled)[: len(batch.rows)])

    @property
    def infer_s(self) -> float:
        """Seconds inside OpenVINO since the engine was loaded."""
        return sum(program.infer_s for program in (self._any, *self._pinned.values()))

    def padded(self, rows: int) -> int:
        """Rows that a pass really feeds when its sequences feed so many."""
        return self._width(rows) or max(rows, self._least_rows)

    def chunk_tokens(self, tokens: int) -> int:
        """How many of a sequence's tokens are best fed in its next pass when no other sequence is in it.

        A few passes of the widest model of fixed width take less time than one pass of a length that was not seen before.
        """
        widest = max(self._pinned, default=0)
        return widest if widest < tokens <= _CHUNKS * widest else tokens

    def _width(self, tokens: int) -> int | None:
        return next((w for w in self._pinned if tokens <= w), None)

    def _whole_vocabulary(self, logits: NDArray[np.float32]) -> NDArray[np.float32]:
        if self._head_ids is None:
            return logits
        if len(self._full) < len(logits):
            self._full = np.full((len(logits), self._full.shape[1]), -np.inf, dtype=np.float32)
        full = self._full[: len(logits)]
        full[:, self._head_ids] = logits
        return full


def _make_caches(compiled: Any, programs: SequenceOf[Program], blocks: int) -> list[NDArray[np.uint8]]:
    """Cache memory [blocks, bytes of a block] of every layer, read and written by all programs.

    It starts as zeros because a masked token still meets a multiplication, and 0 * nan is nan.
    """
    caches = []
    for port in compiled.inputs:
        if "cache" in port.any_name:
            block = [d.get_length() for d in list(port.partial_shape)[1:]]
            cache = _zeros(blocks, math.prod(block) * port.element_type.bitwidth // 8)
            for program in programs:
                program.bind_cache(port.any_name, cache, [blocks, *block], port.element_type)
            caches.append(cache)
    return caches


def _zeros(rows: int, row_bytes: int) -> NDArray[np.uint8]:
    """Zeros from the start of a page on; pages, small ones, take no memory until they are written."""
    memory = mmap.mmap(-1, rows * row_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with contextlib.suppress(OSError):  # a kernel without huge pages
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(memory, dtype=np.uint8).reshape(rows, row_bytes)
