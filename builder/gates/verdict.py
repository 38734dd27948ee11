"""All gates together. A gate that was asked for and has no result has failed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from builder.gates.result import GateResult, not_evaluated

SCHEMA = 1


@dataclass(frozen=True)
class Verdict:
    """The results in the order in which gates were asked for, and the seconds that each took."""

    gates: tuple[GateResult, ...]
    durations_s: Mapping[str, float] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Every gate passed, and there was one."""
        return bool(self.gates) and all(g.passed for g in self.gates)

    @property
    def word(self) -> Literal["pass", "fail"]:
        return "pass" if self.passed else "fail"

    @property
    def failed(self) -> tuple[GateResult, ...]:
        return tuple(g for g in self.gates if not g.passed)

    def as_dict(self, report: str) -> dict[str, Any]:
        """The last line of `run --json` and `validate --json`; `report` is the path of report.json."""
        return {"schema": SCHEMA, "verdict": self.word, "gates": [g.as_dict() for g in self.gates], "report": report}


def combine(results: Sequence[GateResult], expected: Sequence[str]) -> Verdict:
    """Results sorted by `expected`; what lacks is added as failed, what is extra follows."""
    found = {r.name: r for r in results}
    asked = [found.get(name) or not_evaluated(name, "the gate did not run") for name in expected]
    return Verdict((*asked, *(r for r in results if r.name not in expected)))
