"""Conversations in memory."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from antiphon.core.scope import Scope
from antiphon.stores.protocol import AlreadyExists, Appended, ConversationState, StoredItem

__all__ = ["ConversationMemory"]

_OVERHEAD: Final = 256
"""Bytes that a conversation or an item takes besides what it says."""

Key = tuple[Scope, str]


class _Conversation:
    """A conversation, with its items in order."""

    __slots__ = ("data", "incarnation", "items", "position", "size", "used_at")

    def __init__(self, data: bytes, incarnation: int) -> None:
        self.data = data
        self.incarnation = incarnation
        self.items: dict[str, StoredItem] = {}
        self.position = 0
        self.size = len(data) + _OVERHEAD
        self.used_at = 0.0


class ConversationMemory:
    """Keeps conversations within bounds; the one used longest ago goes first.

    Args:
        max_conversations: the greatest number of conversations.
        max_bytes: the greatest number of bytes, overhead included.
        ttl_seconds: how long a conversation is kept after its last use, or None for ever.
    """

    def __init__(self, max_conversations: int, max_bytes: int, ttl_seconds: float | None) -> None:
        self._max_conversations = max_conversations
        self._max_bytes = max_bytes
        self._ttl = ttl_seconds
        self._conversations: OrderedDict[Key, _Conversation] = OrderedDict()
        self._incarnations = itertools.count(1)
        self._bytes = 0

    @property
    def retained_conversations(self) -> int:
        """The number of conversations in memory."""
        return len(self._conversations)

    @property
    def retained_bytes(self) -> int:
        """The bytes that they take."""
        return self._bytes

    def create(self, key: Key, state: ConversationState, now: float) -> None:
        """Adds a conversation; raises AlreadyExists if the id is taken."""
        if self._use(key, now) is not None:
            raise AlreadyExists
        conversation = _Conversation(state.data, next(self._incarnations))
        conversation.used_at = now
        self._conversations[key] = conversation
        self._bytes += conversation.size
        self._extend(conversation, state.items)
        self._evict()

    def find(self, key: Key, now: float) -> ConversationState | None:
        """Returns a conversation as it is."""
        conversation = self._use(key, now)
        if conversation is None:
            return None
        return ConversationState(
            conversation.data,
            list(conversation.items.values()),
            conversation.incarnation,
            conversation.position,
        )

    def incarnation(self, key: Key, now: float) -> int:
        """Returns the incarnation of a conversation, or 0 if there is none."""
        conversation = self._use(key, now)
        return 0 if conversation is None else conversation.incarnation

    def update(self, key: Key, data: bytes, now: float) -> bool:
        """Replaces what a conversation says of itself."""
        conversation = self._use(key, now)
        if conversation is None:
            return False
        self._grow(conversation, len(data) - len(conversation.data))
        conversation.data = data
        self._evict()
        return True

    def delete(self, key: Key, now: float) -> bool:
        """Deletes a conversation."""
        self._expire(now)
        return self._drop(key)

    def _drop(self, key: Key) -> bool:
        conversation = self._conversations.pop(key, None)
        if conversation is None:
            return False
        self._bytes -= conversation.size
        return True

    def append(
        self, scope: Scope, appended: Appended, now: float, incarnation: int | None = None
    ) -> bool:
        """Adds items; if an incarnation is given, to that one alone."""
        conversation = self._use((scope, appended.conversation_id), now)
        if conversation is None or incarnation not in (None, conversation.incarnation):
            return False
        self._extend(conversation, appended.items)
        self._evict()
        return True

    def delete_item(self, key: Key, item_id: str, now: float) -> bool:
        """Deletes an item."""
        conversation = self._use(key, now)
        item = conversation.items.pop(item_id, None) if conversation is not None else None
        if conversation is None or item is None:
            return False
        self._grow(conversation, -len(item.data) - _OVERHEAD)
        return True

    def prune(self, key: Key, response_id: str) -> None:
        """Deletes the items of a response."""
        conversation = self._conversations.get(key)
        if conversation is None:
            return
        items = list(conversation.items.values())
        for item in items:
            if item.response_id == response_id:
                del conversation.items[item.id]
                self._grow(conversation, -len(item.data) - _OVERHEAD)

    def _extend(self, conversation: _Conversation, items: Sequence[StoredItem]) -> None:
        for item in items:
            if item.id not in conversation.items:
                conversation.items[item.id] = item._replace(position=conversation.position)
                conversation.position += 1
                self._grow(conversation, len(item.data) + _OVERHEAD)

    def _grow(self, conversation: _Conversation, size: int) -> None:
        conversation.size += size
        self._bytes += size

    def _use(self, key: Key, now: float) -> _Conversation | None:
        self._expire(now)
        conversation = self._conversations.get(key)
        if conversation is not None:
            conversation.used_at = now
            self._conversations.move_to_end(key)
        return conversation

    def _expire(self, now: float) -> None:
        while self._ttl is not None and self._conversations:
            key, conversation = next(iter(self._conversations.items()))
            if conversation.used_at + self._ttl > now:
                return
            self._drop(key)

    def _evict(self) -> None:
        while self._conversations and (
            len(self._conversations) > self._max_conversations or self._bytes > self._max_bytes
        ):
            self._drop(next(iter(self._conversations)))
