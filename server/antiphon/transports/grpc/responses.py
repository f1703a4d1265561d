"""The typed Responses service."""

from __future__ import annotations

from antiphon.core.errors import ApiError, ErrorKind
from antiphon.engine.engine import Engine
from antiphon.engine.reader import EventReader
from antiphon.transports.grpc.call import entered
from antiphon.transports.grpc.status import Context
from antiphon.transports.identity import Gate
from antiphon.transports.paging import page_request
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
        gate: what lets calls in.
    """

    def __init__(self, engine: Engine, gate: Gate | None = None) -> None:
        self._engine = engine
        self._gate = gate if gate is not None else Gate()

    async def CreateResponse(self, request: pb.CreateResponseRequest, context: Context) -> Response:
        request.stream = False
        async with entered(self._gate, request, context) as scope:
            run = await self._engine.create(scope, request)
        if run.background:
            return run.current()
        return (await run.result()).response

    async def StreamResponse(  # type: ignore[override]
        self, request: pb.CreateResponseRequest, context: Context
    ) -> None:
        request.stream = True
        async with entered(self._gate, request, context) as scope:
            run = await self._engine.create(scope, request)
        assert run.client is not None
        await _send(run.client, context)

    async def GetResponse(self, request: pb.GetResponseRequest, context: Context) -> Response:
        async with entered(self._gate, request, context) as scope:
            snapshot = await self._engine.get(scope, request.response_id)
        return snapshot.response

    async def StreamResponseEvents(  # type: ignore[override]
        self, request: pb.StreamResponseEventsRequest, context: Context
    ) -> None:
        after = request.starting_after if request.HasField("starting_after") else -1
        async with entered(self._gate, request, context) as scope:
            reader = await self._engine.follow(scope, request.response_id, after)
        await _send(reader, context)

    async def DeleteResponse(
        self, request: pb.DeleteResponseRequest, context: Context
    ) -> pb.DeleteResponseResponse:
        async with entered(self._gate, request, context) as scope:
            await self._engine.delete(scope, request.response_id)
        return pb.DeleteResponseResponse(id=request.response_id, deleted=True)

    async def CancelResponse(self, request: pb.CancelResponseRequest, context: Context) -> Response:
        async with entered(self._gate, request, context) as scope:
            snapshot = await self._engine.cancel(scope, request.response_id)
        return snapshot.response

    async def ListInputItems(self, request: pb.ListInputItemsRequest, context: Context) -> ItemPage:
        async with entered(self._gate, request, context) as scope:
            asked = page_request(request)
            page = await self._engine.list_input_items(scope, request.response_id, asked)
        return page

    async def CompactResponse(
        self, request: pb.CompactResponseRequest, context: Context
    ) -> CompactedResponse:
        async with entered(self._gate, request, context):
            raise _not_built()

    async def CountInputTokens(
        self, request: pb.CountInputTokensRequest, context: Context
    ) -> pb.CountInputTokensResponse:
        async with entered(self._gate, request, context):
            raise _not_built()


def _not_built() -> ApiError:
    return ApiError(ErrorKind.NOT_BUILT, "This operation is not built yet.")


async def _send(reader: EventReader, context: Context) -> None:
    try:
        while entries := await reader.read():
            for entry in entries:
                for message in entry.messages:
                    await context.write(message)
    finally:
        reader.close()
