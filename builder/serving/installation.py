"""Where a Triton server is on this machine, and whether its Python stub can run this Python."""

import importlib.util
import shutil
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from builder.errors import MissingError

SYSTEM_ROOT = Path("/opt/tritonserver")
STUB = "triton_python_backend_stub"


@dataclass(frozen=True)
class Installation:
    """One server: its executable, the files of its Python backend, and what its environment needs.

    `own_backends` is the backend directory that comes with it: whole in NVIDIA's containers, Python only in the wheel.
    """

    executable: Path
    own_backends: Path
    python_backend: tuple[Path, ...]
    library_dirs: tuple[Path, ...]
    from_wheel: bool


def find_installation(given: Path | None = None, system_root: Path = SYSTEM_ROOT) -> Installation:
    """The server at `given`, else the first on PATH, else in `system_root`, else in the pytriton wheel of this Python.

    Raises MissingError SERVER-NOT-FOUND or SERVER-INCOMPLETE.
    """
    executable = given if given is not None else _search(system_root)
    if executable is None or not executable.is_file():
        raise MissingError(
            "SERVER-NOT-FOUND",
            "no Triton server here" if given is None else f"{given} is not a Triton server",
            found=str(given or "nothing on PATH, in /opt/tritonserver/bin or in the nvidia-pytriton package"),
            needed="the tritonserver executable",
            fix='pip install "trt-tandem[serve]", or run inside a tritonserver container, or name it with --tritonserver',
        )
    executable = executable.resolve()
    wheel = executable.parents[1]
    if wheel.name == "tritonserver" and wheel.parent.name == "pytriton":
        return _wheel_installation(executable, wheel)
    own = wheel / "backends"
    python = own / "python"
    return Installation(executable, own, tuple(sorted(python.glob("*"))), (), from_wheel=False)


def require_server(given: Path | None = None) -> Installation:
    """The installation that would be started, with what its Python models need; asked before hours of building.

    Raises MissingError SERVER-NOT-FOUND, SERVER-INCOMPLETE or SERVER-LIBPYTHON.
    """
    installation = find_installation(given)
    if installation.from_wheel:
        check_shared_libpython()
    return installation


def _search(system_root: Path) -> Path | None:
    on_path = shutil.which("tritonserver")
    candidates = [Path(on_path)] if on_path else []
    candidates.append(system_root / "bin" / "tritonserver")
    spec = importlib.util.find_spec("pytriton")
    if spec is not None and spec.origin:
        candidates.append(Path(spec.origin).parent / "tritonserver" / "bin" / "tritonserver")
    return next((c for c in candidates if c.is_file()), None)


def _wheel_installation(executable: Path, wheel: Path) -> Installation:
    python = wheel / "backends" / "python"
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    files = (
        python / "libtriton_python.so",
        python / "triton_python_backend_utils.py",
        wheel / "python_backend_stubs" / version / STUB,
    )
    for file in files:
        if not file.is_file():
            raise MissingError(
                "SERVER-INCOMPLETE",
                f"the nvidia-pytriton package has no {file.name} for Python {version}",
                found=str(file),
                needed="Python 3.11 or 3.12",
                fix="make the environment with one of these Python versions and install again",
            )
    site = wheel.parents[1]
    libraries = (Path(sysconfig.get_config_var("LIBDIR") or ""), site / "nvidia_pytriton.libs")
    return Installation(executable, wheel / "backends", files, libraries, from_wheel=True)


def shared_libpython(library_dir: str | None = None, name: str | None = None) -> Path:
    """Where the shared library of this very Python should be (the stub links to it by name)."""
    folder = library_dir if library_dir is not None else sysconfig.get_config_var("LIBDIR") or ""
    file = name if name is not None else sysconfig.get_config_var("INSTSONAME") or sysconfig.get_config_var("LDLIBRARY") or ""
    return Path(folder) / file


def check_shared_libpython(library_dir: str | None = None, name: str | None = None) -> Path:
    """The shared libpython that the stub needs. Raises MissingError SERVER-LIBPYTHON.

    With another libpython of the same version the stub starts, and fails later, when it imports a compiled module.
    """
    library = shared_libpython(library_dir, name)
    if ".so" in library.name and library.is_file():
        return library
    raise MissingError(
        "SERVER-LIBPYTHON",
        f"Python {sys.version.split()[0]} at {sys.base_prefix} has no shared library, and the server's Python models need it",
        found=str(library),
        needed=f"libpython{sys.version_info.major}.{sys.version_info.minor}.so of this Python",
        fix=(
            "use a Python that was built with --enable-shared (those of Debian, Ubuntu, conda and the python container images are; "
            "with pyenv: PYTHON_CONFIGURE_OPTS=--enable-shared pyenv install), and make the environment again"
        ),
    )
