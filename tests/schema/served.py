"""A server without its network: one engine behind the REST surface and the typed service."""

import json
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import grpc
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo
from google.rpc.status_pb2 import Status

from antiphon.backends.models import ModelTable
from antiphon.backends.protocol import Backend
from antiphon.core.scope import Scope
from antiphon.engine.conversations import Conversations
from antiphon.engine.engine import Engine
from antiphon.gateway import server_options
from antiphon.stores.protocol import Appended, ConversationState, Turn, TurnContent, TurnEnd
from antiphon.transports.grpc.conversations import ConversationsServicer
from antiphon.transports.grpc.interceptor import ErrorInterceptor
from antiphon.transports.grpc.responses import ResponsesServicer
from antiphon.transports.rest.message import RestRequest
from antiphon.transports.rest.surface import RestSurface
from antiphon.v1.conversations_service_pb2_grpc import (
    add_ConversationsServiceServicer_to_server,
)
from antiphon.v1.responses_service_pb2_grpc import (
    ResponsesServiceStub,
    add_ResponsesServiceServicer_to_server,
)
from tests.support.clock import Clock
from tests.support.store import SteeredStore

if TYPE_CHECKING:
    from antiphon.v1.responses_service_pb2_grpc import ResponsesServiceAsyncStub

__all__ = ["MODEL", "Answer", "Refusal", "Served", "parse_frames", "refusal"]

MODEL = "m"


class Answer:
    """What the REST surface answered.

    Args:
        status: the HTTP status.
        body: every byte of the body.
    """

    def __init__(self, status: int, body: bytes) -> None:
        self.status = status
        self.body = body

    @property
    def json(self) -> Any:
        """The body as one document."""
        return json.loads(self.body)

    @property
    def events(self) -> list[dict[str, Any]]:
        """The body as a stream of events."""
        return [json.loads(text) for text in parse_frames(self.body)]

    @property
    def refusal(self) -> "Refusal":
        """The error that the body is."""
        error = self.json["error"]
        return Refusal(str(self.status), error["param"], error["code"], error["message"])


class Refusal:
    """Why a request was refused, on either surface.

    Args:
        status: the HTTP status, or the name of the gRPC code.
        param: the path of what is wrong.
        code: the code for programs.
        message: the sentence for the client.
    """

    def __init__(self, status: str, param: str | None, code: str | None, message: str) -> None:
        self.status = status
        self.param = param
        self.code = code
        self.message = message


def refusal(error: grpc.aio.AioRpcError) -> Refusal:
    """Returns what the details of a gRPC error say, after they were held to each other."""
    details = dict(error.trailing_metadata() or ())["grpc-status-details-bin"]
    assert isinstance(details, bytes)
    status = Status.FromString(details)
    assert (status.code, status.message) == (error.code().value[0], error.details())
    info, request = ErrorInfo(), BadRequest()
    assert status.details[0].Unpack(info)
    assert info.domain == "antiphon"
    param, code = info.metadata.get("param"), info.metadata.get("code")
    if param is not None:
        assert status.details[1].Unpack(request)
        (violation,) = request.field_violations
        assert (violation.field, violation.description) == (param, status.message)
    return Refusal(error.code().name, param, code, status.message)


def parse_frames(body: bytes) -> list[str]:
    """Returns the data of the events of a stream, without its end."""
    *frames, done, rest = body.decode().split("\n\n")
    assert (done, rest) == ("data: [DONE]", "")
    # Comments, which begin with a colon, say nothing.
    return [frame.split("\ndata: ", 1)[1] for frame in frames if not frame.startswith(":")]


class _Recorder(SteeredStore):
    """A store that remembers every byte it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[bytes] = []

    async def begin(
        self,
        scope: Scope,
        response_id: str,
        parent: Turn | None,
        content: TurnContent,
        *,
        conversation_id: str = "",
        replayable: bool = False,
    ) -> None:
        self.kept += [content.input, content.response]
        await super().begin(
            scope,
            response_id,
            parent,
            content,
            conversation_id=conversation_id,
            replayable=replayable,
        )

    async def finish(self, scope: Scope, response_id: str, end: TurnEnd) -> bool:
        self.kept += [end.response, repr(end).encode()]
        return await super().finish(scope, response_id, end)

    async def append_events(
        self, scope: Scope, response_id: str, events: Sequence[bytes], *, last: bool
    ) -> None:
        self.kept += events
        await super().append_events(scope, response_id, events, last=last)

    async def create_conversation(
        self, scope: Scope, conversation_id: str, state: ConversationState
    ) -> None:
        self.kept.append(repr(state).encode())
        await super().create_conversation(scope, conversation_id, state)

    async def append_items(self, scope: Scope, appended: Appended) -> bool:
        self.kept.append(repr(appended).encode())
        return await super().append_items(scope, appended)


class Served:
    """One engine, whose model `MODEL` is answered by a backend, and its two surfaces.

    Args:
        backend: who answers.
        strict_fields: whether unknown parameters are refused.
        max_body_bytes: the greatest size of a request's body.
        document: makes the OpenAPI document.
    """

    def __init__(
        self,
        backend: Backend,
        *,
        strict_fields: bool = False,
        max_body_bytes: int = 1 << 26,
        document: Callable[[Collection[str]], bytes] | None = None,
    ) -> None:
        self._store = _Recorder()
        self._engine = Engine(self._store, ModelTable({MODEL: backend}), clock=Clock())
        self._conversations = Conversations(self._store, clock=Clock())
        self.rest = RestSurface(
            self._engine,
            self._conversations,
            max_body_bytes=max_body_bytes,
            strict_fields=strict_fields,
            document=document,
            clock=Clock(),
        )

    @property
    def kept(self) -> bytes:
        """Everything that the store was given."""
        return b"\n".join(self._store.kept)

    async def ask(
        self,
        operation: str,
        body: bytes | str | Mapping[str, Any] = b"",
        *,
        query: Mapping[str, Sequence[str]] | None = None,
        headers: Mapping[str, str] | None = None,
        **path: str,
    ) -> Answer:
        """Asks the REST surface.

        Args:
            operation: the name of the operation.
            body: the body, as bytes, as text or as the document that it holds.
            query: the parameters of the query.
            headers: the headers.
            path: the variables of the path.
        """
        if isinstance(body, Mapping):
            body = json.dumps(body)
        sent = body.encode() if isinstance(body, str) else body
        reply = await self.rest.handle(
            RestRequest(operation, path, query or {}, headers or {}, sent)
        )
        if isinstance(reply.body, bytes):
            return Answer(reply.status, reply.body)
        return Answer(reply.status, b"".join([piece async for piece in reply.body]))

    async def create(self, body: bytes | str | Mapping[str, Any]) -> Answer:
        """Asks for a response."""
        return await self.ask("CreateResponse", body)

    async def get(self, response_id: str) -> Answer:
        """Asks for a stored response."""
        return await self.ask("GetResponse", response_id=response_id)

    @asynccontextmanager
    async def channel(self) -> AsyncIterator[grpc.aio.Channel]:
        """Serves the typed services on a port, and gives a channel to it."""
        server = grpc.aio.server(interceptors=(ErrorInterceptor(),), options=server_options())
        add_ResponsesServiceServicer_to_server(ResponsesServicer(self._engine), server)
        add_ConversationsServiceServicer_to_server(
            ConversationsServicer(self._conversations), server
        )
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        try:
            async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
                yield channel
        finally:
            await server.stop(None)

    @asynccontextmanager
    async def stub(self) -> AsyncIterator["ResponsesServiceAsyncStub"]:
        """Serves the typed services, and gives a stub of `ResponsesService`."""
        async with self.channel() as channel:
            yield ResponsesServiceStub(channel)
