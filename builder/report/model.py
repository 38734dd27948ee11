"""What a report holds; frozen, and JSON-ready through `as_dict`."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, Protocol

SCHEMA = 1


class Gate(Protocol):
    """A gate's result, as `builder.gates` makes it."""

    @property
    def name(self) -> str: ...
    @property
    def passed(self) -> bool: ...
    @property
    def value(self) -> float | None: ...
    @property
    def threshold(self) -> float | None: ...
    @property
    def unit(self) -> str: ...
    @property
    def summary(self) -> str: ...
    @property
    def details(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True)
class Report:
    """One run of one pair. Durations are seconds by stage or gate; `plan` is the plan's own JSON; `commands` repeat the run."""

    name: str
    verdict: Literal["pass", "fail"]
    gates: tuple[Gate, ...]
    created_at: str
    versions: Mapping[str, str] = field(default_factory=dict)
    machine: Mapping[str, str] = field(default_factory=dict)
    durations_s: Mapping[str, float] = field(default_factory=dict)
    plan: Mapping[str, Any] = field(default_factory=dict)
    commands: tuple[str, ...] = ()

    @property
    def kinds(self) -> dict[str, dict[str, Any]]:
        """Columns by kind of prompt, joined from every gate's details."""
        table: dict[str, dict[str, Any]] = {}
        for gate in self.gates:
            for kind, columns in gate.details.get("kinds", {}).items():
                table.setdefault(kind, {}).update(columns)
        return table

    def as_dict(self) -> dict[str, Any]:
        """The content of report.json; numbers that JSON cannot hold become null."""
        gates = [
            {key: getattr(g, key) for key in ("name", "passed", "value", "threshold", "unit", "summary", "details")} for g in self.gates
        ]
        whole: dict[str, Any] = json_ready(
            {
                "schema": SCHEMA,
                "name": self.name,
                "verdict": self.verdict,
                "created_at": self.created_at,
                "gates": gates,
                "kinds": self.kinds,
                "versions": self.versions,
                "machine": self.machine,
                "durations_s": self.durations_s,
                "commands": self.commands,
                "plan": self.plan,
            }
        )
        return whole


def make_report(name: str, gates: Sequence[Gate], *, created_at: datetime | None = None, **facts: Any) -> Report:
    """A report whose verdict is pass when every gate passed and there was one. `facts` are the other fields of Report."""
    passed = bool(gates) and all(gate.passed for gate in gates)
    moment = created_at or datetime.now(UTC)
    return Report(name, "pass" if passed else "fail", tuple(gates), moment.isoformat(timespec="seconds"), **facts)


def json_ready(value: Any) -> Any:
    """Plain JSON types: mappings and sequences copied, numpy numbers made Python's, paths made text, NaN and infinities null."""
    if isinstance(value, Mapping):
        return {str(k): json_ready(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [json_ready(v) for v in value]
    if hasattr(value, "item") and not isinstance(value, (str, bytes)):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)
