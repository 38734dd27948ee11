"""Keeps one Triton server: starts it, stops it when its own standard input closes, and cleans up behind it.

Run as a script by this Python, with nothing but the standard library. The parent holds the write end of standard input; when the
parent ends, however it ends (kill -9 included), the kernel closes that end, and server, stubs and shared memory go. Should the keeper
itself be killed, the kernel kills the server (PR_SET_PDEATHSIG).

usage: keeper.py LOG SHM_PREFIX GRACE_S -- command...      prints the server's pid; exits as the server did (128 + signal when killed)
"""

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  Triton's Python backend makes its regions there
PR_SET_PDEATHSIG = 1
POLL_S = 0.1


def die_with_parent() -> None:
    """In the child, before it becomes the server."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def signal_group(pid: int, number: int) -> None:
    """Send a signal to every process of the server's group; those that are gone are no error."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def stop(server: "subprocess.Popen[bytes]", grace_s: float) -> None:
    """SIGTERM, a bounded wait, then SIGKILL to the whole group (a dead stub makes Triton wait out its whole time limit)."""
    if server.poll() is None:
        server.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(grace_s)
    signal_group(server.pid, signal.SIGKILL)
    server.wait()


def remove_regions(prefix: str, folder: Path = SHARED_MEMORY) -> int:
    """Delete the shared memory regions whose names start with `prefix`; how many there were."""
    regions = list(folder.glob(prefix + "*")) if prefix else []
    for region in regions:
        region.unlink(missing_ok=True)
    return len(regions)


def parent_gone(wait_s: float) -> bool:
    """Whether standard input has closed, after waiting at most `wait_s`."""
    readable, _, _ = select.select([0], [], [], wait_s)
    return bool(readable) and not os.read(0, 1)


def keep(log: Path, prefix: str, grace_s: float, command: list[str]) -> int:
    """Run the server until it ends or the parent does; its exit code."""
    stopping: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopping.append(number))
    with log.open("wb") as out:
        server = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=die_with_parent
        )
    os.write(1, f"{server.pid}\n".encode())
    while server.poll() is None and not stopping and not parent_gone(POLL_S):
        pass
    stop(server, grace_s)
    remove_regions(prefix)
    return server.returncode if server.returncode >= 0 else 128 - server.returncode


def main(arguments: list[str]) -> int:
    """Entry point of the script."""
    log, prefix, grace_s, _, *command = arguments
    try:
        return keep(Path(log), prefix, float(grace_s), command)
    except OSError as error:
        with Path(log).open("a") as out:
            out.write(f"error: cannot start {command[0]}: {error}\n")
        return 127


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
