"""The gRPC service that carries the REST surface through the gateway, as `HttpBody` messages.

Its handlers are made from the service's descriptor: which fields are variables of the path and
which are query parameters is said by the http rules alone.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

import grpc
import structlog
from google.api import annotations_pb2
from google.api.httpbody_pb2 import HttpBody
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from antiphon.core.errors import ApiError, ErrorKind
from antiphon.transports.rest.message import RestReply, RestRequest, error_reply
from antiphon.transports.rest.sse import HEADERS
from antiphon.transports.rest.surface import RestSurface
from antiphon.v1 import rest_service_pb2

__all__ = ["STATUS_HEADER", "rest_handlers"]

STATUS_HEADER: Final = "x-http-status"
"""The initial metadata that the gateway turns into the HTTP status."""

_ADDED: Final = HEADERS.items()
"""What the gateway adds to event streams: sent from here, it would take each stream a round."""

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"

_VARIABLE = re.compile(r"\{(\w+)")
_BODY_FIELD: Final = "body"
_log = structlog.get_logger(__name__)


def rest_handlers(surface: RestSurface) -> grpc.GenericRpcHandler:
    """Returns the handlers of `RestService`.

    Args:
        surface: what answers.
    """
    service = rest_service_pb2.DESCRIPTOR.services_by_name["RestService"]
    handlers = {method.name: _handler(surface, method) for method in service.methods}
    return grpc.method_handlers_generic_handler(service.full_name, handlers)


def _handler(surface: RestSurface, method: MethodDescriptor) -> grpc.RpcMethodHandler[Any, Any]:
    read = _reader(method)

    async def stream(message: Message, context: Context) -> None:
        reply = await _handle(surface, read(message, context))
        await _send(reply, context)

    async def unary(message: Message, context: Context) -> HttpBody:
        reply = await _handle(surface, read(message, context))
        await _send_headers(reply, context)
        assert isinstance(reply.body, bytes)
        return HttpBody(content_type=reply.content_type, data=reply.body)

    make = (
        grpc.unary_stream_rpc_method_handler
        if method.server_streaming
        else grpc.unary_unary_rpc_method_handler
    )
    return make(
        stream if method.server_streaming else unary,
        request_deserializer=GetMessageClass(method.input_type).FromString,
        response_serializer=HttpBody.SerializeToString,
    )


def _reader(method: MethodDescriptor) -> Callable[[Message, Context], RestRequest]:
    """Returns the function that turns a message of a method into a REST request."""
    rule: Any = method.GetOptions().Extensions[annotations_pb2.http]  # type: ignore[index]
    pattern = getattr(rule, rule.WhichOneof("pattern"))
    variables = frozenset(_VARIABLE.findall(pattern))
    names = [field.name for field in method.input_type.fields]
    path = [name for name in names if name in variables]
    query = [
        (field.name, field.is_repeated)
        for field in method.input_type.fields
        if field.name not in variables and field.name != _BODY_FIELD
    ]
    has_body = _BODY_FIELD in names
    operation = method.name

    def read(message: Any, context: Context) -> RestRequest:
        asked = {}
        for name, repeated in query:
            value = getattr(message, name)
            if value:
                asked[name] = tuple(value) if repeated else (value,)
        metadata = context.invocation_metadata() or ()
        return RestRequest(
            operation,
            {name: getattr(message, name) for name in path},
            asked,
            {name: value for name, value in metadata if isinstance(value, str)},
            message.body.data if has_body else b"",
        )

    return read


async def _handle(surface: RestSurface, request: RestRequest) -> RestReply:
    try:
        return await surface.handle(request)
    except Exception:  # noqa: BLE001 - no exception of ours reaches a client
        request_id = request.headers.get("x-request-id", "")
        _log.exception("request failed", operation=request.operation, request_id=request_id)
        told = f" Request id: {request_id}." if request_id.isprintable() and request_id else ""
        return error_reply(ApiError(ErrorKind.INTERNAL, f"The server had an error.{told}"))


async def _send_headers(reply: RestReply, context: Context) -> None:
    headers = [each for each in reply.headers.items() if each not in _ADDED]
    if reply.status != 200:
        headers.append((STATUS_HEADER, str(reply.status)))
    if headers:
        await context.send_initial_metadata(headers)


async def _send(reply: RestReply, context: Context) -> None:
    if isinstance(reply.body, bytes):
        if reply.headers or reply.status != 200:
            await _send_headers(reply, context)
        await context.write(HttpBody(content_type=reply.content_type, data=reply.body))
        return
    write = context.write
    try:
        await _send_headers(reply, context)
        async for piece in reply.body:
            await write(HttpBody(content_type=reply.content_type, data=piece))
    finally:
        # The client may have left: the iterator is told at once, not when it is collected.
        await _close(reply.body)


async def _close(body: Any) -> None:
    close: Callable[[], Awaitable[None]] | None = getattr(body, "aclose", None)
    if close is not None:
        await close()
