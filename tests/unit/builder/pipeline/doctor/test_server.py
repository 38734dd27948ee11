"""Checks of what serving needs."""

import socket
from pathlib import Path

from builder.errors import MissingError
from builder.pipeline.doctor import server
from builder.pipeline.doctor.check import asked, modules
from builder.pipeline.doctor.server import libpython_check, ports_check, shared_memory_check
from builder.serving.installation import Installation
from builder.serving.ports import free_ports
from builder.spec.model import ServeSpec


def free_serve() -> ServeSpec:
    first, second = free_ports(), free_ports()
    return ServeSpec(http_port=first.http, grpc_port=first.grpc, metrics_port=first.metrics, openai_port=second.http)


def test_an_error_is_a_finding_with_its_own_fix() -> None:
    def missing() -> str:
        raise MissingError("X", "no server here", fix="install one")

    check = asked("server", "serve", missing, "another")
    assert (check.present, check.found, check.fix) == (False, "no server here", "install one")


def test_missing_modules_are_named() -> None:
    check = modules("things", "serve", ("json", "no_such_module_here"), "install")
    assert (check.present, check.found, check.fix) == (False, "no no_such_module_here", "install")
    assert modules("things", "serve", ("json",), "install").present


def test_shared_memory_that_is_not_there(tmp_path: Path) -> None:
    check = shared_memory_check(tmp_path / "none")
    assert (check.present, check.fix) == (False, "start the container with --shm-size=1g")


def test_ports() -> None:
    serve = free_serve()
    assert ports_check(serve).present
    with socket.create_server(("127.0.0.1", serve.openai_port)):
        check = ports_check(serve)
    assert (check.present, check.found) == (False, f"taken: {serve.openai_port}")
    assert f"sport = :{serve.openai_port}" in check.fix


def test_a_containers_server_needs_no_libpython_of_ours(tmp_path: Path) -> None:
    own = Installation(tmp_path / "tritonserver", tmp_path, (), (), from_wheel=False)
    assert libpython_check(own).found == "not needed: this server brings its own Python"


def test_all_of_them() -> None:
    names = [check.name for check in server.read_server().checks]
    assert names == ["Triton server", "shared libpython", "gRPC client", "served models", "shared memory", "ports"]
