"""One forward pass over several sequences: inputs are laid side by side, OpenVINO computes, rows of logits come back."""

from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, field
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


@dataclass
class Batch:
    """Inputs of one pass, sequences side by side; the `begins` say where each one starts, and the last entry where all end."""

    ids: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    past: list[int] = field(default_factory=list)
    begins: list[int] = field(default_factory=lambda: [0])
    table: list[int] = field(default_factory=list)
    table_begins: list[int] = field(default_factory=lambda: [0])
    rows: list[int] = field(default_factory=list)
    longest_tokens: int = 0

    def add(self, feed: Feed, min_rows: int, tokens_per_block: int) -> None:
        """Append one sequence, padded to `min_rows` rows."""
        start, fed = len(self.ids), max(len(feed.tokens), min_rows)
        end = feed.cached_tokens + fed
        self.rows.extend(range(start + feed.first_wanted, start + len(feed.tokens)))
        self.ids.extend(feed.tokens)
        self.ids.extend([feed.tokens[-1]] * (fed - len(feed.tokens)))
        self.positions.extend(range(feed.cached_tokens, end))
        self.past.append(feed.cached_tokens)
        self.begins.append(start + fed)
        self.table.extend(feed.blocks[: -(-end // tokens_per_block)])
        self.table_begins.append(len(self.table))
        self.longest_tokens = max(self.longest_tokens, end)


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
        self._inputs: dict[str, NDArray[Any]] = {}
        self._longest = np.zeros((), dtype=np.int32)
        self._request.set_tensor("max_context_len", self._shared_tensor(self._longest))

    def _allocate(self, port: Any, blocks: int) -> NDArray[Any]:
        """Cache memory of one layer, zero because a masked token still meets a multiplication, and 0 * nan is nan."""
        shape = (blocks, *(d.get_length() for d in list(port.partial_shape)[1:]))
        cache = _aligned_zeros(shape, np.dtype(port.element_type.to_dtype()))
        self._request.set_tensor(port, self._shared_tensor(cache))
        return cache

    def copy_block(self, source: int, destination: int) -> None:
        """Copy one block of every layer."""
        for cache in self._caches:
            cache[destination] = cache[source]

    def forward(self, feeds: SequenceOf[Feed]) -> NDArray[np.float32]:
        """Logits [wanted rows of all feeds, vocab]; valid until the next call."""
        batch = Batch()
        for feed in feeds:
            batch.add(feed, self.min_rows, self._tokens_per_block)
        rows = batch.rows + [0] * (self.min_rows - len(batch.rows))
        self._set("input_ids", batch.ids, np.int64)
        self._set("position_ids", batch.positions, np.int64)
        self._set("past_lens", batch.past, np.int32)
        self._set("subsequence_begins", batch.begins, np.int32)
        self._set("block_indices", batch.table, np.int32)
        self._set("block_indices_begins", batch.table_begins, np.int32)
        self._set(SAMPLED_ROWS, rows, np.int64)
        self._longest[...] = batch.longest_tokens
        self._request.infer(share_outputs=True)
        logits: NDArray[np.float32] = self._request.get_tensor(self._output).data
        return logits[: len(batch.rows), 0]

    def _set(self, name: str, values: list[int], dtype: type[np.signedinteger[Any]]) -> None:
        """Set one input; while its length stays the same, as from one decode step to the next, only the memory is rewritten."""
        bound = self._inputs.get(name)
        if bound is None or len(bound) != len(values):
            bound = self._inputs[name] = np.empty(len(values), dtype=dtype)
            self._request.set_tensor(name, self._shared_tensor(bound))
        bound[:] = values

    @staticmethod
    def _shared_tensor(array: NDArray[Any]) -> Any:
        import openvino as ov

        return ov.Tensor(array, shared_memory=True)


def _aligned_zeros(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Zeros that start at a multiple of a cache line; pages stay untouched, and take no memory, until they are written."""
    size = int(np.prod(shape)) * dtype.itemsize
    memory = np.zeros(size + _ALIGNMENT_BYTES, dtype=np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT_BYTES
    return memory[start : start + size].view(dtype).reshape(shape)
