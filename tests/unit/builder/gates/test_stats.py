"""Statistics on cases worked out by hand."""

import math

import numpy as np
import pytest

from builder.gates.stats import bootstrap_interval, geometric_mean, kl_divergence, log_softmax, next_token_losses, ratio_of_sums


def test_ratio_of_sums_weighs_by_time() -> None:
    assert ratio_of_sums([1, 9], [1, 3]) == 2.5
    assert math.isnan(ratio_of_sums([1], [0]))


def test_geometric_mean() -> None:
    assert geometric_mean([1, 4]) == pytest.approx(2)
    assert math.isnan(geometric_mean([]))
    assert math.isnan(geometric_mean([1, 0]))


def test_the_interval_of_equal_ratios_is_a_point() -> None:
    assert bootstrap_interval([2, 4, 6], [1, 2, 3]) == (2, 2)


def test_the_interval_holds_the_ratio_and_repeats() -> None:
    low, high = bootstrap_interval([2, 3, 4, 1], [1, 1, 1, 1])
    assert 1 <= low < 2.5 < high <= 4
    assert (low, high) == bootstrap_interval([2, 3, 4, 1], [1, 1, 1, 1])


def test_log_softmax_of_two_equal_logits_and_of_large_ones() -> None:
    assert log_softmax(np.array([[0.0, 0.0], [1e4, 1e4]], np.float32)) == pytest.approx(math.log(0.5))


def test_kl_of_two_coins() -> None:
    """Parent 1/2 and 1/2, served 1/4 and 3/4: 1/2 ln 2 + 1/2 ln(2/3) = 1/2 ln(4/3)."""
    parent, served = np.log(np.array([[0.5, 0.5]])), np.log(np.array([[0.25, 0.75]]))
    assert kl_divergence(parent, served) == pytest.approx(0.5 * math.log(4 / 3))
    assert kl_divergence(parent, parent) == pytest.approx(0, abs=1e-15)


def test_losses_belong_to_the_next_token() -> None:
    logits = np.log(np.array([[0.25, 0.75], [0.5, 0.5], [0.9, 0.1]]))
    assert next_token_losses(logits, [0, 1, 0]) == pytest.approx([-math.log(0.75), -math.log(0.5)])
