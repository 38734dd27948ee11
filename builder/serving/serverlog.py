"""Reading a Triton log: which model failed first and why, without the lines that mean nothing."""

import re
from dataclasses import dataclass
from pathlib import Path

FAILED_MODEL = re.compile(r"failed to load (?:model )?'(?P<model>[^']+)'(?: version (?P<version>\d+))?: (?P<reason>.+)")
ERROR_LINE = re.compile(r"^(?:E\d{4} |error: |terminate called|Signal \((?!15\))|Fatal Python error|.*\bModuleNotFoundError\b)")
LOG_PREFIX = re.compile(r"^[EWI]\d{4} [\d:.]+ \d+ [\w.]+:\d+\] ")
HARMLESS = (
    "CudaDriverHelper has not been initialized",  # no GPU
    "Failed to initialize NVML",
    "DCGM unable to start",
    "Unable to allocate pinned system memory",
)
MAX_LINES = 8


@dataclass(frozen=True)
class LogSummary:
    """The first model that failed and its reason (both empty when none is named), and the first error lines."""

    model: str
    reason: str
    error_lines: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """What went wrong, in one sentence; empty when the log does not say."""
        if self.model:
            return f"model '{self.model}' failed to load: {self.reason}"
        return self.error_lines[0] if self.error_lines else ""


def summarise_log(text: str) -> LogSummary:
    """The first meaningful errors of a server's log."""
    errors = [_clean(line) for line in text.splitlines() if ERROR_LINE.match(line) and not any(h in line for h in HARMLESS)]
    failed = next((m for m in (FAILED_MODEL.search(e) for e in errors) if m), None)
    unique = tuple(dict.fromkeys(errors))[:MAX_LINES]
    if failed is None:
        return LogSummary("", "", unique)
    return LogSummary(failed["model"], _first_part(failed["reason"]), unique)


def read_log(path: Path, max_bytes: int = 4 << 20) -> str:
    """The log's text, or what its first `max_bytes` hold; empty when there is none."""
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        return file.read(max_bytes).decode(errors="replace")


def last_lines(text: str, count: int = MAX_LINES) -> tuple[str, ...]:
    """The last lines that are not part of a table."""
    return tuple(line for line in text.splitlines() if line.strip() and line[0] not in "+|")[-count:]


def _clean(line: str) -> str:
    return LOG_PREFIX.sub("", line).strip().strip('"')


def _first_part(reason: str) -> str:
    """Triton writes line ends of a Python traceback as backslash and n; the sentence comes first, then where it was raised."""
    sentence, _, rest = reason.partition("\\n")
    place = next((p.strip() for p in rest.split("\\n") if "(" in p), "")
    return f"{sentence} (at {place})" if place else sentence
