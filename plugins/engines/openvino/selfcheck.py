"""A built engine is run once and compared with the model it was made of: a graph that is silently wrong must not leave the build."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from builder.api import StageError
from plugins.engines.openvino.head import read_head_ids
from plugins.engines.openvino.record import EngineRecord
from plugins.engines.openvino.runtime.runner import Feed, Runner
from plugins.engines.openvino.survey import Probe

_WEIGHTS_KL = {"none": 0.05, "int8": 0.5, "int4": 1.5}
_CACHE_KL = {"u4": 1.5}
"""Largest mean KL in nats per token, by what lowers the precision. SmolLM2-135M: 0.003 with its weights in 16 bits, 0.027 with int8
weights, 0.13 with a u4 cache as well; a wrong graph (positions or causality lost) makes it 4 to 5."""

NOT_EXACT = "ENGINE-NOT-EXACT"
_BLOCKS = (2, 0)
_GROUPINGS = ((2, 5, 1), (7,), (4, 3, 9))


class Runs(Protocol):
    """What is compared: the part of `Runner` that computes."""

    def forward(self, feeds: Sequence[Feed]) -> NDArray[np.float32]: ...


def selfcheck(engine_dir: Path, record: EngineRecord, probe: Probe) -> EngineRecord:
    """Run the engine in a folder and `compare` it with its model. A target is run by all the compiled models that will serve.

    Some models are rounded otherwise when OpenVINO knows the number of rows: they are recorded to be compiled without. Returns the record.
    """
    try:
        _compare_built(engine_dir, record, probe)
    except StageError as error:
        if error.finding.code != NOT_EXACT or not record.fixed_shapes:
            raise
        record = replace(record, fixed_shapes=False)
        _compare_built(engine_dir, record, probe)
    return record


def _compare_built(engine_dir: Path, record: EngineRecord, probe: Probe) -> None:
    runner = Runner(engine_dir, record, max(_BLOCKS) + 1, None, pinned=record.role == "target")
    compare(runner, record, probe, read_head_ids(engine_dir, record.vocab_size))


def compare(runner: Runs, record: EngineRecord, probe: Probe, head_ids: list[int] | None = None) -> float:
    """Mean KL divergence in nats of the engine from its model. Raises StageError `ENGINE-DIFFERS` when it is too large.

    An engine that is recorded as exact must also give the same logits, to the last bit, however the tokens are grouped into passes: raises
    StageError `ENGINE-NOT-EXACT`.
    """
    logits = _run(runner, probe.ids, (len(probe.ids),))
    if record.exact and any((_run(runner, probe.ids, sizes) != logits).any() for sizes in _GROUPINGS):
        message = "The engine's logits depend on how tokens are grouped into passes: speculative output would differ from plain output."
        raise StageError(NOT_EXACT, message)
    divergence = _mean_kl(probe.logits, logits if head_ids is None else logits[:, head_ids])
    limit = max(_WEIGHTS_KL[record.weights], _CACHE_KL.get(record.kv_cache, 0.0))
    if not divergence <= limit:
        message = f"The engine does not compute what its model does: mean KL divergence {divergence:.3g} over {len(logits)} tokens."
        raise StageError("ENGINE-DIFFERS", message, found=f"{divergence:.3g} nats", needed=f"<= {limit}")
    return divergence


def _run(runner: Runs, ids: tuple[int, ...], sizes: tuple[int, ...]) -> NDArray[np.float32]:
    """Logits [len(ids), vocab], fed in passes of these sizes in turn, the last size repeated."""
    rows: list[NDArray[np.float32]] = []
    start = 0
    while start < len(ids):
        stop = start + sizes[min(len(rows), len(sizes) - 1)]
        rows.append(runner.forward([Feed(ids[start:stop], start, _BLOCKS, 0)]).copy())
        start = min(stop, len(ids))
    return np.concatenate(rows)


def _mean_kl(expected: NDArray[np.float32], found: NDArray[np.float32]) -> float:
    logs, others = _log_softmax(expected), _log_softmax(found)
    return float((np.exp(logs) * (logs - others)).sum(1).mean())


def _log_softmax(logits: NDArray[np.float32]) -> NDArray[np.float64]:
    rows = logits.astype(np.float64)
    rows -= rows.max(1, keepdims=True)
    rows -= np.log(np.exp(rows).sum(1, keepdims=True))
    return rows
