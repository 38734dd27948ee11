"""How running stages are shown, and the verdict at the end."""

import json
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any

import click

from builder.cli.console import Progress, progress_display
from builder.errors import ExitCode
from builder.pipeline.session import Session

if TYPE_CHECKING:
    from builder.pipeline.run import StageResult
    from builder.pipeline.validate import Validation


class StageDisplay:
    """A progress line for the stage that runs, a printed line for each that ended."""

    def __init__(self, session: Session, *, quiet: bool) -> None:
        self.session = session
        self.quiet = quiet
        self.results: list[StageResult] = []
        self._open: AbstractContextManager[Progress] | None = None
        self._title = ""
        self._progress: Progress | None = None

    def __enter__(self) -> "StageDisplay":
        for finding in self.session.plan.findings:
            click.echo(f"{finding.severity} [{finding.code}] {finding.message}", err=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._close()

    def reporter(self, stage: str) -> Progress:
        """The progress callback of a stage."""
        if self._progress is None or self._title != stage:
            self._close()
            self._title = stage
            self._open = progress_display(stage, quiet=self.quiet)
            self._progress = self._open.__enter__()
        return self._progress

    def listener(self, result: "StageResult") -> None:
        """Print how a stage ended."""
        self._close()
        self.results.append(result)
        if self.quiet:
            return
        if result.reused:
            click.echo(f"{result.name}: reused ({result.reason})", err=True)
        else:
            memory = f", peak memory {result.peak_memory_bytes / 1e9:.1f} GB" if result.peak_memory_bytes else ""
            click.echo(f"{result.name}: done in {result.seconds:.0f} s{memory} ({result.reason})", err=True)

    @property
    def durations_s(self) -> dict[str, float]:
        return {r.name: round(r.seconds, 1) for r in self.results}

    @property
    def peak_memory_bytes(self) -> int:
        return max((r.peak_memory_bytes for r in self.results), default=0)

    def _close(self) -> None:
        if self._open is not None:
            self._open.__exit__(None, None, None)
        self._open, self._progress = None, None


def conclude(validation: "Validation", seconds: float, peak_memory_bytes: int, *, as_json: bool) -> ExitCode:
    """Print the verdict, for machines too when asked, and give the exit code that says it."""
    show_verdict(validation, seconds, peak_memory_bytes)
    if as_json:
        click.echo(json.dumps(validation.verdict.as_dict(str(validation.report)), default=str))
    return ExitCode.DONE if validation.verdict.passed else ExitCode.GATE_FAILED


def show_verdict(validation: "Validation", seconds: float, peak_memory_bytes: int) -> None:
    """The verdict in a few lines on standard output."""
    verdict = validation.verdict
    for gate in verdict.gates:
        mark = click.style("pass", fg="green") if gate.passed else click.style("FAIL", fg="red", bold=True)
        click.echo(f"{mark}  {gate.name:<11} {gate.summary}")
    for line in _kind_lines(verdict.gates):
        click.echo(line)
    word = click.style(verdict.word, fg="green" if verdict.passed else "red", bold=True)
    memory = f"; peak memory of a build {peak_memory_bytes / 1e9:.1f} GB" if peak_memory_bytes else ""
    click.echo(f"verdict: {word}, after {seconds:.0f} s{memory}; report: {validation.markdown}")


def _kind_lines(gates: Any) -> list[str]:
    speed = next((g for g in gates if g.name == "speed"), None)
    kinds = speed.details.get("kinds", {}) if speed else {}
    return [f"      {kind:<10} {row['speedup']:.2f}x" for kind, row in kinds.items() if isinstance(row.get("speedup"), float)]
