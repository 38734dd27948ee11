"""Lossless: greedy speculative output equals the target's own output, token for token."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from builder.api import TandemError
from builder.gates.result import GateResult, not_evaluated
from builder.gates.runs import PairRun, RunSettings
from builder.serving.client import Client

NAME = "lossless"
UNIT = "prompts that differ"

MarginAt = Callable[["PairRun", int], float]
"""The distance of the two tokens' logits, in the target's view, at a position of the output where the sides differ."""


@dataclass(frozen=True)
class LosslessSettings:
    """`near_tie_logits`: two tokens closer than this in the target's logits are a tie that rounding may break either way.

    0 allows no difference at all: right where the engine computes the same bits however tokens are grouped.
    """

    near_tie_logits: float


@dataclass(frozen=True)
class Difference:
    """The first place where the two answers to a prompt part. A token is None where that side had ended."""

    prompt_id: str
    position: int
    target_token: int | None
    speculative_token: int | None
    margin: float | None
    near_tie: bool


def first_difference(a: Sequence[int], b: Sequence[int]) -> int | None:
    """The first index at which two sequences differ (the shorter one's length when one continues the other); None when equal."""
    for i, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return i
    return None if len(a) == len(b) else min(len(a), len(b))


def served_margin(client: Client, settings: RunSettings) -> MarginAt:
    """Margins from the served target: prompt and common output go in, logits of the next token come out."""

    def margin(run: PairRun, position: int) -> float:
        ids = client.prompt_ids(run.prompt.text, settings.chat) + run.target.output_ids[:position]
        logits = client.next_logits(ids)
        return abs(float(logits[run.target.output_ids[position]]) - float(logits[run.speculative.output_ids[position]]))

    return margin


def judge_lossless(runs: Sequence[PairRun], settings: LosslessSettings, margin_at: MarginAt) -> GateResult:
    """Passes when every difference is a near-tie. Fails as not evaluated without output, or when nothing was drafted."""
    if not any(run.target.output_ids for run in runs):
        return not_evaluated(NAME, "the target gave no tokens", 0.0, UNIT)
    if not any(run.speculative.drafted for run in runs):
        return not_evaluated(NAME, "no tokens were drafted, so equal output proves nothing", 0.0, UNIT)
    found = [d for d in (_difference(run, settings, margin_at) for run in runs) if d is not None]
    real = [d for d in found if not d.near_tie]
    tokens = sum(len(run.target.output_ids) for run in runs)
    details = {
        "prompts": len(runs),
        "tokens": tokens,
        "near_ties": len(found) - len(real),
        "near_tie_logits": settings.near_tie_logits,
        "differences": [asdict(d) for d in found],
    }
    return GateResult(NAME, not real, float(len(real)), 0.0, UNIT, _summary(len(runs), tokens, found, real), details)


def _difference(run: PairRun, settings: LosslessSettings, margin_at: MarginAt) -> Difference | None:
    a, b = run.target.output_ids, run.speculative.output_ids
    position = first_difference(a, b)
    if position is None:
        return None
    tokens = (a[position] if position < len(a) else None, b[position] if position < len(b) else None)
    margin = None if None in tokens else _finite(run, position, margin_at)
    near = margin is not None and margin < settings.near_tie_logits
    return Difference(run.prompt.id, position, *tokens, margin, near)


def _finite(run: PairRun, position: int, margin_at: MarginAt) -> float | None:
    """A margin that cannot be had excuses nothing."""
    try:
        margin = margin_at(run, position)
    except TandemError:
        return None
    return margin if math.isfinite(margin) else None


def _summary(prompts: int, tokens: int, found: Sequence[Difference], real: Sequence[Difference]) -> str:
    if not found:
        return f"speculative output equals target-only output on all {prompts} prompts, {tokens} tokens"
    if not real:
        return f"{len(found)} of {prompts} prompts differ, each first at a near-tie of the target's logits"
    d = real[0]
    margin = "unknown" if d.margin is None else f"{d.margin:.4g}"
    return (
        f"{len(real)} of {prompts} prompts differ; first: prompt {d.prompt_id}, output token {d.position}: "
        f"target {d.target_token}, speculative {d.speculative_token}, logit margin {margin}"
    )
