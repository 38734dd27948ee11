"""The three ports of a server: checked before the start, because Triton itself finds a taken port only after loading every model."""

import socket
from contextlib import ExitStack
from dataclasses import dataclass

from builder.errors import RefusedError

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Ports:
    """HTTP, gRPC and metrics port of one server."""

    http: int
    grpc: int
    metrics: int


FIELDS = {"http": "serve.http_port", "grpc": "serve.grpc_port", "metrics": "serve.metrics_port"}


def is_free(port: int, address: str = LOOPBACK) -> bool:
    """Whether a server could listen on `address:port` now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True


def free_ports(address: str = LOOPBACK) -> Ports:
    """Three ports that are free now; for servers that nobody else has to find, such as those of a validation."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(3)]
        for one in sockets:
            one.bind((address, 0))
        http, grpc, metrics = (one.getsockname()[1] for one in sockets)
    return Ports(http, grpc, metrics)


def check_ports(ports: Ports, address: str = LOOPBACK) -> None:
    """Raises RefusedError PORT-IN-USE or PORT-TWICE, naming the port and its field."""
    seen: dict[int, str] = {}
    for name, field in FIELDS.items():
        port = getattr(ports, name)
        if port in seen:
            raise RefusedError(
                "PORT-TWICE", f"{field} and {seen[port]} are both {port}", field=field, found=str(port), needed="three different ports"
            )
        seen[port] = field
        if not is_free(port, address):
            raise RefusedError(
                "PORT-IN-USE",
                f"port {port} ({field}) is taken on {address}: another server would answer in place of this one",
                field=field,
                found=str(port),
                needed="a free port",
                fix=f"stop what listens there (ss -ltnp 'sport = :{port}'), or set {field} to another port",
            )
