"""Published speeds to hold a prediction against: `anchors.yaml`."""

import math
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import yaml

from builder.hardware.chips import chips

Kind = Literal["speculative", "throughput"]
Method = Literal["draft_target", "ngram"]

ACCEPTANCE_APART = 0.05
"""Acceptances that lie further apart make speed-ups that cannot be compared."""

OTHER_CHIP, OTHER_FAMILY, OTHER_WEIGHTS = 0.5, 1.5, 0.5
PER_BATCH_OCTAVE, PER_CHIP_OCTAVE = 0.3, 0.3
"""What a difference counts, where a factor e in the model's size counts 1."""


@dataclass(frozen=True)
class Anchor:
    """One published figure. Rates are output tokens a second; None where the source does not say; `batch` 0 is the largest that fits."""

    kind: Kind
    name: str
    parameters: float
    chip: str
    chips: int
    weights: str
    batch: int
    plain_tokens_per_s: float | None
    runtime: str
    basis: str
    source: str
    draft_tokens: int | None = None
    tokens_per_s: float | None = None
    speedup: float | None = None
    acceptance: float | None = None
    method: Method = "draft_target"
    text: str = ""

    def unlike(self, acceptance: float) -> str:
        """What its prompts differ in from a prediction for this acceptance; "" where nothing is known or nothing differs."""
        if self.kind != "speculative" or (self.acceptance is not None and abs(self.acceptance - acceptance) < ACCEPTANCE_APART):
            return ""
        on = f"on {self.text}" if self.text else ""
        known = f"at acceptance {self.acceptance:.2f}" if self.acceptance is not None else ""
        what = " ".join(part for part in (on, known) if part)
        return f"{what}; the prediction is for {acceptance:.2f}" if what else ""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def distance(self, parameters: float, chip: str, chip_count: int, weights: str, batch: int) -> float:
        """How unlike the asked deployment the published one is; 0 is alike."""
        size = abs(math.log(parameters / self.parameters))
        count = PER_CHIP_OCTAVE * abs(math.log2(chip_count / self.chips))
        load = PER_BATCH_OCTAVE * abs(math.log2(batch / self.batch)) if self.batch else 0.0
        return size + count + load + _chip_distance(chip, self.chip) + (0 if weights == self.weights else OTHER_WEIGHTS)


@cache
def anchors() -> tuple[Anchor, ...]:
    """Every published figure."""
    text = files("builder.planner.speed").joinpath("anchors.yaml").read_text(encoding="utf-8")
    return tuple(Anchor(**row) for row in yaml.safe_load(text)["anchors"])


def nearest_anchor(
    kind: Kind, parameters: float, chip: str, chip_count: int, weights: str, batch: int, method: str = "draft_target"
) -> Anchor:
    """The published figure of the deployment most like this one, by model size, chip, precision and batch, of drafts made alike."""
    wanted = "ngram" if kind == "speculative" and method == "ngram" else "draft_target"
    alike = (a for a in anchors() if a.kind == kind and a.method == wanted)
    return min(alike, key=lambda a: a.distance(parameters, chip, chip_count, weights, batch))


def _chip_distance(left: str, right: str) -> float:
    if left == right:
        return 0.0
    known = chips()
    alike = left in known and right in known and known[left].family == known[right].family
    return OTHER_CHIP if alike else OTHER_FAMILY
