"""Ports are checked before a server starts, and the refusal names the port and its field."""

import socket

import pytest

from builder.errors import RefusedError
from builder.serving.ports import LOOPBACK, Ports, check_ports, free_ports, is_free


def test_free_ports_are_three_and_free() -> None:
    ports = free_ports()
    assert len({ports.http, ports.grpc, ports.metrics}) == 3
    check_ports(ports)


def test_a_taken_port_is_refused_with_its_field() -> None:
    ports = free_ports()
    with socket.socket() as other:
        other.bind((LOOPBACK, ports.grpc))
        other.listen()
        assert not is_free(ports.grpc)
        with pytest.raises(RefusedError, match="taken") as caught:
            check_ports(ports)
    finding = caught.value.finding
    assert (finding.code, finding.field, finding.found) == ("PORT-IN-USE", "serve.grpc_port", str(ports.grpc))


def test_the_same_port_twice_is_refused() -> None:
    free = free_ports()
    with pytest.raises(RefusedError, match=r"serve.metrics_port and serve.http_port are both") as caught:
        check_ports(Ports(free.http, free.grpc, free.http))
    assert caught.value.finding.code == "PORT-TWICE"
