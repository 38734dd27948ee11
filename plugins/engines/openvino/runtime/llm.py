"""The engine: requests go in, each step is one forward pass over all of them, results come out."""

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from plugins.engines.openvino.record import TUNED_FOR, EngineRecord
from plugins.engines.openvino.runtime import sampler
from plugins.engines.openvino.runtime.block_manager import BlockManager
from plugins.engines.openvino.runtime.draft_model import DraftModel
from plugins.engines.openvino.runtime.request import GREEDY, NO_SPECULATION, Request, RequestError, Result, Sampling, Speculation
from plugins.engines.openvino.runtime.runner import Feed, Runner
from plugins.engines.openvino.runtime.sampler import adjusted, candidates
from plugins.engines.openvino.runtime.scheduler import MOST_WAITING, Limits, Scheduler, Work
from plugins.engines.openvino.runtime.sequence import Distribution, Sequence, Status
from plugins.engines.openvino.runtime.speculation import Speculator
from plugins.engines.openvino.runtime.validate import validate

__all__ = ["GREEDY", "NO_SPECULATION", "Engine", "Request", "RequestError", "Result", "Sampling", "Sequence", "Speculation"]

MOST_SPECULATING = 8
"""Sequences decoding at once above which the engine drafts for none, unless told otherwise."""


@dataclass(frozen=True)
class Counters:
    """Work since the engine was loaded: passes of the target, seconds inside OpenVINO (draft model included), seconds inside `step`."""

    passes: int
    infer_s: float
    step_s: float


class Engine:
    """One loaded engine, with a draft model or without. Not thread-safe: one thread adds, steps and cancels.

    Sequences are independent: what one answers depends neither on which others are in the pass nor on what was reused from the cache.
    """

    def __init__(
        self,
        record: EngineRecord,
        runner: Runner,
        blocks: BlockManager,
        *,
        draft: DraftModel | None = None,
        reuse: bool = True,
        max_waiting: int = MOST_WAITING,
        max_speculating: int = MOST_SPECULATING,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.record = record
        self.blocks = blocks
        self._runner, self._clock = runner, clock
        limits = Limits(record.max_batch_size, record.max_batched_tokens, runner.min_rows, max_waiting)
        self.scheduler = Scheduler(blocks, limits, reuse=reuse)
        self._speculator = Speculator(draft, runner.padded, runner.min_rows, max_speculating, clock)
        self._passes, self._step_s = 0, 0.0

    @classmethod
    def load(
        cls,
        engine_dir: Path,
        draft_dir: Path | None = None,
        *,
        max_cached_tokens: int | None = None,
        threads: int | None = None,
        reuse: bool = True,
        tuned_for: str | None = None,
        max_waiting: int = MOST_WAITING,
        max_speculating: int = MOST_SPECULATING,
    ) -> "Engine":
        """Compile the engine in a folder, and the draft engine of another one.

        Each cache has room for `max_cached_tokens` tokens, and `tuned_for` is one of `TUNED_FOR` (default: what its record says).
        The vocabularies may differ in width: that they mean the same is for the plan to know.
        """
        record, runner, blocks = _open(engine_dir, max_cached_tokens, threads, tuned_for)
        draft = None
        if draft_dir:
            opened = _open(draft_dir, max_cached_tokens, threads, tuned_for)
            draft = DraftModel(*opened, reuse=reuse, target_vocab_size=record.vocab_size)
        return cls(record, runner, blocks, draft=draft, reuse=reuse, max_waiting=max_waiting, max_speculating=max_speculating)

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
        if request.draft_logits is not None:
            sequence.drafts_from = _drawn_from(sequence)
        self.scheduler.add(sequence)
        return sequence

    def cancel(self, sequence: Sequence) -> None:
        """End a sequence and its followers now with what they have; no effect on a finished one."""
        for one in (sequence, *sequence.followers):
            if one.status is not Status.FINISHED:
                one.finish = "cancelled"
                self._finish(one)

    def generate(self, requests: Iterable[Request]) -> list[Result | RequestError]:
        """Answer all requests, in order; a bad one, and one that the queue has no room for, is answered with its error."""
        added = [self._try_add(r) for r in requests]
        try:
            while any(isinstance(s, Sequence) and not _done(s) for s in added):
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

    def counters(self) -> Counters:
        """What was done since the engine was loaded."""
        draft = self._speculator.draft
        return Counters(self._passes, self._runner.infer_s + (draft.runner.infer_s if draft else 0.0), self._step_s)

    def step(self) -> None:
        """Draft, then one forward pass over all sequences that are due: chunks of prompts, single tokens, verifications."""
        start = self._clock()
        self._speculator.propose(self.scheduler.decoding)
        plan = self.scheduler.schedule()
        if plan:
            self._forward(plan)
            self._passes += 1
        else:
            assert self.scheduler.idle, "waiting sequences must get on when nothing runs"
        self._step_s += self._clock() - start

    def _forward(self, plan: list[Work]) -> None:
        begin = self._clock()
        steady = all(work.sequence.decoding for work in plan)
        fed_rows = self._runner.padded(sum(max(work.rows, self._runner.min_rows) for work in plan))
        logits = self._runner.forward([_feed(work) for work in plan])
        start = 0
        for work in plan:
            stop = start + work.rows - _first_wanted(work)
            self._absorb(work, logits[start:stop])
            start = stop
        if steady:
            self._speculator.observe_pass(fed_rows, self._clock() - begin)

    def _absorb(self, work: Work, rows: NDArray[np.float32]) -> None:
        """Take one sequence's rows: collect, choose tokens, commit what is valid, and finish it when it is done."""
        sequence = work.sequence
        cached = sequence.table.cached_tokens + work.feed
        if sequence.context_pending:
            sequence.context_rows.append(rows[: work.feed].copy())
            rows = rows[work.feed - 1 :]
        if work.sample:
            cached += self._sample(sequence, rows)
        self.blocks.commit(sequence.table, sequence.tokens, cached)
        if sequence.finish is not None:
            self._finish(sequence)

    def _sample(self, sequence: Sequence, rows: NDArray[np.float32]) -> int:
        """Extend the answer; returns the number of drafts accepted."""
        start, accepted_before = len(sequence.tokens), sequence.counts.accepted_tokens
        used = sampler.accept(rows, sequence)
        accepted = sequence.counts.accepted_tokens - accepted_before
        sequence.counts.passes += 1
        sequence.counts.drafted_tokens += len(sequence.drafts)
        if sequence.request.draft_ids:
            sequence.finish = sequence.finish or "verified"
        if sequence.request.want_generation_logits:
            sequence.generation_rows.append(rows[:used].copy())
        if sequence.request.want_log_probs:
            tokens = sequence.tokens[start:]
            sequence.log_probs += [sampler.log_probability(row, t) for row, t in zip(rows, tokens, strict=False)]
        self._speculator.observe(sequence, accepted, used)
        sequence.drop_drafts()
        return accepted

    def _finish(self, sequence: Sequence) -> None:
        self.scheduler.finish(sequence)
        self._speculator.forget(sequence)
        sequence.result = _result(sequence)


def _open(
    engine_dir: Path, max_cached_tokens: int | None, threads: int | None, tuned_for: str | None
) -> tuple[EngineRecord, Runner, BlockManager]:
    record = EngineRecord.read(engine_dir)
    if tuned_for is not None:
        if tuned_for not in TUNED_FOR:
            raise ValueError(f"tuned_for is {tuned_for}, needed: {' or '.join(TUNED_FOR)}")
        record = replace(record, tuned_for=tuned_for)
    tokens = record.max_cached_tokens if max_cached_tokens is None else max_cached_tokens
    total = max(1, tokens // record.tokens_per_block)
    runner = Runner(engine_dir, record, total, threads)
    return record, runner, BlockManager(total, record.tokens_per_block, runner.copy_block)


def _drawn_from(sequence: Sequence) -> tuple[Distribution, ...]:
    """What the drafts of a request were drawn from, by its draft logits; nothing where some draft cannot have been."""
    request, text = sequence.request, sequence.tokens + list(sequence.drafts)
    if request.sampling.greedy or request.draft_logits is None:
        return ()
    rows = zip(request.draft_logits, range(sequence.prompt_tokens, len(text)), strict=False)
    drawn_from = tuple(candidates(adjusted(row, request, text[:position]), request.sampling) for row, position in rows)
    possible = all(q.of(draft) > 0 for q, draft in zip(drawn_from, sequence.drafts, strict=True))
    return drawn_from if possible else ()


def _done(sequence: Sequence) -> bool:
    return all(s.status is Status.FINISHED for s in (sequence, *sequence.followers))


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
        **asdict(sequence.counts),
        generation_logits=_stacked(sequence.generation_rows) if request.want_generation_logits else None,
        context_logits=_stacked(sequence.context_rows) if request.want_context_logits else None,
        log_probs=tuple(sequence.log_probs),
    )


def _stacked(rows: list[NDArray[np.float32]]) -> NDArray[np.float32] | None:
    return np.concatenate(rows) if rows else None


def _result_of(sequence: Sequence) -> Result:
    """The result of a sequence, with those of its followers."""
    results = [s.result for s in (sequence, *sequence.followers)]
    first, *others = [r for r in results if r is not None]
    return replace(first, others=tuple(others))
