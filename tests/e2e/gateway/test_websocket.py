from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from antiphon.gateway import Gateway, GatewayConfig
from tests.e2e.gateway.answers import check_error
from tests.e2e.gateway.upstream import Upstream
from tests.e2e.gateway.websocket import REFUSAL, echo
from tests.e2e.gateway.wire import http1, http2

pytestmark = pytest.mark.asyncio(loop_scope="session")

PATHS = ["/v1/responses", "/responses", "/api/v1/responses"]

# What a transcoder would take for its own, what no frame looks like, and what is large.
PAYLOADS = [
    b'{"response_id": "resp_1"}',
    b"\x00\x00\x00\x00\x02{}",
    b"\x81\x85\x01\x02\x03\x04hello",
    bytes(range(256)) * 1024,
]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def websocket_port(upstream: Upstream) -> AsyncIterator[int]:
    async with echo() as port:
        config = GatewayConfig(upstream_port=upstream.port, websocket_port=port, port=0)
        async with Gateway(config, concurrency=1) as gateway:
            yield gateway.port


@pytest.mark.parametrize("path", PATHS)
async def test_data_passes_both_ways_as_it_is(websocket_port: int, path: str) -> None:
    async with http1(websocket_port) as h1:
        reply = await h1.websocket(f"{path}?a[]=1")
        assert reply.status == 101
        assert reply.headers["x-test-request"] == f"GET {path}?a[]=1 HTTP/1.1"
        assert len(reply.headers["x-request-id"]) == 36
        for payload in PAYLOADS:
            h1.writer.write(payload)
            assert await h1.reader.readexactly(len(payload)) == payload


async def test_data_passes_over_http2_too(websocket_port: int) -> None:
    async with http2(websocket_port) as h2:
        headers = [(":protocol", "websocket"), ("sec-websocket-version", "13")]
        key = [("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")]
        reply = h2.send("CONNECT", "/v1/responses", headers + key, end=False)
        await h2.until_headers(reply)
        assert reply.status == 200
        total = b""
        for payload in PAYLOADS[:3]:
            h2.write(reply, payload)
            total += payload
            assert await h2.until_body(reply, len(total)) == total


async def test_a_refused_handshake_is_the_servers_own(websocket_port: int) -> None:
    async with http1(websocket_port) as h1:
        reply = await h1.websocket("/v1/responses", [("x-test-refuse", "yes")])
        assert reply.status == 401
        assert reply.headers["content-type"] == "application/json"
        assert reply.headers["server"] == "antiphon"
        assert await h1.reader.readexactly(len(REFUSAL)) == REFUSAL


async def test_rest_and_websocket_share_a_path(websocket_port: int) -> None:
    async with http1(websocket_port) as h1:
        # No upgrade without both headers, nor by another method.
        for headers in ([("upgrade", "websocket")], [("connection", "upgrade")]):
            h1.send("POST", "/v1/responses", [*headers, ("content-length", "2")])
            h1.writer.write(b"{}")
            reply = await h1.head()
            assert reply.status == 200
            assert b'"CreateResponse"' in await h1.chunk()
            assert await h1.chunk() == b""
        assert (await h1.websocket("/v1/responses")).status == 101


@pytest.mark.parametrize("path", ["/v1/responses/resp_1", "/v1/models", "/healthz", "/nothing"])
async def test_other_paths_cannot_be_upgraded(websocket_port: int, path: str) -> None:
    async with http1(websocket_port) as h1:
        headers = [("connection", "upgrade"), ("upgrade", "websocket")]
        h1.send("GET", path, headers)
        check_error(await h1.reply(), 403)


async def test_a_grpc_content_type_is_no_way_around(websocket_port: int) -> None:
    async with http1(websocket_port) as h1:
        headers = [("connection", "upgrade"), ("upgrade", "websocket")]
        h1.send("GET", "/healthz", [*headers, ("content-type", "application/grpc")])
        reply = await h1.head()
        assert reply.status != 101
        assert reply.headers["grpc-message"] == "The request was refused."


@pytest.mark.parametrize("path", PATHS)
async def test_without_a_websocket_server_it_is_501(port: int, path: str) -> None:
    async with http1(port) as h1:
        headers = [("connection", "upgrade"), ("upgrade", "websocket")]
        h1.send("GET", path, headers)
        reply = await h1.reply()
        check_error(reply, 501, "server_error")
        assert reply.headers["x-should-retry"] == "false"


async def test_a_websocket_server_that_is_down_is_503(port_without_upstream: int) -> None:
    async with http1(port_without_upstream) as h1:
        headers = [("connection", "upgrade"), ("upgrade", "websocket")]
        h1.send("GET", "/v1/responses", headers)
        check_error(await h1.reply(), 503, "server_error")
