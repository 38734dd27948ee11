"""Values of the runtime: what is asked and what is answered."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

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
