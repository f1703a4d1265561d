"""Python clients that others wrote, as they are, through the gateway."""

import os
import socket
from collections.abc import AsyncIterator, Iterator
from typing import Any

import openai
import pytest
import pytest_asyncio

from tests.clients.python.sdk import Sdk, connect, connect_async
from tests.e2e.server import Server

# What would steer a client from outside the test.
_STEERING = ("OPENAI_", "LANGCHAIN_", "LANGSMITH_", "LOGFIRE_", "OTEL_", "PYDANTIC_AI_")
# Their own switches for what they would tell their makers, or the terminal.
_OFF = {
    "LANGSMITH_TRACING": "false",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "PYDANTIC_AI_NO_BANNER": "1",
}
_HERE = ("127.0.0.1", b"127.0.0.1", "::1", "localhost", None)


@pytest.fixture(scope="package", autouse=True)
def outside() -> Iterator[list[object]]:
    """Keeps clients on this machine and their environment plain; lists what they tried to reach."""
    tried: list[object] = []
    connect_socket, look_up = socket.socket.connect, socket.getaddrinfo

    def check(host: object) -> None:
        if host not in _HERE:
            tried.append(host)
            raise OSError("a test stays on its machine")

    def guarded_connect(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_UNIX:
            check(address[0])
        connect_socket(self, address)

    def guarded_look_up(host: Any, *args: Any, **options: Any) -> Any:
        check(host)
        return look_up(host, *args, **options)

    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(_STEERING) or name.lower().endswith("_proxy"):
                patch.delenv(name)
        for name, value in _OFF.items():
            patch.setenv(name, value)
        patch.setattr(socket.socket, "connect", guarded_connect)
        patch.setattr(socket, "getaddrinfo", guarded_look_up)
        yield tried
    assert not tried


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """The server as it is without a configuration."""
    with Server("--port", "0", "--grpc-port", "0") as server:
        yield server
        assert server.stop() == 0
        # Whatever clients did, nothing failed inside.
        assert not server.log, server.log


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def async_openai(server: Server) -> AsyncIterator[openai.AsyncOpenAI]:
    async with connect_async(server) as client:
        yield client


@pytest.fixture(scope="session")
def sync_openai(server: Server) -> Iterator[openai.OpenAI]:
    with connect(server) as client:
        yield client


@pytest.fixture(params=["sync", "async"])
def sdk(
    request: pytest.FixtureRequest, sync_openai: openai.OpenAI, async_openai: openai.AsyncOpenAI
) -> Sdk:
    """Either client of the official SDK."""
    return Sdk(sync_openai if request.param == "sync" else async_openai)
