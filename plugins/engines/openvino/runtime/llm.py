"""The engine: requests go in, each step is one forward pass over all of them, results come out."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from plugins.engines.openvino.record import EngineRecord
from plugins.engines.openvino.runtime import sampler
from plugins.engines.openvino.runtime.block_manager import BlockManager
from plugins.engines.openvino.runtime.runner import Feed, Runner
from plugins.engines.openvino.runtime.scheduler import Limits, Scheduler, Work
from plugins.engines.openvino.runtime.sequence import GREEDY, Request, RequestError, Result, Sampling, Sequence, Status
from plugins.engines.openvino.runtime.validate import validate

__all__ = ["GREEDY", "Engine", "Request", "RequestError", "Result", "Sampling", "Sequence"]


class Engine:
    """One loaded engine. Not thread-safe: one thread adds, steps and cancels.

    Sequences are independent: what one answers depends neither on which others are in the pass nor on what was reused from the cache.
    """

    def __init__(self, record: EngineRecord, runner: Runner, blocks: BlockManager, *, reuse: bool = True) -> None:
        self.record = record
        self.blocks = blocks
        self._runner = runner
        limits = Limits(record.max_batch_size, record.max_batched_tokens, runner.min_rows)
        self.scheduler = Scheduler(blocks, limits, reuse=reuse)

    @classmethod
    def load(cls, engine_dir: Path, *, max_cached_tokens: int | None = None, threads: int | None = None, reuse: bool = True) -> "Engine":
        """Compile the engine in a folder; the cache has room for `max_cached_tokens` tokens (default: the record's)."""
        record = EngineRecord.read(engine_dir)
        tokens = record.max_cached_tokens if max_cached_tokens is None else max_cached_tokens
        total = max(1, tokens // record.tokens_per_block)
        runner = Runner(engine_dir, record, total, threads)
        return cls(record, runner, BlockManager(total, record.tokens_per_block, runner.copy_block), reuse=reuse)

    @property
    def max_cached_tokens(self) -> int:
        return self.blocks.total * self.blocks.tokens_per_block

    @property
    def idle(self) -> bool:
        return self.scheduler.idle

    def add(self, request: Request) -> Sequence:
        """Queue a request. Raises RequestError; the engine and other requests are then as before."""
        validate(request, self.record, self.max_cached_tokens)
        sequence = Sequence.of(request)
        self.scheduler.add(sequence)
        return sequence

    def cancel(self, sequence: Sequence) -> None:
        """End a sequence now with what it has; no effect on a finished one."""
        if sequence.status is not Status.FINISHED:
            sequence.finish = "cancelled"
            self._finish(sequence)

    def generate(self, requests: Iterable[Request]) -> list[Result | RequestError]:
        """Answer all requests, in order; a bad one is answered with its error."""
        added = [self._try_add(r) for r in requests]
        try:
            while any(isinstance(s, Sequence) and s.status is not Status.FINISHED for s in added):
                self.step()
        except BaseException:
            for sequence in added:
                if isinstance(sequence, Sequence):
                    self.cancel(sequence)
            raise
        return [s if isinstance(s, RequestError) else _result_of(s) for s in added]

    def _try_add(self, request: Request) -> Sequence | RequestError:
        try:
            return self.add(request)
        except RequestError as error:
            return error

    def step(self) -> None:
        """One forward pass over all sequences that are due: chunks of prompts, single tokens, verifications."""
        plan = self.scheduler.schedule()
        if not plan:
            assert self.scheduler.idle, "waiting sequences must get on when nothing runs"
            return
        logits = self._runner.forward([_feed(work) for work in plan])
        start = 0
        for work in plan:
            stop = start + work.rows - _first_wanted(work)
            self._absorb(work, logits[start:stop])
            start = stop

    def _absorb(self, work: Work, rows: NDArray[np.float32]) -> None:
        """Take one sequence's rows: collect, choose tokens, commit what is valid, and finish it when it is done."""
        sequence = work.sequence
        cached = sequence.table.cached_tokens + work.feed
        if sequence.context_pending:
            sequence.context_rows.append(rows[: work.feed].copy())
            rows = rows[work.feed - 1 :]
        if work.sample:
            accepted_before = sequence.accepted_tokens
            self._sample(sequence, rows)
            cached += sequence.accepted_tokens - accepted_before
        self.blocks.commit(sequence.table, sequence.tokens, cached)
        if sequence.finish is not None:
            self._finish(sequence)

    def _sample(self, sequence: Sequence, rows: NDArray[np.float32]) -> None:
        start = len(sequence.tokens)
        used = sampler.accept(rows, sequence)
        if sequence.request.draft_ids:
            sequence.finish = sequence.finish or "verified"
        if sequence.request.want_generation_logits:
            sequence.generation_rows.append(rows[:used].copy())
        if sequence.request.want_log_probs:
            tokens = sequence.tokens[start:]
            sequence.log_probs += [sampler.log_probability(row, t) for row, t in zip(rows, tokens, strict=False)]

    def _finish(self, sequence: Sequence) -> None:
        self.scheduler.finish(sequence)
        sequence.result = _result(sequence)


def _first_wanted(work: Work) -> int:
    """Index of the first fed row whose logits are needed."""
    if work.sequence.context_pending:
        return 0
    return work.feed - 1 if work.sample else work.rows


def _feed(work: Work) -> Feed:
    sequence = work.sequence
    cached = sequence.table.cached_tokens
    tokens = sequence.tokens[cached : cached + work.feed]
    if work.sample:
        tokens += sequence.drafts
    return Feed(tokens, cached, sequence.table.blocks, _first_wanted(work))


def _result(sequence: Sequence) -> Result:
    assert sequence.finish is not None
    request = sequence.request
    return Result(
        output_ids=tuple(sequence.tokens[sequence.prompt_tokens :]),
        finish=sequence.finish,
        drafted_tokens=len(sequence.drafts),
        accepted_tokens=sequence.accepted_tokens,
        reused_tokens=sequence.reused_tokens,
        new_blocks=sequence.new_blocks,
        total_blocks=sequence.total_blocks,
        generation_logits=_stacked(sequence.generation_rows) if request.want_generation_logits else None,
        context_logits=_stacked(sequence.context_rows) if request.want_context_logits else None,
        log_probs=tuple(sequence.log_probs),
    )


def _stacked(rows: list[NDArray[np.float32]]) -> NDArray[np.float32] | None:
    return np.concatenate(rows) if rows else None


def _result_of(sequence: Sequence) -> Result:
    assert sequence.result is not None
    return sequence.result
