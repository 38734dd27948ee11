"""Equal logits pass, wrong and broken ones fail with a reason."""

from collections.abc import Iterator

import numpy as np
import pytest

from builder.gates.accuracy import AccuracySettings, Logits, evaluate_accuracy
from builder.serving.client import Client
from builder.serving.transport import FakeTransport

SETTINGS = AccuracySettings(max_mean_kl=0.01, min_top1_agreement=0.9)
WINDOWS = ((0, 1, 2, 3), (3, 2, 1, 0))
LOGITS = np.random.default_rng(0).normal(size=(2, 4, 8)).astype(np.float32)


def client(*served: Logits) -> Client:
    answers = iter(served)
    return Client(FakeTransport(lambda _model, _inputs: {"context_logits": next(answers)[None]}))


def parent() -> Iterator[Logits]:
    return iter(LOGITS)


def test_the_parent_itself_is_accurate() -> None:
    result = evaluate_accuracy(client(*LOGITS), WINDOWS, parent(), SETTINGS)
    assert result.passed
    assert result.value == pytest.approx(0, abs=1e-12)
    assert result.details["top1_agreement"] == 1
    assert result.details["parent_perplexity"] == result.details["served_perplexity"]
    assert (result.details["windows"], result.details["positions"]) == (2, 8)


def test_padding_columns_of_the_served_side_are_ignored() -> None:
    padded = np.pad(LOGITS, ((0, 0), (0, 0), (0, 3)), constant_values=-1e9)
    assert evaluate_accuracy(client(*padded), WINDOWS, parent(), SETTINGS).passed


def test_logits_of_another_model_fail_with_numbers() -> None:
    result = evaluate_accuracy(client(*-LOGITS), WINDOWS, parent(), SETTINGS)
    assert not result.passed
    assert result.value is not None
    assert result.value > SETTINGS.max_mean_kl


def test_agreement_alone_can_fail() -> None:
    flat = LOGITS * 1e-3
    settings = AccuracySettings(max_mean_kl=10, min_top1_agreement=0.9)
    assert evaluate_accuracy(client(*flat), WINDOWS, parent(), settings).passed
    swapped = np.roll(flat, 1, axis=-1)
    assert not evaluate_accuracy(client(*swapped), WINDOWS, parent(), settings).passed


def test_nan_fails() -> None:
    broken = LOGITS.copy()
    broken[1, 2, 3] = np.nan
    result = evaluate_accuracy(client(*broken), WINDOWS, parent(), SETTINGS)
    assert (result.passed, result.value) == (False, None)
    assert result.summary == "could not be evaluated: window 1: 1 logits of the served are not finite"


@pytest.mark.parametrize(
    ("windows", "served", "parents", "why"),
    [
        ((), LOGITS, LOGITS, "shorter than one window"),
        (WINDOWS, LOGITS, LOGITS[:1], "fewer windows"),
        (WINDOWS, LOGITS[:, :, :4], LOGITS, r"shapes \[4, 8\] \(parent\) and \[4, 4\] \(served\)"),
    ],
)
def test_what_cannot_be_compared_fails(windows: tuple[tuple[int, ...], ...], served: Logits, parents: Logits, why: str) -> None:
    result = evaluate_accuracy(client(*served), windows, iter(parents), SETTINGS)
    assert not result.passed
    assert __import__("re").search(why, result.summary)
