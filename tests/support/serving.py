"""A gRPC server in the process of the test, and its clients."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import grpc
from google.rpc.status_pb2 import Status
from grpc_status import rpc_status

from antiphon.engine.conversations import Conversations
from antiphon.engine.engine import Engine
from antiphon.transports.grpc.interceptor import ErrorInterceptor
from antiphon.transports.grpc.responses import ResponsesServicer
from antiphon.transports.rest.servicer import rest_handlers
from antiphon.transports.rest.surface import RestSurface
from antiphon.v1.responses_service_pb2_grpc import (
    ResponsesServiceStub,
    add_ResponsesServiceServicer_to_server,
)
from antiphon.v1.rest_service_pb2_grpc import RestServiceStub
from tests.support.store import SteeredStore

__all__ = ["Served", "a_surface", "failure", "refusal", "serving"]


class Served(NamedTuple):
    """The clients of a server."""

    channel: grpc.aio.Channel
    typed: Any
    """The stub of `ResponsesService`."""
    rest: Any
    """The stub of `RestService`, which the gateway would call."""


def a_surface(engine: Engine, **options: Any) -> RestSurface:
    """Returns the REST surface of an engine, whose conversations are nobody's."""
    return RestSurface(engine, Conversations(SteeredStore()), **options)


@asynccontextmanager
async def serving(engine: Engine | None, surface: Any = None) -> AsyncIterator[Served]:
    """Serves an engine, without a gateway.

    Args:
        engine: what answers typed calls; None if there are none in the test.
        surface: what answers REST calls, where it is not the surface of the engine.
    """
    server = grpc.aio.server(interceptors=(ErrorInterceptor(),))
    if engine is not None:
        add_ResponsesServiceServicer_to_server(ResponsesServicer(engine), server)
        surface = surface if surface is not None else a_surface(engine)
    server.add_generic_rpc_handlers((rest_handlers(surface),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield Served(channel, ResponsesServiceStub(channel), RestServiceStub(channel))
    finally:
        await server.stop(None)


async def failure(call: Any) -> tuple[list[Any], grpc.aio.AioRpcError]:
    """Returns the messages that came before a call failed, and how it failed.

    Args:
        call: the call, which has one answer or a stream of them.
    """
    came = []
    try:
        if hasattr(call, "__aiter__"):
            async for message in call:
                came.append(message)  # noqa: PERF401 - a comprehension would lose them
        else:
            came.append(await call)
    except grpc.aio.AioRpcError as error:
        return came, error
    raise AssertionError(f"the call did not fail: {came}")


def refusal(error: grpc.aio.AioRpcError) -> Status | None:
    """Returns the status of a call that was refused, with its details if it has any."""
    status: Status | None = rpc_status.from_call(error)  # type: ignore[arg-type]
    return status
