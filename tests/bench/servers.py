"""The servers that are measured, each with a gateway in front."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Final
from unittest import mock

import grpc
from google.api.httpbody_pb2 import HttpBody
from google.protobuf.message import Message

from antiphon import app
from antiphon.backends.documents.maker import DocumentMaker
from antiphon.backends.echo import EchoBackend
from antiphon.backends.models import ModelTable
from antiphon.backends.protocol import Backend, Call
from antiphon.core.output import Accepted, Step, TextDelta
from antiphon.engine.engine import Engine
from antiphon.gateway import Gateway, GatewayConfig, server_options
from antiphon.settings import Settings
from antiphon.stores.protocol import Store
from antiphon.v1.rest_service_pb2 import RestCreateResponseRequest
from tests.bench.child import Started

__all__ = ["DELTAS", "TICK_SECONDS", "antiphon", "empty", "empty_generator"]

DELTAS: Final = 200
"""The deltas of an answer of the model `echo-deltas`."""
TICK_SECONDS: Final = 0.5
"""The time between two events of the model `ticks`."""

_MOST_TICKS: Final = 240


class TickBackend:
    """Adds, every half second, the moment at which that was due, in nanoseconds.

    The moment is the due one and not the actual one, so that a server which is too busy to be in
    time is not taken for one that is.
    """

    async def respond(self, call: Call) -> AsyncIterator[Sequence[Step]]:
        yield [Accepted()]
        begun = time.monotonic()
        for number in range(1, _MOST_TICKS):
            due = begun + number * TICK_SECONDS
            await asyncio.sleep(due - time.monotonic())
            yield [TextDelta(str(int(due * 1e9)))]


def _engine(settings: Settings, store: Store, documents: DocumentMaker) -> Engine:
    models: dict[str, Backend] = {
        "echo": EchoBackend(),
        "echo-deltas": EchoBackend(DELTAS),
        "ticks": TickBackend(),
    }
    return Engine(store, ModelTable(models))


async def antiphon(started: Started) -> None:
    """The server as it is, but for the models."""
    with mock.patch.object(app, "build_engine", _engine):
        server = app.App(Settings(port=0, grpc_port=0))
    try:
        addresses = await server.start()
        assert addresses.gateway is not None
        await started(int(addresses.gateway.rpartition(":")[2]))
    finally:
        await server.stop()


_BODY: Final = HttpBody(content_type="application/json", data=b'{"object":"response"}')


async def _write(request: Message, context: grpc.aio.ServicerContext[Message, HttpBody]) -> None:
    await context.write(_BODY)


async def _generate(
    request: Message, context: grpc.aio.ServicerContext[Message, HttpBody]
) -> AsyncIterator[HttpBody]:
    yield _BODY


async def empty(started: Started) -> None:
    """A server whose method does nothing but write one small body: the ceiling of the rest."""
    await _serve(_write, started)


async def empty_generator(started: Started) -> None:
    """The same with a generator as the method."""
    await _serve(_generate, started)


async def _serve(method: Callable[..., Any], started: Started) -> None:
    server = grpc.aio.server(options=server_options())
    handler = grpc.unary_stream_rpc_method_handler(
        method,
        request_deserializer=RestCreateResponseRequest.FromString,
        response_serializer=HttpBody.SerializeToString,
    )
    server.add_generic_rpc_handlers(
        (
            grpc.method_handlers_generic_handler(
                "antiphon.v1.RestService", {"CreateResponse": handler}
            ),
        )
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with Gateway(GatewayConfig(upstream_port=port, port=0)) as gateway:
            await started(gateway.port)
    finally:
        await server.stop(None)
