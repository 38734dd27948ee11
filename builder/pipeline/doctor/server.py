"""What serving needs whatever the lane: a Triton server and its Python, the gRPC client, shared memory, free ports."""

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from builder.errors import MissingError
from builder.hardware.host import gib
from builder.pipeline.doctor.check import Check, asked, modules
from builder.serving.installation import Installation, check_shared_libpython, find_installation
from builder.serving.ports import is_free
from builder.spec.model import ServeSpec

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  where the server's Python backend puts tensors
MIN_SHARED_BYTES = 512 << 20
INSTALL = "pip install 'trt-tandem[serve]'"


@dataclass(frozen=True)
class Server:
    """The server that would be started, None when there is none, and what was found beside it."""

    installation: Installation | None
    checks: tuple[Check, ...]


def read_server() -> Server:
    """Look for the server and all that its models need."""
    try:
        installation = find_installation()
        server = Check("Triton server", "serve", True, str(installation.executable))
    except MissingError as error:
        installation, server = None, Check("Triton server", "serve", False, str(error), error.finding.fix)
    return Server(installation, (server, *_beside(installation)))


def _beside(installation: Installation | None) -> Iterable[Check]:
    yield libpython_check(installation)
    yield modules("gRPC client", "serve", ("tritonclient", "grpc"), INSTALL)
    yield modules("served models", "serve", ("numpy", "tokenizers", "transformers"), INSTALL)
    yield shared_memory_check()
    yield ports_check(ServeSpec())


def libpython_check(installation: Installation | None) -> Check:
    """The stub of the wheel links to this Python's shared library; servers of containers bring their own."""
    if installation is not None and not installation.from_wheel:
        return Check("shared libpython", "serve", True, "not needed: this server brings its own Python")
    return asked("shared libpython", "serve", lambda: str(check_shared_libpython()), INSTALL)


def shared_memory_check(folder: Path = SHARED_MEMORY) -> Check:
    """Free shared memory."""
    fix = "start the container with --shm-size=1g"
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return Check("shared memory", "serve", False, f"{folder}: {error.strerror}", fix)
    enough = free >= MIN_SHARED_BYTES
    return Check("shared memory", "serve", enough, f"{gib(free)} free in {folder}", "" if enough else fix)


def ports_check(serve: ServeSpec) -> Check:
    """The ports that a pair file has unless it says otherwise."""
    ports = (serve.http_port, serve.grpc_port, serve.metrics_port, serve.openai_port)
    taken = [str(port) for port in ports if not is_free(port)]
    if taken:
        fix = f"stop what listens there (ss -ltnp 'sport = :{taken[0]}'), or set other ports in the pair file's serve section"
        return Check("ports", "serve", False, f"taken: {', '.join(taken)}", fix)
    return Check("ports", "serve", True, f"free: {', '.join(map(str, ports))}")
