"""Make the demo's two checkpoint folders: resumable, checked by digest, moved into place when whole."""

import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from builder.api import MissingError, Progress, StageError
from plugins.demos.smollm2_135m.convert import LAYERS, write_draft, write_target
from plugins.demos.smollm2_135m.download import GGUF_SHA256, fetch_gguf, sha256

TARGET = "smollm2-135m-instruct"
DRAFT = "smollm2-135m-draft"
RECEIPT = "demo-receipt.json"


def fetch_pair(destination: Path, progress: Progress) -> dict[str, Path]:
    """Folders of target and draft under `destination`. Raises StageError, MissingError."""
    target, draft = destination / TARGET, destination / DRAFT
    source = {"gguf": GGUF_SHA256}
    try:
        if not is_whole(target, source):
            gguf = fetch_gguf(destination / ".downloads", progress)
            progress("turning the GGUF file into a Hugging Face folder", None)
            _make(target, source, lambda folder: write_target(gguf, folder))
        source |= {"layers": sha256(LAYERS)}
        if not is_whole(draft, source):
            progress("making the draft from the shipped layers", None)
            _make(draft, source, lambda folder: write_draft(target, folder))
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise StageError(
                "DEMO-FETCH", f"the demo pair could not be written: {error}", found=str(error), fix="mend it and run again"
            ) from error
        message = f"no space left below {destination}"
        raise MissingError("DISK-FULL", message, found="disk full", needed="0.6 GB", fix="free some space and run it again") from None
    except ImportError as error:
        message = f"the demo pair needs a package that is not installed: {error.name}"
        raise MissingError("PACKAGE-MISSING", message, found=str(error), fix="pip install 'trt-tandem[openvino]'") from None
    return {"target": target, "draft": draft}


def is_whole(folder: Path, source: dict[str, str]) -> bool:
    """Whether the folder was made from these sources and every file still has the size and digest of its receipt."""
    try:
        receipt = json.loads((folder / RECEIPT).read_text(encoding="utf-8"))
        return receipt["source"] == source and all(sha256(folder / name) == digest for name, digest in receipt["files"].items())
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _make(folder: Path, source: dict[str, str], write: Callable[[Path], None]) -> None:
    staging = folder.with_name(f".{folder.name}.{os.getpid()}")
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    try:
        write(staging)
        for file in staging.iterdir():
            file.chmod(0o644)
        files = {file.name: sha256(file) for file in sorted(staging.iterdir())}
        (staging / RECEIPT).write_text(json.dumps({"source": source, "files": files}, indent=2) + "\n", encoding="utf-8")
        _move_into_place(staging, folder)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _move_into_place(staging: Path, folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
    staging.rename(folder)
