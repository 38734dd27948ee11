"""Acceptance: how many drafted tokens the target accepts, and how many tokens one pass of it gives."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from builder.gates.result import GateResult, not_evaluated
from builder.gates.runs import PairRun, by_kind
from builder.serving.generation import Generation

NAME = "acceptance"
UNIT = "accepted / drafted tokens"


@dataclass(frozen=True)
class AcceptanceSettings:
    """Floors over all prompts: `min_rate` of accepted among drafted tokens, `min_length` new tokens a pass of the target."""

    min_rate: float
    min_length: float


@dataclass(frozen=True)
class Counts:
    """Sums over several answers; the draft model's share is what the lookup did not give."""

    output_tokens: int
    target_passes: int
    drafted: int
    accepted: int
    lookup_drafted: int
    lookup_accepted: int

    @property
    def rate(self) -> float:
        return self.accepted / self.drafted if self.drafted else 0.0

    @property
    def length(self) -> float:
        """New tokens per pass of the target."""
        return self.output_tokens / self.target_passes if self.target_passes else 0.0

    def as_dict(self) -> dict[str, Any]:
        return {
            "acceptance_rate": self.rate,
            "acceptance_length": self.length,
            "drafted": self.drafted,
            "accepted": self.accepted,
            "accepted_from_draft_model": self.accepted - self.lookup_accepted,
            "accepted_from_lookup": self.lookup_accepted,
        }


def count(generations: Sequence[Generation]) -> Counts:
    """Sums over answers."""
    return Counts(
        output_tokens=sum(len(g.output_ids) for g in generations),
        target_passes=sum(g.target_passes for g in generations),
        drafted=sum(g.drafted for g in generations),
        accepted=sum(g.accepted for g in generations),
        lookup_drafted=sum(g.lookup_drafted for g in generations),
        lookup_accepted=sum(g.lookup_accepted for g in generations),
    )


def judge_acceptance(runs: Sequence[PairRun], settings: AcceptanceSettings) -> GateResult:
    """Passes at or above both floors. None accepted always fails; all accepted is flagged, since broken counting looks like that."""
    total = count([run.speculative for run in runs])
    if not total.drafted:
        return not_evaluated(NAME, "no tokens were drafted", settings.min_rate, UNIT)
    if total.accepted > total.drafted or min(total.accepted, total.lookup_accepted, total.accepted - total.lookup_accepted) < 0:
        return not_evaluated(NAME, f"impossible counters: {total}", settings.min_rate, UNIT)
    kinds = {kind: count([run.speculative for run in group]).as_dict() for kind, group in by_kind(runs).items()}
    flags = _flags(total)
    sums = {"output_tokens": total.output_tokens, "target_passes": total.target_passes, "min_acceptance_length": settings.min_length}
    details = {**total.as_dict(), **sums, "flags": flags, "kinds": kinds}
    passed = total.accepted > 0 and total.rate >= settings.min_rate and total.length >= settings.min_length
    summary = (
        f"{total.accepted} of {total.drafted} drafted tokens accepted ({total.rate:.1%}, at least {settings.min_rate:.1%}), "
        f"{total.length:.2f} tokens per pass of the target (at least {settings.min_length:g})"
    )
    return GateResult(NAME, passed, total.rate, settings.min_rate, UNIT, "; ".join([summary, *flags]), details)


def _flags(total: Counts) -> list[str]:
    if total.accepted == 0:
        return ["no drafted token was ever accepted: the draft may belong to another target"]
    if total.accepted == total.drafted:
        return ["every drafted token was accepted: check that acceptance is counted by comparing tokens"]
    return []
