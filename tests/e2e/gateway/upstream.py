"""A stand-in for the server behind the gateway, steered by the headers of the request.

A REST method answers with what it was asked, as JSON: `method`, `request` (the fields of its
message, a body as its length and hash) and `metadata`. These headers make it do otherwise:

x-test-status: 404       `x-http-status` of the answer
x-test-header: a: b      one more header of the answer
x-test-size: 1000        a body of so many bytes
x-test-stream: name      the frames that the test puts into `Upstream.stream(name)`
x-test-flood: name       frames without end, counted in `Upstream.stream(name).written`
x-test-abort: NOT_FOUND  the call ends with this gRPC status and the text `SECRET`
x-test-abort-after       and that only after the `metadata`, or after the first `message`
x-test-raise: yes        an exception with that text
"""

import asyncio
import hashlib
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import grpc
from google.api import httpbody_pb2
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from antiphon.gateway import server_options
from antiphon.v1 import (
    event_pb2,
    response_pb2,
    responses_service_pb2,
    rest_service_pb2,
)

SECRET = "secret of the server"

FRAME = b"data: " + b"x" * 8184 + b"\n\n"

REST = rest_service_pb2.DESCRIPTOR.services_by_name["RestService"]

Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]


@dataclass
class Stream:
    """The streaming calls of one name, as the test sees them.

    `opened` can be acquired once for each call that has begun.
    """

    frames: asyncio.Queue[bytes | None] = field(default_factory=asyncio.Queue)
    opened: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    written: int = 0

    async def until_end(self) -> AsyncIterator[bytes]:
        """Yield the frames that the test puts in, until it puts in None."""
        self.opened.release()
        try:
            while (frame := await self.frames.get()) is not None:
                yield frame
        except asyncio.CancelledError:
            self.cancelled.set()
            raise

    async def flood(self) -> AsyncIterator[bytes]:
        """Yield the same frame for ever, and count."""
        self.opened.release()
        try:
            while True:
                yield FRAME
                self.written += len(FRAME)
        finally:
            self.cancelled.set()


class Upstream:
    """The gRPC server and what the tests want to know of it."""

    def __init__(self) -> None:
        self._streams: defaultdict[str, Stream] = defaultdict(Stream)
        self._server = grpc.aio.server(options=server_options())
        self._server.add_generic_rpc_handlers([self._rest(), self._responses()])
        health_pb2_grpc.add_HealthServicer_to_server(health.aio.HealthServicer(), self._server)
        reflection.enable_server_reflection(
            ("antiphon.v1.ResponsesService", reflection.SERVICE_NAME), self._server
        )
        self.port = self._server.add_insecure_port("127.0.0.1:0")

    def stream(self, name: str) -> Stream:
        return self._streams[name]

    async def start(self) -> None:
        await self._server.start()

    async def stop(self) -> None:
        await self._server.stop(None)

    def _rest(self) -> grpc.GenericRpcHandler:
        """Give every REST method of the schema the same implementation."""

        async def streaming(
            request: Message, context: Context
        ) -> AsyncIterator[httpbody_pb2.HttpBody]:
            asked = _metadata(context)
            if "x-test-stream" in asked:
                async for data in self.stream(asked["x-test-stream"]).until_end():
                    yield _frame(data)
            elif "x-test-flood" in asked:
                async for data in self.stream(asked["x-test-flood"]).flood():
                    yield _frame(data)
            else:
                yield await _answer(request, context)
                await _abort_if_asked(asked, context, after="message")

        handlers = {}
        for method in REST.methods:
            handler = (
                grpc.unary_stream_rpc_method_handler(
                    streaming,
                    GetMessageClass(method.input_type).FromString,
                    httpbody_pb2.HttpBody.SerializeToString,
                )
                if method.server_streaming
                else grpc.unary_unary_rpc_method_handler(
                    _answer,
                    GetMessageClass(method.input_type).FromString,
                    httpbody_pb2.HttpBody.SerializeToString,
                )
            )
            handlers[method.name] = handler
        return grpc.method_handlers_generic_handler(REST.full_name, handlers)

    def _responses(self) -> grpc.GenericRpcHandler:
        """Implement as much of the typed service as a test needs."""

        async def get(
            request: responses_service_pb2.GetResponseRequest, context: Context
        ) -> response_pb2.Response:
            await context.send_initial_metadata([("x-http-status", "404")])
            await _abort_if_asked(_metadata(context), context, after="metadata")
            has_deadline = context.time_remaining() is not None
            return response_pb2.Response(id=request.response_id, background=has_deadline)

        async def stream(
            request: responses_service_pb2.CreateResponseRequest, context: Context
        ) -> AsyncIterator[event_pb2.ResponseStreamEvent]:
            async for data in self.stream(_metadata(context)["x-test-stream"]).until_end():
                yield event_pb2.ResponseStreamEvent(sequence_number=int(data))

        return grpc.method_handlers_generic_handler(
            "antiphon.v1.ResponsesService",
            {
                "GetResponse": grpc.unary_unary_rpc_method_handler(
                    get,
                    responses_service_pb2.GetResponseRequest.FromString,
                    response_pb2.Response.SerializeToString,
                ),
                "StreamResponse": grpc.unary_stream_rpc_method_handler(
                    stream,
                    responses_service_pb2.CreateResponseRequest.FromString,
                    event_pb2.ResponseStreamEvent.SerializeToString,
                ),
            },
        )


def _metadata(context: Context) -> dict[str, str]:
    return {
        key: value if isinstance(value, str) else value.hex()
        for key, value in context.invocation_metadata() or ()
    }


def _fields(request: Message) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for descriptor, value in request.ListFields():
        if isinstance(value, httpbody_pb2.HttpBody):
            fields[descriptor.name] = {
                "content_type": value.content_type,
                "length": len(value.data),
                "hash": hashlib.blake2b(value.data).hexdigest(),
            }
        else:
            fields[descriptor.name] = list(value) if descriptor.is_repeated else value
    return fields


def _json(value: Any) -> httpbody_pb2.HttpBody:
    return httpbody_pb2.HttpBody(content_type="application/json", data=json.dumps(value).encode())


def _frame(data: bytes) -> httpbody_pb2.HttpBody:
    return httpbody_pb2.HttpBody(content_type="text/event-stream", data=data)


async def _abort_if_asked(asked: Mapping[str, str], context: Context, *, after: str) -> None:
    if "x-test-abort" in asked and asked.get("x-test-abort-after", "nothing") == after:
        await context.abort(grpc.StatusCode[asked["x-test-abort"]], SECRET)


async def _answer(request: Message, context: Context) -> httpbody_pb2.HttpBody:
    """Do what the headers ask for, up to the first message, and return that."""
    asked = _metadata(context)
    if "x-test-raise" in asked:
        raise RuntimeError(SECRET)
    await _abort_if_asked(asked, context, after="nothing")
    initial = []
    if "x-test-status" in asked:
        initial.append(("x-http-status", asked["x-test-status"]))
    if "x-test-header" in asked:
        name, value = asked["x-test-header"].split(": ", 1)
        initial.append((name, value))
    if initial or "x-test-abort-after" in asked:
        await context.send_initial_metadata(initial)
    await _abort_if_asked(asked, context, after="metadata")
    if "x-test-size" in asked:
        return httpbody_pb2.HttpBody(data=bytes(int(asked["x-test-size"])))
    method = type(request).__name__.removeprefix("Rest").removesuffix("Request")
    seconds = context.time_remaining()
    return _json(
        {
            "method": method,
            "request": _fields(request),
            "metadata": asked,
            "has_deadline": seconds is not None,
        }
    )
