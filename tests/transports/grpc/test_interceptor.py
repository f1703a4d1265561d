from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from structlog.testing import capture_logs

from antiphon.transports.grpc.interceptor import ErrorInterceptor
from tests.support.serving import failure

SERVICE = "test.Service"
SECRET = "password=hunter2"


async def echo(request: bytes, context: Any) -> bytes:
    return request


async def broken(request: bytes, context: Any) -> bytes:
    raise ZeroDivisionError(SECRET)


async def refusing(request: bytes, context: Any) -> bytes:
    await context.abort(grpc.StatusCode.NOT_FOUND, "It is not there.")
    raise AssertionError


async def broken_stream(request: bytes, context: Any) -> None:
    raise ZeroDivisionError(SECRET)


async def broken_in_the_middle(request: bytes, context: Any) -> None:
    await context.write(b"first")
    raise ZeroDivisionError(SECRET)


def unreadable(data: bytes) -> bytes:
    raise ValueError(SECRET)


HANDLERS: "dict[str, grpc.RpcMethodHandler[Any, Any]]" = {
    "Echo": grpc.unary_unary_rpc_method_handler(echo),
    "Broken": grpc.unary_unary_rpc_method_handler(broken),
    "Refusing": grpc.unary_unary_rpc_method_handler(refusing),
    "BrokenStream": grpc.unary_stream_rpc_method_handler(broken_stream),
    "BrokenInTheMiddle": grpc.unary_stream_rpc_method_handler(broken_in_the_middle),
    "Unreadable": grpc.unary_unary_rpc_method_handler(echo, request_deserializer=unreadable),
}


@asynccontextmanager
async def serving() -> AsyncIterator[grpc.aio.Channel]:
    server = grpc.aio.server(interceptors=(ErrorInterceptor(),))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, HANDLERS),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield channel
    finally:
        await server.stop(None)


async def call(
    method: str, *, stream: bool = False, **options: Any
) -> tuple[list[bytes], grpc.aio.AioRpcError]:
    """Makes a call that fails; returns what came before, and how it failed."""
    async with serving() as channel:
        make: Any = channel.unary_stream if stream else channel.unary_unary
        return await failure(make(f"/{SERVICE}/{method}")(b"hi", **options))


async def test_what_works_is_left_alone() -> None:
    async with serving() as channel:
        method: Any = channel.unary_unary(f"/{SERVICE}/Echo")
        assert [await method(b"hi") for _ in range(3)] == [b"hi"] * 3


@pytest.mark.parametrize(("method", "stream"), [("Broken", False), ("BrokenStream", True)])
async def test_an_unexpected_exception_is_told_by_a_fixed_text(method: str, stream: bool) -> None:
    came, error = await call(method, stream=stream)
    assert came == []
    assert error.code() == grpc.StatusCode.INTERNAL
    assert error.details() == "The server had an error."
    assert SECRET not in repr(error)


async def test_an_unexpected_exception_in_a_stream_is_told_so_too() -> None:
    came, error = await call("BrokenInTheMiddle", stream=True)
    assert came == [b"first"]
    assert error.code() == grpc.StatusCode.INTERNAL
    assert SECRET not in repr(error)


async def test_the_log_tells_the_whole_story() -> None:
    with capture_logs() as logs:
        await call("Broken", metadata=(("x-request-id", "req-7"),))
    (entry,) = logs
    assert entry["log_level"] == "error"
    assert entry["method"] == f"/{SERVICE}/Broken"
    assert entry["request_id"] == "req-7"
    assert entry["exc_info"]


async def test_a_refusal_is_no_unexpected_exception() -> None:
    with capture_logs() as logs:
        _, error = await call("Refusing")
    assert error.code() == grpc.StatusCode.NOT_FOUND
    assert error.details() == "It is not there."
    assert logs == []


async def test_a_message_that_cannot_be_read_is_the_clients_fault() -> None:
    _, error = await call("Unreadable")
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert SECRET not in repr(error)


async def test_a_method_that_does_not_exist_is_not_implemented() -> None:
    _, error = await call("Missing")
    assert error.code() == grpc.StatusCode.UNIMPLEMENTED
