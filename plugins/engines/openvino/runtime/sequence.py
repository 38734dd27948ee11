"""Values of the runtime: what is asked, what is answered, and the state of a request in between."""

import secrets
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Literal

from plugins.engines.openvino.runtime.block_manager import BlockTable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Finish = Literal["length", "stop", "end", "verified", "cancelled"]
Words = tuple[tuple[int, ...], ...]
"""Token sequences, each at least one token long."""


class RequestError(Exception):
    """A request that cannot be served. It names the field, what was found and what is needed; no other request is touched."""

    def __init__(self, code: str, field_name: str, found: str, needed: str) -> None:
        super().__init__(f"{code}: {field_name} is {found}, needed: {needed}")
        self.code = code
        self.field = field_name
        self.found = found
        self.needed = needed


@dataclass(frozen=True)
class Sampling:
    """How a token is chosen. Penalties count every token of the sequence, the prompt's too, as TensorRT-LLM's do.

    `top_k` 0 means all tokens, 1 means greedy; `top_p` 1.0 means all; `min_p` leaves out tokens less likely than that share of the most
    likely one. `seed` None draws a fresh one for each request.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    seed: int | None = None

    @property
    def greedy(self) -> bool:
        return self.top_k == 1 or self.temperature == 0.0

    @property
    def penalized(self) -> bool:
        return self.repetition_penalty != 1.0 or self.presence_penalty != 0.0 or self.frequency_penalty != 0.0


GREEDY = Sampling(top_k=1)


@dataclass(frozen=True)
class Speculation:
    """How the engine drafts for a request by itself: at most `max_draft_tokens` a pass (0: not at all), from lookup, draft model or both.

    `adaptive` lets measured acceptance and cost choose source and length of each pass. `sampled_drafts`: whether the draft model samples as
    the request does, which is accepted most often, or always proposes its most likely token. With greedy drafts a seeded answer does
    not depend on what was drafted, so None means: sampled unless the request has a seed.
    """

    max_draft_tokens: int = 0
    draft: bool = True
    lookup: bool = True
    adaptive: bool = True
    sampled_drafts: bool | None = None


NO_SPECULATION = Speculation()


@dataclass(frozen=True, eq=False)
class Distribution:
    """What a token is drawn from: `ids` [n], most likely first, and their `probabilities` [n], which sum to 1. All others have none."""

    ids: "NDArray[np.intp]"
    probabilities: "NDArray[np.float64]"

    def of(self, token: int) -> float:
        """Probability of one token."""
        return float(self.probabilities[self.ids == token].sum())


@dataclass(frozen=True)
class Request:
    """One prompt. With `draft_ids` it is a verification: one pass, answered by the accepted drafts and one token of the engine's own.

    `draft_logits` [drafts, vocab] are what sampled drafts were drawn from, by the same `sampling`; without them drafts count as certain
    proposals. `num_sequences` answers are drawn for the prompt, which is computed once. End ids and stop words end the answer and are
    part of it; stop words are looked for in the answer alone, bad words in the whole sequence. Neither ends an answer shorter than
    `min_tokens`.
    """

    input_ids: tuple[int, ...]
    max_new_tokens: int
    draft_ids: tuple[int, ...] = ()
    end_ids: tuple[int, ...] = ()
    stop_words: Words = ()
    bad_words: Words = ()
    min_tokens: int = 0
    sampling: Sampling = GREEDY
    want_generation_logits: bool = False
    want_context_logits: bool = False
    want_log_probs: bool = False
    speculation: Speculation = NO_SPECULATION
    draft_logits: "NDArray[np.float32] | None" = field(default=None, compare=False)
    num_sequences: int = 1

    @property
    def adjusts(self) -> bool:
        """Whether anything but the model's own logits bears on the choice of a token."""
        return self.sampling.penalized or bool(self.bad_words) or self.min_tokens > 0

    def may_end_after(self, output_tokens: int) -> bool:
        """Whether an answer of this length may end with its last token."""
        return output_tokens >= self.min_tokens


@dataclass(frozen=True, eq=False)
class Result:
    """The answer to one request; logits are float32, rows are tokens, before penalties and temperature.

    `passes` are those of the target in which the answer grew. `drafted_tokens` are the drafts that were verified, whoever proposed them,
    `lookup_*` those of prompt lookup among them, `log_probs` the natural logarithms of the raw softmax for each output token, `others`
    the further sequences of a request for several.
    """

    output_ids: tuple[int, ...]
    finish: Finish
    passes: int = 0
    drafted_tokens: int = 0
    accepted_tokens: int = 0
    lookup_drafted_tokens: int = 0
    lookup_accepted_tokens: int = 0
    reused_tokens: int = 0
    new_blocks: int = 0
    total_blocks: int = 0
    generation_logits: "NDArray[np.float32] | None" = None
    context_logits: "NDArray[np.float32] | None" = None
    log_probs: tuple[float, ...] = ()
    others: tuple["Result", ...] = ()


@dataclass
class Counts:
    """What one sequence did, counted in tokens, blocks and passes."""

    passes: int = 0
    drafted_tokens: int = 0
    accepted_tokens: int = 0
    lookup_drafted_tokens: int = 0
    lookup_accepted_tokens: int = 0
    reused_tokens: int = 0
    new_blocks: int = 0
    total_blocks: int = 0


class Status(Enum):
    """Where a sequence is."""

    WAITING = "waiting"
    RUNNING = "running"
    FINISHED = "finished"


@dataclass(eq=False)
class Sequence:
    """A request under way: its tokens so far, its block table, and what the answer will need.

    `tokens` is the prompt and everything accepted; the block table says how many of them have keys and values in the cache. `drafts` are
    what the next pass verifies, `drafts_from` what each of them was drawn from (empty: certain proposals). The `followers` of a sequence
    are further answers to the same prompt; they start when their leader has computed it.
    """

    request: Request
    seed: int
    tokens: list[int] = field(default_factory=list)
    drafts: tuple[int, ...] = ()
    drafts_from: tuple[Distribution, ...] = ()
    table: BlockTable = field(default_factory=BlockTable)
    status: Status = Status.WAITING
    finish: Finish | None = None
    leader: "Sequence | None" = None
    followers: "tuple[Sequence, ...]" = ()
    counts: Counts = field(default_factory=Counts)
    context_rows: "list[NDArray[np.float32]]" = field(default_factory=list)
    generation_rows: "list[NDArray[np.float32]]" = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)
    result: Result | None = None

    @classmethod
    def of(cls, request: Request) -> "Sequence":
        """Start of a request; drafts that could not be answered within `max_new_tokens` are not verified."""
        seed = secrets.randbits(63) if request.sampling.seed is None else request.sampling.seed
        sequence = cls(request, seed, list(request.input_ids), request.draft_ids[: request.max_new_tokens - 1])
        sequence.followers = tuple(
            cls(request, seed + i, list(request.input_ids), leader=sequence) for i in range(1, request.num_sequences)
        )
        return sequence

    @property
    def prompt_tokens(self) -> int:
        return len(self.request.input_ids)

    @property
    def output_tokens(self) -> int:
        return len(self.tokens) - self.prompt_tokens

    @property
    def left_tokens(self) -> int:
        """Tokens that the answer may still grow by."""
        return self.request.max_new_tokens - self.output_tokens

    @property
    def pending_tokens(self) -> int:
        """Tokens whose keys and values are not in the cache yet."""
        return len(self.tokens) - self.table.cached_tokens

    @property
    def decoding(self) -> bool:
        """Whether all but the newest token are in the cache, so that the next pass makes a token."""
        return self.output_tokens > 0 and self.pending_tokens == 1

    @property
    def context_pending(self) -> bool:
        """Whether rows of the prompt are still to be collected; such a sequence must compute its whole prompt."""
        return self.request.want_context_logits and not self.output_tokens and self.leader is None

    @property
    def startable(self) -> bool:
        """Whether the prompt need not be waited for: the leader has computed it, or will not."""
        leader = self.leader
        return leader is None or leader.status is Status.FINISHED or leader.output_tokens > 0

    def drop_drafts(self, keep_tokens: int = 0) -> None:
        """Verify no more than the first `keep_tokens` of the engine's own drafts. A request's own drafts are always verified."""
        if not self.request.draft_ids:
            self.drafts, self.drafts_from = self.drafts[:keep_tokens], self.drafts_from[:keep_tokens]

    def accept(self, token: int) -> bool:
        """Append one token of the answer; True when the answer ends with it."""
        assert self.finish is None
        may_end = self.request.may_end_after(self.output_tokens + 1)
        self.tokens.append(token)
        if may_end and token in self.request.end_ids:
            self.finish = "end"
        elif may_end and self._ends_with_stop_word():
            self.finish = "stop"
        elif self.output_tokens >= self.request.max_new_tokens:
            self.finish = "length"
        return self.finish is not None

    def _ends_with_stop_word(self) -> bool:
        output = self.output_tokens
        return any(len(w) <= output and tuple(self.tokens[-len(w) :]) == w for w in self.request.stop_words)
