"""What a client asks for and what it gets: plain values, counts in tokens and times in seconds."""

from dataclasses import dataclass


@dataclass(frozen=True)
class GenerateRequest:
    """One prompt. What is None is left to the served model's own default.

    `num_draft_tokens` 0 means target only, without lookup. `deadline_s` bounds the whole answer; there is always one.
    """

    text: str
    max_tokens: int
    deadline_s: float = 300.0
    chat: bool | None = None
    stream: bool = False
    num_draft_tokens: int | None = None
    lookup: bool | None = None
    stop_words: tuple[str, ...] = ()
    bad_words: tuple[str, ...] = ()
    min_tokens: int | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    repetition_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    seed: int | None = None
    request_id: str = ""


@dataclass(frozen=True)
class Generation:
    """One answer. `output_ids` are the new tokens only.

    `drafted` and `accepted` count the tokens of both sources, the draft model and the lookup; `lookup_drafted` and `lookup_accepted` are
    the lookup's share. `rounds` counts the requests that the loop sent to the target. `draft_s` and `target_s` are the served loop's
    own clocks.
    """

    text: str
    output_ids: tuple[int, ...]
    drafted: int
    accepted: int
    lookup_drafted: int
    lookup_accepted: int
    rounds: int
    seconds: float
    seconds_to_first_token: float
    draft_s: float
    target_s: float

    @property
    def tokens_per_s(self) -> float:
        """New tokens per second of the whole request; 0 when nothing came."""
        return len(self.output_ids) / self.seconds if self.seconds > 0 else 0.0

    @property
    def acceptance_rate(self) -> float:
        """Share of the drafted tokens that the target accepted; 0 when nothing was drafted."""
        return self.accepted / self.drafted if self.drafted else 0.0

    @property
    def target_passes(self) -> int:
        """Forward passes in which the target made tokens: each gives one of its own beside those it accepts.

        A round without a draft may be many passes, so rounds alone are too few; a verifying pass that is cut at the end of the answer
        gives none of its own, so the tokens alone are too few by one.
        """
        return max(self.rounds, len(self.output_ids) - self.accepted)

    @property
    def acceptance_length(self) -> float:
        """New tokens per pass of the target; 0 when it made none."""
        return len(self.output_ids) / self.target_passes if self.target_passes else 0.0
