"""Both surfaces of one server on a real port, asked in the same words: operation, path, body."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal, TypeAlias

import grpc
from google.api.httpbody_pb2 import HttpBody
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from antiphon.backends.models import ModelTable
from antiphon.backends.protocol import Backend, Call
from antiphon.core.output import Step
from antiphon.engine.conversations import Conversations
from antiphon.engine.engine import Engine, EngineOptions
from antiphon.gateway import server_options
from antiphon.json import decode, encode
from antiphon.stores.memory import MemoryStore
from antiphon.stores.protocol import Store
from antiphon.transports.grpc.conversations import ConversationsServicer
from antiphon.transports.grpc.interceptor import ErrorInterceptor
from antiphon.transports.grpc.responses import ResponsesServicer
from antiphon.transports.identity import Gate
from antiphon.transports.rest.servicer import STATUS_HEADER, rest_handlers
from antiphon.transports.rest.sse import KEEP_ALIVE
from antiphon.transports.rest.surface import RestSurface
from antiphon.v1 import conversations_service_pb2, responses_service_pb2, rest_service_pb2
from antiphon.v1.conversations_service_pb2_grpc import add_ConversationsServiceServicer_to_server
from antiphon.v1.responses_service_pb2_grpc import add_ResponsesServiceServicer_to_server
from tests.schema.served import Refusal, parse_frames, refusal
from tests.support.clock import Clock

__all__ = [
    "GRPC",
    "LONG_SECONDS",
    "MODEL",
    "OK",
    "REST",
    "Json",
    "Reply",
    "Server",
    "Surface",
    "SurfaceName",
    "Switch",
    "Watched",
    "serving",
    "texts",
]

Json: TypeAlias = dict[str, Any]
SurfaceName: TypeAlias = Literal["rest", "grpc"]

MODEL = "m"
REST: SurfaceName = "rest"
GRPC: SurfaceName = "grpc"
OK = {REST: "200", GRPC: "OK"}
"""How each surface says that all is well."""

# Never up in a test: what waits for longer waits for ever.
LONG_SECONDS = 3_600.0
# Reached only by a server that is stuck.
_STUCK_SECONDS = 30.0

_REST = rest_service_pb2.DESCRIPTOR.services_by_name["RestService"]
_TYPED = {
    method.name: method
    for service in (
        responses_service_pb2.DESCRIPTOR.services_by_name["ResponsesService"],
        conversations_service_pb2.DESCRIPTOR.services_by_name["ConversationsService"],
    )
    for method in service.methods
}
_STREAMS = {"CreateResponse": "StreamResponse", "GetResponse": "StreamResponseEvents"}
"""The typed methods that answer with events where the REST operation has a parameter for it."""


def texts(items: Sequence[Json]) -> list[str]:
    """Returns what was said in each of the items, which are messages."""
    return ["".join(part["text"] for part in item["content"]) for item in items]


class Switch:
    """Answers each call with the backend that was put in last."""

    def __init__(self, backend: Backend | None = None) -> None:
        self.backend = backend

    def respond(self, call: Call) -> AsyncIterator[Sequence[Step]]:
        assert self.backend is not None
        return self.backend.respond(call)


class Watched(Engine):
    """An engine whose runs can be waited for."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._changed = asyncio.Event()

    def _over(self, key: Any) -> None:
        super()._over(key)
        self._changed.set()

    async def idle(self, running: int = 0) -> None:
        """Waits until no more than so many runs go on."""
        async with asyncio.timeout(_STUCK_SECONDS):
            while self.running > running:
                self._changed.clear()
                await self._changed.wait()


class Reply:
    """What a surface answered.

    Args:
        status: the HTTP status, or the name of the gRPC code.
        body: the document, of which the error of a refusal is one.
        refusal: the error, or None.
        events: the events, if it was a stream.
        headers: the headers that came with it.
        raw: the bytes of the body or, of a refusal over gRPC, of its details.
    """

    def __init__(
        self,
        status: str,
        body: Json,
        *,
        refused: Refusal | None = None,
        events: Sequence[Json] | None = None,
        headers: Mapping[str, Any] | None = None,
        raw: bytes = b"",
    ) -> None:
        self.status = status
        self.body = body
        self.refusal = refused
        self.events = events
        self.headers = dict(headers or {})
        self.raw = raw

    @property
    def told(self) -> tuple[str, str | None, str | None]:
        """The status, and the param and the code of the error."""
        if self.refusal is None:
            return (self.status, None, None)
        return (self.status, self.refusal.param, self.refusal.code)


class Surface:
    """Asks one of the surfaces.

    Args:
        name: which one.
        channel: the way to the server.
    """

    def __init__(self, name: SurfaceName, channel: grpc.aio.Channel) -> None:
        self.name = name
        self._channel = channel

    async def ask(
        self,
        operation: str,
        body: Json | bytes | None = None,
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        begun: Callable[[Json], object] | None = None,
        **path: str,
    ) -> Reply:
        """Asks, and reads the answer to its end.

        Args:
            operation: the name of the operation.
            body: the document to send.
            query: the parameters of the query: `stream=True` of a retrieve asks for its events.
            headers: the headers.
            begun: called with each event as it comes.
            path: the variables of the path.
        """
        async with asyncio.timeout(_STUCK_SECONDS):
            if self.name == REST:
                return await self._rest(operation, body, query or {}, headers or {}, path, begun)
            assert not isinstance(body, bytes)
            return await self._typed(operation, body, query or {}, headers or {}, path, begun)

    async def _rest(
        self,
        operation: str,
        body: Json | bytes | None,
        query: Mapping[str, Any],
        headers: Mapping[str, str],
        path: Mapping[str, str],
        begun: Callable[[Json], object] | None,
    ) -> Reply:
        method = _REST.methods_by_name[operation]
        message: Any = GetMessageClass(method.input_type)(**path)
        for key, value in query.items():
            _put(message, key, value if isinstance(value, list) else _text(value))
        if body is not None:
            message.body.data = body if isinstance(body, bytes) else json.dumps(body).encode()
        call = self._call(method, message, headers)
        pieces: list[HttpBody] = []
        try:
            told = dict(await call.initial_metadata() or ())
            if method.server_streaming:
                async for piece in call:
                    pieces.append(piece)
                    if begun is not None and piece.content_type.startswith("text/event-stream"):
                        for event in _events(piece.data):
                            begun(event)
            else:
                pieces.append(await call)
        except grpc.aio.AioRpcError as error:
            raise AssertionError(f"REST: {error.code()}: {error.details()}") from error
        finally:
            # A client that stops asking leaves.
            call.cancel()
        status = str(told.pop(STATUS_HEADER, "200"))
        # Comments say nothing: whether one comes depends on who waits first.
        raw = b"".join(piece.data for piece in pieces).replace(KEEP_ALIVE, b"")
        if pieces and pieces[0].content_type.startswith("text/event-stream"):
            events = [json.loads(text) for text in parse_frames(raw)]
            return Reply(status, {}, events=events, headers=told, raw=raw)
        document = json.loads(raw)
        refused = None
        if status != "200":
            said = document["error"]
            refused = Refusal(status, said["param"], said["code"], said["message"])
        return Reply(status, document, refused=refused, headers=told, raw=raw)

    async def _typed(
        self,
        operation: str,
        body: Json | None,
        query: Mapping[str, Any],
        headers: Mapping[str, str],
        path: Mapping[str, str],
        begun: Callable[[Json], object] | None,
    ) -> Reply:
        asked = dict(query)
        if asked.pop("stream", False) or (operation == "CreateResponse" and _streamed(body)):
            operation = _STREAMS[operation]
        method = _TYPED[operation]
        kind = GetMessageClass(method.input_type)
        message = kind() if body is None else decode(kind, json.dumps(body).encode())
        for key, value in {**path, **asked}.items():
            _put(message, key, value)
        call = self._call(method, message, headers)
        events: list[Json] = []
        try:
            if method.server_streaming:
                async for event in call:
                    events.append(json.loads(encode(event)))
                    if begun is not None:
                        begun(events[-1])
                return Reply("OK", {}, events=events)
            return Reply("OK", json.loads(encode(await call)))
        except grpc.aio.AioRpcError as error:
            assert not events, "a stream that has begun ends without an error"
            refused = refusal(error)
            trailing = dict(error.trailing_metadata() or ())
            details = trailing["grpc-status-details-bin"]
            assert isinstance(details, bytes)
            return Reply(refused.status, {}, refused=refused, headers=trailing, raw=details)
        finally:
            call.cancel()

    def _call(self, method: MethodDescriptor, message: Message, headers: Mapping[str, str]) -> Any:
        make: Any = (
            self._channel.unary_stream if method.server_streaming else self._channel.unary_unary
        )
        callable_ = make(
            f"/{method.containing_service.full_name}/{method.name}",
            request_serializer=type(message).SerializeToString,
            response_deserializer=GetMessageClass(method.output_type).FromString,
        )
        return callable_(message, metadata=tuple(headers.items()))


def _streamed(body: Json | None) -> bool:
    return bool(body and body.get("stream"))


def _put(message: Any, name: str, value: Any) -> None:
    if isinstance(value, list):
        getattr(message, name).extend(value)
    else:
        setattr(message, name, value)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _events(piece: bytes) -> list[Json]:
    """Returns the events in a piece of a stream, which is whole frames."""
    frames = [frame for frame in piece.decode().split("\n\n") if "\ndata: " in frame]
    return [json.loads(frame.split("\ndata: ", 1)[1]) for frame in frames]


class Server:
    """A running server.

    Args:
        engine: its engine.
        store: its store.
        channel: the way to it.
    """

    def __init__(self, engine: Watched, store: Store, channel: grpc.aio.Channel) -> None:
        self.engine = engine
        self.store = store
        self.channel = channel
        self.rest = Surface(REST, channel)
        self.grpc = Surface(GRPC, channel)

    def surface(self, name: SurfaceName) -> Surface:
        """Returns one of the surfaces."""
        return self.rest if name == REST else self.grpc


@asynccontextmanager
async def serving(
    backend: Backend,
    *,
    store: Store | None = None,
    gate: Gate | None = None,
    options: EngineOptions | None = None,
    clock: Clock | None = None,
    max_body_bytes: int = 1 << 26,
) -> AsyncIterator[Server]:
    """Serves both surfaces, and health, on a free port; all runs are ended afterwards."""
    store = store if store is not None else MemoryStore()
    clock = clock if clock is not None else Clock()
    options = options if options is not None else EngineOptions(accept_seconds=LONG_SECONDS)
    engine = Watched(store, ModelTable({MODEL: backend}), options, clock=clock)
    conversations = Conversations(store, clock)
    surface = RestSurface(engine, conversations, gate, max_body_bytes=max_body_bytes, clock=clock)
    server = grpc.aio.server(
        interceptors=(ErrorInterceptor(),), options=server_options(max_body_bytes)
    )
    server.add_generic_rpc_handlers((rest_handlers(surface),))
    add_ResponsesServiceServicer_to_server(ResponsesServicer(engine, gate), server)
    add_ConversationsServiceServicer_to_server(ConversationsServicer(conversations, gate), server)
    healthy = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(healthy, server)
    await healthy.set("", health_pb2.HealthCheckResponse.SERVING)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield Server(engine, store, channel)
    finally:
        await engine.close()
        await server.stop(None)
