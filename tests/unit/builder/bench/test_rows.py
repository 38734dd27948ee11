"""The table: what is compared, what counts as reached."""

from types import SimpleNamespace

import pytest

from builder.bench.measure import EngineWork, Sample
from builder.bench.rows import COMPARISONS, Row, compare, fastest
from builder.bench.statistics import Samples, Spread
from builder.bench.systems import CONCURRENT, SINGLE

PLAIN = "Tandem, target only"
SPECULATION = "Tandem, draft model and lookup"


def row(rows: tuple[Row, ...], ours: str, against: str, over: str = "mix") -> Row:
    return next(r for r in rows if r.ours == ours and r.against.startswith(against) and r.over.startswith(over))


def test_every_compared_system_is_one_that_is_measured() -> None:
    single, concurrent = {s.key for s in SINGLE}, {s.key for s in CONCURRENT}
    for comparison in COMPARISONS:
        assert {*comparison.ours, *comparison.against} <= single
        if comparison.over.startswith("together"):
            assert comparison.ours[0] in concurrent
        if comparison.over == "together":
            assert comparison.against[0] in concurrent


def test_of_several_opponents_the_fastest_counts(made: SimpleNamespace) -> None:
    prompt = made.prompt("p")
    samples = Samples(
        (
            made.sample("tandem/draft_lookup", [prompt], 1.0),
            made.sample("transformers/lookup_5", [prompt], 4.0),
            made.sample("transformers/lookup_10", [prompt], 3.0),
        )
    )
    measured = row(compare(samples), SPECULATION, "transformers bf16, prompt lookup")
    assert (measured.against, measured.value, measured.result) == (
        "transformers bf16, prompt lookup of 10",
        Spread(3.0, 3.0, 3.0),
        "aim reached",
    )
    assert fastest(samples, ("x/a", "x/b")) == "x/a"


def test_worst_kind_is_found_and_named(made: SimpleNamespace) -> None:
    samples: list[Sample] = []
    for kind, seconds in (("chat", 1.25), ("code", 0.5)):
        prompt = made.prompt(kind, kind)
        samples += [made.sample("tandem/plain", [prompt], 1.0), made.sample("tandem/draft_lookup", [prompt], seconds)]
    rows = compare(Samples(tuple(samples)))
    worst = row(rows, SPECULATION, PLAIN, "worst kind")
    assert (worst.over, worst.value, worst.result) == ("worst kind: chat", Spread(0.8, 0.8, 0.8), "missed")
    assert row(rows, SPECULATION, PLAIN).value == Spread(2 / 1.75, 2 / 1.75, 2 / 1.75)


def test_a_pair_without_draft_is_judged_by_lookup(made: SimpleNamespace) -> None:
    prompt = made.prompt("p")
    samples = Samples((made.sample("tandem/plain", [prompt], 2.0), made.sample("tandem/lookup", [prompt], 1.0)))
    assert row(compare(samples), "Tandem, prompt lookup", PLAIN).value == Spread(2.0, 2.0, 2.0)


def test_requests_at_once_are_set_against_one_by_one_and_against_the_peer(made: SimpleNamespace) -> None:
    one, two = made.prompt("one"), made.prompt("two")
    samples = Samples(
        (
            made.sample("tandem/plain", [one], 1.0),
            made.sample("tandem/plain", [one, two], 0.5),
            made.sample("openvino_genai/plain", [one, two], 1.0),
        )
    )
    rows = compare(samples)
    assert row(rows, PLAIN, PLAIN, "all at once, against one by one").value == Spread(4.0, 4.0, 4.0)
    assert row(rows, PLAIN, "OpenVINO GenAI", "all at once").value == Spread(2.0, 2.0, 2.0)


def test_python_time_must_stay_below(made: SimpleNamespace) -> None:
    work = EngineWork(passes=10, python_s=0.003, step_s=0.1)
    rows = compare(Samples((made.sample("tandem/plain", [made.prompt("p")], 1.0, work=work),)))
    per_step, share = rows[-2], rows[-1]
    assert (per_step.value.median, per_step.result) == (pytest.approx(0.3), "reached")  # type: ignore[union-attr]
    assert (share.value.median, share.result) == (pytest.approx(3.0), "reached")  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("value", "must_reach", "aim", "result"),
    [
        (2.0, 1.0, 1.5, "aim reached"),
        (1.2, 1.0, 1.5, "reached"),
        (0.9, 1.0, 1.5, "missed"),
        (0.9, None, 1.0, "stated"),
        (0.1, None, None, "stated"),
    ],
)
def test_results(value: float, must_reach: float | None, aim: float | None, result: str) -> None:
    assert Row("o", "a", "mix", "x", Spread(value, value, value), must_reach, aim).result == result
    assert Row("o", "a", "mix", "x", None, must_reach, aim).result == "not measured"
