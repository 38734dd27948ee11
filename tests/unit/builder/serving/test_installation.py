"""Finding a server, and refusing what cannot work with a way out."""

import sys
from pathlib import Path

import pytest

from builder.errors import MissingError
from builder.serving.installation import STUB, check_shared_libpython, find_installation

VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"


def make(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")
    return path


def wheel(root: Path, *, stub: bool = True) -> Path:
    base = root / "site-packages" / "pytriton" / "tritonserver"
    for name in ("libtriton_python.so", "triton_python_backend_utils.py"):
        make(base / "backends" / "python" / name)
    if stub:
        make(base / "python_backend_stubs" / VERSION / STUB)
    return make(base / "bin" / "tritonserver")


def test_the_wheel_is_recognised_by_its_place(tmp_path: Path) -> None:
    found = find_installation(wheel(tmp_path))
    assert found.from_wheel
    assert [f.name for f in found.python_backend] == ["libtriton_python.so", "triton_python_backend_utils.py", STUB]
    assert found.library_dirs[1] == tmp_path / "site-packages" / "nvidia_pytriton.libs"


def test_a_container_server_keeps_its_own_backends(tmp_path: Path) -> None:
    server = make(tmp_path / "tritonserver" / "bin" / "tritonserver")
    make(tmp_path / "tritonserver" / "backends" / "python" / STUB)
    found = find_installation(server)
    assert not found.from_wheel
    assert found.own_backends == tmp_path / "tritonserver" / "backends"


def test_a_missing_server_names_the_ways_out(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="is not a Triton server") as caught:
        find_installation(tmp_path / "tritonserver")
    assert caught.value.finding.code == "SERVER-NOT-FOUND"
    assert "--tritonserver" in caught.value.finding.fix


def test_a_wheel_without_a_stub_for_this_python_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match=f"no {STUB} for Python {VERSION}"):
        find_installation(wheel(tmp_path, stub=False))


def test_a_static_python_is_refused(tmp_path: Path) -> None:
    make(tmp_path / "libpython3.11.a")
    with pytest.raises(MissingError, match="no shared library") as caught:
        check_shared_libpython(str(tmp_path), "libpython3.11.a")
    assert caught.value.finding.code == "SERVER-LIBPYTHON"
    assert "--enable-shared" in caught.value.finding.fix


def test_a_shared_library_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="no shared library"):
        check_shared_libpython(str(tmp_path), "libpython3.11.so")


def test_a_shared_library_is_found(tmp_path: Path) -> None:
    library = make(tmp_path / "libpython3.11.so")
    assert check_shared_libpython(str(tmp_path), library.name) == library
