"""The statistics that gates share; each small enough to check by hand."""

import math
import random
from collections.abc import Sequence
from statistics import median
from typing import Any

import numpy as np


def ratio_of_sums(numerators: Sequence[float], denominators: Sequence[float]) -> float:
    """sum(numerators) / sum(denominators); NaN when the denominators sum to 0."""
    below = math.fsum(denominators)
    return math.fsum(numerators) / below if below else math.nan


def geometric_mean(values: Sequence[float]) -> float:
    """NaN for no values or a value that is not positive."""
    if not values or min(values) <= 0:
        return math.nan
    return math.exp(math.fsum(math.log(v) for v in values) / len(values))


def bootstrap_interval(
    numerators: Sequence[float], denominators: Sequence[float], *, resamples: int = 1000, level: float = 0.95, seed: int = 0
) -> tuple[float, float]:
    """Interval of ratio_of_sums over resampled pairs (percentile method): how much the result depends on the choice of prompts."""
    rng, count = random.Random(seed), len(numerators)
    ratios = []
    for _ in range(resamples):
        chosen = rng.choices(range(count), k=count)
        ratios.append(ratio_of_sums([numerators[i] for i in chosen], [denominators[i] for i in chosen]))
    ratios.sort()
    tail = (1 - level) / 2
    return ratios[int(tail * (resamples - 1))], ratios[math.ceil((1 - tail) * (resamples - 1))]


def log_softmax(logits: "np.ndarray[Any, Any]") -> "np.ndarray[Any, np.dtype[np.float64]]":
    """Log-probabilities over the last axis, in float64."""
    wide = logits.astype(np.float64)
    wide -= wide.max(axis=-1, keepdims=True)
    return wide - np.log(np.exp(wide).sum(axis=-1, keepdims=True))  # type: ignore[no-any-return]


def kl_divergence(parent: "np.ndarray[Any, Any]", served: "np.ndarray[Any, Any]") -> "np.ndarray[Any, np.dtype[np.float64]]":
    """KL(parent || served) in nats for each row of two arrays of logits [n, vocab]."""
    p, q = log_softmax(parent), log_softmax(served)
    return np.asarray((np.exp(p) * (p - q)).sum(axis=-1))


def next_token_losses(logits: "np.ndarray[Any, Any]", ids: Sequence[int]) -> "np.ndarray[Any, np.dtype[np.float64]]":
    """-log p of each token of `ids` but the first, under logits [len(ids), vocab]; their mean's exponential is the perplexity."""
    rows = log_softmax(logits[:-1])
    return np.asarray(-rows[np.arange(len(ids) - 1), np.asarray(ids[1:])])


__all__ = ["bootstrap_interval", "geometric_mean", "kl_divergence", "log_softmax", "median", "next_token_losses", "ratio_of_sums"]
