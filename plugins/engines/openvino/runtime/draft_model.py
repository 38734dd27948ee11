"""The draft model inside the engine: its own cache, kept in step with the target's sequences."""

from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from plugins.engines.openvino.record import EngineRecord
from plugins.engines.openvino.runtime.block_manager import BlockManager, BlockTable, Match, common_prefix
from plugins.engines.openvino.runtime.runner import Feed, Runner
from plugins.engines.openvino.runtime.sampler import adjusted, candidates, draw, uniform
from plugins.engines.openvino.runtime.sequence import Distribution, Sequence


@dataclass(frozen=True)
class Want:
    """A sequence for which `tokens` tokens shall be drafted, drawn as the request draws or else the most likely ones."""

    sequence: Sequence
    tokens: int
    sampled: bool


@dataclass
class Draft:
    """Tokens drafted so far, all below `shared_vocab_size`, and what each was drawn from; nothing there when the most likely ones are
    taken."""

    want: Want
    shared_vocab_size: int
    tokens: list[int] = field(default_factory=list)
    drawn_from: list[Distribution] = field(default_factory=list)

    def text(self, start: int = 0) -> list[int]:
        """The sequence and the draft behind it, from this position on."""
        return self.want.sequence.tokens[start:] + self.tokens[max(0, start - len(self.want.sequence.tokens)) :]

    @property
    def done(self) -> bool:
        return len(self.tokens) >= self.want.tokens or (bool(self.tokens) and self.tokens[-1] in self.want.sequence.request.end_ids)

    def extend(self, row: NDArray[np.float32]) -> None:
        """Choose the next token from its row of logits [vocab]."""
        sequence, row = self.want.sequence, row[: self.shared_vocab_size]
        request, position = sequence.request, len(sequence.tokens) + len(self.tokens)
        row = adjusted(row, request, self.text()) if request.adjusts else row
        if self.want.sampled:
            self.drawn_from.append(candidates(row, request.sampling))
            self.tokens.append(draw(self.drawn_from[-1], uniform(sequence.seed, position, "draft")))
        else:
            self.tokens.append(int(row.argmax()))


@dataclass
class _Track:
    """The draft's cache of one sequence: the table's tokens are final, `fed` are those behind them that may have to be rolled back."""

    table: BlockTable
    fed: list[int] = field(default_factory=list)

    @property
    def cached_tokens(self) -> int:
        return self.table.cached_tokens + len(self.fed)

    def right_tokens(self, tokens: SequenceOf[int]) -> int:
        """How many of the cached tokens are those of the sequence as it is now known, its last token left to be fed."""
        return self.table.cached_tokens + common_prefix(self.fed, tokens[self.table.cached_tokens : -1])


class DraftModel:
    """Drafts for several sequences at once. A sequence for which there is no room is simply not drafted for.

    Vocabularies may differ by padding: ids of `shared_vocab_size` and above are never drafted, and behind one that the draft model has no
    embedding for nothing is.
    """

    def __init__(
        self, record: EngineRecord, runner: Runner, blocks: BlockManager, *, reuse: bool = True, target_vocab_size: int | None = None
    ) -> None:
        self.record = record
        self.shared_vocab_size = min(record.vocab_size, target_vocab_size or record.vocab_size)
        self._reads_all = target_vocab_size is None or record.vocab_size >= target_vocab_size
        self.runner = runner
        self.blocks = blocks
        self._reuse = reuse
        self._tracks: dict[Sequence, _Track] = {}

    def propose(self, wants: SequenceOf[Want]) -> list[Draft]:
        """A draft for each want. It stays empty when the draft model has more to read first than one pass holds; it then reads a part."""
        drafts = [Draft(want, self.shared_vocab_size) for want in wants]
        open_drafts = [draft for draft in drafts if self._keep_step(draft.want)]
        while open_drafts:
            open_drafts = self._pass(open_drafts)
        return drafts

    def forget(self, sequence: Sequence) -> None:
        """End of a sequence; what was computed for it stays as cache."""
        track = self._tracks.pop(sequence, None)
        if track is not None:
            self.blocks.close(track.table, sequence.tokens)

    def unread_tokens(self, sequence: Sequence) -> int:
        """Tokens of a sequence that the next draft has to read first."""
        track = self._tracks.get(sequence)
        return len(sequence.tokens) - (track.right_tokens(sequence.tokens) if track else 0)

    def _keep_step(self, want: Want) -> bool:
        """Roll the cache back to what is now known to be right, and make room; False when there is none."""
        tokens = want.sequence.tokens
        needed = len(tokens) + want.tokens
        if needed > self.record.max_sequence_tokens or not (self._reads_all or max(tokens) < self.record.vocab_size):
            return False
        track = self._tracks.get(want.sequence)
        if track is None:
            match = self.blocks.match(tokens, len(tokens) - 1) if self._reuse else Match()
            track = self._tracks[want.sequence] = _Track(self.blocks.open(match))
        self.blocks.commit(track.table, tokens, track.right_tokens(tokens))
        track.fed.clear()
        if self.blocks.extend(track.table, needed):
            return True
        self.forget(want.sequence)  # so that it holds no blocks that others could use
        return False

    def _pass(self, drafts: SequenceOf[Draft]) -> list[Draft]:
        """One forward pass over the drafts that fit in it; returns those that go on."""
        feeds: list[Feed] = []
        fed: list[Draft] = []
        budget = self.record.max_batched_tokens
        for draft in drafts:
            feed = self._feed(draft, budget, alone=len(drafts) == 1)
            if feed is not None:
                feeds.append(feed)
                fed.append(draft)
                budget -= max(len(feed.tokens), self.runner.min_rows)
        rows = iter(self.runner.forward(feeds)) if feeds else iter(())
        going_on = []
        for draft, feed in zip(fed, feeds, strict=True):
            self._note(draft, feed)
            if feed.first_wanted < len(feed.tokens):
                draft.extend(next(rows))
            if not draft.done and self._unread_tokens(draft) <= self.record.max_batched_tokens:
                going_on.append(draft)
        return going_on

    def _unread_tokens(self, draft: Draft) -> int:
        return len(draft.want.sequence.tokens) + len(draft.tokens) - self._tracks[draft.want.sequence].cached_tokens

    def _feed(self, draft: Draft, budget: int, *, alone: bool) -> Feed | None:
        track = self._tracks[draft.want.sequence]
        pending = draft.text(track.cached_tokens)
        if budget < self.runner.min_rows:
            return None
        chunk = pending[: min(budget, self.runner.chunk_tokens(len(pending))) if alone else budget]
        whole = len(chunk) == len(pending)
        return Feed(chunk, track.cached_tokens, track.table.blocks, len(chunk) - 1 if whole else len(chunk))

    def _note(self, draft: Draft, feed: Feed) -> None:
        """What was fed is in the cache. A sequence's last token stays open, so that it can be fed again for another draft."""
        sequence, track = draft.want.sequence, self._tracks[draft.want.sequence]
        if not draft.tokens:
            end = feed.cached_tokens + len(feed.tokens)
            final = min(end, len(sequence.tokens) - 1)
            self.blocks.commit(track.table, sequence.tokens, final)
            track.fed = sequence.tokens[final:end]
        else:
            track.fed += feed.tokens
