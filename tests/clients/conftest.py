"""Clients that others wrote, as they are, through the gateway."""

import os
import socket
from collections.abc import AsyncIterator, Iterator
from typing import Any

import openai
import pytest
import pytest_asyncio

from tests.clients.sdk import Sdk, connect, connect_async
from tests.e2e.server import Server

# What would steer a client from outside the test.
_STEERING = ("OPENAI_", "LANGCHAIN_", "LANGSMITH_", "LOGFIRE_", "OTEL_", "PYDANTIC_AI_")
_OFF = {"OPENAI_AGENTS_DISABLE_TRACING": "1", "LANGSMITH_TRACING": "false"}


@pytest.fixture(scope="session", autouse=True)
def _alone() -> Iterator[None]:
    """Keeps the clients on this machine, and their environment the test's own."""
    reached: list[object] = []
    connect_socket, look_up = socket.socket.connect, socket.getaddrinfo

    def guarded_connect(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "::1"):
            reached.append(address)
            raise OSError("a test stays on its machine")
        connect_socket(self, address)

    def guarded_look_up(host: Any, *args: Any, **options: Any) -> Any:
        if host not in ("127.0.0.1", b"127.0.0.1", "::1", "localhost", None):
            reached.append(host)
            raise OSError("a test stays on its machine")
        return look_up(host, *args, **options)

    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(_STEERING) or name.lower().endswith("_proxy"):
                patch.delenv(name)
        for name, value in _OFF.items():
            patch.setenv(name, value)
        patch.setattr(socket.socket, "connect", guarded_connect)
        patch.setattr(socket, "getaddrinfo", guarded_look_up)
        yield
    assert not reached, f"something outside was asked for: {reached}"


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
