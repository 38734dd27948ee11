"""A request under way."""

import secrets
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from plugins.engines.openvino.runtime.block_manager import BlockTable
from plugins.engines.openvino.runtime.request import Finish, Request, Result

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Distribution:
    """What a token is drawn from: `ids` [n], and their `probabilities` [n], which sum to 1. All others have none."""

    ids: "NDArray[np.intp]"
    probabilities: "NDArray[np.float64]"

    def of(self, token: int) -> float:
        """Probability of one token."""
        return float(self.probabilities[self.ids == token].sum())


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
    started: bool = False
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
