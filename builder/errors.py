"""Every error that Tandem shows, and the exit code that each leads to.

    TandemError                 base: a stable code, what was found, what is needed, a way out
    ├── RefusedError     (2)    the pair, the configuration or the command line cannot work as asked
    ├── MissingError     (3)    something needed is not here: package, server, disk, GPU
    └── StageError       (4)    a stage failed while running

Exit code 0 is success, 1 a verdict that is not a pass, 130 an interruption.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Literal


class ExitCode(IntEnum):
    """Exit codes of the command line."""

    DONE = 0
    GATE_FAILED = 1
    REFUSED = 2
    MISSING = 3
    STAGE_FAILED = 4
    INTERRUPTED = 130


Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True)
class Finding:
    """One thing that a check found: machine-readable, and a sentence for people."""

    code: str
    severity: Severity
    message: str
    field: str = ""
    found: str = ""
    needed: str = ""
    fix: str = ""
    file: str = ""
    line: int = 0

    def as_dict(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if v or k in ("code", "severity", "message", "field", "found", "needed", "fix")}


class TandemError(Exception):
    """Base of all errors that are shown without a traceback."""

    exit_code: ExitCode = ExitCode.STAGE_FAILED

    def __init__(
        self, code: str, message: str, *, field: str = "", found: str = "", needed: str = "", fix: str = "", file: str = ""
    ) -> None:
        super().__init__(message)
        self.finding = Finding(code, "error", message, field, found, needed, fix, file)

    @property
    def findings(self) -> tuple[Finding, ...]:
        return (self.finding,)


class RefusedError(TandemError):
    """The pair, the configuration or the command line cannot work as asked."""

    exit_code = ExitCode.REFUSED


class FindingsError(RefusedError):
    """Several refusals at once."""

    def __init__(self, findings: tuple[Finding, ...]) -> None:
        first = next(f for f in findings if f.severity == "error")
        super().__init__(
            first.code, first.message, field=first.field, found=first.found, needed=first.needed, fix=first.fix, file=first.file
        )
        self._findings = findings

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self._findings


class MissingError(TandemError):
    """Something needed is not here: a package, a server, disk space, a GPU."""

    exit_code = ExitCode.MISSING


class StageError(TandemError):
    """A stage failed while running."""

    exit_code = ExitCode.STAGE_FAILED

    def __init__(self, code: str, message: str, *, log: str = "", last_lines: tuple[str, ...] = (), **details: str) -> None:
        super().__init__(code, message, **details)
        self.log = log
        self.last_lines = last_lines


__all__ = [
    "ExitCode",
    "Finding",
    "FindingsError",
    "MissingError",
    "RefusedError",
    "Severity",
    "StageError",
    "TandemError",
]
