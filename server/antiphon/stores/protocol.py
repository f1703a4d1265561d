"""The Protocol of stores, written so that a store may be shared by several servers."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from antiphon.core.scope import Scope

__all__ = ["AlreadyExists", "Store", "Turn", "TurnContent", "TurnEnd"]


class AlreadyExists(Exception):
    """The id is taken in this scope."""


class TurnContent(NamedTuple):
    """What was said in a turn."""

    input: bytes
    """The turn's own input: a serialised `ItemList`."""
    response: bytes
    """The response, with its output: a serialised `Response`."""


class TurnEnd(NamedTuple):
    """How a turn ended, with what later turns ask of it."""

    response: bytes
    """The final response: a serialised `Response`."""
    tokens: int
    """The tokens of the whole history up to the end of this turn."""
    open_calls: frozenset[str] = frozenset()
    """The ids of the completed calls that the next turn has to answer."""


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

    async def read(self) -> TurnContent:
        """Reads what was said."""

    async def parent(self) -> Turn | None:
        """Returns the turn that this one continues."""


class Store(Protocol):
    """Keeps turns by scope and response id. Every method holds for one scope alone."""

    async def begin(
        self, scope: Scope, response_id: str, parent: Turn | None, content: TurnContent
    ) -> None:
        """Adds a turn whose response is not final.

        Args:
            scope: whose it is.
            response_id: the response's id.
            parent: the turn to continue, which is kept as long as this one.
            content: the input, and the response as it begins.

        Raises:
            AlreadyExists: the id is taken.
        """

    async def finish(self, scope: Scope, response_id: str, end: TurnEnd) -> bool:
        """Makes a response final, if it is there and not final yet.

        Args:
            scope: whose it is.
            response_id: the response's id.
            end: how it ended.

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
        """Deletes a turn; turns that continue it keep their whole history.

        Args:
            scope: whose it is.
            response_id: the response's id.

        Returns:
            Whether there was one.
        """
