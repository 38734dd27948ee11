"""An engine that runs in this process: how it is opened, asked and counted."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

SpeculationMode = Literal["plain", "lookup", "draft", "draft_lookup"]
"""The target alone; drafts found in the text so far; drafts of the draft model; whichever of the two promises more."""


@dataclass(frozen=True)
class EngineAnswer:
    """One answer: its token ids, the target's passes that made it, and the drafts in it; the lookup's are part of all drafts."""

    output_ids: tuple[int, ...]
    rounds: int
    drafted_tokens: int = 0
    accepted_tokens: int = 0
    lookup_drafted_tokens: int = 0
    lookup_accepted_tokens: int = 0


@dataclass(frozen=True)
class EngineCounters:
    """Since the engine was loaded: passes, seconds inside the kernels, and seconds of whole steps, what is around the kernels included."""

    passes: int
    infer_s: float
    step_s: float


@dataclass(frozen=True)
class EngineOptions:
    """How an engine is opened in this process. `reuse` keeps blocks of finished requests; None leaves a choice to the lane.

    `tuned_for` tells a lane that can favour one of them what matters more: quick decode steps, or long prompts and contexts.
    """

    threads: int | None = None
    max_cached_tokens: int | None = None
    max_draft_tokens: int | None = None
    reuse: bool = True
    tuned_for: Literal["decoding", "long_context"] | None = None


class EngineSession(Protocol):
    """An engine that runs in this process, with its draft when it has one."""

    @property
    def end_ids(self) -> tuple[int, ...]:
        """Token ids that end an answer."""

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text as one user message of the model's chat template, or as it is where there is no template."""

    def generate(self, prompts: Sequence[Sequence[int]], *, new_tokens: int, mode: SpeculationMode) -> list[EngineAnswer]:
        """Greedy answers of at most `new_tokens` tokens to all prompts together. Raises StageError when one is refused."""

    def counters(self) -> EngineCounters:
        """What was counted so far."""

    def close(self) -> None:
        """Give back what the engine holds."""
