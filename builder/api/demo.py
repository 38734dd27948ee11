"""Demo pairs that a plug-in can make."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from builder.api.engine import Progress


class Demo(Protocol):
    """A demo pair that is made from packages alone."""

    name: str

    def fetch(self, destination: Path, progress: Progress) -> Mapping[str, Path]:
        """Make the checkpoint folders under `destination`; skips what is there and whole. Raises StageError, MissingError."""
