"""Peers: other engines, each in a process of its own that speaks JSON lines, so that none can disturb another's packages.

A peer is a folder with `peer.py`, its own environment in `.venv`, and models made for the pair. Requests go to its standard input, one JSON
object a line, each answered by one line on its standard output; a failure is answered by {"error": text}. Time is taken inside the peer.
"""

import contextlib
import json
import os
import queue
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builder.bench.measure import Answers
from builder.errors import MissingError, StageError

SCRIPT = "peer.py"
SOURCE_FILE = "source.json"
"""Beside a peer's models: digests of the checkpoints they were made from."""
LOAD_DEADLINE_S = 180.0
CALL_DEADLINE_S = 300.0
CLOSE_DEADLINE_S = 5.0
LAST_LINES = 12


@dataclass(frozen=True)
class PeerPlace:
    """Where a peer lies: its code and environment, and its models for this pair."""

    name: str
    folder: Path
    models: Path

    @property
    def python(self) -> Path:
        return self.folder / ".venv" / "bin" / "python"


def require_installed(place: PeerPlace, source: Mapping[str, str], fix: str) -> None:
    """Raises MissingError PEER-NOT-INSTALLED when the peer cannot be asked about the checkpoints with these digests."""
    if not (place.folder / SCRIPT).is_file():
        raise _missing(place, f"{place.folder / SCRIPT} is not there", fix)
    if not place.python.is_file():
        raise _missing(place, "its environment is not installed", fix)
    if _source(place) != dict(source):
        raise _missing(place, "its models were not made, or from other checkpoints", fix)


def _source(place: PeerPlace) -> Any:
    try:
        return json.loads((place.models / SOURCE_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _missing(place: PeerPlace, found: str, fix: str) -> MissingError:
    return MissingError("PEER-NOT-INSTALLED", f"{place.name}: {found}", found=found, needed="an installed peer", fix=fix)


class PeerProcess:
    """A running peer. Not thread-safe: one question at a time."""

    def __init__(self, place: PeerPlace, log: Path, environment: Mapping[str, str], *, call_deadline_s: float = CALL_DEADLINE_S) -> None:
        self.name = place.name
        self._log, self._call_deadline_s = log, call_deadline_s
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("w", encoding="utf-8") as errors:
            self._process = subprocess.Popen(
                [str(place.python), str(place.folder / SCRIPT)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, "PYTHONPATH": str(place.folder.parent), **environment},
            )
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def load(self, settings: Mapping[str, Any], deadline_s: float = LOAD_DEADLINE_S) -> dict[str, str]:
        """Load the models; returns what the peer says of itself, versions and settings. Raises StageError."""
        answer = self._ask({"op": "load", **settings}, deadline_s)
        return {str(k): str(v) for k, v in self._member(answer, "facts", dict).items()}

    def generate(self, prompts: Sequence[Sequence[int]], *, new_tokens: int, mode: str) -> Answers:
        question = {"op": "generate", "prompts": [list(p) for p in prompts], "new_tokens": new_tokens, "mode": mode}
        answer = self._ask(question, self._call_deadline_s)
        outputs = self._member(answer, "outputs", list)
        if not all(isinstance(o, list) and all(isinstance(i, int) for i in o) for o in outputs):
            raise self._failed("BENCH-PEER-ANSWER", "answered with outputs that are no token ids")
        return Answers(tuple(tuple(o) for o in outputs), float(self._member(answer, "seconds", (int, float))))

    def close(self) -> None:
        """End the process: asked by the end of its input, then killed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(OSError):  # it may be gone already
            self._process.stdin.close()
        try:
            self._process.wait(CLOSE_DEADLINE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(CLOSE_DEADLINE_S)
        self._process.stdout.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def _ask(self, question: Mapping[str, Any], deadline_s: float) -> dict[str, Any]:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
        except OSError:
            raise self._died() from None
        return self._answer(deadline_s)

    def _answer(self, deadline_s: float) -> dict[str, Any]:
        try:
            line = self._lines.get(timeout=deadline_s)
        except queue.Empty:
            self._process.kill()
            raise self._failed("BENCH-PEER-HANGS", f"did not answer within {deadline_s:g} s") from None
        if not line:
            raise self._died()
        try:
            answer = json.loads(line)
        except ValueError:
            raise self._failed("BENCH-PEER-ANSWER", f"answered with no JSON: {line.strip()[:80]}") from None
        if not isinstance(answer, dict):
            raise self._failed("BENCH-PEER-ANSWER", f"answered with no object: {line.strip()[:80]}")
        if "error" in answer:
            raise self._failed("BENCH-PEER-FAILED", str(answer["error"]))
        return answer

    def _member(self, answer: Mapping[str, Any], name: str, kind: type | tuple[type, ...]) -> Any:
        value = answer.get(name)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise self._failed("BENCH-PEER-ANSWER", f"answered without {name}")
        return value

    def _died(self) -> StageError:
        code = self._process.wait()
        return self._failed("BENCH-PEER-DIED", f"ended with {f'signal {-code}' if code < 0 else f'exit code {code}'}")

    def _failed(self, code: str, what: str) -> StageError:
        lines = tuple(self._log.read_text(encoding="utf-8", errors="replace").splitlines()[-LAST_LINES:])
        return StageError(code, f"{self.name} {what}", found=what, log=str(self._log), last_lines=lines)
