"""Keys of stages: full digests of inputs, options and tool versions."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from builder import __version__
from builder.api import EngineRequest


def key_of(stage: str, inputs: Mapping[str, Any]) -> str:
    """SHA-256 over the stage's name, its inputs and this package's version."""
    text = json.dumps({"stage": stage, "tandem": __version__, **inputs}, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def engine_inputs(request: EngineRequest, checkpoint_digest: str | None, versions: Mapping[str, str]) -> dict[str, Any]:
    """What an engine is made of: where the checkpoint lies does not matter, its content does."""
    options = {k: v for k, v in asdict(request).items() if k != "checkpoint"}
    return {"request": options, "checkpoint": checkpoint_digest, "versions": dict(versions)}


def digest_sources(folder: Path) -> str:
    """SHA-256 over names and contents of a folder's Python files."""
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*.py")):
        digest.update(str(file.relative_to(folder)).encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()
