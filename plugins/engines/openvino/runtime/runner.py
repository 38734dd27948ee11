"""One forward pass over several sequences: inputs are laid side by side, OpenVINO computes, rows of logits come back."""

from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plugins.engines.openvino.record import MODEL_FILE, EngineRecord
from plugins.engines.openvino.runtime.graph import SAMPLED_ROWS, compile_paged

_ALIGNMENT_BYTES = 64


@dataclass(frozen=True)
class Feed:
    """What one sequence feeds: `tokens` behind `cached_tokens` valid ones; logits are wanted from the row `first_wanted` on."""

    tokens: SequenceOf[int]
    cached_tokens: int
    blocks: SequenceOf[int]
    first_wanted: int


class Runner:
    """The compiled model and the memory of its cache.

    A kernel for one row differs in the last bits from the kernel for several. So each sequence feeds at least `min_rows` = 2 rows and the
    output layer gets at least 2: a padding row behind the last token, whose place in the cache the next token overwrites.
    """

    def __init__(self, engine_dir: Path, record: EngineRecord, blocks: int, threads: int | None) -> None:
        self.min_rows = 2 if record.exact else 1
        self._tokens_per_block = record.tokens_per_block
        self._compiled = compile_paged(engine_dir / MODEL_FILE, record.kv_cache, threads)
        self._request = self._compiled.create_infer_request()
        self._caches = [self._allocate(port, blocks) for port in self._compiled.inputs if "cache" in port.any_name]
        self._output = self._compiled.output("logits")

    def _allocate(self, port: Any, blocks: int) -> NDArray[Any]:
        """Cache memory of one layer, zero because a masked token still meets a multiplication, and 0 * nan is nan."""
        import openvino as ov

        shape = (blocks, *(d.get_length() for d in list(port.partial_shape)[1:]))
        cache = _aligned_zeros(shape, np.dtype(port.element_type.to_dtype()))
        self._request.set_tensor(port, ov.Tensor(cache, shared_memory=True))
        return cache

    def copy_block(self, source: int, destination: int) -> None:
        """Copy one block of every layer."""
        for cache in self._caches:
            cache[destination] = cache[source]

    def forward(self, feeds: SequenceOf[Feed]) -> NDArray[np.float32]:
        """Logits [wanted rows of all feeds, vocab]; valid until the next call."""
        ids: list[int] = []
        positions: list[int] = []
        past: list[int] = []
        begins = [0]
        table: list[int] = []
        table_begins = [0]
        rows: list[int] = []
        longest = 0
        for feed in feeds:
            wanted_to = len(ids) + len(feed.tokens)
            rows.extend(range(len(ids) + feed.first_wanted, wanted_to))
            ids.extend(feed.tokens)
            ids.extend([feed.tokens[-1]] * (self.min_rows - len(feed.tokens)))
            end = feed.cached_tokens + len(ids) - begins[-1]
            positions.extend(range(feed.cached_tokens, end))
            past.append(feed.cached_tokens)
            begins.append(len(ids))
            table.extend(feed.blocks[: -(-end // self._tokens_per_block)])
            table_begins.append(len(table))
            longest = max(longest, end)
        computed = rows + [0] * (self.min_rows - len(rows)) if rows else [0] * self.min_rows
        self._set("input_ids", ids, np.int64)
        self._set("position_ids", positions, np.int64)
        self._set("past_lens", past, np.int32)
        self._set("subsequence_begins", begins, np.int32)
        self._set("block_indices", table, np.int32)
        self._set("block_indices_begins", table_begins, np.int32)
        self._set("max_context_len", longest, np.int32)
        self._set(SAMPLED_ROWS, computed, np.int64)
        self._request.infer(share_outputs=True)
        logits: NDArray[np.float32] = self._request.get_tensor(self._output).data
        return logits[: len(rows), 0]

    def _set(self, name: str, value: Any, dtype: Any) -> None:
        import openvino as ov

        self._request.set_tensor(name, ov.Tensor(np.array(value, dtype=dtype)))


def _aligned_zeros(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Zeros that start at a multiple of a cache line; pages stay untouched, and take no memory, until they are written."""
    size = int(np.prod(shape)) * dtype.itemsize
    memory = np.zeros(size + _ALIGNMENT_BYTES, dtype=np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT_BYTES
    return memory[start : start + size].view(dtype).reshape(shape)
