"""What the server is started with, and the keeper that ends it; no Triton here."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from builder.api import ServerNeeds
from builder.errors import MissingError, RefusedError
from builder.serving import keeper
from builder.serving.installation import Installation
from builder.serving.ports import LOOPBACK, Ports, free_ports
from builder.serving.tritonserver import ServerSettings, server_command, shm_prefix, start

SLEEPER = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(60)"]
STUBBORN = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)",
]


def settings(folder: Path, ports: Ports, server: Path | None = None) -> ServerSettings:
    return ServerSettings(folder / "repo", folder / "run", ports, ServerNeeds(), server, start_timeout_s=5, exit_timeout_s=1)


def keep(log: Path, command: list[str], grace_s: float = 5, prefix: str = "") -> "subprocess.Popen[bytes]":
    script = [sys.executable, "-I", "-S", str(keeper.__file__), str(log), prefix, str(grace_s), "--", *command]
    return subprocess.Popen(script, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def started(process: "subprocess.Popen[bytes]", log: Path) -> int:
    assert process.stdout is not None
    pid = int(process.stdout.readline())
    until = time.monotonic() + 10
    while "up" not in log.read_text() and time.monotonic() < until:
        time.sleep(0.02)
    return pid


def gone(pid: int, within_s: float = 5) -> bool:
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        if Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z":
            return True
        time.sleep(0.02)
    return False


def end(process: "subprocess.Popen[bytes]") -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    process.wait(10)
    process.stdout.close()


def test_everything_listens_on_one_address_and_nothing_is_controllable(tmp_path: Path) -> None:
    installation = Installation(tmp_path / "tritonserver", tmp_path, (), (), from_wheel=False)
    command = server_command(settings(tmp_path, Ports(1, 2, 3)), installation, tmp_path / "b", "tandem-x")
    for flag in ("--http-address=127.0.0.1", "--grpc-address=127.0.0.1", "--metrics-address=127.0.0.1", "--model-control-mode=none"):
        assert flag in command
    assert "--exit-timeout-secs=1" in command
    assert f"--backend-config=python,shm-region-prefix-name={shm_prefix('tandem-x')}" in command
    assert any(c.startswith("--grpc-restricted-protocol=model-repository,shared-memory,logging,trace:") for c in command)


def test_a_taken_port_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    ports = free_ports()
    with socket.socket() as other:
        other.bind((LOOPBACK, ports.http))
        other.listen()
        with pytest.raises(RefusedError, match=str(ports.http)):
            start(settings(tmp_path, ports))
    assert list(tmp_path.iterdir()) == []


def test_a_missing_server_is_missing(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="is not a Triton server"):
        start(settings(tmp_path, free_ports(), tmp_path / "none"))


def test_the_keeper_ends_the_server_when_its_input_closes(tmp_path: Path) -> None:
    process = keep(tmp_path / "log", SLEEPER)
    pid = started(process, tmp_path / "log")
    end(process)
    assert gone(pid)
    assert process.returncode == 128 + signal.SIGTERM


def test_a_server_that_does_not_end_is_killed(tmp_path: Path) -> None:
    process = keep(tmp_path / "log", STUBBORN, grace_s=0.2)
    pid = started(process, tmp_path / "log")
    end(process)
    assert gone(pid)
    assert process.returncode == 128 + signal.SIGKILL


def test_a_killed_keeper_takes_the_server_with_it(tmp_path: Path) -> None:
    process = keep(tmp_path / "log", SLEEPER)
    pid = started(process, tmp_path / "log")
    process.kill()
    assert gone(pid)
    end(process)


def test_a_killed_parent_takes_the_server_with_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    script = [sys.executable, "-I", "-S", str(keeper.__file__), str(log), "", "5", "--", *SLEEPER]
    code = f"import subprocess; subprocess.Popen({script!r}, stdin=subprocess.PIPE, start_new_session=True).wait()"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as parent:
        pid = started(parent, log)
        parent.kill()
    assert gone(pid)


def test_a_command_that_cannot_start_leaves_its_reason_in_the_log(tmp_path: Path) -> None:
    process = keep(tmp_path / "log", [str(tmp_path / "none")])
    assert process.wait(10) == 127
    end(process)
    assert "error: cannot start" in (tmp_path / "log").read_text()


def test_only_regions_of_this_server_are_removed(tmp_path: Path) -> None:
    for name in ("triton_tandem-1_a", "triton_tandem-1_b", "triton_other"):
        (tmp_path / name).write_text("")
    assert keeper.remove_regions("triton_tandem-1_", tmp_path) == 2
    assert [p.name for p in tmp_path.iterdir()] == ["triton_other"]
    assert keeper.remove_regions("", tmp_path) == 0
