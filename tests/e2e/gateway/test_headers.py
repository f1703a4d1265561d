import ipaddress

import pytest

from tests.e2e.gateway.answers import check_error, check_headers
from tests.e2e.gateway.upstream import Upstream
from tests.e2e.gateway.wire import Headers, Reply, http1, http2

pytestmark = pytest.mark.asyncio(loop_scope="session")

URL = "/v1/responses/resp_1"


async def _get(port: int, *headers: tuple[str, str], path: str = URL) -> Reply:
    async with http2(port) as h2:
        return await h2.until_end(h2.send("GET", path, headers))


async def _metadata(port: int, *headers: tuple[str, str]) -> dict[str, str]:
    reply = await _get(port, *headers)
    assert reply.status == 200
    metadata = reply.json()["metadata"]
    assert isinstance(metadata, dict)
    return metadata


async def test_the_server_and_the_client_have_the_same_request_id(port: int) -> None:
    first, second = await _get(port), await _get(port)
    assert first.headers["x-request-id"] == first.json()["metadata"]["x-request-id"]
    assert first.headers["x-request-id"] != second.headers["x-request-id"]


async def test_a_client_does_not_choose_its_request_id(port: int) -> None:
    mine = "3f0c2a6e-7d0b-4a53-9d3e-0a6c1f8b2d11"
    reply = await _get(port, ("x-request-id", mine), ("x-client-request-id", mine))
    assert reply.headers["x-request-id"] != mine
    assert reply.json()["metadata"]["x-request-id"] == reply.headers["x-request-id"]
    assert reply.json()["metadata"]["x-client-request-id"] == mine


@pytest.mark.parametrize(
    "headers",
    [
        [("x-http-status", "201")],
        [("x-envoy-upstream-rq-timeout-ms", "1"), ("x-envoy-max-retries", "9")],
        [("x-envoy-original-path", "/evil"), ("x-envoy-original-method", "EVIL")],
        [("x-envoy-internal", "true"), ("x-forwarded-for", "10.0.0.1")],
        [("x-envoy-force-trace", "true"), ("x-envoy-decorator-operation", "evil")],
    ],
)
async def test_a_client_does_not_command_the_gateway(port: int, headers: Headers) -> None:
    reply = await _get(port, *headers)
    assert reply.status == 200
    check_headers(reply.headers)
    metadata = reply.json()["metadata"]
    assert metadata.pop("x-envoy-original-method") == "GET"
    assert not {k for k in metadata if k.startswith("x-envoy-") or k == "x-http-status"}


async def test_a_client_does_not_make_its_grpc_call_look_like_rest(
    port_without_upstream: int,
) -> None:
    headers = [("content-type", "application/grpc"), ("x-envoy-original-method", "GET")]
    async with http2(port_without_upstream) as h2:
        reply = await h2.until_end(h2.send("POST", "/antiphon.v1.ResponsesService/X", headers))
    assert reply.headers["grpc-message"] == "The server is temporarily unavailable."


async def test_a_client_does_not_set_the_gateways_timeouts(port: int, upstream: Upstream) -> None:
    stream = upstream.stream("patient")
    headers = [("x-test-stream", "patient"), ("x-envoy-upstream-rq-timeout-ms", "1")]
    async with http2(port) as h2:
        reply = h2.send("GET", URL, headers)
        await stream.opened.acquire()
        # Each takes about a millisecond.
        for _ in range(20):
            await h2.until_end(h2.send("GET", "/healthz"))
        stream.frames.put_nowait(None)
        await h2.until_end(reply)
    assert reply.status == 200


async def test_the_address_of_a_client_is_added_to_what_it_says(port: int) -> None:
    metadata = await _metadata(port, ("x-forwarded-for", "10.0.0.1"))
    said, added = metadata["x-forwarded-for"].split(",")
    assert said == "10.0.0.1"
    assert str(ipaddress.ip_address(added)) == added


async def test_an_invalid_request_leaves_the_others_of_its_connection_alone(
    port: int, upstream: Upstream
) -> None:
    stream = upstream.stream("innocent")
    async with http2(port) as h2:
        reply = h2.send("GET", URL, [("x-test-stream", "innocent")])
        await stream.opened.acquire()
        bad = await h2.until_end(h2.send("GET", URL, [("UPPER", "case")]))
        assert bad.reset is not None or bad.status == 400
        stream.frames.put_nowait(None)
        await h2.until_end(reply)
        assert reply.status == 200


async def test_a_rest_client_has_no_deadline(port: int) -> None:
    reply = await _get(port, ("grpc-timeout", "1S"))
    assert reply.status == 200
    assert reply.json()["has_deadline"] is False


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("grpc-timeout", "1n"),
        ("grpc-encoding", "unknown"),
        ("grpc-accept-encoding", "gzip"),
        ("grpc-previous-rpc-attempts", "x"),
        ("grpc-trace-bin", "!"),
        ("key-bin", "not base64!"),
    ],
)
async def test_headers_that_mean_something_to_grpc_do_not_reach_it(
    port: int, name: str, value: str
) -> None:
    assert name not in await _metadata(port, (name, value))


async def test_other_headers_reach_the_server(port: int) -> None:
    metadata = await _metadata(
        port,
        ("authorization", "Bearer key"),
        ("content-encoding", "zstd"),
        ("x_under_score", "1"),
        ("x-text", "café"),
    )
    assert metadata["authorization"] == "Bearer key"
    assert metadata["content-encoding"] == "zstd"
    assert metadata["x_under_score"] == "1"
    assert metadata["x-text"] == "café"


def _headers_of(size: int) -> Headers:
    """Return twenty headers whose names and values have this many bytes together."""
    share = size // 20
    return [(f"x-{i:02}", "v" * (share - len("x-00"))) for i in range(20)]


@pytest.mark.parametrize("kib", [8, 9, 12, 16, 32, 59])
async def test_the_server_accepts_headers_of_the_size_that_the_gateway_does(
    port: int, kib: int
) -> None:
    # Between its two limits gRPC refuses at random, hence the repetition.
    async with http2(port) as h2:
        for _ in range(20):
            reply = await h2.until_end(h2.send("GET", URL, _headers_of(kib * 1024)))
            assert reply.status == 200
            assert len(reply.json()["metadata"]["x-19"]) > kib * 40


async def test_the_server_accepts_as_many_headers_as_the_gateway_does(port: int) -> None:
    async with http2(port) as h2:
        for _ in range(20):
            headers = [(f"x-{i:02}", "v" * 630) for i in range(90)]
            reply = await h2.until_end(h2.send("GET", URL, headers))
            assert reply.status == 200


async def test_larger_headers_are_refused(port: int) -> None:
    async with http1(port) as h1:
        h1.send("GET", URL, _headers_of(61 * 1024))
        check_error(await h1.reply(), 431)


async def test_more_headers_are_refused(port: int) -> None:
    async with http1(port) as h1:
        h1.send("GET", URL, [(f"x-{i}", "v") for i in range(120)])
        check_error(await h1.reply(), 431)


async def test_a_long_url_reaches_the_server(port: int) -> None:
    text = "x" * 50_000
    reply = await _get(port, path=f"{URL}?stream={text}")
    assert reply.json()["request"]["stream"] == text


TWO_LENGTHS = (
    "POST /v1/responses HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n"
    "transfer-encoding: chunked\r\n\r\n0\r\n\r\n"
)


@pytest.mark.parametrize(
    ("request_text", "status"),
    [
        ("NONSENSE\r\n\r\n", 400),
        ("GET /healthz HTTP/1.1\r\n\r\n", 400),
        ("GET /healthz HTTP/1.0\r\nhost: x\r\n\r\n", 426),
        ("GET /healthz HTTP/9.9\r\nhost: x\r\n\r\n", 426),
        ("GET /healthz HTTP/1.1\r\nhost: x\r\nbad header\r\n\r\n", 400),
        ("GET /healthz HTTP/1.1\r\nhost: x\r\nx: a\0b\r\n\r\n", 400),
        ("GET /v1/responses/\0 HTTP/1.1\r\nhost: x\r\n\r\n", 400),
        (TWO_LENGTHS, 400),
        ("POST /v1/responses HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n", 400),
        ("GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n", 403),
    ],
)
async def test_what_is_no_request_is_refused(port: int, request_text: str, status: int) -> None:
    async with http1(port) as h1:
        h1.writer.write(request_text.encode("latin-1"))
        check_error(await h1.reply(), status)
