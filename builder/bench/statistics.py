"""Numbers out of samples: speeds and ratios with their spread over the repeats, how alike texts are."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile

from builder.bench.measure import Sample
from builder.gates.stats import median, ratio_of_sums


@dataclass(frozen=True)
class Spread:
    """A number over each prompt's median repeat, and the least and greatest that one repeat gave.

    A stall of the machine hits one prompt of one repeat: the medians are free of it, the repeats show it.
    """

    median: float
    least: float
    greatest: float

    @classmethod
    def of(cls, middle: float, repeats: Sequence[float]) -> "Spread":
        """Of one repeat or more."""
        return cls(middle, min(repeats), max(repeats))


@dataclass(frozen=True)
class Samples:
    """What was measured, by system and repeat."""

    all: tuple[Sample, ...]

    def of(self, key: str, *, concurrent: bool = False, kind: str | None = None) -> "Samples":
        """Those of one system, of one kind of prompt."""
        return Samples(
            tuple(
                s
                for s in self.all
                if s.call.system.key == key and s.call.concurrent == concurrent and kind in (None, s.call.prompts[0].prompt.kind)
            )
        )

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(s.call.prompts[0].prompt.kind for s in self.all if not s.call.concurrent))

    @property
    def by_repeat(self) -> list[list[Sample]]:
        repeats: dict[int, list[Sample]] = {}
        for sample in self.all:
            repeats.setdefault(sample.call.repeat, []).append(sample)
        return [repeats[number] for number in sorted(repeats)]

    @property
    def middle(self) -> list[Sample]:
        """For each prompt the sample of median seconds per token, of two the faster one."""
        prompts: dict[object, list[Sample]] = {}
        for sample in self.all:
            prompts.setdefault(sample.call.prompts, []).append(sample)
        return [sorted(samples, key=_seconds_per_token)[(len(samples) - 1) // 2] for samples in prompts.values()]

    def spread(self, number: Callable[[Sequence[Sample]], float]) -> Spread | None:
        """A number's spread over the repeats; None without samples."""
        return Spread.of(number(self.middle), [number(repeat) for repeat in self.by_repeat]) if self.all else None


def tokens_per_s(samples: Sequence[Sample]) -> float:
    """All tokens over all seconds: what a user who sends these prompts gets."""
    return ratio_of_sums([s.tokens for s in samples], [s.answers.seconds for s in samples])


def speedup(ours: Samples, theirs: Samples) -> Spread | None:
    """Their seconds over ours for the same prompts and equal numbers of tokens. None when either side was not measured."""
    return _compared(ours, theirs, _speedup)


def _speedup(ours: Sequence[Sample], theirs: Sequence[Sample]) -> float:
    own = {s.call.prompts: s for s in ours}
    both = [(own[t.call.prompts], t) for t in theirs if t.call.prompts in own]
    return ratio_of_sums([t.answers.seconds * o.tokens / t.tokens for o, t in both], [o.answers.seconds for o, _ in both])


def rate_ratio(ours: Samples, theirs: Samples) -> Spread | None:
    """Our tokens per second over theirs, for samples whose prompts are not the same."""
    return _compared(ours, theirs, lambda own, others: tokens_per_s(own) / tokens_per_s(others))


def _compared(ours: Samples, theirs: Samples, ratio: Callable[[Sequence[Sample], Sequence[Sample]], float]) -> Spread | None:
    pairs = list(zip(ours.by_repeat, theirs.by_repeat, strict=False))
    return Spread.of(ratio(ours.middle, theirs.middle), [ratio(*pair) for pair in pairs]) if pairs else None


def _seconds_per_token(sample: Sample) -> float:
    return sample.answers.seconds / sample.tokens


def python_ms_per_pass(samples: Sequence[Sample]) -> float:
    """Milliseconds of Python around the kernels for each pass of the target; NaN without passes."""
    work = [s.answers.work for s in samples if s.answers.work is not None]
    return 1e3 * ratio_of_sums([w.python_s for w in work], [w.passes for w in work])


def python_share(samples: Sequence[Sample]) -> float:
    """Share of that time in the engine's steps."""
    work = [s.answers.work for s in samples if s.answers.work is not None]
    return ratio_of_sums([w.python_s for w in work], [w.step_s for w in work])


@dataclass(frozen=True)
class Likeness:
    """How a system's greedy answers agree with this engine's own: median of the first tokens that are equal, answers equal to the end."""

    equal_first_tokens: float
    equal_answers: int
    answers: int


def likeness(reference: Samples, others: Samples) -> Likeness | None:
    """Over the first repeat, prompt by prompt. None when there is nothing to compare."""
    if not (reference.all and others.all):
        return None
    own = {s.call.prompts: s.answers.outputs[0] for s in reference.by_repeat[0]}
    pairs = [(own[s.call.prompts], s.answers.outputs[0]) for s in others.by_repeat[0] if s.call.prompts in own]
    return Likeness(median([_common(pair) for pair in pairs]), sum(a == b for a, b in pairs), len(pairs)) if pairs else None


def _common(pair: Iterable[tuple[int, ...]]) -> int:
    return sum(1 for _ in takewhile(lambda both: both[0] == both[1], zip(*pair, strict=False)))
