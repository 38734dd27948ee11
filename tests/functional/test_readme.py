"""The README's commands, each typed as it stands there, from the build to the report."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from builder.serving.ports import is_free

pytestmark = pytest.mark.functional
ROOT = Path(__file__).parents[2]
CONSOLE = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
EXPECTED = {
    "make build-engines": "verdict: ",
    "make generate": "tokens/s",
    "curl -s ": '"text_output"',
    "curl -sN": "data: ",
    "make validate": "verdict: ",
    "make report": "lossless",
    "make plan": "build-target",
}


def readme_commands() -> list[str]:
    blocks = CONSOLE.findall((ROOT / "README.md").read_text())
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


def environment() -> dict[str, str]:
    """That of the shell, with the tests' own virtual environment in place of a new one."""
    return {**os.environ, "VENV": str(Path(sys.prefix)), "PYTHON": sys.executable}


def run(command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", "-c", command], cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=900, check=False)


def only_speed_failed(done: "subprocess.CompletedProcess[str]") -> bool:
    """Timings of a busy machine prove nothing, so the speed gate alone may fail here; every other gate must pass."""
    gates = [line.split()[:2] for line in done.stdout.splitlines() if line.startswith(("pass  ", "FAIL  "))]
    return len(gates) == 4 and [name for word, name in gates if word == "FAIL"] == ["speed"]


def start_server() -> "subprocess.Popen[str]":
    server = subprocess.Popen(
        ["make", "serve"], cwd=ROOT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    assert server.stdout is not None
    for line in server.stdout:
        if line.startswith("ready after"):
            return server
    raise AssertionError(f"make serve ended with {server.wait()}")


def test_readme_commands(demo_checkpoints: Mapping[str, Path]) -> None:
    """`make serve &` runs until the commands that need it have run; every other command must succeed and say what the README promises."""
    assert demo_checkpoints
    assert all(is_free(port) for port in (8000, 8001, 8002)), "the README's server needs its ports"
    server: subprocess.Popen[str] | None = None
    try:
        for command in readme_commands():
            if command == "make serve &":
                server = start_server()
                continue
            done = run(command)
            wanted = next(word for start, word in EXPECTED.items() if command.startswith(start))
            assert done.returncode == 0 or only_speed_failed(done), f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
            assert wanted in done.stdout + done.stderr, f"{command}\n{done.stdout[-2000:]}"
    finally:
        if server is not None:
            os.killpg(server.pid, signal.SIGINT)
            server.communicate(timeout=60)
    deadline = time.monotonic() + 30
    while not is_free(8001) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert is_free(8001), "the server is gone after Ctrl-C"
