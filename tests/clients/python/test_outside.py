"""The guard that keeps the clients on this machine."""

import socket

import httpx
import pytest

from tests.e2e.server import Server


@pytest.mark.parametrize("host", ["192.0.2.1", "example.com"])
def test_nothing_outside_is_reached(outside: list[object], host: str) -> None:
    with pytest.raises(OSError, match="stays on its machine"):
        socket.create_connection((host, 443))
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"http://{host}", trust_env=False)
    assert set(outside) == {host}
    outside.clear()


def test_the_server_is_reached(server: Server) -> None:
    assert httpx.get(f"{server.url}/healthz").status_code == 200
