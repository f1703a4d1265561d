import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio

from antiphon.gateway import Gateway, GatewayConfig
from tests.e2e.gateway.upstream import Upstream


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def upstream() -> AsyncIterator[Upstream]:
    upstream = Upstream()
    await upstream.start()
    yield upstream
    await upstream.stop()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def gateway(upstream: Upstream) -> AsyncIterator[Gateway]:
    log: list[str] = []
    config = GatewayConfig(upstream_port=upstream.port, port=0)
    async with Gateway(config, log=log.append) as gateway:
        yield gateway
    # An error of the script would be here; nothing else is wrong with this gateway.
    assert log == [], log[0]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def port(gateway: Gateway) -> int:
    return gateway.port


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def small_port(upstream: Upstream) -> AsyncIterator[int]:
    """A gateway of one thread, so of one connection to the server, for bodies of 1,000 bytes."""
    config = GatewayConfig(upstream_port=upstream.port, port=0, body_limit=1000)
    async with Gateway(config, concurrency=1) as gateway:
        yield gateway.port


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def port_without_upstream() -> AsyncIterator[int]:
    # Bound and not listening: connections are refused, and nobody else gets the port.
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0, start_serving=False)
    closed = server.sockets[0].getsockname()[1]
    config = GatewayConfig(upstream_port=closed, websocket_port=closed, port=0)
    async with server, Gateway(config) as gateway:
        yield gateway.port


@pytest_asyncio.fixture(
    scope="session", loop_scope="session", params=[False, True], ids=["http1", "http2"]
)
async def client(port: int, request: pytest.FixtureRequest) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{port}",
        http1=not request.param,
        http2=request.param,
        trust_env=False,
        timeout=30,
    ) as client:
        yield client
