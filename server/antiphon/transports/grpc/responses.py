"""The typed Responses service."""

from __future__ import annotations

from typing import NoReturn

from antiphon.core.errors import ApiError, ErrorKind, invalid
from antiphon.core.scope import Scope
from antiphon.engine.engine import Engine
from antiphon.json import InvalidValue, check
from antiphon.transports.grpc.status import Context, refuse
from antiphon.v1 import responses_service_pb2 as pb
from antiphon.v1.compacted_response_pb2 import CompactedResponse
from antiphon.v1.item_pb2 import ItemPage
from antiphon.v1.response_pb2 import Response
from antiphon.v1.responses_service_pb2_grpc import ResponsesServiceServicer

__all__ = ["ResponsesServicer"]


class ResponsesServicer(ResponsesServiceServicer):
    """Adapts calls of `ResponsesService` to the engine.

    Args:
        engine: what does the work.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def CreateResponse(self, request: pb.CreateResponseRequest, context: Context) -> Response:
        request.stream = False
        try:
            check(request)
            run = await self._engine.create(Scope(), request)
        except InvalidValue as error:
            await refuse(context, invalid(error))
        except ApiError as error:
            await refuse(context, error)
        return (await run.result()).response

    async def StreamResponse(  # type: ignore[override]
        self, request: pb.CreateResponseRequest, context: Context
    ) -> None:
        request.stream = True
        try:
            check(request)
            run = await self._engine.create(Scope(), request)
        except InvalidValue as error:
            await refuse(context, invalid(error))
        except ApiError as error:
            await refuse(context, error)
        reader = run.client
        assert reader is not None
        try:
            while events := await reader.read():
                for event in events:
                    await context.write(event.message)
        finally:
            reader.close()
            run.cancel()

    async def GetResponse(self, request: pb.GetResponseRequest, context: Context) -> Response:
        try:
            check(request)
            return (await self._engine.get(Scope(), request.response_id)).response
        except InvalidValue as error:
            await refuse(context, invalid(error))
        except ApiError as error:
            await refuse(context, error)

    async def DeleteResponse(
        self, request: pb.DeleteResponseRequest, context: Context
    ) -> pb.DeleteResponseResponse:
        try:
            await self._engine.delete(Scope(), request.response_id)
        except ApiError as error:
            await refuse(context, error)
        return pb.DeleteResponseResponse(id=request.response_id, deleted=True)

    async def StreamResponseEvents(  # type: ignore[override]
        self, request: pb.StreamResponseEventsRequest, context: Context
    ) -> None:
        await _not_built(context)

    async def CancelResponse(self, request: pb.CancelResponseRequest, context: Context) -> Response:
        await _not_built(context)

    async def ListInputItems(self, request: pb.ListInputItemsRequest, context: Context) -> ItemPage:
        await _not_built(context)

    async def CompactResponse(
        self, request: pb.CompactResponseRequest, context: Context
    ) -> CompactedResponse:
        await _not_built(context)

    async def CountInputTokens(
        self, request: pb.CountInputTokensRequest, context: Context
    ) -> pb.CountInputTokensResponse:
        await _not_built(context)


async def _not_built(context: Context) -> NoReturn:
    await refuse(context, ApiError(ErrorKind.NOT_BUILT, "This operation is not built yet."))
