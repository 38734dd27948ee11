"""Start a Triton server on a packaged repository, know that it is ours and that it answers, and stop it without leavings."""

import contextlib
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from builder.api import Progress, ServerNeeds, StageError
from builder.serving import keeper, serverlog
from builder.serving.client import Client
from builder.serving.generation import GenerateRequest
from builder.serving.installation import Installation, find_installation
from builder.serving.layout import lay_out_backends, remove_byte_code, server_environment
from builder.serving.ports import LOOPBACK, Ports, check_ports
from builder.serving.transport import TritonTransport

POLL_S = 0.2
RESTRICTED = "model-repository,shared-memory,logging,trace"
Probe = Callable[["Client"], None]


@dataclass(frozen=True)
class ServerSettings:
    """How one server is started. `run_dir` gets the backend directory and the log; it is made when absent.

    `start_timeout_s` bounds loading every model; `exit_timeout_s` is what running requests get when the server stops.
    """

    repository: Path
    run_dir: Path
    ports: Ports
    needs: ServerNeeds
    tritonserver: Path | None
    start_timeout_s: float
    exit_timeout_s: int
    address: str = LOOPBACK
    extra_arguments: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunningServer:
    """A server that has answered. `version` is Triton's; `server_id` is in the server's metadata as its name."""

    pid: int
    server_id: str
    version: str
    settings: ServerSettings
    log: Path
    seconds_to_ready: float
    keeper: "subprocess.Popen[str]"

    @property
    def address(self) -> str:
        return self.settings.address

    @property
    def ports(self) -> Ports:
        return self.settings.ports

    @property
    def grpc_url(self) -> str:
        return f"{self.address}:{self.ports.grpc}"

    @property
    def alive(self) -> bool:
        return self.keeper.poll() is None

    def client(self) -> Client:
        """A new client; close it, or use it as a context manager."""
        return Client(TritonTransport(self.grpc_url))

    def check_alive(self) -> None:
        """Raises StageError SERVER-DIED when the server has ended."""
        if not self.alive:
            raise _failed("SERVER-DIED", f"the Triton server ended (exit code {self.keeper.returncode})", self.log)


def no_probe(_client: Client) -> None:
    """For repositories that hold no generating model: ready is what Triton calls ready."""


def one_token(client: Client) -> None:
    """The only proof of health: a real inference (Triton's ready endpoints stay at 200 when a model's process is dead)."""
    client.generate(GenerateRequest("Hello", max_tokens=1, deadline_s=60.0))


@contextmanager
def running_server(settings: ServerSettings, progress: Progress | None = None, probe: Probe = one_token) -> Iterator[RunningServer]:
    """A server for the length of a `with` block; it ends with the block, and when this process is killed.

    Raises RefusedError (ports), MissingError (server, shared libpython) and StageError SERVER-START, with the first model that
    failed and why, SERVER-START-TIMEOUT, SERVER-IDENTITY.
    """
    server = start(settings, progress, probe)
    try:
        yield server
    finally:
        stop(server)


def start(settings: ServerSettings, progress: Progress | None = None, probe: Probe = one_token) -> RunningServer:
    """Start a server and wait until it has answered `probe`; `running_server` says what is raised."""
    check_ports(settings.ports, settings.address)
    installation = find_installation(settings.tritonserver)
    settings.run_dir.mkdir(parents=True, exist_ok=True)
    backends = lay_out_backends(installation, settings.needs, settings.run_dir / "backends")
    server_id = f"tandem-{secrets.token_hex(6)}"
    log = settings.run_dir / "tritonserver.log"
    started = time.monotonic()
    process = _launch(settings, installation, server_command(settings, installation, backends, server_id), server_id, log)
    try:
        pid = int(process.stdout.readline() or 0) if process.stdout else 0
        version = _wait(settings, process, server_id, log, started, progress, probe)
    except BaseException:
        _end(process, settings)
        raise
    ready_s = time.monotonic() - started
    return RunningServer(pid, server_id, version, settings, log, ready_s, process)


def stop(server: RunningServer) -> None:
    """End the server: SIGTERM, a bounded wait, SIGKILL to its group, and its shared memory regions removed. Safe to repeat."""
    _end(server.keeper, server.settings)


def server_command(settings: ServerSettings, installation: Installation, backends: Path, server_id: str) -> list[str]:
    """The command line: one address for all, no model control, and the administrative interfaces closed with a key nobody knows."""
    key = f"{secrets.token_hex(8)}={secrets.token_hex(16)}"
    address, ports = settings.address, settings.ports
    return [
        str(installation.executable),
        f"--model-repository={settings.repository}",
        f"--backend-directory={backends}",
        f"--id={server_id}",
        f"--http-address={address}",
        f"--grpc-address={address}",
        f"--metrics-address={address}",
        f"--http-port={ports.http}",
        f"--grpc-port={ports.grpc}",
        f"--metrics-port={ports.metrics}",
        "--model-control-mode=none",
        f"--exit-timeout-secs={settings.exit_timeout_s}",
        f"--http-restricted-api={RESTRICTED}:{key}",
        f"--grpc-restricted-protocol={RESTRICTED}:{key}",
        *(f"--backend-config={name},shm-region-prefix-name={shm_prefix(server_id)}" for name in ("python", *settings.needs.backends)),
        *settings.extra_arguments,
    ]


def shm_prefix(server_id: str) -> str:
    """Start of the names of this server's shared memory regions."""
    return f"triton_{server_id}_"


def _launch(settings: ServerSettings, installation: Installation, command: list[str], server_id: str, log: Path) -> "subprocess.Popen[str]":
    grace_s = str(settings.exit_timeout_s + 2)
    return subprocess.Popen(
        [sys.executable, "-I", "-S", str(Path(keeper.__file__)), str(log), shm_prefix(server_id), grace_s, "--", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=server_environment(installation, settings.needs),
        start_new_session=True,
        text=True,
    )


def _wait(
    settings: ServerSettings,
    process: "subprocess.Popen[str]",
    server_id: str,
    log: Path,
    started: float,
    progress: Progress | None,
    probe: Probe,
) -> str:
    """Triton's version, once the server is ready, is the one that was started, and has answered the probe."""
    with TritonTransport(f"{settings.address}:{settings.ports.grpc}") as transport:
        while not transport.ready():
            waited_s = time.monotonic() - started
            if process.poll() is not None:
                raise _failed("SERVER-START", f"the Triton server did not start (exit code {process.returncode})", log)
            if waited_s > settings.start_timeout_s:
                raise _failed("SERVER-START-TIMEOUT", f"the Triton server was not ready after {settings.start_timeout_s:g} s", log)
            if progress is not None:
                progress(f"waiting for the server ({waited_s:.0f} s)", None)
            time.sleep(POLL_S)
        name, version = transport.identity()
        if name != server_id or process.poll() is not None:
            raise _failed("SERVER-IDENTITY", f"another server ({name}) answers on port {settings.ports.grpc}", log)
        if progress is not None:
            progress("asking the server for one token", None)
        probe(Client(transport))
    return version


def _failed(code: str, message: str, log: Path) -> StageError:
    text = serverlog.read_log(log)
    summary = serverlog.summarise_log(text)
    lines = summary.error_lines or serverlog.last_lines(text)
    sentence = f"{message}: {summary.sentence}" if summary.sentence else message
    return StageError(code, sentence, log=str(log), last_lines=lines, found=summary.reason, fix=f"read {log}")


def _end(process: "subprocess.Popen[str]", settings: ServerSettings) -> None:
    """Closing the keeper's standard input tells it to stop the server; a keeper that does not end is killed, and the kernel its server."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None and not pipe.closed:
            with contextlib.suppress(OSError):
                pipe.close()
    try:
        process.wait(settings.exit_timeout_s + 10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    remove_byte_code(settings.repository)
