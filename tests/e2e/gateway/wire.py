"""Clients closer to the wire than a library lets a test come."""

import asyncio
import base64
import contextlib
import hashlib
import json
import os
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    DataReceived,
    Event,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)
from h2.settings import SettingCodes
from hpack.struct import Header

__all__ = ["Headers", "Http1", "Http2", "Reply", "accept_key", "http1", "http2"]

Headers: TypeAlias = Sequence[tuple[str, str]]

_WEBSOCKET_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


@dataclass
class Reply:
    """What has come back so far."""

    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    trailers: dict[str, str] | None = None
    ended: bool = False
    reset: int | None = None
    stream: int = 0

    @property
    def status(self) -> int:
        return int(self.headers[":status"])

    def json(self) -> Any:
        return json.loads(self.body)


class Http1:
    """One HTTP/1.1 connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, method: str, path: str, headers: Headers = ()) -> None:
        lines = [f"{method} {path} HTTP/1.1", "host: test", *(f"{k}: {v}" for k, v in headers)]
        self.writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))

    async def head(self) -> Reply:
        """Read a status line and headers."""
        text = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        status, *lines = text.rstrip("\r\n").split("\r\n")
        headers = {":status": status.split(" ")[1]}
        for line in lines:
            name, value = line.split(": ", 1)
            headers[name] = value
        return Reply(headers)

    async def chunk(self) -> bytes:
        """Read one chunk of a chunked body; the last one is empty."""
        size = int(await self.reader.readuntil(b"\r\n"), 16)
        return (await self.reader.readexactly(size + 2))[:-2]

    async def reply(self) -> Reply:
        """Read an answer that says how long it is."""
        reply = await self.head()
        reply.body = await self.reader.readexactly(int(reply.headers["content-length"]))
        return reply

    async def websocket(self, path: str, headers: Headers = ()) -> Reply:
        """Ask for an upgrade, and check the answer's key if there is one."""
        key = base64.b64encode(os.urandom(16))
        self.send(
            "GET",
            path,
            [
                ("connection", "keep-alive, Upgrade"),
                ("upgrade", "WebSocket"),
                ("sec-websocket-version", "13"),
                ("sec-websocket-key", key.decode()),
                *headers,
            ],
        )
        reply = await self.head()
        if reply.status == 101:
            assert reply.headers["sec-websocket-accept"] == accept_key(key)
        return reply


def accept_key(key: bytes) -> str:
    """Return the answer to a WebSocket key (RFC 6455, 4.2.2)."""
    digest = hashlib.sha1(key + _WEBSOCKET_GUID, usedforsecurity=False).digest()
    return base64.b64encode(digest).decode()


class Http2:
    """One HTTP/2 connection with prior knowledge.

    One that is not greedy takes 64 KiB, of all streams together, and never asks for more.
    """

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, greedy: bool
    ) -> None:
        self._greedy = greedy
        self._reader = reader
        self._writer = writer
        # Invalid requests are sent as they are, and what comes back is for the test to judge.
        self._h2 = H2Connection(
            H2Configuration(
                header_encoding="utf-8",
                validate_outbound_headers=False,
                normalize_outbound_headers=False,
            )
        )
        self._h2.initiate_connection()
        if greedy:
            self._h2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 2**24})
            self._h2.increment_flow_control_window(2**30)
        self._replies: defaultdict[int, Reply] = defaultdict(Reply)
        self._changed = asyncio.Condition()
        self._task = asyncio.create_task(self._read())
        self._flush()

    def send(
        self, method: str, path: str, headers: Headers = (), body: bytes = b"", *, end: bool = True
    ) -> Reply:
        """Send a request, and return the reply, which fills as it comes."""
        stream = self._h2.get_next_available_stream_id()
        pseudo = [
            (":method", method),
            (":scheme", "http"),
            (":path", path),
            (":authority", "test"),
        ]
        extended = [pair for pair in headers if pair[0].startswith(":")]
        plain = [pair for pair in headers if not pair[0].startswith(":")]
        self._h2.send_headers(stream, pseudo + extended + plain, end_stream=end and not body)
        if body:
            self._h2.send_data(stream, body, end_stream=end)
        self._flush()
        reply = self._replies[stream]
        reply.stream = stream
        return reply

    def write(self, reply: Reply, data: bytes) -> None:
        self._h2.send_data(reply.stream, data)
        self._flush()

    async def upload(self, reply: Reply, data: bytes) -> None:
        """Send a body as the windows allow, until the gateway wants no more of it."""
        view = memoryview(data)
        while view:
            await self._until(lambda: reply.ended or self._window(reply) > 0)
            if reply.ended:
                return
            size = min(self._window(reply), self._h2.max_outbound_frame_size)
            piece, view = view[:size], view[size:]
            self._h2.send_data(reply.stream, bytes(piece), end_stream=not view)
            self._flush()

    def _window(self, reply: Reply) -> int:
        return self._h2.local_flow_control_window(reply.stream)

    def cancel(self, reply: Reply) -> None:
        """Reset the stream, as a client does that loses interest."""
        self._h2.reset_stream(reply.stream, error_code=8)
        self._flush()

    async def until_headers(self, *replies: Reply) -> None:
        await self._until(lambda: all(r.headers or r.reset is not None for r in replies))

    async def until_any_headers(self, *replies: Reply) -> None:
        await self._until(lambda: any(r.headers or r.reset is not None for r in replies))

    async def until_body(self, reply: Reply, size: int) -> bytes:
        await self._until(lambda: len(reply.body) >= size or reply.ended)
        return reply.body

    async def until_end(self, reply: Reply) -> Reply:
        await self._until(lambda: reply.ended)
        return reply

    async def close(self) -> None:
        self._task.cancel()
        self._writer.close()
        await asyncio.gather(self._task, self._writer.wait_closed(), return_exceptions=True)

    def _flush(self) -> None:
        self._writer.write(self._h2.data_to_send())

    async def _until(self, condition: Callable[[], bool]) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self._task.done() or condition())
        assert condition(), "the connection has ended"

    async def _read(self) -> None:
        try:
            while data := await self._reader.read(65536):
                for event in self._h2.receive_data(data):
                    self._apply(event)
                self._flush()
                async with self._changed:
                    self._changed.notify_all()
        finally:
            for reply in self._replies.values():
                reply.ended = True
            async with self._changed:
                self._changed.notify_all()

    def _apply(self, event: Event) -> None:
        match event:
            case ResponseReceived():
                self._replies[event.stream_id].headers = _decoded(event.headers)
            case DataReceived():
                self._replies[event.stream_id].body += event.data
                if self._greedy:
                    self._h2.acknowledge_received_data(
                        event.flow_controlled_length, event.stream_id
                    )
            case TrailersReceived():
                self._replies[event.stream_id].trailers = _decoded(event.headers)
            case StreamEnded():
                self._replies[event.stream_id].ended = True
            case StreamReset():
                reply = self._replies[event.stream_id]
                reply.ended, reply.reset = True, int(event.error_code)
            case _:
                pass


def _decoded(headers: Iterable[Header] | None) -> dict[str, str]:
    return {_text(name): _text(value) for name, value in headers or ()}


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode()


@asynccontextmanager
async def http1(port: int) -> AsyncIterator[Http1]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield Http1(reader, writer)
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


@asynccontextmanager
async def http2(port: int, *, greedy: bool = True) -> AsyncIterator[Http2]:
    client = Http2(*await asyncio.open_connection("127.0.0.1", port), greedy=greedy)
    try:
        yield client
    finally:
        await client.close()
