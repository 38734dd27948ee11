"""The draft-length rule: how many tokens to draft, and from which source, so that expected tokens per second are highest.

A round that drafts k tokens of which each is taken with probability a yields 1 + a + ... + a^k tokens and costs one pass of the target over
k + 1 tokens, plus the draft model's time when the draft model proposed them. The rule compares all k of all sources with plain decoding.
Everything is measured: acceptance by trials that fade, costs by a straight line over the tokens of a call that forgets.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from triton_repo.common.lookup import MAX_MATCH_TOKENS

Source = Literal["none", "draft", "lookup"]

KEEP_TRIAL = 0.95  # weight an old trial keeps at each new one: the estimate remembers about 20 trials
KEEP_COST = 0.95
KEEP_SKIPPED = 0.98  # a source that is not asked drifts back to what was expected of it
EXPECTED_TRIALS = 2.0
LASTING_TRIALS = 0.3  # part of the expectation that never fades
SLOPE_PRIOR = 0.04  # cost of one token more in a call, as share of the call, before it was measured
DRAFT_COST_PRIOR = 0.2  # time of one draft token over one target pass, before it was measured; it bounds what a first stall may say
OUTLIER = 4.0
DRAFT_MARGIN = 1.12
"""A round with the draft model must promise this much more. Two models in turn empty each other's caches; that costs the other one's next
call, so no measurement of either shows it. Without the margin a kind of text at the break-even point lost 7 % in one of four runs."""
FIRST_PROBE_TOKENS, LAST_PROBE_TOKENS = 16, 256
UNMEASURED_TOKENS = 4


@dataclass(frozen=True)
class Acceptance:
    """Probability that a drafted token is taken. What is expected beforehand counts as trials, and all trials fade as new ones come."""

    expected: float
    accepted: float
    rejected: float

    @classmethod
    def expecting(cls, accepted: float, rejected: float) -> "Acceptance":
        """A start with so many imagined trials."""
        return cls(accepted / (accepted + rejected), accepted, rejected)

    @property
    def rate(self) -> float:
        """Between 0 and 1, both excluded."""
        return (self.accepted + LASTING_TRIALS * self.expected) / (self.accepted + self.rejected + LASTING_TRIALS)

    def observe(self, drafted: int, accepted: int) -> "Acceptance":
        """Every accepted token is a success; the first refused one a failure; what follows it was never judged."""
        failures = int(accepted < drafted)
        keep = KEEP_TRIAL ** (accepted + failures)
        return replace(self, accepted=self.accepted * keep + accepted, rejected=self.rejected * keep + failures)

    def skipped(self) -> "Acceptance":
        """Trials fade towards what was expected beforehand."""
        imagined = (1 - KEEP_SKIPPED) * EXPECTED_TRIALS
        return replace(
            self,
            accepted=self.accepted * KEEP_SKIPPED + imagined * self.expected,
            rejected=self.rejected * KEEP_SKIPPED + imagined * (1 - self.expected),
        )

    def softened(self, trials: float) -> "Acceptance":
        """The same rate held by at most `trials` trials: what a new request starts from."""
        total = self.accepted + self.rejected
        scale = min(1.0, trials / total) if total else 1.0
        return replace(self, accepted=self.accepted * scale, rejected=self.rejected * scale)


DRAFT_PRIOR = Acceptance.expecting(3.0, 2.0)
LOOKUP_PRIORS = tuple(Acceptance.expecting(accepted, rejected) for accepted, rejected in ((0.5, 1.5), (1.0, 1.5), (2.0, 1.0)))
"""By the number of tokens that matched: 1, 2, 3 or more."""


@dataclass(frozen=True)
class LinearCost:
    """Seconds of a call as a straight line over its tokens, from sums that fade.

    `serial` calls make one token after another, so their slope starts from proportional cost.
    """

    serial: bool = False
    weight: float = 0.0
    tokens: float = 0.0
    seconds: float = 0.0
    tokens_tokens: float = 0.0
    tokens_seconds: float = 0.0

    @property
    def measured(self) -> bool:
        return self.weight > 0

    def at(self, tokens: float) -> float:
        """Seconds of a call with `tokens` tokens. Needs a measurement."""
        mean_tokens, mean_seconds, slope = self._line
        return max(mean_seconds + slope * (tokens - mean_tokens), 0.1 * mean_seconds)

    @cached_property
    def _line(self) -> tuple[float, float, float]:
        mean_tokens, mean_seconds = self.tokens / self.weight, self.seconds / self.weight
        spread = self.tokens_tokens - self.tokens * mean_tokens
        together = self.tokens_seconds - self.tokens * mean_seconds
        prior_slope = mean_seconds / mean_tokens if self.serial else SLOPE_PRIOR * mean_seconds
        return mean_tokens, mean_seconds, max(0.0, (together + prior_slope) / (spread + 1.0))

    def observe(self, tokens: int, seconds: float) -> "LinearCost":
        """One call more. A stall counts as no more than four times what was expected."""
        if self.measured:
            seconds = min(seconds, OUTLIER * self.at(tokens))
        keep = KEEP_COST
        return LinearCost(
            self.serial,
            self.weight * keep + 1,
            self.tokens * keep + tokens,
            self.seconds * keep + seconds,
            self.tokens_tokens * keep + tokens * tokens,
            self.tokens_seconds * keep + tokens * seconds,
        )


@dataclass(frozen=True)
class Choice:
    """What to draft next. `probe` marks a draft made only to measure."""

    source: Source = "none"
    tokens: int = 0
    probe: bool = False


@dataclass(frozen=True)
class DraftLengthState:
    """Everything the rule knows; changed only by the functions of this module.

    `target_cost` is in seconds over the tokens fed to a pass; plain decoding is a pass of one. `draft_cost` is in passes of the target over
    the tokens drafted: when other requests slow everything down, the comparison stays right although no draft was asked for a while.
    """

    draft: Acceptance = DRAFT_PRIOR
    lookup: tuple[Acceptance, ...] = LOOKUP_PRIORS
    target_cost: LinearCost = field(default_factory=LinearCost)
    draft_cost: LinearCost = field(default_factory=lambda: LinearCost(serial=True).observe(1, DRAFT_COST_PRIOR))
    probe_wait_tokens: int = FIRST_PROBE_TOKENS
    idle_tokens: int = 0


def expected_tokens(rate: float, drafted: int) -> float:
    """Tokens that a round with `drafted` drafted tokens yields: 1 + a + ... + a^k."""
    return float(drafted + 1) if rate >= 1.0 else (1.0 - rate ** (drafted + 1)) / (1.0 - rate)


@dataclass(frozen=True)
class Company:
    """What the other sequences of the same pass do: tokens expected of them, rows they feed, longest draft that is made for one of them."""

    tokens: float = 0.0
    rows: int = 0
    draft_tokens: int = 0

    def without(self, tokens: float, rows: int) -> "Company":
        return replace(self, tokens=self.tokens - tokens, rows=self.rows - rows)

    def joined(self, tokens: float, rows: int, choice: Choice) -> "Company":
        drafted = choice.tokens if choice.source == "draft" else 0
        return Company(self.tokens + tokens, self.rows + rows, max(self.draft_tokens, drafted))


ALONE = Company()


def as_fed(tokens: int) -> int:
    """Rows of a target whose passes are not padded."""
    return tokens


def choose(
    state: DraftLengthState,
    *,
    most_tokens: int,
    lookup_tokens: int = 0,
    match_tokens: int = 0,
    draft_available: bool = True,
    company: Company = ALONE,
    rows_of: Callable[[int], int] = as_fed,
    draft_margin: float = DRAFT_MARGIN,
) -> Choice:
    """The source and number of tokens with the most expected tokens per second.

    `most_tokens` limits every source, `lookup_tokens` tokens were found by prompt lookup after a match of `match_tokens` tokens. In a pass
    with other sequences the tokens and seconds of the whole pass are compared; `rows_of` says how many rows the target feeds for so many
    tokens.
    """
    lookup_tokens = min(lookup_tokens, most_tokens)
    if most_tokens <= 0 or not (draft_available or lookup_tokens):
        return Choice()
    if not state.target_cost.measured:
        return _unmeasured(most_tokens, lookup_tokens, match_tokens, draft_available)

    def speed(choice: Choice) -> float:
        drafting = choice.source == "draft"
        draft_tokens = max(company.draft_tokens, choice.tokens) if drafting else company.draft_tokens
        seconds = state.target_cost.at(company.rows + rows_of(choice.tokens + 1)) + _draft_s(state, draft_tokens)
        tokens = company.tokens + expected(state, choice, match_tokens)
        return tokens / (seconds * draft_margin if drafting else seconds)

    best = max(_options(lookup_tokens, most_tokens if draft_available else 0), key=speed)
    if best.source == "none" and state.idle_tokens >= state.probe_wait_tokens:
        return Choice("draft" if draft_available else "lookup", min(2, most_tokens if draft_available else lookup_tokens), probe=True)
    return best


def _options(lookup_tokens: int, draft_tokens: int) -> Iterator[Choice]:
    yield Choice()
    yield from (Choice("lookup", k) for k in range(1, lookup_tokens + 1))
    yield from (Choice("draft", k) for k in range(1, draft_tokens + 1))


def expected(state: DraftLengthState, choice: Choice, match_tokens: int = 0) -> float:
    """Tokens that a choice is expected to yield in one pass."""
    if choice.source == "none":
        return 1.0
    acceptance = state.draft if choice.source == "draft" else state.lookup[match_class(match_tokens)]
    return expected_tokens(acceptance.rate, choice.tokens)


def fixed(*, most_tokens: int, lookup_tokens: int = 0, match_tokens: int = 0, draft_available: bool = True) -> Choice:
    """The choice without the rule: a good lookup first, else the draft model, always as many tokens as allowed."""
    lookup_tokens = min(lookup_tokens, most_tokens)
    if lookup_tokens > 0 and (match_tokens > 1 or not draft_available):
        return Choice("lookup", lookup_tokens)
    return Choice("draft", most_tokens) if draft_available and most_tokens > 0 else Choice()


def observe_round(
    state: DraftLengthState, choice: Choice, *, drafted: int, accepted: int, match_tokens: int = 0, new_tokens: int = 1
) -> DraftLengthState:
    """The state after a round: acceptance of the source that was used, and the time to the next probe."""
    if choice.source == "none" or drafted == 0:
        return replace(state, idle_tokens=state.idle_tokens + new_tokens)
    if choice.source == "draft":
        state = replace(state, draft=state.draft.observe(drafted, accepted))
    else:
        used = match_class(match_tokens)
        state = replace(state, lookup=tuple(a.observe(drafted, accepted) if i == used else a for i, a in enumerate(state.lookup)))
    if not choice.probe:
        return replace(state, idle_tokens=0, probe_wait_tokens=FIRST_PROBE_TOKENS)
    if accepted == drafted and _could_pay(state, choice):
        return replace(state, idle_tokens=state.probe_wait_tokens, probe_wait_tokens=FIRST_PROBE_TOKENS)
    return replace(state, idle_tokens=0, probe_wait_tokens=min(2 * state.probe_wait_tokens, LAST_PROBE_TOKENS))


def observe_skipped_lookup(state: DraftLengthState, match_tokens: int) -> DraftLengthState:
    """The state after a lookup proposal was not used: its class drifts back to its prior, so that it is tried again some day."""
    skipped = match_class(match_tokens)
    return replace(state, lookup=tuple(a.skipped() if i == skipped else a for i, a in enumerate(state.lookup)))


def observe_verify(state: DraftLengthState, fed_tokens: int, seconds: float) -> DraftLengthState:
    """The state after one verifying pass of the target over `fed_tokens` tokens (drafted + 1)."""
    return replace(state, target_cost=state.target_cost.observe(fed_tokens, seconds))


def observe_plain(state: DraftLengthState, new_tokens: int, seconds: float) -> DraftLengthState:
    """The state after one call in which the target alone made `new_tokens` tokens."""
    return replace(state, target_cost=state.target_cost.observe(1, seconds / max(new_tokens, 1)))


def observe_draft(state: DraftLengthState, drafted: int, seconds: float) -> DraftLengthState:
    """The state after one call of the draft model for `drafted` tokens; says nothing before the target was measured."""
    if not state.target_cost.measured:
        return state
    return replace(state, draft_cost=state.draft_cost.observe(drafted, seconds / state.target_cost.at(1)))


def next_request(state: DraftLengthState) -> DraftLengthState:
    """What a new request starts from: all costs, and acceptance that a few rounds can overturn."""
    return replace(
        state,
        draft=state.draft.softened(6),
        lookup=tuple(a.softened(4) for a in state.lookup),
        idle_tokens=0,
        probe_wait_tokens=FIRST_PROBE_TOKENS,
    )


def match_class(match_tokens: int) -> int:
    """Index of the acceptance estimate of lookup matches of this length."""
    return max(1, min(match_tokens, MAX_MATCH_TOKENS)) - 1


def _unmeasured(most_tokens: int, lookup_tokens: int, match_tokens: int, draft_available: bool) -> Choice:
    choice = fixed(
        most_tokens=min(most_tokens, UNMEASURED_TOKENS),
        lookup_tokens=lookup_tokens,
        match_tokens=match_tokens,
        draft_available=draft_available,
    )
    return choice if choice.source == "draft" or match_tokens > 1 else Choice()


def _could_pay(state: DraftLengthState, choice: Choice) -> bool:
    """Whether drafts like this one would pay if all their tokens were always taken."""
    if not state.target_cost.measured:
        return True
    seconds = state.target_cost.at(choice.tokens + 1) + _draft_s(state, choice.tokens if choice.source == "draft" else 0)
    return (choice.tokens + 1) * state.target_cost.at(1) > seconds


def _draft_s(state: DraftLengthState, tokens: int) -> float:
    if not tokens:
        return 0.0
    return state.draft_cost.at(tokens) * state.target_cost.at(1)
