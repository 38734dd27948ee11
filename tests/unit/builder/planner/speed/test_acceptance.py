"""The acceptance law: its bounds, its inverse, and what it says of measured runs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.planner.speed.acceptance import acceptance_of, expected_length
from tests.unit.builder.planner.speed.models import Cell, measured_cells

chances = st.floats(0.001, 0.999)
lengths = st.integers(1, 32)


@given(chances, lengths)
def test_length_is_the_sum_of_the_chances_to_get_that_far(acceptance: float, draft_tokens: int) -> None:
    assert expected_length(acceptance, draft_tokens) == pytest.approx(sum(acceptance**i for i in range(draft_tokens + 1)))


@given(chances, chances, lengths)
def test_more_acceptance_and_more_drafts_never_yield_less(one: float, other: float, draft_tokens: int) -> None:
    low, high = sorted((one, other))
    assert 1 <= expected_length(low, draft_tokens) <= expected_length(high, draft_tokens) + 1e-12 <= draft_tokens + 1 + 1e-9
    assert expected_length(low, draft_tokens) <= expected_length(low, draft_tokens + 1)


@given(chances, lengths)
def test_acceptance_is_found_again_from_the_length(acceptance: float, draft_tokens: int) -> None:
    assert acceptance_of(expected_length(acceptance, draft_tokens), draft_tokens) == pytest.approx(acceptance, abs=1e-6)


def test_certain_acceptance_yields_every_draft() -> None:
    assert expected_length(1.0, 4) == 5


def test_no_acceptance_yields_more_than_drafts_and_own_token() -> None:
    assert acceptance_of(5.01, 4) is None
    assert acceptance_of(0.9, 4) == pytest.approx(0.0, abs=1e-9)


def shortest_at_batch_one(cells: list[Cell]) -> Cell:
    return min((c for c in cells if c.batch == 1), key=lambda c: c.draft_tokens)


def test_one_measured_acceptance_gives_the_length_of_every_other_draft() -> None:
    cells = measured_cells()
    for pair in {c.pair for c in cells}:
        mine = [c for c in cells if c.pair == pair]
        first = shortest_at_batch_one(mine)
        acceptance = acceptance_of(first.length, first.draft_tokens)
        assert acceptance is not None
        errors = [expected_length(acceptance, c.draft_tokens) / c.length - 1 for c in mine if c.batch == 1]
        assert max(map(abs, errors)) <= 0.025
