"""A runner without a model: logits are a function of the position, and of the last token when the table says so."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from plugins.engines.openvino.record import EngineRecord
from plugins.engines.openvino.runtime.block_manager import BlockManager
from plugins.engines.openvino.runtime.draft_model import DraftModel
from plugins.engines.openvino.runtime.llm import Engine
from plugins.engines.openvino.runtime.runner import Feed

Logits = Callable[[int, int], NDArray[np.float32]]
"""Position and last token to a row [vocab]."""


class VirtualClock:
    """Time that only the passes of table runners let pass."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class TableRunner:
    """Speaks as `Runner` does. A pass takes `pass_s` seconds and `row_s` more for each row, on its clock."""

    def __init__(
        self,
        logits: Logits,
        vocab_size: int,
        *,
        min_rows: int = 2,
        clock: VirtualClock | None = None,
        pass_s: float = 0.0,
        row_s: float = 0.0,
    ) -> None:
        self.logits, self.vocab_size, self.min_rows = logits, vocab_size, min_rows
        self.infer_s = 0.0
        self.passes: list[list[Feed]] = []
        self._clock, self._pass_s, self._row_s = clock or VirtualClock(), pass_s, row_s

    def chunk_tokens(self, tokens: int) -> int:
        return tokens

    def padded(self, rows: int) -> int:
        return max(rows, self.min_rows)

    def forward(self, feeds: Sequence[Feed]) -> NDArray[np.float32]:
        self.passes.append(list(feeds))
        seconds = self._pass_s + self._row_s * sum(max(len(feed.tokens), self.min_rows) for feed in feeds)
        self._clock.now_s += seconds
        self.infer_s += seconds
        rows = [
            self.logits(feed.cached_tokens + i, token) for feed in feeds for i, token in enumerate(feed.tokens) if i >= feed.first_wanted
        ]
        return np.stack(rows) if rows else np.empty((0, self.vocab_size), dtype=np.float32)


def table_record(vocab_size: int, **changes: object) -> EngineRecord:
    values: dict[str, object] = {
        "role": "target",
        "architecture": "Table",
        "model_type": "table",
        "vocab_size": vocab_size,
        "hidden_size": 1,
        "layers": 1,
        "heads": 1,
        "kv_heads": 1,
        "head_dim": 1,
        "max_position_tokens": 1 << 20,
        "weights": "none",
        "kv_cache": "f32",
        "max_batch_size": 8,
        "max_input_tokens": 1 << 16,
        "max_sequence_tokens": 1 << 16,
        "max_batched_tokens": 256,
        "max_draft_tokens": 8,
        "tokens_per_block": 4,
    }
    return EngineRecord(**values | changes)  # type: ignore[arg-type]


@pytest.fixture
def clock() -> VirtualClock:
    """The clock of the engines and draft models of one test."""
    return VirtualClock()


@pytest.fixture
def table_draft(clock: VirtualClock) -> Callable[..., DraftModel]:
    """Makes draft models over table runners; a pass takes 1 ms."""

    def make(
        logits: Logits,
        vocab_size: int,
        *,
        blocks: int = 8192,
        pass_s: float = 0.001,
        target_vocab_size: int | None = None,
        **record: object,
    ) -> DraftModel:
        described = table_record(vocab_size, role="draft", **record)
        runner = TableRunner(logits, vocab_size, clock=clock, pass_s=pass_s)
        return DraftModel(described, runner, BlockManager(blocks, 4), target_vocab_size=target_vocab_size)  # type: ignore[arg-type]

    return make


@pytest.fixture
def table_engine(table_draft: Callable[..., DraftModel], clock: VirtualClock) -> Callable[..., Engine]:
    """Makes engines over table runners; `draft` is the table of a draft model. A pass takes 10 ms and 0.2 ms a row."""

    def make(
        logits: Logits,
        vocab_size: int,
        *,
        draft: Logits | None = None,
        draft_pass_s: float = 0.001,
        blocks: int = 8192,
        limits: Mapping[str, int] | None = None,
        **record: object,
    ) -> Engine:
        target = table_record(vocab_size, **record)
        model = table_draft(draft, vocab_size, blocks=blocks, pass_s=draft_pass_s) if draft is not None else None
        runner = TableRunner(logits, vocab_size, clock=clock, pass_s=0.010, row_s=0.0002)
        return Engine(target, runner, BlockManager(blocks, 4), draft=model, clock=clock, **limits or {})  # type: ignore[arg-type]

    return make
