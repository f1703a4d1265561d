"""The Protocol of stores, written so that a store may be shared by several servers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol

from antiphon.core.scope import Scope

__all__ = [
    "AlreadyExists",
    "Appended",
    "ConversationState",
    "HistoryTooLong",
    "Store",
    "StoredItem",
    "Turn",
    "TurnContent",
    "TurnEnd",
]


class AlreadyExists(Exception):
    """The id is taken in this scope."""


class HistoryTooLong(Exception):
    """The history to continue fills the bounds by itself."""


class TurnContent(NamedTuple):
    """What was said in a turn."""

    input: bytes
    """The turn's own input: a serialised `ItemList`."""
    response: bytes
    """The response, with its output: a serialised `Response`."""


class StoredItem(NamedTuple):
    """An item of a conversation."""

    id: str
    data: bytes
    """A serialised `Item`."""
    response_id: str = ""
    """The response that it is of, or ""."""
    calls: bool = False
    """Whether it is a call of a tool or an answer to one."""
    position: int = 0
    """Its place among all items that the conversation ever had; the store gives it."""


class Appended(NamedTuple):
    """What is added to a conversation."""

    conversation_id: str
    items: Sequence[StoredItem]
    """The items. One whose id is there already is not added again."""


class ConversationState(NamedTuple):
    """A conversation as it is."""

    data: bytes
    """A serialised `Conversation`."""
    items: Sequence[StoredItem]
    """Its items, oldest first."""
    incarnation: int = 0
    """What tells it from one that had its id before and was deleted."""
    position: int = 0
    """The place that its next item will have."""


class TurnEnd(NamedTuple):
    """How a turn ended, with what later turns ask of it."""

    response: bytes
    """The final response: a serialised `Response`."""
    tokens: int
    """The tokens of the whole history up to the end of this turn."""
    open_calls: frozenset[str] = frozenset()
    """The ids of the completed calls that the next turn has to answer."""
    appended: Appended | None = None
    """What the turn adds to a conversation, in the same step."""
    position: int = 0
    """The place in the conversation that came next when the turn read it."""


class Turn(Protocol):
    """One turn of a history: a handle that stays good when the turn is deleted or evicted."""

    @property
    def response_id(self) -> str:
        """The id of the turn's response."""

    @property
    def ended(self) -> bool:
        """Whether the response is final."""

    @property
    def tokens(self) -> int:
        """The tokens of the whole history up to the end of this turn."""

    @property
    def open_calls(self) -> frozenset[str]:
        """The ids of the completed calls that the next turn has to answer."""

    @property
    def conversation_id(self) -> str:
        """The conversation whose items came before this turn, or ""."""

    @property
    def incarnation(self) -> int:
        """The `ConversationState.incarnation` of that conversation as the turn began."""

    @property
    def position(self) -> int:
        """The place in its conversation that came next when the turn read it, once it has ended."""

    @property
    def replayable(self) -> bool:
        """Whether the events are kept, at least for a while."""

    async def read(self) -> TurnContent:
        """Reads what was said."""

    async def parent(self) -> Turn | None:
        """Returns the turn that this one continues."""


class Store(Protocol):
    """Keeps turns, their events and conversations. Every method holds for one scope alone."""

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
        """Adds a turn whose response is not final.

        Args:
            scope: whose it is.
            response_id: the response's id.
            parent: the turn to continue, which is kept as long as this one.
            content: the input, and the response as it begins.
            conversation_id: the conversation whose items come before, or "".
            replayable: whether events are going to be added.

        Raises:
            AlreadyExists: the id is taken.
            HistoryTooLong: the parent's history leaves no place for another turn.
        """

    async def finish(self, scope: Scope, response_id: str, end: TurnEnd) -> bool:
        """Makes a response final, if it is there and not final yet.

        Args:
            scope: whose it is.
            response_id: the response's id.
            end: how it ended. What it adds to a conversation is added in the same step, if the
                conversation that it began in is there.

        Returns:
            Whether it was written: False if the turn is gone or final already.
        """

    async def find(self, scope: Scope, response_id: str) -> Turn | None:
        """Finds a turn and counts it as used.

        Args:
            scope: whose it is.
            response_id: the response's id.
        """

    async def delete(self, scope: Scope, response_id: str) -> bool:
        """Deletes a turn, its events and its items in a conversation.

        Turns that continue it keep their whole history.

        Args:
            scope: whose it is.
            response_id: the response's id.

        Returns:
            Whether there was one.
        """

    async def append_events(
        self, scope: Scope, response_id: str, events: Sequence[bytes], *, last: bool
    ) -> None:
        """Adds the next events of a turn.

        Args:
            scope: whose it is.
            response_id: the response's id.
            events: serialised `ResponseStreamEvent` messages, in order.
            last: whether none follow: then their time to be kept begins.
        """

    async def read_events(
        self, scope: Scope, response_id: str, start: int
    ) -> Sequence[bytes] | None:
        """Reads the events of a turn from a sequence number on.

        Args:
            scope: whose it is.
            response_id: the response's id.
            start: the first sequence number to read.

        Returns:
            The events that are there, or None if they are no longer kept.
        """

    def lock_conversation(
        self, scope: Scope, conversation_id: str, incarnation: int
    ) -> AbstractAsyncContextManager[object]:
        """Returns what lets one holder at a time work on a conversation, in the order they ask.

        Args:
            scope: whose it is.
            conversation_id: the conversation's id.
            incarnation: which of those that had the id: one does not wait for another.
        """

    async def create_conversation(
        self, scope: Scope, conversation_id: str, state: ConversationState
    ) -> None:
        """Adds a conversation.

        Args:
            scope: whose it is.
            conversation_id: its id.
            state: its first state.

        Raises:
            AlreadyExists: the id is taken.
        """

    async def find_conversation(
        self, scope: Scope, conversation_id: str
    ) -> ConversationState | None:
        """Finds a conversation and counts it as used.

        Args:
            scope: whose it is.
            conversation_id: its id.
        """

    async def conversation_incarnation(self, scope: Scope, conversation_id: str) -> int:
        """Returns the incarnation of a conversation, or 0 if there is none.

        Args:
            scope: whose it is.
            conversation_id: its id.
        """

    async def update_conversation(self, scope: Scope, conversation_id: str, data: bytes) -> bool:
        """Replaces what a conversation says of itself.

        Args:
            scope: whose it is.
            conversation_id: its id.
            data: a serialised `Conversation`.

        Returns:
            Whether there was one.
        """

    async def delete_conversation(self, scope: Scope, conversation_id: str) -> bool:
        """Deletes a conversation and its items.

        Args:
            scope: whose it is.
            conversation_id: its id.

        Returns:
            Whether there was one.
        """

    async def append_items(self, scope: Scope, appended: Appended) -> bool:
        """Adds items to the end of a conversation, all of them or none.

        Args:
            scope: whose it is.
            appended: what to add, and to which conversation.

        Returns:
            Whether there was one.
        """

    async def delete_item(self, scope: Scope, conversation_id: str, item_id: str) -> bool:
        """Deletes an item of a conversation.

        Args:
            scope: whose it is.
            conversation_id: the conversation's id.
            item_id: the item's id.

        Returns:
            Whether there was one.
        """
