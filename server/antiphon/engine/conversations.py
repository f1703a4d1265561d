"""Conversations: items that several responses share."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from antiphon.core.errors import ApiError, ErrorKind
from antiphon.core.ids import check_id, new_id
from antiphon.core.page import PageRequest, take_page
from antiphon.core.request import plain_items
from antiphon.core.scope import Scope
from antiphon.engine.context import stored_items
from antiphon.stores.protocol import (
    AlreadyExists,
    Appended,
    ConversationState,
    Store,
    StoredItem,
)
from antiphon.v1.conversation_pb2 import Conversation
from antiphon.v1.conversations_service_pb2 import (
    CreateConversationItemsRequest,
    CreateConversationRequest,
    UpdateConversationRequest,
)
from antiphon.v1.item_pb2 import Item, ItemPage

__all__ = ["Conversations", "conversation_not_found", "item_page"]


class Conversations:
    """Makes, changes and deletes conversations and their items.

    Args:
        store: where they are kept.
        clock: tells the time, in seconds since 1970.
    """

    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock

    async def create(self, scope: Scope, request: CreateConversationRequest) -> Conversation:
        """Makes a conversation.

        Args:
            scope: whose it is.
            request: the request, checked.

        Raises:
            ApiError: the id that the client chose is taken.
        """
        conversation = Conversation(
            id=request.id or new_id("conv"),
            created_at=int(self._clock()),
            metadata=request.metadata,
        )
        items = list(plain_items(request.items))
        state = ConversationState(
            conversation.SerializeToString(),
            # Their ids do not follow from one that the client chose, which may be of any length.
            _unique(stored_items(items, new_id("item")), frozenset()),
        )
        try:
            await self._store.create_conversation(scope, conversation.id, state)
        except AlreadyExists:
            message = "A conversation with this id exists already."
            raise ApiError(ErrorKind.ALREADY_EXISTS, message, "id") from None
        return conversation

    async def get(self, scope: Scope, conversation_id: str) -> Conversation:
        """Returns a conversation; raises ApiError if there is none."""
        state = await self._find(scope, conversation_id)
        return Conversation.FromString(state.data)

    async def update(self, scope: Scope, request: UpdateConversationRequest) -> Conversation:
        """Replaces a conversation's metadata; raises ApiError if there is none.

        Args:
            scope: whose it is.
            request: the request, checked.
        """
        conversation = await self.get(scope, request.conversation_id)
        conversation.ClearField("metadata")
        conversation.metadata.update(request.metadata)
        data = conversation.SerializeToString()
        if not await self._store.update_conversation(scope, conversation.id, data):
            raise conversation_not_found(conversation.id)
        return conversation

    async def delete(self, scope: Scope, conversation_id: str) -> None:
        """Deletes a conversation and its items; raises ApiError if there is none."""
        check_id(conversation_id, "conversation_id")
        if not await self._store.delete_conversation(scope, conversation_id):
            raise conversation_not_found(conversation_id)

    async def create_items(self, scope: Scope, request: CreateConversationItemsRequest) -> ItemPage:
        """Adds items to a conversation and returns them; raises ApiError if there is none.

        Args:
            scope: whose it is.
            request: the request, checked.
        """
        conversation_id = request.conversation_id
        async with self._locked(scope, conversation_id) as state:
            items = list(plain_items(request.items))
            known = frozenset(item.id for item in state.items)
            added = _unique(stored_items(items, new_id("item")), known)
            if not await self._store.append_items(scope, Appended(conversation_id, added)):
                raise conversation_not_found(conversation_id)
        return item_page(items, [item.id for item in added], has_more=False)

    async def list_items(self, scope: Scope, conversation_id: str, asked: PageRequest) -> ItemPage:
        """Returns a page of a conversation's items; raises ApiError if there is none.

        Args:
            scope: whose it is.
            conversation_id: the conversation's id.
            asked: which page.
        """
        state = await self._find(scope, conversation_id)
        ids = [item.id for item in state.items]
        page = take_page(ids, asked)
        items = [Item.FromString(state.items[place].data) for place in page.places]
        return item_page(items, [ids[place] for place in page.places], has_more=page.has_more)

    async def get_item(self, scope: Scope, conversation_id: str, item_id: str) -> Item:
        """Returns an item of a conversation; raises ApiError if there is none."""
        state = await self._find(scope, conversation_id)
        check_id(item_id, "item_id")
        for item in state.items:
            if item.id == item_id:
                return Item.FromString(item.data)
        raise _item_not_found(item_id)

    async def delete_item(self, scope: Scope, conversation_id: str, item_id: str) -> Conversation:
        """Deletes an item and returns its conversation; raises ApiError if there is none."""
        check_id(conversation_id, "conversation_id")
        check_id(item_id, "item_id")
        async with self._locked(scope, conversation_id) as state:
            if not await self._store.delete_item(scope, conversation_id, item_id):
                raise _item_not_found(item_id)
        return Conversation.FromString(state.data)

    @asynccontextmanager
    async def _locked(self, scope: Scope, conversation_id: str) -> AsyncIterator[ConversationState]:
        """Yields a conversation when it is its caller's turn to work on it."""
        found = await self._find(scope, conversation_id)
        async with self._store.lock_conversation(scope, conversation_id, found.incarnation):
            state = await self._find(scope, conversation_id)
            if state.incarnation != found.incarnation:
                raise conversation_not_found(conversation_id)
            yield state

    async def _find(self, scope: Scope, conversation_id: str) -> ConversationState:
        check_id(conversation_id, "conversation_id")
        state = await self._store.find_conversation(scope, conversation_id)
        if state is None:
            raise conversation_not_found(conversation_id)
        return state


def item_page(items: Sequence[Item], ids: Sequence[str], *, has_more: bool) -> ItemPage:
    """Returns a page of items.

    Args:
        items: the items, in the order asked for.
        ids: their ids.
        has_more: whether there are further ones.
    """
    return ItemPage(
        data=items,
        first_id=ids[0] if ids else "",
        last_id=ids[-1] if ids else "",
        has_more=has_more,
    )


def conversation_not_found(conversation_id: str, param: str = "conversation_id") -> ApiError:
    """Returns the error of a conversation that is not there, or is another scope's.

    Args:
        conversation_id: its id.
        param: the parameter that named it.
    """
    # The id has passed the check of its form, so that it is safe to repeat.
    message = f"Conversation with id '{conversation_id}' not found."
    return ApiError(ErrorKind.NOT_FOUND, message, param)


def _item_not_found(item_id: str) -> ApiError:
    message = f"Item with id '{item_id}' not found."
    return ApiError(ErrorKind.NOT_FOUND, message, "item_id")


def _unique(items: Sequence[StoredItem], known: frozenset[str]) -> Sequence[StoredItem]:
    """Refuses items whose ids are taken: an id of a conversation names one item."""
    seen = set(known)
    for index, item in enumerate(items):
        if item.id in seen:
            message = f"'items[{index}].id' is the id of another item of the conversation."
            raise ApiError(ErrorKind.ALREADY_EXISTS, message, f"items[{index}].id")
        seen.add(item.id)
    return items
