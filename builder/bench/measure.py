"""One run: every call timed by the party that answers it, failures of peers kept apart."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from builder.api import Progress
from builder.bench.order import BenchPrompt, Call, together
from builder.bench.systems import TUNED_FOR, System
from builder.errors import StageError

WARM_UP_TOKENS = 32


@dataclass(frozen=True)
class EngineWork:
    """What the engine counted during one call: the target's passes, seconds of Python around the kernels, drafts."""

    passes: int = 0
    python_s: float = 0.0
    step_s: float = 0.0
    rounds: int = 0
    drafted_tokens: int = 0
    accepted_tokens: int = 0
    lookup_drafted_tokens: int = 0
    lookup_accepted_tokens: int = 0


@dataclass(frozen=True)
class Answers:
    """Token ids that answered each prompt, and the seconds of the whole call, prefill included."""

    outputs: tuple[tuple[int, ...], ...]
    seconds: float
    work: EngineWork | None = None


class Party(Protocol):
    """Whoever answers: this engine in this process, or a peer in a process of its own."""

    def generate(self, prompts: Sequence[Sequence[int]], *, new_tokens: int, mode: str) -> Answers:
        """Greedy answers to all prompts together. Raises StageError."""

    def close(self) -> None:
        """Give back what is held."""


@dataclass(frozen=True)
class Sample:
    """One call and its answers."""

    call: Call
    answers: Answers

    @property
    def tokens(self) -> int:
        return sum(len(output) for output in self.answers.outputs)


@dataclass
class Run:
    """What was measured, and why a party was given up."""

    samples: list[Sample] = field(default_factory=list)
    failures: dict[str, StageError] = field(default_factory=dict)


def warm_up(
    parties: dict[str, Party],
    single: Iterable[System],
    concurrent: Iterable[System],
    prompts: Sequence[BenchPrompt],
    concurrency: int,
    run: Run,
) -> None:
    """Ask every system once in each way that it will be asked: kernels are compiled, weights paged in, threads started."""
    for system in single:
        _ask(parties, Call(system, (prompts[0],), 0), WARM_UP_TOKENS, run)
    if concurrency > 1:
        for system in concurrent:
            _ask(parties, Call(system, together(prompts, concurrency), 0), WARM_UP_TOKENS, run)


def measure(parties: dict[str, Party], calls: Iterable[Call], run: Run, *, new_tokens: int, total: int, progress: Progress) -> None:
    """Make all calls in order. A peer that fails is closed and left out from then on; a failure of this engine is raised."""
    for done, call in enumerate(calls):
        progress(f"repeat {call.repeat + 1}: {call.system.label}", done / total)
        answers = _ask(parties, call, new_tokens, run)
        if answers is not None:
            run.samples.append(Sample(call, answers))


def _ask(parties: dict[str, Party], call: Call, new_tokens: int, run: Run) -> Answers | None:
    name = call.system.party
    if name not in parties:
        return None
    try:
        return checked(
            parties[name].generate([p.ids for p in call.prompts], new_tokens=new_tokens, mode=call.system.mode), call, new_tokens
        )
    except StageError as error:
        if name in TUNED_FOR:
            raise
        run.failures[name] = error
        parties.pop(name).close()
        return None


def checked(answers: Answers, call: Call, new_tokens: int) -> Answers:
    """The same answers, when they can be compared. Raises StageError BENCH-ANSWER."""
    lengths = [len(output) for output in answers.outputs]
    if len(lengths) != len(call.prompts) or not all(1 <= n <= new_tokens for n in lengths) or not answers.seconds > 0:
        raise StageError(
            "BENCH-ANSWER",
            f"{call.system.label} gave no answers that can be compared",
            found=f"{lengths} tokens in {answers.seconds} s",
            needed=f"{len(call.prompts)} answers of 1 to {new_tokens} tokens",
        )
    return answers
