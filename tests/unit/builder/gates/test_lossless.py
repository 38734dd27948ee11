"""A side that differs fails with its position; a near-tie passes only where one is allowed."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from builder.errors import StageError
from builder.gates.lossless import LosslessSettings, first_difference, judge_lossless, served_margin
from builder.gates.prompts import Prompt
from builder.gates.runs import PairRun, RunSettings
from builder.serving.client import Client
from builder.serving.transport import Answer, FakeTransport

Make = Callable[..., PairRun]
EXACT, TIES = LosslessSettings(0.0), LosslessSettings(0.05)


def margin_of(value: float) -> Callable[[PairRun, int], float]:
    return lambda _run, _position: value


@pytest.mark.parametrize(
    ("a", "b", "where"), [((1, 2), (1, 2), None), ((1, 2), (1, 3), 1), ((1,), (1, 2), 1), ((), (), None), ((1,), (), 0)]
)
def test_first_difference(a: tuple[int, ...], b: tuple[int, ...], where: int | None) -> None:
    assert first_difference(a, b) == where


def test_equal_output_passes(pair: Make) -> None:
    result = judge_lossless([pair("a"), pair("b")], EXACT, margin_of(0))
    assert (result.passed, result.value) == (True, 0)
    assert result.summary == "speculative output equals target-only output on all 2 prompts, 8 tokens"


def test_a_side_that_differs_fails_with_its_position(pair: Make) -> None:
    result = judge_lossless([pair("a"), pair("b", speculative={"output_ids": (1, 2, 9, 4)})], EXACT, margin_of(0.0))
    assert (result.passed, result.value) == (False, 1)
    assert "prompt b, output token 2: target 3, speculative 9, logit margin 0" in result.summary
    assert result.details["differences"][0]["position"] == 2


def test_a_near_tie_passes_where_one_is_allowed(pair: Make) -> None:
    runs = [pair("a", speculative={"output_ids": (1, 2, 9, 4)})]
    assert judge_lossless(runs, TIES, margin_of(0.01)).passed
    assert not judge_lossless(runs, TIES, margin_of(0.05)).passed
    assert not judge_lossless(runs, TIES, margin_of(math.nan)).passed


def test_an_answer_that_ends_early_is_never_a_tie(pair: Make) -> None:
    result = judge_lossless([pair("a", speculative={"output_ids": (1, 2)})], TIES, margin_of(0))
    assert not result.passed
    assert "output token 2: target 3, speculative None, logit margin unknown" in result.summary


def test_a_margin_that_cannot_be_had_excuses_nothing(pair: Make) -> None:
    def broken(_run: PairRun, _position: int) -> float:
        raise StageError("SERVER-REQUEST", "no logits")

    assert not judge_lossless([pair("a", speculative={"output_ids": (7,)})], TIES, broken).passed


def test_equality_without_drafts_proves_nothing(pair: Make) -> None:
    result = judge_lossless([pair(speculative={"drafted": 0})], EXACT, margin_of(0))
    assert (result.passed, result.value) == (False, None)
    assert "no tokens were drafted" in result.summary


@pytest.mark.parametrize("empty", [True, False])
def test_no_output_is_no_proof(pair: Make, empty: bool) -> None:
    runs = [] if empty else [pair(target={"output_ids": ()}, speculative={"output_ids": ()})]
    assert not judge_lossless(runs, EXACT, margin_of(0)).passed


def test_the_margin_is_asked_of_the_served_target(pair: Make) -> None:
    def served(model: str, inputs: Mapping[str, Any]) -> Answer:
        if model == "preprocessing":
            return {"INPUT_ID": np.array([[50, 51]], np.int32)}
        assert inputs["input_ids"].tolist() == [[50, 51, 1, 2]]
        return {"generation_logits": np.arange(10, dtype=np.float32).reshape(1, 1, 1, 10) / 4}

    margin = served_margin(Client(FakeTransport(served)), RunSettings(4, 1.0, chat=True, num_draft_tokens=None, lookup=None))
    run = pair("a", speculative={"output_ids": (1, 2, 9, 4)})
    assert margin(run, 2) == 1.5
    assert run.prompt == Prompt("a", "chat", "a")
