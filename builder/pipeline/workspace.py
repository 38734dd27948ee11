"""The folder of one deployment, `build/<name>/`: its lock, its stage records, its staging folders."""

import errno
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builder.errors import MissingError, RefusedError, StageError
from builder.planner.stages import PlannedStage


@dataclass(frozen=True)
class Reuse:
    """Whether a stage's result can be taken as it is, and why or why not."""

    hit: bool
    reason: str


class Workspace:
    """One deployment's folder. Every write is staged beside its destination and moved into place."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    def path(self, relative: str) -> Path:
        return self.root / relative

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder for one run. Raises RefusedError when another run holds it; the lock ends with its process."""
        self.root.mkdir(parents=True, exist_ok=True)
        with (self.root / ".lock").open("a+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lock.seek(0)
                holder = lock.read().strip() or "unknown"
                raise RefusedError(
                    "BUILD-LOCKED",
                    f"another run (process {holder}) works in {self.root}",
                    found=f"process {holder}",
                    needed="one run at a time",
                    fix="wait for it to end, or give this pair file another name",
                ) from None
            lock.truncate(0)
            lock.write(str(os.getpid()))
            lock.flush()
            self._clear_staging()
            yield

    def reuse(self, stage: PlannedStage, *, verify: bool) -> Reuse:
        """Whether the stage's result is there for this key; `verify` reads every file again."""
        record = self._record(stage)
        if record is None:
            return Reuse(False, "not built yet")
        if stage.key is None:
            return Reuse(False, "unknown until the checkpoint is hashed, which tandem run does once")
        if record["key"] != stage.key:
            return Reuse(False, f"changed: {', '.join(_changes(record['inputs'], stage.inputs)) or 'this version of Tandem'}")
        output = self.path(stage.output)
        for name, (size_bytes, digest) in record["files"].items():
            file = output / name
            if not file.is_file() or file.stat().st_size != size_bytes or (verify and _sha256(file) != digest):
                return Reuse(False, f"{stage.output}/{name} is missing or was changed")
        return Reuse(True, f"same inputs as the result of {record['made']}")

    def fill(self, stage: PlannedStage, write: Callable[[Path], None], made: str) -> None:
        """Run `write` on an empty staging folder and move the result into place; nothing half-written stays."""
        output = self.path(stage.output)
        staging = output.with_name(f".staging-{output.name}-{os.getpid()}")
        shutil.rmtree(staging, ignore_errors=True)
        try:
            staging.mkdir(parents=True)
            write(staging)
            record = {"stage": stage.name, "key": stage.key, "made": made, "inputs": stage.inputs, "files": _files(staging)}
            self._record_file(stage).unlink(missing_ok=True)
            if output.exists():
                shutil.rmtree(output)
            staging.rename(output)
            self.write_json(f"stages/{stage.name}.json", record)
        except OSError as error:
            raise _disk_error(stage.name, self.root, error) from error
        finally:
            shutil.rmtree(staging, ignore_errors=True)

    def write_json(self, relative: str, data: Any) -> None:
        """Write a JSON file in one move."""
        file = self.path(relative)
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_name(f".{file.name}.{os.getpid()}")
        try:
            partial.write_text(json.dumps(data, indent=2, sort_keys=True, default=str) + "\n", encoding="utf-8")
            partial.replace(file)
        finally:
            partial.unlink(missing_ok=True)

    def _record_file(self, stage: PlannedStage) -> Path:
        return self.path(f"stages/{stage.name}.json")

    def _record(self, stage: PlannedStage) -> dict[str, Any] | None:
        try:
            record: dict[str, Any] = json.loads(self._record_file(stage).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return record if {"key", "inputs", "files", "made"} <= record.keys() else None

    def _clear_staging(self) -> None:
        for leftover in [*self.root.glob(".staging-*"), *self.root.glob("engines/.staging-*")]:
            shutil.rmtree(leftover, ignore_errors=True)


def digest_files(folder: Path) -> dict[str, str]:
    """SHA-256 of every file below a folder, by relative path."""
    return {name: digest for name, (_, digest) in _files(folder).items()}


def _files(folder: Path) -> dict[str, tuple[int, str]]:
    files = sorted(f for f in folder.rglob("*") if f.is_file() and "__pycache__" not in f.parts)
    return {str(f.relative_to(folder)): (f.stat().st_size, _sha256(f)) for f in files}


def _sha256(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while chunk := stream.read(1 << 22):
            digest.update(chunk)
    return digest.hexdigest()


def _changes(old: Any, new: Any, prefix: str = "") -> list[str]:
    """Dotted names of what differs between two nested mappings."""
    if not (isinstance(old, dict) and isinstance(new, dict)):
        same = json.dumps(old, default=str, sort_keys=True) == json.dumps(new, default=str, sort_keys=True)
        return [] if same else [prefix]
    changed: list[str] = []
    for name in sorted(old.keys() | new.keys()):
        changed += _changes(old.get(name), new.get(name), f"{prefix}.{name}" if prefix else name)
    return changed


def _disk_error(stage: str, root: Path, error: OSError) -> MissingError | StageError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        message = f"no space left while {stage} wrote below {root}; nothing half-written was kept"
        return MissingError(
            "DISK-FULL", message, found="disk full", needed="free space", fix="free some space and run again: finished stages are kept"
        )
    return StageError("STAGE-IO", f"{stage}: {error}", found=str(error), fix="mend it and run again: finished stages are kept")
