"""A whole server without its network: one store and engine behind both surfaces."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import grpc

from antiphon.backends.models import ModelTable
from antiphon.backends.protocol import Backend
from antiphon.core.scope import Scope
from antiphon.engine.conversations import Conversations
from antiphon.engine.engine import Engine, EngineOptions
from antiphon.gateway import server_options
from antiphon.stores.memory import Bounds, MemoryStore
from antiphon.transports.grpc.conversations import ConversationsServicer
from antiphon.transports.grpc.interceptor import ErrorInterceptor
from antiphon.transports.grpc.responses import ResponsesServicer
from antiphon.transports.rest.message import RestReply, RestRequest
from antiphon.transports.rest.surface import RestSurface
from antiphon.v1.conversations_service_pb2_grpc import (
    ConversationsServiceStub,
    add_ConversationsServiceServicer_to_server,
)
from antiphon.v1.responses_service_pb2_grpc import (
    ResponsesServiceStub,
    add_ResponsesServiceServicer_to_server,
)
from tests.schema.served import Answer
from tests.support.clock import Clock

if TYPE_CHECKING:
    from antiphon.v1.conversations_service_pb2_grpc import ConversationsServiceAsyncStub
    from antiphon.v1.responses_service_pb2_grpc import ResponsesServiceAsyncStub

__all__ = ["MODEL", "House", "Json", "scope_of", "settled", "text_of", "texts_of"]

MODEL = "m"
USER = "x-agent-user-isolation-key"

Json = dict[str, Any]

# Never up in a test: what waits for longer waits for ever.
LONG_SECONDS = 3_600.0


async def settled() -> None:
    """Gives everything that can go on without help from outside the time to do so."""
    for _ in range(100):
        await asyncio.sleep(0)


def scope_of(user: str) -> Scope:
    """Returns the scope that a user of the house works in."""
    return Scope(user=user)


def text_of(item: Json) -> str:
    """Returns the text of a message, or "" of any other item."""
    return "".join(part.get("text", "") for part in item.get("content") or ())


def texts_of(items: Sequence[Json]) -> list[str]:
    """Returns the texts of messages."""
    return [text_of(item) for item in items]


class House:
    """One store and engine, whose model `MODEL` is answered by a backend, and their surfaces.

    Args:
        backend: who answers.
        store: the store; one in memory without bounds that matter if None.
        options: how the engine works.
    """

    def __init__(
        self,
        backend: Backend,
        store: MemoryStore | None = None,
        options: EngineOptions | None = None,
    ) -> None:
        self.store = store if store is not None else MemoryStore(Bounds())
        self.engine = Engine(
            self.store,
            ModelTable({MODEL: backend}),
            options if options is not None else EngineOptions(accept_seconds=LONG_SECONDS),
            clock=Clock(),
        )
        self.conversations = Conversations(self.store, Clock())
        self.rest = RestSurface(self.engine, self.conversations, clock=Clock())

    async def reply(
        self,
        operation: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, str | Sequence[str]] | None = None,
        user: str = "",
        **path: str,
    ) -> RestReply:
        """Asks the REST surface, and returns its reply before a stream is read.

        Args:
            operation: the name of the operation.
            body: the document that the body holds.
            query: the parameters of the query.
            user: whose request it is.
            path: the variables of the path.
        """
        sent = b"" if body is None else json.dumps(body).encode()
        asked = {
            name: (value,) if isinstance(value, str) else tuple(value)
            for name, value in (query or {}).items()
        }
        headers = {USER: user} if user else {}
        return await self.rest.handle(RestRequest(operation, path, asked, headers, sent))

    async def ask(
        self, operation: str, body: Mapping[str, Any] | None = None, **how: Any
    ) -> Answer:
        """Asks the REST surface, and reads the whole answer; see `reply`."""
        reply = await self.reply(operation, body, **how)
        if isinstance(reply.body, bytes):
            return Answer(reply.status, reply.body)
        return Answer(reply.status, b"".join([piece async for piece in reply.body]))

    async def get(self, operation: str, body: Mapping[str, Any] | None = None, **how: Any) -> Json:
        """Asks the REST surface for what it has to grant, and returns the document."""
        answer = await self.ask(operation, body, **how)
        assert answer.status == 200, answer.body
        found: Json = answer.json
        return found

    async def create(self, text: Any = "hi", *, user: str = "", **asked: Any) -> Json:
        """Asks for a response, and returns its document."""
        body = {"model": MODEL, "input": text, **asked}
        return await self.get("CreateResponse", body, user=user)

    async def input_items(
        self, response_id: str, *, user: str = "", **query: str | Sequence[str]
    ) -> Json:
        """Asks for a page of the items that a response was made from."""
        return await self.get("ListInputItems", query=query, user=user, response_id=response_id)

    async def items(
        self, conversation_id: str, *, user: str = "", **query: str | Sequence[str]
    ) -> list[Json]:
        """Asks for the items of a conversation, at most a hundred and oldest first."""
        asked = {"order": "asc", "limit": "100", **query}
        page = await self.get(
            "ListConversationItems", query=asked, user=user, conversation_id=conversation_id
        )
        found: list[Json] = page["data"]
        return found

    @asynccontextmanager
    async def stubs(
        self,
    ) -> AsyncIterator["tuple[ResponsesServiceAsyncStub, ConversationsServiceAsyncStub]"]:
        """Serves the typed services on a port, and gives stubs of them."""
        server = grpc.aio.server(interceptors=(ErrorInterceptor(),), options=server_options())
        add_ResponsesServiceServicer_to_server(ResponsesServicer(self.engine), server)
        add_ConversationsServiceServicer_to_server(
            ConversationsServicer(self.conversations), server
        )
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        try:
            async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
                yield ResponsesServiceStub(channel), ConversationsServiceStub(channel)
        finally:
            await server.stop(None)
