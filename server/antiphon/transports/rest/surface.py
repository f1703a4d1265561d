"""The whole REST surface: from a routed request to its reply."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection
from typing import Final, TypeVar

from google.protobuf.message import Message

from antiphon.core.errors import ApiError, ErrorKind, invalid
from antiphon.core.request import request_context
from antiphon.core.scope import Scope
from antiphon.engine.engine import Engine
from antiphon.json import InvalidValue, check, decode, encode
from antiphon.transports.rest.compression import decompress
from antiphon.transports.rest.message import JSON, RestReply, RestRequest, error_reply
from antiphon.transports.rest.sse import HEADERS, Frames, snapshot_json
from antiphon.v1.model_pb2 import ListModelsResponse, Model
from antiphon.v1.responses_service_pb2 import (
    CreateResponseRequest,
    DeleteResponseResponse,
    GetResponseRequest,
)

M = TypeVar("M", bound=Message)

__all__ = ["MAX_BODY_BYTES", "RestSurface"]

MAX_BODY_BYTES: Final = 64 * 1024 * 1024
"""The greatest size of a request's body, unless configured."""


class RestSurface:
    """Answers REST requests.

    Args:
        engine: what does the work.
        max_body_bytes: the greatest size of a request's body, as it is sent and as it is decoded.
        strict_fields: whether unknown parameters are refused.
        document: makes the OpenAPI document, given the names of the operations that are built.
        clock: tells the time, in seconds since 1970.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        max_body_bytes: int = MAX_BODY_BYTES,
        strict_fields: bool = False,
        document: Callable[[Collection[str]], bytes] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._engine = engine
        self._max_body_bytes = max_body_bytes
        self._strict_fields = strict_fields
        self._started = int(clock())
        self._operations: dict[str, Callable[[RestRequest], Awaitable[RestReply]]] = {
            "CreateResponse": self._create_response,
            "GetResponse": self._get_response,
            "DeleteResponse": self._delete_response,
            "ListModels": self._list_models,
            "GetModel": self._get_model,
            "GetHealth": self._get_health,
        }
        self._document = document
        self._made_document: bytes | None = None
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
        try:
            operation = self._operations.get(request.operation, _not_built)
            return await operation(request)
        except InvalidValue as error:
            return error_reply(invalid(error))
        except ApiError as error:
            return error_reply(error)

    def _decode(self, message: type[M], request: RestRequest) -> M:
        """Reads the message that a request's body holds."""
        if len(request.body) > self._max_body_bytes:
            text = f"The request body is larger than {self._max_body_bytes} bytes."
            raise ApiError(ErrorKind.TOO_LARGE, text)
        coding = request.headers.get("content-encoding", "")
        body = decompress(request.body, coding, self._max_body_bytes)
        return decode(message, body, strict=self._strict_fields)

    async def _create_response(self, request: RestRequest) -> RestReply:
        asked = self._decode(CreateResponseRequest, request)
        context = request.query.get("request_context")
        if context and not asked.HasField("request_context"):
            asked.request_context = request_context(context[-1])
        run = await self._engine.create(Scope(), asked)
        if asked.stream:
            return RestReply(200, "text/event-stream; charset=utf-8", Frames(run), HEADERS)
        return _json(snapshot_json(await run.result()))

    async def _get_response(self, request: RestRequest) -> RestReply:
        asked = GetResponseRequest(
            response_id=request.path["response_id"], include=request.query.get("include", ())
        )
        check(asked)
        stream = request.query.get("stream", ("",))[-1]
        if stream == "true":
            raise ApiError(ErrorKind.NOT_BUILT, "'stream' is not built yet.", "stream")
        if stream not in ("", "false"):
            message = "'stream' must be one of 'true', 'false'."
            raise ApiError(ErrorKind.INVALID_VALUE, message, "stream", "invalid_value")
        snapshot = await self._engine.get(Scope(), asked.response_id)
        return _json(snapshot_json(snapshot))

    async def _delete_response(self, request: RestRequest) -> RestReply:
        response_id = request.path["response_id"]
        await self._engine.delete(Scope(), response_id)
        return _json(encode(DeleteResponseResponse(id=response_id, deleted=True)))

    async def _list_models(self, request: RestRequest) -> RestReply:
        models = [self._model(name) for name in self._engine.models]
        return _json(encode(ListModelsResponse(data=models)))

    async def _get_model(self, request: RestRequest) -> RestReply:
        name = request.path["model"]
        if not self._engine.serves(name):
            raise ApiError(ErrorKind.MODEL_NOT_FOUND, "The model does not exist.", "model")
        return _json(encode(self._model(name)))

    def _model(self, name: str) -> Model:
        return Model(id=name, created=self._started, owned_by="antiphon")

    async def _get_open_api(self, request: RestRequest) -> RestReply:
        if self._made_document is None:
            assert self._document is not None
            # Made when it is first asked for, and beside the loop: it takes a while.
            self._made_document = await asyncio.to_thread(self._document, self.built)
        return RestReply(200, JSON, self._made_document)

    async def _get_health(self, request: RestRequest) -> RestReply:
        return _json('{"status":"ok"}')


async def _not_built(request: RestRequest) -> RestReply:
    raise ApiError(ErrorKind.NOT_BUILT, "This operation is not built yet.")


def _json(text: str) -> RestReply:
    return RestReply(200, JSON, text.encode())
