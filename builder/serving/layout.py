"""What a server run needs on disk and in its environment: the backend directory, made of copies, and variables."""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from builder.api import ServerNeeds
from builder.serving.installation import Installation, check_shared_libpython

NO_CACHE = shutil.ignore_patterns("__pycache__", "*.pyc")


def lay_out_backends(installation: Installation, needs: ServerNeeds, destination: Path) -> Path:
    """The backend directory for this run: the server's own where it serves, else `destination` filled with copies.

    Copies, because Triton refuses links that lead out of the backend directory. Raises MissingError SERVER-LIBPYTHON.
    """
    if installation.from_wheel:
        check_shared_libpython()
    elif not needs.backends:
        return installation.own_backends
    python = destination / "python"
    python.mkdir(parents=True, exist_ok=True)
    for file in installation.python_backend:
        _copy_file(file, python / file.name)
    for name, source in needs.backends.items():
        _copy_folder(source, destination / name)
    return destination


def _copy_file(source: Path, destination: Path) -> None:
    """Written beside and renamed: a stub that still runs keeps its file busy."""
    if source.is_dir():
        _copy_folder(source, destination)
        return
    beside = destination.with_name(destination.name + ".new")
    shutil.copy(source, beside)
    beside.replace(destination)


def _copy_folder(source: Path, destination: Path) -> None:
    if destination.exists():
        shutil.rmtree(destination)
    shutil.copytree(source, destination, ignore=NO_CACHE)


def server_environment(installation: Installation, needs: ServerNeeds, base: Mapping[str, str] | None = None) -> dict[str, str]:
    """Environment of the server and its stubs.

    This Python's library folder comes first, so that stubs run this very Python. Nothing is fetched from the network. The stub embeds an
    isolated interpreter: variables whose names begin with PYTHON do not reach it.
    """
    env = dict(os.environ if base is None else base)
    env.setdefault("OMP_NUM_THREADS", "1")
    env |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    env |= needs.environment
    env["LD_LIBRARY_PATH"] = _joined([*map(str, installation.library_dirs), env.get("LD_LIBRARY_PATH", "")])
    env["PATH"] = _joined([str(Path(sys.executable).parent), env.get("PATH", "")])
    return env


def remove_byte_code(repository: Path) -> None:
    """Delete the caches that stubs write beside served sources, so that the repository is again as it was packaged."""
    for folder in list(repository.rglob("__pycache__")):
        shutil.rmtree(folder, ignore_errors=True)


def _joined(parts: list[str]) -> str:
    return os.pathsep.join(p for p in parts if p and p != ".")
