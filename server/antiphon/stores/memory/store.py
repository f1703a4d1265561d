"""The store in memory: each project's turns, events and conversations within its own bounds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from weakref import WeakValueDictionary

from antiphon.core.scope import Scope
from antiphon.stores.memory.conversations import ConversationMemory
from antiphon.stores.memory.events import EventMemory
from antiphon.stores.memory.turns import TurnMemory
from antiphon.stores.protocol import Appended, ConversationState, Turn, TurnContent, TurnEnd

__all__ = ["Bounds", "MemoryStore"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What is kept of one project.

    Args:
        max_turns: the greatest number of turns.
        max_bytes: the greatest number of bytes of turns.
        turn_ttl_seconds: how long a turn is kept after its end, or None for ever.
        max_event_bytes: the greatest number of bytes of the events of ended runs.
        event_ttl_seconds: how long events are kept after the end of their run.
        max_conversations: the greatest number of conversations.
        max_conversation_bytes: the greatest number of bytes of conversations.
        conversation_ttl_seconds: how long a conversation is kept after its last use, or None.
    """

    max_turns: int = 10_000
    max_bytes: int = 1 << 30
    turn_ttl_seconds: float | None = None
    max_event_bytes: int = 1 << 28
    event_ttl_seconds: float = 600.0
    max_conversations: int = 10_000
    max_conversation_bytes: int = 1 << 30
    conversation_ttl_seconds: float | None = None


class _Project:
    """What is kept of one project: another project cannot push it out."""

    __slots__ = ("conversations", "events", "turns")

    def __init__(self, bounds: Bounds) -> None:
        self.events = EventMemory(bounds.max_event_bytes, bounds.event_ttl_seconds)
        self.conversations = ConversationMemory(
            bounds.max_conversations,
            bounds.max_conversation_bytes,
            bounds.conversation_ttl_seconds,
        )
        self.turns = TurnMemory(
            bounds.max_turns, bounds.max_bytes, bounds.turn_ttl_seconds, self.events.drop
        )


class MemoryStore:
    """Keeps everything in memory.

    Args:
        bounds: what is kept of each project.
        clock: tells the time, in seconds.
    """

    def __init__(
        self, bounds: Bounds | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._bounds = bounds if bounds is not None else Bounds()
        self._clock = clock
        self._projects: dict[str, _Project] = {}
        self._locks: WeakValueDictionary[tuple[Scope, str, int], asyncio.Lock] = (
            WeakValueDictionary()
        )

    @property
    def retained_turns(self) -> int:
        """The number of turns in memory, deleted ones that others continue included."""
        return sum(project.turns.retained_turns for project in self._projects.values())

    @property
    def retained_bytes(self) -> int:
        """The bytes that turns, events and conversations take."""
        return sum(
            project.turns.retained_bytes
            + project.events.retained_bytes
            + project.conversations.retained_bytes
            for project in self._projects.values()
        )

    def _project(self, scope: Scope) -> _Project:
        project = self._projects.get(scope.project)
        if project is None:
            project = self._projects[scope.project] = _Project(self._bounds)
        return project

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
        project = self._project(scope)
        key = (scope, response_id)
        turn = project.turns.begin(key, parent, content, conversation_id, replayable=replayable)
        if conversation_id:
            conversation = (scope, conversation_id)
            turn.incarnation = project.conversations.incarnation(conversation, self._clock())
        if replayable:
            project.events.open(key)

    async def finish(self, scope: Scope, response_id: str, end: TurnEnd) -> bool:
        project = self._project(scope)
        now = self._clock()
        turn = project.turns.finish((scope, response_id), end, now)
        if turn is not None and end.appended is not None:
            project.conversations.append(scope, end.appended, now, turn.incarnation)
        return turn is not None

    async def find(self, scope: Scope, response_id: str) -> Turn | None:
        return self._project(scope).turns.find((scope, response_id), self._clock())

    async def delete(self, scope: Scope, response_id: str) -> bool:
        project = self._project(scope)
        turn = project.turns.delete((scope, response_id), self._clock())
        if turn is None:
            return False
        project.events.drop(turn.key)
        if turn.conversation_id:
            project.conversations.prune((scope, turn.conversation_id), response_id)
        return True

    async def append_events(
        self, scope: Scope, response_id: str, events: Sequence[bytes], *, last: bool
    ) -> None:
        key = (scope, response_id)
        self._project(scope).events.append(key, events, self._clock(), last=last)

    async def read_events(
        self, scope: Scope, response_id: str, start: int
    ) -> Sequence[bytes] | None:
        return self._project(scope).events.read((scope, response_id), start, self._clock())

    def lock_conversation(
        self, scope: Scope, conversation_id: str, incarnation: int
    ) -> asyncio.Lock:
        key = (scope, conversation_id, incarnation)
        lock = self._locks.get(key)
        if lock is None:
            lock = self._locks[key] = asyncio.Lock()
        return lock

    async def create_conversation(
        self, scope: Scope, conversation_id: str, state: ConversationState
    ) -> None:
        conversations = self._project(scope).conversations
        conversations.create((scope, conversation_id), state, self._clock())

    async def find_conversation(
        self, scope: Scope, conversation_id: str
    ) -> ConversationState | None:
        return self._project(scope).conversations.find((scope, conversation_id), self._clock())

    async def conversation_incarnation(self, scope: Scope, conversation_id: str) -> int:
        conversations = self._project(scope).conversations
        return conversations.incarnation((scope, conversation_id), self._clock())

    async def update_conversation(self, scope: Scope, conversation_id: str, data: bytes) -> bool:
        conversations = self._project(scope).conversations
        return conversations.update((scope, conversation_id), data, self._clock())

    async def delete_conversation(self, scope: Scope, conversation_id: str) -> bool:
        conversations = self._project(scope).conversations
        return conversations.delete((scope, conversation_id), self._clock())

    async def append_items(self, scope: Scope, appended: Appended) -> bool:
        return self._project(scope).conversations.append(scope, appended, self._clock())

    async def delete_item(self, scope: Scope, conversation_id: str, item_id: str) -> bool:
        conversations = self._project(scope).conversations
        return conversations.delete_item((scope, conversation_id), item_id, self._clock())
