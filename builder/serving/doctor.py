"""What is here for building and serving, without importing anything heavy; `tandem doctor` shows it."""

import importlib.util
import shutil
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from builder import registry
from builder.errors import TandemError
from builder.serving.installation import check_shared_libpython, find_installation

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  where the server's Python backend puts tensors
MIN_SHARED_BYTES = 512 << 20
PACKAGE = '"trt-tandem[openvino,serve]"'


@dataclass(frozen=True)
class Check:
    """One thing: whether it is here, what was found, and the command that mends it. What is not `needed` is another lane's."""

    name: str
    present: bool
    found: str
    needed: bool
    fix: str


def checks() -> tuple[Check, ...]:
    """The machine's state, in the order in which things are needed."""
    return (
        _python(),
        *(_engine(kind) for kind in registry.names(registry.ENGINES)),
        _asked("Triton server", lambda: str(find_installation().executable)),
        _asked("shared libpython", lambda: str(check_shared_libpython())),
        _modules("gRPC client", ("tritonclient", "grpc")),
        _modules("served models", ("numpy", "tokenizers", "transformers")),
        _shared_memory(),
        _program("NVIDIA driver", "nvidia-smi"),
        _modules("TensorRT-LLM", ("tensorrt_llm",), needed=False, fix="pip install tensorrt_llm, on a machine with an NVIDIA GPU"),
    )


def _python() -> Check:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    fits = (3, 11) <= sys.version_info[:2] <= (3, 12)
    return Check("Python", fits, f"{version} at {sys.prefix}", True, "make the environment with Python 3.11 or 3.12")


def _engine(kind: str) -> Check:
    def packages() -> str:
        missing = registry.engine(kind).missing_packages()
        return "" if missing else "every package"

    return _asked(f"engine {kind}", packages, fix=f'pip install "trt-tandem[{kind}]"')


def _asked(name: str, question: Callable[[], str], fix: str = f"pip install {PACKAGE}") -> Check:
    """An answer is what was found; an empty one, and an error, mean that it is not here."""
    try:
        found = question()
    except TandemError as error:
        return Check(name, False, str(error), True, error.finding.fix or fix)
    return Check(name, bool(found), found or "packages are missing", True, fix)


def _modules(name: str, modules: Iterable[str], *, needed: bool = True, fix: str = f"pip install {PACKAGE}") -> Check:
    missing = [m for m in modules if importlib.util.find_spec(m) is None]
    return Check(name, not missing, f"no {', '.join(missing)}" if missing else "installed", needed, fix)


def _program(name: str, program: str) -> Check:
    path = shutil.which(program)
    return Check(name, path is not None, path or f"no {program}", False, "only the NVIDIA lanes need it")


def _shared_memory(folder: Path = SHARED_MEMORY) -> Check:
    fix = "start the container with --shm-size=1g"
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return Check("shared memory", False, f"{folder}: {error.strerror}", True, fix)
    return Check("shared memory", free >= MIN_SHARED_BYTES, f"{free >> 20} MiB free in {folder}", True, fix)
