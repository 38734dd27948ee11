"""Accuracy: the served, quantized target's logits against those of its unquantized parent, on running text."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from builder.api import Progress
from builder.gates.result import GateResult, not_evaluated
from builder.gates.stats import kl_divergence, next_token_losses
from builder.serving.client import Client

NAME = "accuracy"
UNIT = "nats, mean KL(parent || served)"

Logits = np.ndarray[Any, Any]


@dataclass(frozen=True)
class AccuracySettings:
    """`max_mean_kl` in nats per token; `min_top1_agreement` is the least share of positions where both prefer the same token."""

    max_mean_kl: float
    min_top1_agreement: float


@dataclass
class _Sums:
    """Per-position numbers of all windows so far."""

    kl: list[Logits] = field(default_factory=list)
    agree: list[Logits] = field(default_factory=list)
    parent_loss: list[Logits] = field(default_factory=list)
    served_loss: list[Logits] = field(default_factory=list)

    def add(self, window: Sequence[int], parent: Logits, served: Logits) -> None:
        self.kl.append(kl_divergence(parent, served))
        self.agree.append(parent.argmax(axis=-1) == served.argmax(axis=-1))
        self.parent_loss.append(next_token_losses(parent, window))
        self.served_loss.append(next_token_losses(served, window))


def evaluate_accuracy(
    client: Client,
    windows: Sequence[Sequence[int]],
    parent_logits: Iterable[Logits],
    settings: AccuracySettings,
    progress: Progress | None = None,
) -> GateResult:
    """Compare window by window; `parent_logits` gives [len(window), vocab] for each window in turn.

    A window that lacks, or that is not finite or not of the right shape on either side, fails the gate.
    """
    if not windows:
        return not_evaluated(NAME, "the text is shorter than one window", settings.max_mean_kl, UNIT)
    sums, parents = _Sums(), iter(parent_logits)
    for number, window in enumerate(windows):
        parent = next(parents, None)
        served = client.context_logits(window)
        why = "the parent gave fewer windows than asked" if parent is None else _unusable(window, parent, served)
        if why or parent is None:
            return not_evaluated(NAME, f"window {number}: {why}", settings.max_mean_kl, UNIT)
        sums.add(window, parent, served[:, : parent.shape[1]])
        if progress is not None:
            progress("comparing logits with the parent's", (number + 1) / len(windows))
    return judge_accuracy(sums, settings)


def judge_accuracy(sums: _Sums, settings: AccuracySettings) -> GateResult:
    """Both thresholds must hold."""
    kl, agree = np.concatenate(sums.kl), np.concatenate(sums.agree)
    mean_kl, top1 = float(kl.mean()), float(agree.mean())
    parent_ppl = math.exp(float(np.concatenate(sums.parent_loss).mean()))
    served_ppl = math.exp(float(np.concatenate(sums.served_loss).mean()))
    passed = mean_kl <= settings.max_mean_kl and top1 >= settings.min_top1_agreement
    details = {
        "windows": len(sums.kl),
        "positions": len(kl),
        "mean_kl": mean_kl,
        "p99_kl": float(np.percentile(kl, 99)),
        "max_kl": float(kl.max()),
        "top1_agreement": top1,
        "min_top1_agreement": settings.min_top1_agreement,
        "parent_perplexity": parent_ppl,
        "served_perplexity": served_ppl,
    }
    summary = (
        f"mean KL {mean_kl:.4f} nats (at most {settings.max_mean_kl:g}), same first choice at {top1:.1%} of {len(kl)} positions "
        f"(at least {settings.min_top1_agreement:.1%}), perplexity {served_ppl:.3f} against the parent's {parent_ppl:.3f}"
    )
    return GateResult(NAME, passed, mean_kl, settings.max_mean_kl, UNIT, summary, details)


def _unusable(window: Sequence[int], parent: Logits, served: Logits) -> str:
    """Why the logits cannot be compared; empty when they can. The served side may have padding columns, never fewer."""
    if parent.shape[0] != len(window) or served.shape[0] != len(window) or served.shape[1] < parent.shape[1]:
        return f"shapes {list(parent.shape)} (parent) and {list(served.shape)} (served) for {len(window)} tokens"
    for side, logits in (("parent", parent), ("served", served)):
        bad = int(logits.size - np.isfinite(logits).sum())
        if bad:
            return f"{bad} logits of the {side} are not finite"
    return ""
