"""Sums by kind, the floor, and the two rates that are suspicious."""

from collections.abc import Callable

import pytest

from builder.gates.acceptance import AcceptanceSettings, judge_acceptance
from builder.gates.runs import PairRun

Make = Callable[..., PairRun]


def test_numbers_by_kind(pair: Make) -> None:
    runs = [
        pair("a", "code", speculative={"drafted": 6, "accepted": 3, "lookup_drafted": 2, "lookup_accepted": 1, "rounds": 1}),
        pair("b", "chat", speculative={"drafted": 2, "accepted": 1, "rounds": 3}),
    ]
    result = judge_acceptance(runs, AcceptanceSettings(0.5, 1.0))
    assert (result.passed, result.value) == (True, 0.5)
    assert result.details["acceptance_length"] == 2.0
    assert result.details["kinds"]["code"]["acceptance_length"] == 4.0
    assert result.details["target_passes"] == 4
    assert result.details["kinds"]["code"]["accepted_from_draft_model"] == 2
    assert result.details["kinds"]["code"]["accepted_from_lookup"] == 1
    assert result.details["flags"] == []


def test_below_the_floor_fails(pair: Make) -> None:
    assert not judge_acceptance([pair()], AcceptanceSettings(0.51, 1.0)).passed


def test_rounds_of_many_passes_do_not_count_as_one(pair: Make) -> None:
    """The target alone made 98 of 100 tokens in two long rounds; that is not an acceptance length of 50."""
    result = judge_acceptance([pair(speculative={"output_ids": tuple(range(100)), "rounds": 2})], AcceptanceSettings(0.0, 1.1))
    assert result.details["acceptance_length"] == pytest.approx(100 / 98)
    assert not result.passed


def test_too_few_tokens_a_pass_fail(pair: Make) -> None:
    runs = [pair(speculative={"rounds": 4})]
    assert judge_acceptance(runs, AcceptanceSettings(0.0, 1.0)).passed
    assert not judge_acceptance(runs, AcceptanceSettings(0.0, 1.1)).passed


def test_zero_acceptance_is_flagged_and_fails_without_a_floor(pair: Make) -> None:
    result = judge_acceptance([pair(speculative={"accepted": 0})], AcceptanceSettings(0.0, 1.0))
    assert not result.passed
    assert "no drafted token was ever accepted" in result.summary


def test_full_acceptance_is_flagged(pair: Make) -> None:
    result = judge_acceptance([pair(speculative={"accepted": 4})], AcceptanceSettings(0.0, 1.0))
    assert result.passed
    assert "every drafted token was accepted" in result.summary


@pytest.mark.parametrize("counters", [{"accepted": 5}, {"accepted": 2, "lookup_accepted": 3}, {"accepted": -1}])
def test_impossible_counters_fail(pair: Make, counters: dict[str, int]) -> None:
    result = judge_acceptance([pair(speculative=counters)], AcceptanceSettings(0.0, 1.0))
    assert (result.passed, result.value) == (False, None)


def test_nothing_drafted_fails(pair: Make) -> None:
    assert (
        "no tokens were drafted"
        in judge_acceptance([pair(speculative={"drafted": 0, "accepted": 0})], AcceptanceSettings(0.0, 1.0)).summary
    )
    assert not judge_acceptance([], AcceptanceSettings(0.0, 1.0)).passed
