"""The table of comparisons: what is set against what, what must be reached, what is aimed at."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from builder.bench.statistics import Samples, Spread, python_ms_per_pass, python_share, rate_ratio, speedup, tokens_per_s
from builder.bench.systems import OURS, OURS_LONG, SINGLE

Over = Literal["mix", "worst kind", "together", "together against one by one"]
Result = Literal["aim reached", "reached", "missed", "stated", "not measured"]
LABELS = {system.key: system.label for system in SINGLE}
PLAIN, SPECULATION, LOOKUP = f"{OURS}/plain", f"{OURS}/draft_lookup", f"{OURS}/lookup"


@dataclass(frozen=True)
class Comparison:
    """A line of the table. Of several systems on our side the first that was measured is taken, on the other the fastest over the mix."""

    ours: tuple[str, ...]
    against: tuple[str, ...]
    over: Over = "mix"
    must_reach: float | None = None
    aim: float | None = None


SPECULATIONS = (SPECULATION, LOOKUP)
"""A pair without a draft model has lookup alone."""
LONG = f"{OURS_LONG}/plain"
GENAI = "openvino_genai"
COMPARISONS = (
    Comparison((PLAIN,), ("transformers/plain",), "mix", 3.0, 4.0),
    Comparison(SPECULATIONS, ("transformers/lookup_5", "transformers/lookup_10"), "mix", 2.0, 3.0),
    Comparison((PLAIN,), (f"{GENAI}/plain",), "mix", 1.0, 1.3),
    Comparison(SPECULATIONS, (f"{GENAI}/lookup_5", f"{GENAI}/lookup_10"), "mix", 1.0, 1.2),
    Comparison(SPECULATIONS, (f"{GENAI}/draft_3", f"{GENAI}/draft_5"), "mix", 1.2, 1.5),
    Comparison((PLAIN,), ("llama_cpp/q8_0",), "mix", 0.95, 1.2),
    Comparison(SPECULATIONS, ("llama_cpp/q8_0",), "mix", 1.3, 1.6),
    Comparison(SPECULATIONS, ("llama_cpp/q4_0",), "mix", None, 1.0),
    Comparison(SPECULATIONS, (PLAIN,), "mix", 1.3, 1.6),
    Comparison(SPECULATIONS, (PLAIN,), "worst kind", 0.97, 1.0),
    Comparison((PLAIN,), (PLAIN,), "together against one by one", 3.0, 5.0),
    Comparison((PLAIN,), (f"{GENAI}/plain",), "together", 0.9, 1.1),
    Comparison(SPECULATIONS, (PLAIN,), "together"),
    Comparison((PLAIN,), (LONG,), "mix"),
    Comparison((PLAIN,), (LONG,), "together"),
)


@dataclass(frozen=True)
class Limit:
    """A line of the table for a number of this engine that must stay below."""

    title: str
    unit: Literal["ms", "%"]
    at_most: float
    aim: float | None = None


LIMITS = (
    Limit("Tandem, Python outside the kernels, per decode step", "ms", 0.4, 0.2),
    Limit("Tandem, the same as share of a step", "%", 5.0),
)


@dataclass(frozen=True)
class Row:
    """A measured line: ratios (`unit` x) must be at least, times and shares at most. `over` names the prompts, or how they were asked."""

    ours: str
    against: str
    over: str
    unit: Literal["x", "ms", "%"]
    value: Spread | None
    must_reach: float | None
    aim: float | None

    @property
    def result(self) -> Result:
        if self.value is None:
            return "not measured"
        if self.aim is not None and self._within(self.aim):
            return "aim reached"
        if self.must_reach is None:
            return "stated"
        return "reached" if self._within(self.must_reach) else "missed"

    def _within(self, bound: float) -> bool:
        assert self.value is not None
        return self.value.median >= bound if self.unit == "x" else self.value.median <= bound


def compare(samples: Samples) -> tuple[Row, ...]:
    """Every line of the table; what was not measured has no value."""
    return (*(_row(samples, c) for c in COMPARISONS), *(_limit_row(samples, limit) for limit in LIMITS))


def _row(samples: Samples, comparison: Comparison) -> Row:
    ours = next((k for k in comparison.ours if samples.of(k).all), comparison.ours[0])
    against = fastest(samples, comparison.against)
    value, over = _value(samples, ours, against, comparison.over)
    return Row(LABELS[ours], LABELS[against], over, "x", value, comparison.must_reach, comparison.aim)


def _value(samples: Samples, ours: str, against: str, over: Over) -> tuple[Spread | None, str]:
    if over == "mix":
        return speedup(samples.of(ours), samples.of(against)), over
    if over == "together":
        return speedup(samples.of(ours, concurrent=True), samples.of(against, concurrent=True)), "all at once"
    if over == "together against one by one":
        return rate_ratio(samples.of(ours, concurrent=True), samples.of(against)), "all at once, against one by one"
    kinds = {kind: speedup(samples.of(ours, kind=kind), samples.of(against, kind=kind)) for kind in samples.kinds}
    measured = {kind: value for kind, value in kinds.items() if value is not None}
    worst = min(measured, key=lambda kind: measured[kind].median, default="")
    return measured.get(worst), f"worst kind: {worst}" if worst else "worst kind"


def _limit_row(samples: Samples, limit: Limit) -> Row:
    counted = Samples(tuple(s for s in samples.of(PLAIN).all if s.answers.work is not None and s.answers.work.passes))
    value = counted.spread(python_ms_per_pass if limit.unit == "ms" else lambda repeat: 100 * python_share(repeat))
    return Row(limit.title, "", "mix", limit.unit, value, limit.at_most, limit.aim)


def fastest(samples: Samples, keys: Sequence[str]) -> str:
    """The system of the most tokens per second over the mix; the first when none was measured."""
    speeds = {key: spread.median for key in keys if (spread := samples.of(key).spread(tokens_per_s)) is not None}
    return max(speeds, key=lambda key: speeds[key], default=keys[0])
