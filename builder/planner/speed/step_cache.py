"""Step times that were worked out before, in the user's cache folder: one file for each model, chip and precision."""

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MAX_ENTRIES = 4096
"""Entries that a file may hold; a fuller one is begun anew."""


def cache_folder() -> Path:
    """`aiconfigurator` in this user's cache folder of Tandem."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "trt-tandem" / "aiconfigurator"


def cache_key(parts: Mapping[str, Any]) -> str:
    """Digest of everything that a step time depends on."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


@dataclass
class StepCache:
    """Seconds by question. A file that cannot be read counts as empty; one that cannot be written is left out."""

    file: Path
    values: dict[str, float] = field(default_factory=dict)
    changed: bool = False

    @classmethod
    def open(cls, key: str) -> "StepCache":
        """The entries kept under this key."""
        file = cache_folder() / f"{key}.json"
        try:
            values = json.loads(file.read_text(encoding="utf-8"))
            whole = isinstance(values, dict) and all(isinstance(value, float) for value in values.values())
        except (OSError, ValueError):
            whole = False
        return cls(file, values if whole and len(values) < MAX_ENTRIES else {})

    def keep(self, question: str, seconds: float) -> float:
        """Remember one answer and give it back."""
        self.values[question] = seconds
        self.changed = True
        return seconds

    def save(self) -> None:
        """Write new entries; the file is moved into place whole."""
        if not self.changed:
            return
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=self.file.parent, delete=False, encoding="utf-8") as stream:
                json.dump(self.values, stream)
            Path(stream.name).replace(self.file)
        except OSError:
            return
        self.changed = False
