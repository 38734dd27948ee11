"""The table of comparisons: what is set against what, what must be reached, what is aimed at."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from builder.bench.statistics import Samples, Spread, python_ms_per_pass, python_share, rate_ratio, speedup, tokens_per_s
from builder.bench.systems import OURS

Over = Literal["mix", "worst kind", "together", "together against one by one"]
Result = Literal["aim reached", "reached", "missed", "stated", "not measured"]
PLAIN, SPECULATION, LOOKUP = f"{OURS}/plain", f"{OURS}/draft_lookup", f"{OURS}/lookup"


@dataclass(frozen=True)
class Comparison:
    """A line of the table. Of several systems on a side the fastest over the mix is taken."""

    title: str
    ours: tuple[str, ...]
    against: tuple[str, ...]
    over: Over = "mix"
    must_reach: float | None = None
    aim: float | None = None


SPECULATIONS = (SPECULATION, LOOKUP)
"""The first that was measured: a pair without a draft model has lookup alone."""
GENAI = "openvino_genai"
COMPARISONS = (
    Comparison("transformers bf16 `generate`, target only", (PLAIN,), ("transformers/plain",), must_reach=3.0, aim=4.0),
    Comparison(
        "transformers bf16 prompt lookup, speculation", SPECULATIONS, ("transformers/lookup_5", "transformers/lookup_10"), "mix", 2.0, 3.0
    ),
    Comparison("OpenVINO GenAI int8, target only", (PLAIN,), (f"{GENAI}/plain",), must_reach=1.0, aim=1.3),
    Comparison(
        "OpenVINO GenAI int8 prompt lookup, speculation", SPECULATIONS, (f"{GENAI}/lookup_5", f"{GENAI}/lookup_10"), "mix", 1.0, 1.2
    ),
    Comparison(
        "OpenVINO GenAI int8 with the same draft model, speculation",
        SPECULATIONS,
        (f"{GENAI}/draft_3", f"{GENAI}/draft_5"),
        "mix",
        1.2,
        1.5,
    ),
    Comparison("llama.cpp Q8_0, target only", (PLAIN,), ("llama_cpp/q8_0",), must_reach=0.95, aim=1.2),
    Comparison("llama.cpp Q8_0 target only, our speculation", SPECULATIONS, ("llama_cpp/q8_0",), must_reach=1.3, aim=1.6),
    Comparison("llama.cpp Q4_0 target only, our speculation", SPECULATIONS, ("llama_cpp/q4_0",), aim=1.0),
    Comparison("own target only, speculation", SPECULATIONS, (PLAIN,), must_reach=1.3, aim=1.6),
    Comparison("own target only, speculation, worst kind of prompt", SPECULATIONS, (PLAIN,), "worst kind", 0.97, 1.0),
    Comparison("own batch 1, concurrent requests", (PLAIN,), (PLAIN,), "together against one by one", 3.0, 5.0),
    Comparison("OpenVINO GenAI int8, concurrent requests", (PLAIN,), (f"{GENAI}/plain",), "together", 0.9, 1.1),
    Comparison("own target only, concurrent requests with speculation", SPECULATIONS, (PLAIN,), "together"),
)


@dataclass(frozen=True)
class Limit:
    """A line of the table for a number of this engine that must stay below."""

    title: str
    unit: Literal["ms", "%"]
    at_most: float
    aim: float | None = None


LIMITS = (Limit("Python outside the kernels, per decode step", "ms", 0.4, 0.2), Limit("the same as share of a step", "%", 5.0))


@dataclass(frozen=True)
class Row:
    """A measured line: ratios (`unit` x) must be at least, times and shares at most."""

    title: str
    unit: Literal["x", "ms", "%"]
    value: Spread | None
    must_reach: float | None
    aim: float | None
    ours: str = ""
    against: str = ""
    detail: str = ""

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
    value, detail = _value(samples, ours, against, comparison.over)
    return Row(comparison.title, "x", value, comparison.must_reach, comparison.aim, ours, against, detail)


def _value(samples: Samples, ours: str, against: str, over: Over) -> tuple[Spread | None, str]:
    if over == "mix":
        return speedup(samples.of(ours), samples.of(against)), ""
    if over == "together":
        return speedup(samples.of(ours, concurrent=True), samples.of(against, concurrent=True)), ""
    if over == "together against one by one":
        return rate_ratio(samples.of(ours, concurrent=True), samples.of(against)), ""
    kinds = {kind: speedup(samples.of(ours, kind=kind), samples.of(against, kind=kind)) for kind in samples.kinds}
    measured = {kind: value for kind, value in kinds.items() if value is not None}
    worst = min(measured, key=lambda kind: measured[kind].median, default="")
    return measured.get(worst), worst


def _limit_row(samples: Samples, limit: Limit) -> Row:
    counted = Samples(tuple(s for s in samples.of(PLAIN).all if s.answers.work is not None and s.answers.work.passes))
    value = counted.spread(python_ms_per_pass if limit.unit == "ms" else lambda repeat: 100 * python_share(repeat))
    return Row(limit.title, limit.unit, value, limit.at_most, limit.aim, PLAIN)


def fastest(samples: Samples, keys: Sequence[str]) -> str:
    """The system of the most tokens per second over the mix; the first when none was measured."""
    speeds = {key: spread.median for key in keys if (spread := samples.of(key).spread(tokens_per_s)) is not None}
    return max(speeds, key=lambda key: speeds[key], default=keys[0])
