"""A WebSocket server that sends back the bytes it gets, frames or not."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.e2e.gateway.wire import accept_key

__all__ = ["REFUSAL", "echo"]

REFUSAL = b'{"error":{"message":"No key.","type":"invalid_request_error","param":null,"code":null}}'


@asynccontextmanager
async def echo() -> AsyncIterator[int]:
    """Run the server, and give its port.

    A handshake with `x-test-refuse` is answered with 401 and `REFUSAL`. One without is accepted,
    and the answer's `x-test-request` repeats its request line.
    """
    server = await asyncio.start_server(_serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        line, *rest = head.rstrip(b"\r\n").split(b"\r\n")
        headers = {}
        for pair in rest:
            name, value = pair.split(b": ", 1)
            headers[name.lower()] = value
        if b"x-test-refuse" in headers:
            writer.write(
                b"HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\n"
                b"server: secret/1.2.3\r\ncontent-length: %d\r\n\r\n" % len(REFUSAL) + REFUSAL
            )
        else:
            accept = accept_key(headers[b"sec-websocket-key"]).encode()
            writer.write(
                b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n"
                b"connection: Upgrade\r\nsec-websocket-accept: %b\r\nx-test-request: %b\r\n\r\n"
                % (accept, line)
            )
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except (ConnectionError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()
