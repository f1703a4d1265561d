"""The typed Conversations service."""

from __future__ import annotations

from antiphon.engine.conversations import Conversations
from antiphon.transports.grpc.call import entered
from antiphon.transports.grpc.status import Context
from antiphon.transports.identity import Gate
from antiphon.transports.paging import page_request
from antiphon.v1 import conversations_service_pb2 as pb
from antiphon.v1.conversation_pb2 import Conversation
from antiphon.v1.conversations_service_pb2_grpc import ConversationsServiceServicer
from antiphon.v1.item_pb2 import Item, ItemPage

__all__ = ["ConversationsServicer"]


class ConversationsServicer(ConversationsServiceServicer):
    """Adapts calls of `ConversationsService` to the engine.

    Args:
        conversations: what does the work.
        gate: what lets calls in.
    """

    def __init__(self, conversations: Conversations, gate: Gate | None = None) -> None:
        self._conversations = conversations
        self._gate = gate if gate is not None else Gate()

    async def CreateConversation(
        self, request: pb.CreateConversationRequest, context: Context
    ) -> Conversation:
        async with entered(self._gate, request, context) as scope:
            made = await self._conversations.create(scope, request)
        return made

    async def GetConversation(
        self, request: pb.GetConversationRequest, context: Context
    ) -> Conversation:
        async with entered(self._gate, request, context) as scope:
            found = await self._conversations.get(scope, request.conversation_id)
        return found

    async def UpdateConversation(
        self, request: pb.UpdateConversationRequest, context: Context
    ) -> Conversation:
        async with entered(self._gate, request, context) as scope:
            updated = await self._conversations.update(scope, request)
        return updated

    async def DeleteConversation(
        self, request: pb.DeleteConversationRequest, context: Context
    ) -> pb.DeleteConversationResponse:
        async with entered(self._gate, request, context) as scope:
            await self._conversations.delete(scope, request.conversation_id)
        return pb.DeleteConversationResponse(id=request.conversation_id, deleted=True)

    async def CreateConversationItems(
        self, request: pb.CreateConversationItemsRequest, context: Context
    ) -> ItemPage:
        async with entered(self._gate, request, context) as scope:
            page = await self._conversations.create_items(scope, request)
        return page

    async def ListConversationItems(
        self, request: pb.ListConversationItemsRequest, context: Context
    ) -> ItemPage:
        async with entered(self._gate, request, context) as scope:
            asked = page_request(request)
            page = await self._conversations.list_items(scope, request.conversation_id, asked)
        return page

    async def GetConversationItem(
        self, request: pb.GetConversationItemRequest, context: Context
    ) -> Item:
        async with entered(self._gate, request, context) as scope:
            item = await self._conversations.get_item(
                scope, request.conversation_id, request.item_id
            )
        return item

    async def DeleteConversationItem(
        self, request: pb.DeleteConversationItemRequest, context: Context
    ) -> Conversation:
        async with entered(self._gate, request, context) as scope:
            conversation = await self._conversations.delete_item(
                scope, request.conversation_id, request.item_id
            )
        return conversation
