"""How far the figures can be trusted: what the roofline says to them, where they were never checked, and what is published of the pair."""

from collections.abc import Mapping
from typing import Any

from builder.planner.speed.constants import constants
from builder.planner.speed.cycle import Cycle
from builder.planner.speed.model import ModelOnChips, Steps
from builder.planner.speed.roofline import RooflineStepTime

ALIKE = 0.05
"""Share by which parameter counts of the same model may differ."""


def second_opinion(target: ModelOnChips, cycle: Cycle, batch: int) -> tuple[float | None, float | None]:
    """Aiconfigurator against the roofline: how many times the target's steps differ at the worse of batch 1 and `batch`, and the roofline's
    step at batch 1 in seconds. None where the roofline alone answers, or the user measured."""
    if cycle.steps.target.provider != "aiconfigurator":
        return None, None
    roofline = Cycle(Steps(RooflineStepTime(target), None), cycle.overheads, cycle.workload, cycle.prompt_pass_tokens)
    ratios = [cycle.target_s(b) / roofline.target_s(b) for b in (1, batch)]
    return max(max(ratio, 1 / ratio) for ratio in ratios), roofline.target_s(1)


def unverified(provider: str, target: ModelOnChips) -> tuple[str, ...]:
    """Reasons why figures of this provider could not be checked."""
    return tuple(str(rule["reason"]) for rule in _rules(provider, target))


def widened_band(band: float, provider: str, target: ModelOnChips, disagreement: float | None) -> float:
    """The band of rates: of unverified figures as wide as what they were off, or as two providers differ."""
    rules = _rules(provider, target)
    apart = disagreement - 1 if rules and disagreement is not None else 0.0
    return max(band, apart, *(float(rule["band"]) for rule in rules)) if rules else band


def published_acceptance(target: ModelOnChips, draft: ModelOnChips | None) -> str:
    """Words on the acceptance that was measured for these two models; "" where none is known."""
    if draft is None:
        return ""
    for row in constants()["published_acceptance"]:
        sizes = ((target, row["target_parameters"]), (draft, row["draft_parameters"]))
        of_family = all(model.facts.config.get("model_type") == row["model_type"] for model in (target, draft))
        if of_family and all(abs(model.facts.shape.parameters / size - 1) < ALIKE for model, size in sizes):
            return str(row["words"])
    return ""


def _rules(provider: str, target: ModelOnChips) -> list[Mapping[str, Any]]:
    known = {"provider": provider, "chip": target.chip.name, "weights": target.weights}
    return [
        rule
        for rule in constants()["unverified"]
        if all(rule.get(name, value) == value for name, value in known.items())
        and target.tensor_parallel >= rule.get("min_tensor_parallel", 1)
    ]
