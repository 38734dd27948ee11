"""Ratios worked out by hand, and a slow side that fails."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from builder.gates.prompts import Prompt
from builder.gates.runs import PairRun, RunSettings
from builder.gates.speed import SpeedSettings, judge_speed, measure_speed
from builder.serving.client import Client
from builder.serving.transport import Answer, FakeTransport

Make = Callable[..., PairRun]
SETTINGS = SpeedSettings(repeats=3, warmup_prompts=1, min_speedup_mix=1.2, min_speedup_kind=1.0)


def timed(pair: Make, name: str, kind: str, target_s: float, speculative_s: float, /, **more: Any) -> PairRun:
    return pair(name, kind, target={"seconds": target_s}, speculative={"seconds": speculative_s, **more})


def test_the_mix_is_the_ratio_of_summed_medians(pair: Make) -> None:
    repeats = [
        [timed(pair, "a", "code", 4, 1), timed(pair, "b", "chat", 2, 2)],
        [timed(pair, "a", "code", 4, 2), timed(pair, "b", "chat", 2, 2)],
        [timed(pair, "a", "code", 8, 2), timed(pair, "b", "chat", 2, 2)],
    ]
    result = judge_speed(repeats, SETTINGS)
    assert (result.passed, result.value) == (True, 1.5)
    assert result.details["speedup_min"] == 1.5
    assert result.details["speedup_max"] == 2.5
    assert result.details["kinds"]["code"]["speedup"] == 2.0
    assert result.details["kinds"]["chat"]["speedup"] == 1.0
    assert result.details["geometric_mean_of_kinds"] == pytest.approx(2**0.5)
    assert result.details["target_tokens_per_s"] == pytest.approx(8 / 6)


def test_a_slow_speculative_side_fails(pair: Make) -> None:
    result = judge_speed([[timed(pair, "a", "code", 1, 2)]], SETTINGS)
    assert (result.passed, result.value) == (False, 0.5)


def test_one_slow_kind_fails_a_fast_mix(pair: Make) -> None:
    result = judge_speed([[timed(pair, "a", "code", 4, 1), timed(pair, "b", "chat", 1, 2)]], SETTINGS)
    assert not result.passed
    assert result.details["kinds_below"] == ["chat"]
    assert "below the floor of 1 for a kind: chat 0.50x" in result.summary


def test_sources_and_shares_of_time(pair: Make) -> None:
    run = timed(pair, "a", "code", 4, 2, drafted=6, accepted=3, lookup_accepted=1, draft_s=0.5, target_s=1.0)
    kinds = judge_speed([[run], [run]], SETTINGS).details["kinds"]["code"]
    assert (kinds["from_draft_model"], kinds["from_lookup"]) == (2, 1)
    assert (kinds["draft_time_share"], kinds["target_time_share"]) == (0.25, 0.5)


def test_sides_of_unequal_length_are_compared_token_for_token(pair: Make) -> None:
    result = judge_speed([[timed(pair, "a", "code", 4, 1, output_ids=(1, 2))]], SETTINGS)
    assert result.value == 2.0
    assert result.details["unequal_lengths"] == ["a"]


@pytest.mark.parametrize(
    ("speculative", "why"),
    [
        ({"output_ids": ()}, "no tokens, or no time"),
        ({"seconds": 0.0}, "no tokens, or no time"),
        ({"drafted": 0}, "no tokens were drafted"),
    ],
)
def test_what_cannot_be_compared_fails(pair: Make, speculative: dict[str, Any], why: str) -> None:
    result = judge_speed([[pair("a", speculative=speculative)]], SETTINGS)
    assert (result.passed, result.value) == (False, None)
    assert why in result.summary


def test_nothing_measured_fails() -> None:
    assert not judge_speed([], SETTINGS).passed


def test_sides_alternate_after_the_warm_up() -> None:
    asked: list[str] = []

    def served(_model: str, inputs: Mapping[str, Any]) -> Answer:
        asked.append("target" if "num_draft_tokens" in inputs else "speculative")
        return {"output_ids": np.array([[1]], np.int32)}

    run = RunSettings(4, 1.0, chat=None, num_draft_tokens=None, lookup=None)
    prompts = [Prompt("a", "k", "a"), Prompt("b", "k", "b")]
    repeats = measure_speed(Client(FakeTransport(served)), prompts, run, SpeedSettings(2, 1, 1, 1))
    assert [len(r) for r in repeats] == [2, 2]
    ts, st = ["target", "speculative"], ["speculative", "target"]
    assert asked == ts + ts + st + st + ts
