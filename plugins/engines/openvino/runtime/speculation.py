"""Speculation inside the engine: what is drafted for which sequence before a pass, and what is learnt from it afterwards."""

import logging
import time
from collections.abc import Callable
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, field, replace
from functools import partial

from plugins.engines.openvino.runtime.draft_model import DraftModel, Want
from plugins.engines.openvino.runtime.sequence import Sequence, Status
from triton_repo.common import draft_length as rule
from triton_repo.common.lookup import NOTHING, PromptLookup, Proposal

_LOG = logging.getLogger(__name__)

CATCH_UP_TOKENS = 8
"""A draft that first had to read more new tokens than this says nothing about the draft model's speed."""
READ_TOKENS_PER_LEFT_TOKEN = 2
"""A draft model that had to read more than this for each token still to come is not asked: reading costs what drafts save."""
DRAFT_MARGIN = 1.0
"""In one process a draft's whole cost is in the time measured for it; see `rule.DRAFT_MARGIN` for the other case."""


@dataclass
class _Drafting:
    """What is known of one sequence: its acceptance so far, its n-grams, and what the coming pass verifies."""

    state: rule.DraftLengthState
    lookup: PromptLookup | None
    choice: rule.Choice = field(default_factory=rule.Choice)
    match_tokens: int = 0


class Speculator:
    """Chooses for each sequence the source and length of its draft so that all together make most tokens per second.

    Costs are measured for the engine as a whole, acceptance for each sequence. Above `most_sequences` decoding at once nothing is drafted.
    """

    def __init__(
        self,
        draft: DraftModel | None,
        padded: Callable[[int], int],
        min_rows: int,
        most_sequences: int,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.draft = draft
        self._padded, self._min_rows, self._most_sequences, self._clock = padded, min_rows, most_sequences, clock
        self._learnt = rule.DraftLengthState()
        self._drafting: dict[Sequence, _Drafting] = {}

    def propose(self, sequences: SequenceOf[Sequence]) -> None:
        """Set the drafts of all sequences that are about to decode; drafts that an earlier pass had no room for are forgotten."""
        self._release_waiting()
        for sequence in sequences:
            sequence.drop_drafts()
        if len(sequences) > self._most_sequences:
            return
        company = rule.Company(len(sequences), self._rows(1) * len(sequences))
        wants: list[Want] = []
        for sequence in sequences:
            if sequence.request.speculation.max_draft_tokens:
                company = self._choose(sequence, company, wants)
        if wants:
            self._ask_draft_model(wants)

    def _release_waiting(self) -> None:
        """A sequence that was preempted must not hold the draft model's blocks while it waits."""
        if self.draft is not None:
            for sequence in self._drafting:
                if sequence.status is Status.WAITING:
                    self.draft.forget(sequence)

    def _rows(self, tokens: int) -> int:
        return max(tokens, self._min_rows)

    def _choose(self, sequence: Sequence, company: rule.Company, wants: list[Want]) -> rule.Company:
        """Decide for one sequence among what the others were decided to do; returns what all do now."""
        drafting = self._of(sequence)
        asked = sequence.request.speculation
        most = min(asked.max_draft_tokens, sequence.left_tokens - 1)
        found = _look_up(drafting, sequence, most)
        ready = asked.draft and self._worth_reading(sequence)
        others = company.without(1.0, self._rows(1))
        best = partial(
            rule.choose,
            drafting.state,
            company=others,
            rows_of=lambda tokens: self._padded(others.rows + self._rows(tokens)) - others.rows,
            draft_margin=DRAFT_MARGIN,
        )
        pick = best if asked.adaptive else rule.fixed
        choice = pick(most_tokens=most, lookup_tokens=len(found.tokens), match_tokens=found.match_tokens, draft_available=ready)
        drafting.choice, drafting.match_tokens = choice, found.match_tokens
        if choice.source == "lookup":
            sequence.drafts, sequence.drafts_from = found.tokens[: choice.tokens], ()
        elif found.tokens:
            drafting.state = rule.observe_skipped_lookup(drafting.state, found.match_tokens)
        if choice.source == "draft":
            wants.append(Want(sequence, choice.tokens, _sampled(sequence)))
        return others.joined(rule.expected(drafting.state, choice, found.match_tokens), self._rows(choice.tokens + 1), choice)

    def _worth_reading(self, sequence: Sequence) -> bool:
        return self.draft is not None and self.draft.unread_tokens(sequence) <= READ_TOKENS_PER_LEFT_TOKEN * sequence.left_tokens

    def _ask_draft_model(self, wants: list[Want]) -> None:
        assert self.draft is not None
        caught_up = all(self.draft.unread_tokens(want.sequence) <= CATCH_UP_TOKENS for want in wants)
        start = self._clock()
        try:
            drafts = self.draft.propose(wants)
        except RuntimeError as error:  # what OpenVINO raises
            self._give_up_draft_model(error)
            return
        seconds = self._clock() - start
        for draft in drafts:
            sequence = draft.want.sequence
            sequence.drafts, sequence.drafts_from = tuple(draft.tokens), tuple(draft.drawn_from)
        longest = max(len(draft.tokens) for draft in drafts)
        if longest and caught_up:
            self._learn(rule.observe_draft(self._learnt, longest, seconds))

    def _give_up_draft_model(self, error: RuntimeError) -> None:
        """The target serves alone from now on; a draft is no reason to fail a request."""
        _LOG.warning("the draft model failed and is not asked any more: %s", error)
        assert self.draft is not None
        for sequence in self._drafting:
            self.draft.forget(sequence)
        self.draft = None

    def observe_pass(self, rows: int, seconds: float) -> None:
        """A pass of the target in which all sequences decoded took this long over so many fed rows."""
        self._learn(rule.observe_verify(self._learnt, rows, seconds))

    def _learn(self, state: rule.DraftLengthState) -> None:
        """Costs hold for all sequences at once."""
        self._learnt = state
        for drafting in self._drafting.values():
            drafting.state = replace(drafting.state, target_cost=state.target_cost, draft_cost=state.draft_cost)

    def observe(self, sequence: Sequence, accepted_tokens: int, new_tokens: int) -> None:
        """What a pass made of a sequence's drafts. Does nothing for sequences that were not drafted for."""
        drafting = self._drafting.get(sequence)
        if drafting is None:
            return
        drafted, counts = len(sequence.drafts), sequence.counts
        choice = drafting.choice if drafted else rule.Choice()
        if choice.source == "lookup":
            counts.lookup_drafted_tokens += drafted
            counts.lookup_accepted_tokens += accepted_tokens
        drafting.state = rule.observe_round(
            drafting.state, choice, drafted=drafted, accepted=accepted_tokens, match_tokens=drafting.match_tokens, new_tokens=new_tokens
        )

    def forget(self, sequence: Sequence) -> None:
        """End of a sequence: the next ones start from what it has taught."""
        drafting = self._drafting.pop(sequence, None)
        if drafting is not None:
            self._learnt = rule.next_request(drafting.state)
        if self.draft is not None:
            self.draft.forget(sequence)

    def _of(self, sequence: Sequence) -> _Drafting:
        drafting = self._drafting.get(sequence)
        if drafting is None:
            lookup = PromptLookup(sequence.tokens) if sequence.request.speculation.lookup else None
            drafting = self._drafting[sequence] = _Drafting(self._learnt, lookup)
        return drafting


def _look_up(drafting: _Drafting, sequence: Sequence, most_tokens: int) -> Proposal:
    if drafting.lookup is None:
        return NOTHING
    drafting.lookup.extend(sequence.tokens[len(drafting.lookup) :])
    return drafting.lookup.propose(most_tokens)


def _sampled(sequence: Sequence) -> bool:
    sampling, wanted = sequence.request.sampling, sequence.request.speculation.sampled_drafts
    return not sampling.greedy and (sampling.seed is None if wanted is None else wanted)
