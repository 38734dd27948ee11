"""What a gate says. A gate that could not be evaluated has failed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class GateResult:
    """One gate's verdict with its number and the number it was held against.

    `value` is None when the gate could not be evaluated. `details` is JSON-ready; its optional member `kinds` maps a kind of prompt to
    columns of numbers, which the report joins into one table.
    """

    name: str
    passed: bool
    value: float | None
    threshold: float | None
    unit: str
    summary: str
    details: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """The five members that machines read."""
        return {"name": self.name, "passed": self.passed, "value": self.value, "threshold": self.threshold, "unit": self.unit}


def not_evaluated(name: str, why: str, threshold: float | None = None, unit: str = "") -> GateResult:
    """The failed result of a gate that has no number."""
    return GateResult(name, False, None, threshold, unit, f"could not be evaluated: {why}", {"evaluated": False})
