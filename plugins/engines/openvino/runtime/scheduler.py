"""Who is fed in the next pass: running sequences first, then the waiting ones in order of arrival."""

from collections import deque
from dataclasses import dataclass

from plugins.engines.openvino.runtime.block_manager import BlockManager, Match
from plugins.engines.openvino.runtime.request import RequestError
from plugins.engines.openvino.runtime.sequence import Sequence, Status

MOST_WAITING = 1024
"""Sequences that may wait unless told otherwise."""


@dataclass(frozen=True)
class Limits:
    """What one pass may hold, and how many sequences may wait for one.

    `min_rows` is the fewest rows that a sequence feeds, see `Runner`.
    """

    max_batch_size: int
    max_batched_tokens: int
    min_rows: int
    max_waiting: int = MOST_WAITING


@dataclass(frozen=True)
class Work:
    """What one sequence does in a pass: `feed` pending tokens, and the drafts too when `sample` (the last chunk)."""

    sequence: Sequence
    feed: int
    sample: bool

    @property
    def rows(self) -> int:
        """Rows with meaning; the runner may add padding rows."""
        return self.feed + (len(self.sequence.drafts) if self.sample else 0)


class Scheduler:
    """Chunked prefill, decode and verification in one pass under a token budget.

    When blocks run out the engine's own drafts go first; then the sequence that was admitted last gives its blocks back and computes them
    again later. The first one always gets on.
    """

    def __init__(self, blocks: BlockManager, limits: Limits, *, reuse: bool = True) -> None:
        self.blocks = blocks
        self.limits = limits
        self.reuse = reuse
        self.waiting: deque[Sequence] = deque()
        self.running: list[Sequence] = []
        self.preemptions = 0

    @property
    def idle(self) -> bool:
        return not self.waiting and not self.running

    @property
    def decoding(self) -> list[Sequence]:
        """Sequences that the next pass makes a token for, with a draft of the engine's own if there is one."""
        return [s for s in self.running if s.decoding]

    def add(self, sequence: Sequence) -> None:
        """Queue a sequence and its followers. Raises RequestError when too many wait already."""
        assert sequence.status is Status.WAITING
        new = (sequence, *sequence.followers)
        if len(self.waiting) + len(new) > self.limits.max_waiting:
            found, needed = f"{len(self.waiting)} sequences", f"{len(new)} more make at most {self.limits.max_waiting}"
            raise RequestError("QUEUE-FULL", "queue", found, needed)
        self.waiting.extend(new)

    def schedule(self) -> list[Work]:
        """Work of the next pass; every sequence in it has room in its block table for the rows it feeds."""
        budget = self.limits.max_batched_tokens
        plan: list[Work] = []
        running = list(self.running)
        for place, sequence in enumerate(running, start=1):
            if sequence.status is not Status.RUNNING:
                continue  # it gave its blocks to one before it
            fair = max(self.limits.min_rows, budget - self.limits.min_rows * (len(running) - place))
            work = self._work(sequence, sequence.pending_tokens, budget, fair)
            if work is not None and self._make_room(sequence, work):
                plan.append(work)
                budget -= self._rows(work)
        self._admit(plan, budget)
        return plan

    def _admit(self, plan: list[Work], budget: int) -> None:
        """Start waiting sequences, oldest first, until one does not fit; only those that wait for their leader are passed over."""
        for sequence in [s for s in self.waiting if s.startable]:
            if len(self.running) >= self.limits.max_batch_size:
                return
            match = self._match(sequence)
            cached = len(match.full) * self.blocks.tokens_per_block + match.tail_tokens
            work = self._work(sequence, len(sequence.tokens) - cached, budget, budget)
            if work is None or not self.blocks.fits(match, self._room(cached, work)):
                return
            sequence.table = self.blocks.open(match)
            assert sequence.table.cached_tokens == cached
            extended = self.blocks.extend(sequence.table, self._room(cached, work))
            assert extended, "a match that fits must be extendable"
            self._start(sequence)
            plan.append(work)
            budget -= self._rows(work)

    def _start(self, sequence: Sequence) -> None:
        self.waiting.remove(sequence)
        self.running.append(sequence)
        sequence.status = Status.RUNNING
        if not sequence.started:
            sequence.counts.reused_tokens = min(sequence.table.reused_tokens, sequence.prompt_tokens)
        sequence.started = True

    def _match(self, sequence: Sequence) -> Match:
        if not self.reuse or sequence.context_pending:
            return Match()
        return self.blocks.match(sequence.tokens, len(sequence.tokens) - 1)

    def _work(self, sequence: Sequence, pending: int, budget: int, fair: int) -> Work | None:
        """Everything pending with its drafts, or else a chunk without the last token.

        `fair` rows of the budget leave one token for each sequence that comes after; only a verification, which cannot be split, takes
        more.
        """
        assert pending > 0
        sequence.drop_drafts(max(0, fair - pending))
        if max(pending + len(sequence.drafts), self.limits.min_rows) <= (budget if sequence.request.draft_ids else fair):
            return Work(sequence, pending, sample=True) if budget >= self.limits.min_rows else None
        if pending == 1 or budget < self.limits.min_rows:
            return None
        return Work(sequence, min(pending - 1, fair, budget), sample=False)

    def _rows(self, work: Work) -> int:
        return max(work.rows, self.limits.min_rows)

    def _room(self, cached: int, work: Work) -> int:
        return cached + self._rows(work)

    def _make_room(self, sequence: Sequence, work: Work) -> bool:
        cached = sequence.table.cached_tokens
        if self.blocks.extend(sequence.table, self._room(cached, work)):
            return True
        sequence.drop_drafts()
        while not self.blocks.extend(sequence.table, self._room(cached, work)):
            last = self.running[-1]
            self._preempt(last)
            if last is sequence:
                return False
        return True

    def _preempt(self, sequence: Sequence) -> None:
        self.preemptions += 1
        self.running.remove(sequence)
        self._give_back(sequence)
        sequence.status = Status.WAITING
        sequence.drop_drafts()
        if sequence.context_pending:
            sequence.context_rows.clear()
        self.waiting.appendleft(sequence)

    def finish(self, sequence: Sequence) -> None:
        """Take a sequence out, wherever it is; what it computed stays as cache."""
        if sequence.status is Status.WAITING:
            self.waiting.remove(sequence)
        elif sequence.status is Status.RUNNING:
            self.running.remove(sequence)
            self._give_back(sequence)
        sequence.status = Status.FINISHED

    def _give_back(self, sequence: Sequence) -> None:
        sequence.counts.new_blocks += sequence.table.new_blocks
        sequence.counts.total_blocks = max(sequence.counts.total_blocks, len(sequence.table.blocks))
        self.blocks.close(sequence.table, sequence.tokens)
        sequence.table.new_blocks = 0
