import asyncio
import socket

import pytest

from tests.e2e.gateway.answers import check_headers
from tests.e2e.gateway.upstream import FRAME, Stream, Upstream
from tests.e2e.gateway.wire import http1, http2

pytestmark = pytest.mark.asyncio(loop_scope="session")

URL = "/v1/responses/resp_1"

FRAMES = [b"event: a\ndata: 1\n\n", b"event: b\ndata: 2\n\n", b"data: [DONE]\n\n"]


@pytest.mark.parametrize(("verb", "path"), [("GET", URL), ("POST", "/v1/responses")])
async def test_frames_arrive_one_by_one_over_http1(
    port: int, upstream: Upstream, verb: str, path: str
) -> None:
    stream = upstream.stream(f"http1 {verb}")
    async with http1(port) as h1:
        h1.send(verb, path, [("x-test-stream", f"http1 {verb}"), ("content-length", "0")])
        stream.frames.put_nowait(FRAMES[0])
        reply = await h1.head()
        assert reply.status == 200
        assert reply.headers["content-type"] == "text/event-stream"
        assert "content-length" not in reply.headers
        check_headers(reply.headers)
        assert await h1.chunk() == FRAMES[0]
        for frame in FRAMES[1:]:
            # Only now does the next one exist.
            stream.frames.put_nowait(frame)
            assert await h1.chunk() == frame
        stream.frames.put_nowait(None)
        assert await h1.chunk() == b""
    assert not stream.cancelled.is_set()


async def test_frames_arrive_one_by_one_over_http2(port: int, upstream: Upstream) -> None:
    stream = upstream.stream("http2")
    async with http2(port) as h2:
        reply = h2.send("POST", "/v1/responses", [("x-test-stream", "http2")])
        sent = b""
        for frame in FRAMES:
            stream.frames.put_nowait(frame)
            sent += frame
            assert await h2.until_body(reply, len(sent)) == sent
        assert reply.headers["content-type"] == "text/event-stream"
        check_headers(reply.headers)
        stream.frames.put_nowait(None)
        await h2.until_end(reply)
        assert reply.body == sent
        assert not reply.trailers


async def test_the_server_learns_that_an_http1_client_has_gone(
    port: int, upstream: Upstream
) -> None:
    stream = upstream.stream("gone1")
    async with http1(port) as h1:
        h1.send("GET", URL, [("x-test-stream", "gone1")])
        await stream.opened.acquire()
    await stream.cancelled.wait()


async def test_the_server_learns_that_an_http2_stream_was_reset(
    port: int, upstream: Upstream
) -> None:
    stream, other = upstream.stream("reset"), upstream.stream("other")
    async with http2(port) as h2:
        reply = h2.send("GET", URL, [("x-test-stream", "reset")])
        kept = h2.send("GET", URL, [("x-test-stream", "other")])
        stream.frames.put_nowait(FRAMES[0])
        other.frames.put_nowait(FRAMES[0])
        await h2.until_headers(reply, kept)
        h2.cancel(reply)
        await stream.cancelled.wait()
        assert not other.cancelled.is_set()
        other.frames.put_nowait(None)
        await h2.until_end(kept)
        assert kept.reset is None


async def test_more_streams_than_envoys_default_limits_allow(port: int, upstream: Upstream) -> None:
    # Envoy's circuit breakers open at the 1,025th request, if nobody tells them otherwise.
    count = 1_100
    stream = upstream.stream("many")

    async def until_all_are_open() -> None:
        for _ in range(count):
            await stream.opened.acquire()

    async with http2(port) as h2:
        replies = [h2.send("GET", URL, [("x-test-stream", "many")]) for _ in range(count)]
        opened = asyncio.create_task(until_all_are_open())
        refused = asyncio.create_task(h2.until_any_headers(*replies))
        await asyncio.wait({opened, refused}, return_when=asyncio.FIRST_COMPLETED)
        assert [reply.headers for reply in replies if reply.headers] == []
        for _ in replies:
            stream.frames.put_nowait(None)
        for reply in replies:
            await h2.until_end(reply)
        assert {reply.status for reply in replies} == {200}
        await asyncio.gather(opened, refused)


async def _written(port: int, stream: Stream) -> int:
    """Wait until the server can write no more to slow readers, and return how much it has."""
    before, same = -1, 0
    async with http2(port) as h2:
        while same < 100:
            # A turn for everybody: this goes through the same gateway and the same server.
            reply = await h2.until_end(h2.send("GET", "/healthz"))
            assert reply.status == 200
            same = same + 1 if stream.written == before else 0
            before = stream.written
    return before


async def test_a_slow_reader_makes_little_pile_up(small_port: int, upstream: Upstream) -> None:
    stream = upstream.stream("slow")
    async with http2(small_port, greedy=False) as h2:
        reply = h2.send("GET", URL, [("x-test-flood", "slow")])
        await h2.until_body(reply, 60_000)
        assert await _written(small_port, stream) < 1024 * 1024
    await stream.cancelled.wait()


async def test_a_slow_reader_over_http1_makes_little_pile_up(
    small_port: int, upstream: Upstream
) -> None:
    # Most of it is what the kernel holds for a socket.
    stream = upstream.stream("slow1")
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        client.connect(("127.0.0.1", small_port))
        client.sendall(f"GET {URL} HTTP/1.1\r\nhost: x\r\nx-test-flood: slow1\r\n\r\n".encode())
        await stream.opened.acquire()
        assert await _written(small_port, stream) < 8 * 1024 * 1024
    await stream.cancelled.wait()


async def test_slow_readers_do_not_stop_the_others(small_port: int, upstream: Upstream) -> None:
    # All of them have one connection to the server, and fill its window.
    stream = upstream.stream("crowd")
    async with http2(small_port, greedy=False) as h2:
        for _ in range(50):
            h2.send("GET", URL, [("x-test-flood", "crowd")])
        for _ in range(50):
            await stream.opened.acquire()
        assert await _written(small_port, stream) > 50 * len(FRAME)
        async with http2(small_port) as other:
            reply = await other.until_end(other.send("DELETE", URL, [("x-test-size", str(2**20))]))
            assert reply.status == 200
            assert len(reply.body) == 2**20
