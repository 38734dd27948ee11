"""The build stages: one engine each, made by a worker process whose output is the stage's log."""

import json
import os
import signal
import subprocess
import sys
from collections import deque
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

from builder import errors
from builder.api import EngineRequest, Progress
from builder.errors import MissingError, StageError, TandemError

LAST_LINES = 12


@dataclass(frozen=True)
class BuildJob:
    """An engine to build: the lane's name, the request, the empty folder it fills."""

    kind: str
    request: EngineRequest
    destination: Path

    def as_json(self) -> str:
        request = {**asdict(self.request), "checkpoint": str(self.request.checkpoint), "options": dict(self.request.options)}
        return json.dumps({"kind": self.kind, "request": request, "destination": str(self.destination)})


def build_engine(job: BuildJob, log: Path, progress: Progress) -> int:
    """Build one engine; returns the worker's peak memory in bytes. Raises what the lane raises, or StageError when the worker dies."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w", encoding="utf-8") as stream, _worker(stream) as worker:
        try:
            failure = _talk(worker, job, progress)
        except BaseException:
            _kill(worker)
            raise
        peak_memory_bytes = _reap(worker)
    if failure is not None:
        raise _error(failure, log)
    if worker.returncode:
        raise _died(worker.returncode, job, log)
    return peak_memory_bytes


def _worker(log: TextIO) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "builder.pipeline.worker"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True)


def _talk(worker: "subprocess.Popen[str]", job: BuildJob, progress: Progress) -> dict[str, Any] | None:
    assert worker.stdin is not None
    assert worker.stdout is not None
    failure: dict[str, Any] | None = None
    try:
        worker.stdin.write(job.as_json())
        worker.stdin.close()
    except BrokenPipeError:
        return None
    for line in worker.stdout:
        message = json.loads(line)
        if "error" in message:
            failure = message
        else:
            progress(message["progress"], message["share"])
    return failure


def _reap(worker: "subprocess.Popen[str]") -> int:
    """Wait for the worker and return its own peak memory in bytes, which subprocess does not tell."""
    _, status, usage = os.wait4(worker.pid, 0)
    worker.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_maxrss * 1024


def _kill(worker: "subprocess.Popen[str]") -> None:
    if worker.poll() is None:
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()


def last_lines(log: Path) -> tuple[str, ...]:
    """The last lines of a log that say something."""
    with log.open(encoding="utf-8", errors="replace") as stream:
        return tuple(deque((line.rstrip() for line in stream if line.strip()), LAST_LINES))


def _error(failure: dict[str, Any], log: Path) -> TandemError:
    kind = getattr(errors, failure["kind"], StageError)
    finding = {k: v for k, v in failure["error"].items() if k in ("code", "message", "field", "found", "needed", "fix", "file")}
    code, message = finding.pop("code"), finding.pop("message")
    if kind is StageError:
        return StageError(code, message, log=str(log), last_lines=last_lines(log), **finding)
    error: TandemError = (MissingError if kind is MissingError else errors.RefusedError)(code, message, **finding)
    return error


def _died(returncode: int, job: BuildJob, log: Path) -> StageError:
    how = f"signal {-returncode}" if returncode < 0 else f"exit code {returncode}"
    message = f"building the {job.request.role} engine ended with {how}"
    fix = "signal 9 is most often the kernel's out-of-memory killer: free memory and run again" if returncode == -9 else f"read {log}"
    return StageError("BUILD-DIED", message, found=how, fix=fix, log=str(log), last_lines=last_lines(log))
