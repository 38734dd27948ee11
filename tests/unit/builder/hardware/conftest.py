"""A driver that is a script."""

from collections.abc import Callable
from pathlib import Path

import pytest

FakeDriver = Callable[[str], Path]


@pytest.fixture
def fake_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    """Puts a shell script on PATH as nvidia-smi, and nothing else but the system's own programs."""

    def write(body: str) -> Path:
        folder = tmp_path / "programs"
        folder.mkdir()
        program = folder / "nvidia-smi"
        program.write_text(f"#!/bin/sh\n{body}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
        return program

    return write
