"""Turns in memory."""

from __future__ import annotations

import heapq
import itertools
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from antiphon.core.scope import Scope
from antiphon.stores.protocol import AlreadyExists, HistoryTooLong, Turn, TurnContent, TurnEnd

__all__ = ["MemoryTurn", "TurnMemory"]

Key = tuple[Scope, str]

_OVERHEAD: Final = 512
"""Bytes that a turn takes besides what was said: the object, its keys and its place in line."""

_SLACK: Final = 64
"""Places of deleted turns in the line that are not worth clearing."""


class MemoryTurn:
    """A turn in memory."""

    __slots__ = (
        "children",
        "conversation_id",
        "depth",
        "ended",
        "incarnation",
        "input",
        "key",
        "known",
        "open_calls",
        "position",
        "previous",
        "queued",
        "replayable",
        "response",
        "retained",
        "tokens",
        "used",
        "weight",
    )

    def __init__(
        self,
        key: Key,
        previous: MemoryTurn | None,
        content: TurnContent,
        conversation_id: str,
        *,
        replayable: bool,
    ) -> None:
        self.key = key
        self.conversation_id = conversation_id
        self.incarnation = 0
        self.position = 0
        self.depth: int = 1 if previous is None else previous.depth + 1
        """The number of turns of the history."""
        self.weight = 0
        """The bytes of the history up to the end of this turn, once it has ended."""
        self.replayable = replayable
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


class TurnMemory:
    """Keeps turns in memory within bounds.

    What is evicted is the turn used longest ago among those that no other turn continues, so that
    a history never loses its beginning while its end is kept.

    Args:
        max_turns: the greatest number of turns retained.
        max_bytes: the greatest number of bytes retained, overhead included.
        ttl_seconds: how long a turn is kept after its end, or None for ever.
        when_gone: called with the key of a turn that was evicted or whose time was up.
    """

    def __init__(
        self,
        max_turns: int,
        max_bytes: int,
        ttl_seconds: float | None,
        when_gone: Callable[[Key], object],
    ) -> None:
        self._max_turns = max_turns
        self._max_bytes = max_bytes
        self._ttl = ttl_seconds
        self._when_gone = when_gone
        self._turns: dict[Key, MemoryTurn] = {}
        self._line: list[tuple[int, int, MemoryTurn]] = []
        self._expiring: OrderedDict[Key, float] = OrderedDict()
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

    def begin(
        self,
        key: Key,
        parent: Turn | None,
        content: TurnContent,
        conversation_id: str,
        *,
        replayable: bool,
    ) -> MemoryTurn:
        """Adds a turn and returns it; raises AlreadyExists or HistoryTooLong."""
        if key in self._turns:
            raise AlreadyExists
        if parent is not None and not isinstance(parent, MemoryTurn):
            raise TypeError("the parent is of another store")
        if parent is not None and (
            parent.depth >= self._max_turns or parent.weight >= self._max_bytes
        ):
            raise HistoryTooLong
        turn = MemoryTurn(key, parent, content, conversation_id, replayable=replayable)
        turn.used = next(self._ticks)
        self._turns[key] = turn
        self._retain(turn)
        if parent is not None:
            parent.used = turn.used
        self._evict()
        return turn

    def finish(self, key: Key, end: TurnEnd, now: float) -> MemoryTurn | None:
        """Makes a turn final, and returns it if it was there and not final."""
        turn = self._turns.get(key)
        if turn is None or turn.ended:
            return None
        self._bytes += len(end.response) - len(turn.response)
        turn.response = end.response
        turn.tokens = end.tokens
        turn.open_calls = end.open_calls
        turn.position = end.position
        turn.weight = turn.size + (turn.previous.weight if turn.previous is not None else 0)
        if self._ttl is not None:
            self._expiring[key] = now + self._ttl
            self._expire(now)
        # Final after the eviction, and in line: its client is about to hear of it, and may go on
        # from it.
        self._evict()
        turn.ended = True
        self._queue(turn)
        return turn

    def find(self, key: Key, now: float) -> MemoryTurn | None:
        """Finds a turn and counts it as used."""
        self._expire(now)
        turn = self._turns.get(key)
        if turn is not None:
            turn.used = next(self._ticks)
        return turn

    def delete(self, key: Key, now: float) -> MemoryTurn | None:
        """Deletes a turn, and returns it if there was one."""
        self._expire(now)
        turn = self._turns.pop(key, None)
        if turn is not None:
            turn.known = False
            self._expiring.pop(key, None)
            self._release(turn)
        return turn

    def _retain(self, turn: MemoryTurn) -> None:
        """Counts a turn, and what it continues: that may have been evicted since it was found."""
        while not turn.retained:
            turn.retained = True
            self._count += 1
            self._bytes += turn.size
            if turn.previous is None:
                return
            turn.previous.children += 1
            turn = turn.previous

    def _release(self, turn: MemoryTurn) -> None:
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

    def _queue(self, turn: MemoryTurn) -> None:
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
            self._forget(turn)

    def _expire(self, now: float) -> None:
        while self._expiring:
            key, until = next(iter(self._expiring.items()))
            if until > now:
                return
            self._forget(self._turns[key])

    def _forget(self, turn: MemoryTurn) -> None:
        del self._turns[turn.key]
        self._expiring.pop(turn.key, None)
        turn.known = False
        self._release(turn)
        self._when_gone(turn.key)
