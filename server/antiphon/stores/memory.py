"""The store in memory: bounded, and gone with the process."""

from __future__ import annotations

import heapq
import itertools
from typing import Final

from antiphon.core.scope import Scope
from antiphon.stores.protocol import AlreadyExists, Turn, TurnContent, TurnEnd

__all__ = ["MemoryStore"]

_OVERHEAD: Final = 512
"""Bytes that a turn takes besides what was said: the object, its keys and its place in line."""


_SLACK: Final = 64
"""Places of deleted turns in the line that are not worth clearing."""


class _MemoryTurn:
    """A turn in memory."""

    __slots__ = (
        "children",
        "ended",
        "input",
        "key",
        "known",
        "open_calls",
        "previous",
        "queued",
        "response",
        "retained",
        "tokens",
        "used",
    )

    def __init__(
        self, key: tuple[Scope, str], previous: _MemoryTurn | None, content: TurnContent
    ) -> None:
        self.key = key
        self.previous = previous
        self.input = content.input
        self.response = content.response
        self.children = 0
        self.ended = False
        self.known = True
        """Whether its id can be found; a deleted turn may be retained for those after it."""
        self.retained = False
        """Whether it counts against the bounds."""
        self.queued = False
        """Whether it stands in line for eviction."""
        self.open_calls: frozenset[str] = frozenset()
        self.tokens = 0
        self.used = 0

    @property
    def response_id(self) -> str:
        return self.key[1]

    @property
    def size(self) -> int:
        return len(self.input) + len(self.response) + _OVERHEAD

    async def read(self) -> TurnContent:
        return TurnContent(self.input, self.response)

    async def parent(self) -> Turn | None:
        return self.previous


class MemoryStore:
    """Keeps turns in memory within bounds.

    What is evicted is the turn used longest ago among those that no other turn continues, so that
    a history never loses its beginning while its end is kept.

    Args:
        max_turns: the greatest number of turns retained.
        max_bytes: the greatest number of bytes retained, overhead included.
    """

    def __init__(self, max_turns: int, max_bytes: int) -> None:
        self._max_turns = max_turns
        self._max_bytes = max_bytes
        self._turns: dict[tuple[Scope, str], _MemoryTurn] = {}
        self._line: list[tuple[int, int, _MemoryTurn]] = []
        self._ticks = itertools.count(1)
        self._count = 0
        self._bytes = 0

    @property
    def retained_turns(self) -> int:
        """The number of turns in memory, deleted ones that others continue included."""
        return self._count

    @property
    def retained_bytes(self) -> int:
        """The bytes that the turns in memory take."""
        return self._bytes

    async def begin(
        self, scope: Scope, response_id: str, parent: Turn | None, content: TurnContent
    ) -> None:
        key = (scope, response_id)
        if key in self._turns:
            raise AlreadyExists
        if parent is not None and not isinstance(parent, _MemoryTurn):
            raise TypeError("the parent is of another store")
        turn = _MemoryTurn(key, parent, content)
        turn.used = next(self._ticks)
        self._turns[key] = turn
        self._retain(turn)
        if parent is not None:
            parent.used = turn.used
        self._evict()

    async def finish(self, scope: Scope, response_id: str, end: TurnEnd) -> bool:
        turn = self._turns.get((scope, response_id))
        if turn is None or turn.ended:
            return False
        self._bytes += len(end.response) - len(turn.response)
        turn.response = end.response
        turn.tokens = end.tokens
        turn.open_calls = end.open_calls
        turn.ended = True
        self._queue(turn)
        self._evict()
        return True

    async def find(self, scope: Scope, response_id: str) -> Turn | None:
        turn = self._turns.get((scope, response_id))
        if turn is not None:
            turn.used = next(self._ticks)
        return turn

    async def delete(self, scope: Scope, response_id: str) -> bool:
        turn = self._turns.pop((scope, response_id), None)
        if turn is None:
            return False
        turn.known = False
        self._release(turn)
        return True

    def _retain(self, turn: _MemoryTurn) -> None:
        """Counts a turn, and what it continues: that may have been evicted since it was found."""
        while not turn.retained:
            turn.retained = True
            self._count += 1
            self._bytes += turn.size
            if turn.previous is None:
                return
            turn.previous.children += 1
            turn = turn.previous

    def _release(self, turn: _MemoryTurn) -> None:
        """Lets go of a turn that cannot be found and that none continues, and so on upwards."""
        while not turn.known and not turn.children and turn.retained:
            turn.retained = False
            self._count -= 1
            self._bytes -= turn.size
            previous = turn.previous
            if previous is None:
                return
            previous.children -= 1
            if previous.known:
                self._queue(previous)
                return
            turn = previous

    def _queue(self, turn: _MemoryTurn) -> None:
        if turn.known and turn.ended and not turn.children and not turn.queued:
            turn.queued = True
            heapq.heappush(self._line, (turn.used, id(turn), turn))
            if len(self._line) > 2 * self._count + _SLACK:
                # Most places are of turns that were deleted, which the line keeps in memory.
                self._line = [place for place in self._line if place[2].known]
                heapq.heapify(self._line)

    def _evict(self) -> None:
        while self._line and (self._count > self._max_turns or self._bytes > self._max_bytes):
            used, _, turn = heapq.heappop(self._line)
            turn.queued = False
            if not turn.known or turn.children:
                continue
            if turn.used != used:
                # Used since it took its place: it goes back to where it belongs now.
                self._queue(turn)
                continue
            del self._turns[turn.key]
            turn.known = False
            self._release(turn)
