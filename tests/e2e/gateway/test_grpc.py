import base64
import json
import struct
from collections.abc import AsyncIterator

import grpc
import httpx
import pytest
import pytest_asyncio
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from antiphon.v1 import (
    response_pb2,
    responses_service_pb2,
    responses_service_pb2_grpc,
    rest_service_pb2,
    rest_service_pb2_grpc,
)
from tests.e2e.gateway.answers import check_error
from tests.e2e.gateway.upstream import SECRET, Upstream
from tests.e2e.gateway.wire import http2

pytestmark = pytest.mark.asyncio(loop_scope="session")

Get = responses_service_pb2.GetResponseRequest
Create = responses_service_pb2.CreateResponseRequest

METHOD = "/antiphon.v1.ResponsesService/GetResponse"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def channel(port: int) -> AsyncIterator[grpc.aio.Channel]:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield channel


async def test_a_call(channel: grpc.aio.Channel) -> None:
    call = responses_service_pb2_grpc.ResponsesServiceStub(channel).GetResponse(
        Get(response_id="resp_1")
    )
    assert await call == response_pb2.Response(id="resp_1")
    initial = dict(await call.initial_metadata())
    # The header of the REST methods means nothing here, least of all a status of HTTP.
    assert "x-http-status" not in initial
    assert len(initial["x-request-id"]) == 36


async def test_a_deadline_reaches_the_server(channel: grpc.aio.Channel) -> None:
    stub = responses_service_pb2_grpc.ResponsesServiceStub(channel)
    response = await stub.GetResponse(Get(response_id="resp_1"), timeout=60)
    assert response.background is True


async def test_an_error_is_the_servers_own(channel: grpc.aio.Channel) -> None:
    stub = responses_service_pb2_grpc.ResponsesServiceStub(channel)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.GetResponse(
            Get(), metadata=[("x-test-abort", "NOT_FOUND"), ("x-test-abort-after", "metadata")]
        )
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND
    assert caught.value.details() == SECRET


async def test_messages_of_a_stream_arrive_one_by_one(
    channel: grpc.aio.Channel, upstream: Upstream
) -> None:
    stream = upstream.stream("grpc")
    stub = responses_service_pb2_grpc.ResponsesServiceStub(channel)
    call = stub.StreamResponse(Create(), metadata=[("x-test-stream", "grpc")])
    events = aiter(call)
    for number in range(3):
        stream.frames.put_nowait(b"%d" % number)
        assert (await anext(events)).sequence_number == number
    stream.frames.put_nowait(None)
    with pytest.raises(StopAsyncIteration):
        await anext(events)
    assert await call.code() is grpc.StatusCode.OK


async def test_the_server_learns_of_a_cancelled_call(
    channel: grpc.aio.Channel, upstream: Upstream
) -> None:
    stream = upstream.stream("cancelled")
    stub = responses_service_pb2_grpc.ResponsesServiceStub(channel)
    call = stub.StreamResponse(Create(), metadata=[("x-test-stream", "cancelled")])
    await stream.opened.acquire()
    call.cancel()
    await stream.cancelled.wait()


async def test_health(channel: grpc.aio.Channel) -> None:
    check: grpc.aio.UnaryUnaryMultiCallable[
        health_pb2.HealthCheckRequest, health_pb2.HealthCheckResponse
    ] = channel.unary_unary(
        "/grpc.health.v1.Health/Check",
        request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
        response_deserializer=health_pb2.HealthCheckResponse.FromString,
    )
    answer = await check(health_pb2.HealthCheckRequest())
    assert answer.status == health_pb2.HealthCheckResponse.SERVING


async def test_reflection(channel: grpc.aio.Channel) -> None:
    inform: grpc.aio.StreamStreamMultiCallable[
        reflection_pb2.ServerReflectionRequest, reflection_pb2.ServerReflectionResponse
    ] = channel.stream_stream(
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
        request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
        response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
    )
    call = inform(iter([reflection_pb2.ServerReflectionRequest(list_services="")]))
    (answer,) = [answer async for answer in call]
    names = [service.name for service in answer.list_services_response.service]
    assert "antiphon.v1.ResponsesService" in names


async def test_an_unknown_method(channel: grpc.aio.Channel) -> None:
    call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary("/antiphon.v1.No/No")
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call(b"")
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_a_rest_method_called_by_grpc_is_left_alone(channel: grpc.aio.Channel) -> None:
    call = rest_service_pb2_grpc.RestServiceStub(channel).DeleteResponse(
        rest_service_pb2.RestDeleteResponseRequest(response_id="resp_1"),
        metadata=[("x-test-status", "404")],
    )
    body = await call
    assert json.loads(body.data)["request"] == {"response_id": "resp_1"}
    assert "x-http-status" not in dict(await call.initial_metadata())


async def test_a_server_that_is_down_has_a_grpc_status(port_without_upstream: int) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port_without_upstream}") as channel:
        stub = responses_service_pb2_grpc.ResponsesServiceStub(channel)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.GetResponse(Get())
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert caught.value.details() == "The server is temporarily unavailable."


@pytest.mark.parametrize("path", [METHOD, "/v1/responses/resp_1"])
async def test_a_grpc_call_is_a_post(port: int, path: str) -> None:
    async with http2(port) as h2:
        reply = await h2.until_end(h2.send("GET", path, [("content-type", "application/grpc")]))
    assert reply.headers["grpc-status"] == "2"
    assert reply.headers["grpc-message"] == "The request was refused."
    assert reply.headers["allow"] == "POST"


async def test_a_rest_client_cannot_call_a_typed_method(client: httpx.AsyncClient) -> None:
    check_error(await client.post(METHOD, json={"responseId": "resp_1"}), 404)


def _frame(payload: bytes, flag: int = 0) -> bytes:
    return struct.pack("!BI", flag, len(payload)) + payload


def _frames(data: bytes) -> list[tuple[int, bytes]]:
    frames = []
    while data:
        flag, length = struct.unpack("!BI", data[:5])
        frames.append((flag, data[5 : 5 + length]))
        data = data[5 + length :]
    return frames


TRAILERS = 0x80


@pytest.mark.parametrize("text", [False, True], ids=["binary", "text"])
@pytest.mark.parametrize(
    ("abort", "status"), [(None, "0"), ("NOT_FOUND", "5")], ids=["ok", "not found"]
)
async def test_grpc_web(
    client: httpx.AsyncClient, text: bool, abort: str | None, status: str
) -> None:
    body = _frame(Get(response_id="resp_1").SerializeToString())
    kind = "application/grpc-web-text" if text else "application/grpc-web+proto"
    headers = {"content-type": kind, "accept": kind, "x-grpc-web": "1"}
    if abort:
        headers |= {"x-test-abort": abort, "x-test-abort-after": "metadata"}
    response = await client.post(
        METHOD, content=base64.b64encode(body) if text else body, headers=headers
    )
    assert response.status_code == 200
    assert response.headers["content-type"].startswith(kind.removesuffix("+proto"))
    assert "x-http-status" not in response.headers
    data = response.content
    if text:
        # Each piece is padded by itself.
        data = b"".join(base64.b64decode(piece + b"==") for piece in data.split(b"=") if piece)
    *messages, (flag, trailers) = _frames(data)
    if not abort:
        ((_, message),) = messages
        assert response_pb2.Response.FromString(message).id == "resp_1"
    assert flag == TRAILERS
    assert f"grpc-status:{status}" in trailers.decode()


async def test_grpc_web_streams_one_by_one(client: httpx.AsyncClient, upstream: Upstream) -> None:
    stream = upstream.stream("web")
    headers = {"content-type": "application/grpc-web+proto", "x-test-stream": "web"}
    stream.frames.put_nowait(b"1")
    async with client.stream(
        "POST",
        "/antiphon.v1.ResponsesService/StreamResponse",
        content=_frame(b""),
        headers=headers,
    ) as response:
        pieces = response.aiter_raw()
        assert _frames(await anext(pieces)) == [(0, b"\x08\x01")]
        stream.frames.put_nowait(b"2")
        assert _frames(await anext(pieces)) == [(0, b"\x08\x02")]
        stream.frames.put_nowait(None)
        rest = b"".join([piece async for piece in pieces])
    ((flag, trailers),) = _frames(rest)
    assert flag == TRAILERS
    assert b"grpc-status:0" in trailers
