"""The draft-target loop: propose, verify, keep what the target took. Knows nothing of Triton."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
import numpy.typing as npt

from triton_repo.common import draft_length as rule
from triton_repo.common.acceptance import count_accepted
from triton_repo.common.lookup import NOTHING, PromptLookup, Proposal
from triton_repo.common.seeds import round_seed

TokenArray = npt.NDArray[np.int32]

CHUNK_TOKENS = 16  # asked in one call when the target runs alone: a call costs 0.5 to 1 ms
STREAM_CHUNK_TOKENS = 4
LOOK_AGAIN_TOKENS = 4  # when the rule says not to draft: look again after so many tokens
CATCH_UP_TOKENS = 16  # a draft call that first had to read more new tokens than this says nothing about its speed


class ModelFailedError(Exception):
    """A model did not answer. `of_request` when the request, not the model, is to blame."""

    def __init__(self, message: str, *, of_request: bool = False) -> None:
        super().__init__(message)
        self.of_request = of_request


class LanguageModel(Protocol):
    """One engine model, with everything that stays the same during a request already known to it."""

    def generate(
        self, tokens: TokenArray, new_tokens: int, *, draft: TokenArray | None = None, min_tokens: int = 0, seed: int | None = None
    ) -> TokenArray:
        """New tokens [n] after `tokens` [m]. With a draft [k]: one verifying pass, 1 to k + 1 tokens.

        No end id comes before token `min_tokens`, which may be more than `new_tokens`. Raises ModelFailedError.
        """


@dataclass(frozen=True)
class LoopSettings:
    """What a request asked of the loop; counts are tokens. Ids of `shared_vocab_size` and above are not ids of both models."""

    max_tokens: int
    min_tokens: int = 0
    end_ids: frozenset[int] = frozenset()
    num_draft_tokens: int = 0
    lookup: bool = False
    adaptive: bool = True
    stream: bool = False
    seed: int | None = None
    shared_vocab_size: int | None = None


@dataclass
class Totals:
    """Sums over one request."""

    rounds: int = 0
    drafted: int = 0
    accepted: int = 0
    lookup_drafted: int = 0
    lookup_accepted: int = 0
    draft_s: float = 0.0
    target_s: float = 0.0

    @property
    def acceptance_rate(self) -> float:
        return self.accepted / self.drafted if self.drafted else 0.0


class DraftTargetLoop:
    """Iterating gives the new tokens of one round after another, until the end id or the budget is reached.

    The caller may stop iterating at any round (stop words, cancellation). `state` and `totals` are then those of the rounds done.
    """

    def __init__(
        self,
        prompt: Sequence[int] | TokenArray,
        settings: LoopSettings,
        target: LanguageModel,
        draft: LanguageModel | None = None,
        *,
        state: rule.DraftLengthState | None = None,
        on_draft_failure: Callable[[ModelFailedError], None] = lambda error: None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.settings, self.totals = settings, Totals()
        self.state = state or rule.DraftLengthState()
        self._target, self._draft, self._on_draft_failure, self._clock = target, draft, on_draft_failure, clock
        self._prompt_length = self._length = len(prompt)
        self._tokens = np.empty(self._length + settings.max_tokens + 1, dtype=np.int32)
        self._tokens[: self._length] = prompt
        self._draft_known = 0
        speculate = settings.num_draft_tokens > 0
        self._lookup = PromptLookup(self._tokens[: self._length]) if speculate and settings.lookup else None
        self._speculate = speculate and (draft is not None or self._lookup is not None)
        self._leave_unreadable(self._sequence)

    def __iter__(self) -> Iterator[TokenArray]:
        ended = False
        while not ended and self._left > 0:
            new = self._round()
            new, ended = self._cut(new)
            self._append(new)
            if len(new):
                yield new

    @property
    def draft_answers(self) -> bool:
        """Whether the draft model was asked and has answered every time."""
        return self._draft is not None and self.totals.draft_s > 0

    @property
    def _left(self) -> int:
        return self.settings.max_tokens - (self._length - self._prompt_length)

    @property
    def _sequence(self) -> TokenArray:
        return self._tokens[: self._length]

    def _round(self) -> TokenArray:
        choice, draft = self._propose() if self._speculate else (rule.Choice(), NOTHING)
        proposed = self._cut_proposal(np.asarray(draft.tokens, dtype=np.int32))
        if len(proposed):
            return self._verify(choice, proposed, draft.match_tokens)
        return self._plain()

    def _propose(self) -> tuple[rule.Choice, Proposal]:
        """What to verify this round. The first round never asks the draft model: its prompt would delay the first token."""
        most = min(self.settings.num_draft_tokens, self._left - 1)
        found = self._lookup.propose(most) if self._lookup is not None and most > 0 else NOTHING
        ready = self._draft is not None and self.totals.rounds > 0
        pick = rule.fixed if not self.settings.adaptive else partial(rule.choose, self.state)
        choice = pick(most_tokens=most, lookup_tokens=len(found.tokens), match_tokens=found.match_tokens, draft_available=ready)
        if choice.source == "lookup":
            return choice, Proposal(found.tokens[: choice.tokens], found.match_tokens)
        if found.tokens:
            self.state = rule.observe_skipped_lookup(self.state, found.match_tokens)
        if choice.source == "draft":
            return choice, Proposal(tuple(self._ask_draft(choice.tokens).tolist()))
        return choice, NOTHING

    def _ask_draft(self, tokens: int) -> TokenArray:
        assert self._draft is not None
        start = self._clock()
        try:
            drafted = self._draft.generate(self._sequence, tokens, min_tokens=tokens)[:tokens]
        except ModelFailedError as error:
            self._draft = None
            self._speculate = self._lookup is not None
            self._on_draft_failure(error)
            return np.empty(0, dtype=np.int32)
        seconds = self._clock() - start
        self.totals.draft_s += seconds
        if len(drafted) and self._length - self._draft_known <= CATCH_UP_TOKENS:
            self.state = rule.observe_draft(self.state, len(drafted), seconds)
        self._draft_known = self._length
        return self._shared(drafted)

    def _shared(self, drafted: TokenArray) -> TokenArray:
        """The draft up to the first id that the target does not have: widths may differ by padding."""
        beyond = np.flatnonzero(self._beyond(drafted))
        return drafted[: beyond[0]] if len(beyond) else drafted

    def _beyond(self, tokens: TokenArray) -> npt.NDArray[np.bool_]:
        limit = self.settings.shared_vocab_size
        return np.zeros(len(tokens), dtype=np.bool_) if limit is None else tokens >= limit

    def _leave_unreadable(self, tokens: TokenArray) -> None:
        """A draft model that has no embedding for one of the tokens cannot go on from here."""
        if self._draft is not None and self._beyond(tokens).any():
            self._draft = None
            self._speculate = self._lookup is not None

    def _verify(self, choice: rule.Choice, draft: TokenArray, match_tokens: int) -> TokenArray:
        new, seconds = self._ask_target(len(draft) + 1, draft)
        drafted, accepted = len(draft), count_accepted(draft.tolist(), new.tolist())
        totals = self.totals
        totals.drafted += drafted
        totals.accepted += accepted
        if choice.source == "lookup":
            totals.lookup_drafted += drafted
            totals.lookup_accepted += accepted
        self.state = rule.observe_round(
            self.state, choice, drafted=drafted, accepted=accepted, match_tokens=match_tokens, new_tokens=len(new)
        )
        if totals.rounds > 1:  # the first pass read the prompt
            self.state = rule.observe_verify(self.state, drafted + 1, seconds)
        return new

    def _plain(self) -> TokenArray:
        new, seconds = self._ask_target(min(self._chunk_tokens(), self._left), None)
        if self.totals.rounds > 1 and len(new):
            self.state = rule.observe_plain(self.state, len(new), seconds)
        self.state = rule.observe_round(self.state, rule.Choice(), drafted=0, accepted=0, new_tokens=len(new))
        return new

    def _chunk_tokens(self) -> int:
        first = self.totals.rounds == 0
        if first and (self.settings.stream or self._speculate):
            return 1
        if self._speculate:
            return LOOK_AGAIN_TOKENS
        return STREAM_CHUNK_TOKENS if self.settings.stream else CHUNK_TOKENS

    def _ask_target(self, new_tokens: int, draft: TokenArray | None) -> tuple[TokenArray, float]:
        made = self._length - self._prompt_length
        seed = None if self.settings.seed is None else round_seed(self.settings.seed, made)
        start = self._clock()
        new = self._target.generate(self._sequence, new_tokens, draft=draft, min_tokens=max(0, self.settings.min_tokens - made), seed=seed)
        seconds = self._clock() - start
        self.totals.target_s += seconds
        self.totals.rounds += 1
        return new[: min(new_tokens, self._left)], seconds

    def _cut(self, new: TokenArray) -> tuple[TokenArray, bool]:
        """The tokens up to the first end id that may end the answer (that one included), and whether it ended."""
        if len(new) == 0:
            return new, True
        made = self._length - self._prompt_length
        for i, token in enumerate(new.tolist()):
            if token in self.settings.end_ids and made + i + 1 >= self.settings.min_tokens:
                return new[: i + 1], True
        return new, False

    def _cut_proposal(self, draft: TokenArray) -> TokenArray:
        for i, token in enumerate(draft.tolist()):
            if token in self.settings.end_ids:
                return draft[: i + 1]
        return draft

    def _append(self, new: TokenArray) -> None:
        self._tokens[self._length : self._length + len(new)] = new
        self._length += len(new)
        self._leave_unreadable(new)
        if self._lookup is not None:
            self._lookup.extend(new.tolist())
