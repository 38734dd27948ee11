"""What a run found, JSON-ready; and the pages that a person reads."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from builder.bench.measure import Run, Sample
from builder.bench.rows import PLAIN, Row, compare
from builder.bench.statistics import Likeness, Samples, likeness
from builder.bench.systems import System
from builder.errors import StageError, TandemError
from builder.report.model import json_ready

SCHEMA = 1


@dataclass(frozen=True)
class BenchSettings:
    """How a run asks. Counts are prompts of each kind, tokens, repeats, requests at once, threads."""

    prompts_per_kind: int = 2
    new_tokens: int = 128
    repeats: int = 3
    concurrency: int = 16
    threads: int = 2


@dataclass(frozen=True)
class BenchReport:
    """One run. `absent` says why a party was not measured, or not to the end; `facts` what parties say of themselves."""

    name: str
    settings: BenchSettings
    single: tuple[System, ...]
    concurrent: tuple[System, ...]
    samples: Samples
    rows: tuple[Row, ...]
    absent: Mapping[str, TandemError]
    facts: Mapping[str, Mapping[str, str]]
    machine: Mapping[str, str]
    command: str
    created_at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))

    @property
    def failed(self) -> tuple[str, ...]:
        """Parties that were there and broke."""
        return tuple(party for party, error in self.absent.items() if isinstance(error, StageError))

    @property
    def alike(self) -> dict[str, Likeness]:
        """How the answers of each measured system agree with this engine's own."""
        own = self.samples.of(PLAIN)
        compared = {system.key: likeness(own, self.samples.of(system.key)) for system in self.single}
        return {key: like for key, like in compared.items() if like is not None}

    @property
    def missed(self) -> tuple[Row, ...]:
        """Lines below what must be reached."""
        return tuple(row for row in self.rows if row.result == "missed")

    def as_dict(self) -> dict[str, Any]:
        """The content of bench-engine.json: rows, and every sample they come from."""
        whole: dict[str, Any] = json_ready(
            {
                "schema": SCHEMA,
                "name": self.name,
                "created_at": self.created_at,
                "command": self.command,
                "settings": self.settings.__dict__,
                "rows": [_row(row) for row in self.rows],
                "alike": {key: like.__dict__ for key, like in self.alike.items()},
                "absent": {party: error.finding.as_dict() for party, error in self.absent.items()},
                "failed": self.failed,
                "facts": self.facts,
                "machine": self.machine,
                "samples": [_sample(sample) for sample in self.samples.all],
            }
        )
        return whole


def make_report(run: Run, absent: Mapping[str, TandemError], **facts: Any) -> BenchReport:
    """The report of a run; `absent` are the parties that could not be asked at all."""
    samples = Samples(tuple(run.samples))
    return BenchReport(samples=samples, rows=compare(samples), absent={**absent, **run.failures}, **facts)


def _row(row: Row) -> dict[str, Any]:
    value = row.value.__dict__ if row.value is not None else None
    return {**row.__dict__, "value": value, "result": row.result}


def _sample(sample: Sample) -> dict[str, Any]:
    work = sample.answers.work
    return {
        "system": sample.call.system.key,
        "prompts": [p.prompt.id for p in sample.call.prompts],
        "repeat": sample.call.repeat,
        "prompt_tokens": sum(len(p.ids) for p in sample.call.prompts),
        "tokens": sample.tokens,
        "seconds": sample.answers.seconds,
        "work": work.__dict__ if work is not None else None,
    }
