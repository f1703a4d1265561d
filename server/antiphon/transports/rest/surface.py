"""The whole REST surface: from a routed request to its reply."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection
from typing import Any, Final, TypeVar

from google.protobuf.message import Message

from antiphon.core.errors import ApiError, ErrorKind, invalid
from antiphon.core.request import request_context
from antiphon.core.scope import Scope
from antiphon.engine.conversations import Conversations
from antiphon.engine.engine import Engine
from antiphon.engine.reader import EventReader
from antiphon.json import InvalidValue, decode, encode
from antiphon.transports.identity import Gate
from antiphon.transports.paging import page_request
from antiphon.transports.rest.compression import decompress
from antiphon.transports.rest.message import JSON, RestReply, RestRequest, error_reply
from antiphon.transports.rest.query import read_flag, read_parameters
from antiphon.transports.rest.sse import HEADERS, Frames, snapshot_json
from antiphon.v1 import conversations_service_pb2 as conversation_pb
from antiphon.v1 import responses_service_pb2 as response_pb
from antiphon.v1.model_pb2 import ListModelsResponse, Model

M = TypeVar("M", bound=Message)

__all__ = ["MAX_BODY_BYTES", "RestSurface"]

MAX_BODY_BYTES: Final = 64 * 1024 * 1024
"""The greatest size of a request's body, unless configured."""

_OPEN: Final = frozenset({"GetHealth"})
"""Operations that need no key."""
_SSE: Final = "text/event-stream; charset=utf-8"


class RestSurface:
    """Answers REST requests.

    Args:
        engine: what makes responses.
        conversations: what keeps conversations.
        gate: what lets requests in.
        max_body_bytes: the greatest size of a request's body, as it is sent and as it is decoded.
        strict_fields: whether unknown parameters are refused.
        document: makes the OpenAPI document, given the names of the operations that are built.
        clock: tells the time, in seconds since 1970.
    """

    def __init__(
        self,
        engine: Engine,
        conversations: Conversations,
        gate: Gate | None = None,
        *,
        max_body_bytes: int = MAX_BODY_BYTES,
        strict_fields: bool = False,
        document: Callable[[Collection[str]], bytes] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._engine = engine
        self._conversations = conversations
        self._gate = gate if gate is not None else Gate()
        self._max_body_bytes = max_body_bytes
        self._strict_fields = strict_fields
        self._document = document
        self._made_document: bytes | None = None
        self._started = int(clock())
        self._operations: dict[str, Callable[[RestRequest, Scope], Awaitable[RestReply]]] = {
            "CreateResponse": self._create_response,
            "GetResponse": self._get_response,
            "DeleteResponse": self._delete_response,
            "CancelResponse": self._cancel_response,
            "ListInputItems": self._list_input_items,
            "CreateConversation": self._create_conversation,
            "GetConversation": self._get_conversation,
            "UpdateConversation": self._update_conversation,
            "DeleteConversation": self._delete_conversation,
            "CreateConversationItems": self._create_items,
            "ListConversationItems": self._list_items,
            "GetConversationItem": self._get_item,
            "DeleteConversationItem": self._delete_item,
            "ListModels": self._list_models,
            "GetModel": self._get_model,
            "GetHealth": self._get_health,
        }
        if document is not None:
            self._operations["GetOpenApi"] = self._get_open_api

    @property
    def built(self) -> tuple[str, ...]:
        """The names of the operations that are built."""
        return tuple(self._operations)

    async def handle(self, request: RestRequest) -> RestReply:
        """Answers a request; what it does not accept becomes a reply too.

        Args:
            request: the request.
        """
        rate = None
        try:
            scope = Scope()
            if request.operation not in _OPEN:
                admitted = self._gate.enter(request.headers)
                scope, rate = admitted.scope, admitted.rate
            operation = self._operations.get(request.operation, _not_built)
            reply = await operation(request, scope)
        except InvalidValue as error:
            reply = error_reply(invalid(error))
        except ApiError as error:
            reply = error_reply(error)
        if rate is not None:
            reply.headers = {**reply.headers, **rate.headers}
        return reply

    def _decode(self, message: type[M], request: RestRequest) -> M:
        """Reads the message that a request's body holds, its path included."""
        if len(request.body) > self._max_body_bytes:
            text = f"The request body is larger than {self._max_body_bytes} bytes."
            raise ApiError(ErrorKind.TOO_LARGE, text)
        coding = request.headers.get("content-encoding", "")
        body = decompress(request.body, coding, self._max_body_bytes)
        decoded = decode(message, body, strict=self._strict_fields)
        for name, value in request.path.items():
            setattr(decoded, name, value)
        return decoded

    async def _create_response(self, request: RestRequest, scope: Scope) -> RestReply:
        asked = self._decode(response_pb.CreateResponseRequest, request)
        context = request.query.get("request_context")
        if context and not asked.HasField("request_context"):
            asked.request_context = request_context(context[-1])
        run = await self._engine.create(scope, asked)
        if run.client is not None:
            return _events(run.client)
        if run.background:
            return _json(encode(run.current()))
        return _json(snapshot_json(await run.result()))

    async def _get_response(self, request: RestRequest, scope: Scope) -> RestReply:
        response_id = request.path["response_id"]
        if read_flag(request.query, "stream"):
            asked = read_parameters(response_pb.StreamResponseEventsRequest, request)
            after = asked.starting_after if asked.HasField("starting_after") else -1
            return _events(await self._engine.follow(scope, response_id, after))
        read_parameters(response_pb.GetResponseRequest, request)
        return _json(snapshot_json(await self._engine.get(scope, response_id)))

    async def _delete_response(self, request: RestRequest, scope: Scope) -> RestReply:
        response_id = request.path["response_id"]
        await self._engine.delete(scope, response_id)
        return _message(response_pb.DeleteResponseResponse(id=response_id, deleted=True))

    async def _cancel_response(self, request: RestRequest, scope: Scope) -> RestReply:
        snapshot = await self._engine.cancel(scope, request.path["response_id"])
        return _json(snapshot_json(snapshot))

    async def _list_input_items(self, request: RestRequest, scope: Scope) -> RestReply:
        asked = read_parameters(response_pb.ListInputItemsRequest, request)
        page = await self._engine.list_input_items(scope, asked.response_id, page_request(asked))
        return _message(page)

    async def _create_conversation(self, request: RestRequest, scope: Scope) -> RestReply:
        # Everything about a conversation is optional, its whole description too.
        body = request.body or b"{}"
        asked = self._decode(
            conversation_pb.CreateConversationRequest,
            RestRequest(request.operation, headers=request.headers, body=body),
        )
        return _message(await self._conversations.create(scope, asked))

    async def _get_conversation(self, request: RestRequest, scope: Scope) -> RestReply:
        return _message(await self._conversations.get(scope, request.path["conversation_id"]))

    async def _update_conversation(self, request: RestRequest, scope: Scope) -> RestReply:
        asked = self._decode(conversation_pb.UpdateConversationRequest, request)
        return _message(await self._conversations.update(scope, asked))

    async def _delete_conversation(self, request: RestRequest, scope: Scope) -> RestReply:
        conversation_id = request.path["conversation_id"]
        await self._conversations.delete(scope, conversation_id)
        return _message(
            conversation_pb.DeleteConversationResponse(id=conversation_id, deleted=True)
        )

    async def _create_items(self, request: RestRequest, scope: Scope) -> RestReply:
        read_parameters(conversation_pb.GetConversationItemRequest, request)
        asked = self._decode(conversation_pb.CreateConversationItemsRequest, request)
        return _message(await self._conversations.create_items(scope, asked))

    async def _list_items(self, request: RestRequest, scope: Scope) -> RestReply:
        asked = read_parameters(conversation_pb.ListConversationItemsRequest, request)
        page = await self._conversations.list_items(
            scope, asked.conversation_id, page_request(asked)
        )
        return _message(page)

    async def _get_item(self, request: RestRequest, scope: Scope) -> RestReply:
        asked = read_parameters(conversation_pb.GetConversationItemRequest, request)
        return _message(
            await self._conversations.get_item(scope, asked.conversation_id, asked.item_id)
        )

    async def _delete_item(self, request: RestRequest, scope: Scope) -> RestReply:
        path = request.path
        return _message(
            await self._conversations.delete_item(scope, path["conversation_id"], path["item_id"])
        )

    async def _list_models(self, request: RestRequest, scope: Scope) -> RestReply:
        models = [self._model(name) for name in self._engine.models]
        return _message(ListModelsResponse(data=models))

    async def _get_model(self, request: RestRequest, scope: Scope) -> RestReply:
        name = request.path["model"]
        if not self._engine.serves(name):
            raise ApiError(ErrorKind.MODEL_NOT_FOUND, "The model does not exist.", "model")
        return _message(self._model(name))

    def _model(self, name: str) -> Model:
        return Model(id=name, created=self._started, owned_by="antiphon")

    async def _get_open_api(self, request: RestRequest, scope: Scope) -> RestReply:
        if self._made_document is None:
            assert self._document is not None
            # Made when it is first asked for, and beside the loop: it takes a while.
            self._made_document = await asyncio.to_thread(self._document, self.built)
        return RestReply(200, JSON, self._made_document)

    async def _get_health(self, request: RestRequest, scope: Scope) -> RestReply:
        return _json('{"status":"ok"}')


async def _not_built(request: RestRequest, scope: Scope) -> RestReply:
    raise ApiError(ErrorKind.NOT_BUILT, "This operation is not built yet.")


def _json(text: str) -> RestReply:
    return RestReply(200, JSON, text.encode())


def _message(message: Any) -> RestReply:
    return _json(encode(message))


def _events(reader: EventReader) -> RestReply:
    return RestReply(200, _SSE, Frames(reader), HEADERS)
