"""The order of calls: all systems in turn on one prompt before the next prompt, and nobody always first."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from builder.bench.systems import System
from builder.gates.prompts import Prompt


@dataclass(frozen=True)
class BenchPrompt:
    """A prompt and its token ids, the same for every system."""

    prompt: Prompt
    ids: tuple[int, ...]


@dataclass(frozen=True)
class Call:
    """One timed call: a system asked one prompt, or several at once."""

    system: System
    prompts: tuple[BenchPrompt, ...]
    repeat: int

    @property
    def concurrent(self) -> bool:
        return len(self.prompts) > 1


def run_order(
    single: Sequence[System], concurrent: Sequence[System], prompts: Sequence[BenchPrompt], *, repeats: int, concurrency: int
) -> Iterator[Call]:
    """Every call of a run. Each step starts with the system after the one that the step before started with.

    `concurrency` prompts are asked at once, taken in turn from the list and from its start again when it is shorter.
    """
    all_at_once = together(prompts, concurrency)
    for repeat in range(repeats):
        for i, prompt in enumerate(prompts):
            yield from (Call(system, (prompt,), repeat) for system in _turned(single, repeat + i))
        if concurrency > 1:
            yield from (Call(system, all_at_once, repeat) for system in _turned(concurrent, repeat))


def together(prompts: Sequence[BenchPrompt], concurrency: int) -> tuple[BenchPrompt, ...]:
    """The prompts that are asked at once."""
    return tuple(prompts[i % len(prompts)] for i in range(concurrency))


def count_calls(single: Sequence[System], concurrent: Sequence[System], prompts: int, *, repeats: int, concurrency: int) -> int:
    """Number of calls of `run_order`."""
    return repeats * (prompts * len(single) + (len(concurrent) if concurrency > 1 else 0))


def _turned(systems: Sequence[System], first: int) -> list[System]:
    return [systems[(first + i) % len(systems)] for i in range(len(systems))]
