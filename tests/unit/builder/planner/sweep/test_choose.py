"""The front and the sentence."""

from collections.abc import Callable, Sequence
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.planner.sweep import Evaluate, run_sweep
from builder.planner.sweep.choose import choose, front
from builder.planner.sweep.model import RowFigures, SweepRow
from builder.spec import Pair

MakePair = Callable[..., Pair]


def row(number: int, capacity: int, batch: int, tokens_per_s: float, *, chips: int = 1, cost: float | None = None) -> SweepRow:
    figures = RowFigures(capacity, capacity // 100, batch, tokens_per_s, 1.5, chips, cost, "roofline", 0.3)
    return SweepRow(number, {}, f"row {number}", figures=figures)


def refused(number: int, code: str) -> SweepRow:
    return SweepRow(number, {}, f"row {number}", (code,), "a reason")


def test_front_keeps_what_nothing_beats() -> None:
    rows = [
        row(1, 1000, 1, 100),  # fastest for a user
        row(2, 1000, 8, 400),  # most tokens
        row(3, 1000, 8, 300),  # beaten by 2
        row(4, 2000, 8, 300),  # holds most
        row(5, 1000, 1, 100),  # equal to 1, which stands for both
        row(6, 1005, 8, 350),  # beaten by 2: what it holds more is too little
        refused(7, "MEM-FIT"),
    ]
    assert front(rows) == (1, 2, 4)
    assert front(rows, recommended=5) == (2, 4, 5)


figures = st.tuples(st.integers(1, 5), st.integers(1, 4), st.integers(1, 5), st.integers(1, 2))


@given(st.lists(figures, min_size=1, max_size=12))
def test_every_row_is_covered_by_the_front_and_no_row_beats_it(values: Sequence[tuple[int, int, int, int]]) -> None:
    rows = [row(i, capacity, batch, float(rate), chips=chips) for i, (capacity, batch, rate, chips) in enumerate(values)]
    merits = [(r.figures.capacity_tokens, r.figures.tokens_per_s_per_user, r.figures.tokens_per_s_per_chip) for r in rows if r.figures]
    kept = front(rows)
    for own in merits:
        assert any(all(a >= b for a, b in zip(merits[j], own, strict=True)) for j in kept)
        assert not any(own != merits[j] and all(a >= b for a, b in zip(own, merits[j], strict=True)) for j in kept)


def test_without_a_goal_the_most_of_a_chip_and_what_it_gives_up(make_pair: MakePair) -> None:
    spec = make_pair(planning={"price": {"per_chip_hour": 3.6, "date": date(2026, 11, 1)}}).spec
    rows = [row(1, 400_000, 1, 100, cost=10.0), row(2, 200_000, 16, 800, cost=1.25), row(3, 200_000, 8, 480, cost=2.08)]
    assert choose(spec, rows) == (
        2,
        "Take row 2 (row 2): of all rows that work it makes the most tokens per chip hour (2.88 M, 1.25 USD per 1M), gives each of "
        "16 users 50 tokens/s and has room for 2,000 requests; it gives up 50% of the speed per user of row 1 (row 1: 100 tokens/s) "
        "and 50% of the capacity of row 1 (row 1: 400,000 tokens).",
    )


def test_rates_that_are_close_are_decided_by_capacity(make_pair: MakePair) -> None:
    rows = [row(1, 100_000, 8, 800), row(2, 200_000, 8, 790), row(3, 400_000, 8, 780)]
    number, sentence = choose(make_pair().spec, rows)
    assert number == 2, "1 % slower holds twice as much; 2.5 % is no longer close"
    assert choose(make_pair().spec, [row(1, 200_100, 8, 790), row(2, 200_000, 8, 800)])[0] == 2, "equal but for a rounding: the faster"
    assert sentence.endswith("; it gives up 50% of the capacity of row 3 (row 3: 400,000 tokens).")


def test_a_goal_bars_rows(make_pair: MakePair) -> None:
    rows = [row(1, 1000, 1, 100), row(2, 1000, 16, 800), row(3, 1000, 8, 480)]
    number, sentence = choose(make_pair(planning={"goal": {"tokens_per_s_per_user": 60}}).spec, rows)
    assert number == 3
    assert sentence.startswith(
        "Take row 3 (row 3): of the 2 rows that meet 60 tokens/s per user it makes the most tokens per chip hour (1.73 M)"
    )


def test_the_only_row_that_meets_a_goal(make_pair: MakePair) -> None:
    rows = [row(1, 1000, 1, 100), row(2, 1000, 16, 800)]
    _, sentence = choose(make_pair(planning={"goal": {"tokens_per_s": 500}}).spec, rows)
    assert sentence.startswith("Take row 2 (row 2): alone to meet 500 tokens/s in all, it makes the most tokens per chip hour (2.88 M)")


def test_a_goal_that_no_row_meets(make_pair: MakePair) -> None:
    spec = make_pair(planning={"goal": {"tokens_per_s_per_user": 200, "tokens_per_s": 500}}).spec
    assert choose(spec, [row(1, 1000, 1, 100), row(2, 1000, 16, 800)]) == (
        None,
        "No row meets 200 tokens/s per user and 500 tokens/s in all; row 2 (row 2) comes closest with "
        "50 tokens/s per user, 800 tokens/s in all at batch 16.",
    )


def test_a_row_at_which_the_draft_does_not_pay_says_so(make_pair: MakePair) -> None:
    idle = SweepRow(1, {}, "row 1", figures=RowFigures(1000, 10, 8, 800, 1.0, 1, None, "roofline", 0.3))
    assert "per chip hour (2.88 M; drafting does not pay there), gives" in choose(make_pair().spec, [idle])[1]
    assert "drafting" not in choose(make_pair(draft={"method": "none", "checkpoint": None}).spec, [idle])[1]


def test_no_row_that_works(make_pair: MakePair) -> None:
    rows = [refused(1, "MEM-FIT"), refused(2, "CHIP-DTYPE"), refused(3, "MEM-FIT")]
    assert choose(make_pair().spec, rows) == (None, "No row works: MEM-FIT refuses 2, CHIP-DTYPE refuses 1.")


def test_a_row_without_rivals_gives_nothing_up(make_pair: MakePair) -> None:
    _, sentence = choose(make_pair().spec, [row(1, 1000, 1, 100)])
    assert sentence.endswith(
        "gives its one user 100 tokens/s and has room for 10 requests; no other row holds more or serves a user faster."
    )


def test_chip_without_a_price_is_compared_by_the_price_that_would_be_equal(make_pair: MakePair, evaluate: Evaluate) -> None:
    pair = make_pair(planning={"price": {"per_chip_hour": 3.6, "date": date(2026, 11, 1)}})
    result = run_sweep(pair, ["chip=h200_sxm,b200_sxm", "batch=8"], evaluate)
    assert result.recommended == 2
    assert ", cheaper per token than row 1 below 7.20 USD per chip hour)" in result.sentence


@pytest.mark.parametrize("count", [2, 8])
def test_more_chips_do_not_win_by_number(make_pair: MakePair, evaluate: Evaluate, count: int) -> None:
    """Twice the chips for twice the tokens is no better use of a chip; more capacity decides, and the front keeps both."""
    result = run_sweep(make_pair(), [f"count=1,{count}"], evaluate)
    assert result.recommended == 2
    assert "most tokens per chip hour" in result.sentence
