"""Events in memory: kept for a while after their run has ended."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from antiphon.core.scope import Scope

__all__ = ["EventMemory"]

_OVERHEAD: Final = 64
"""Bytes that an event takes besides its message."""


class _Log:
    """The events of one run."""

    __slots__ = ("ended_at", "events", "size")

    def __init__(self) -> None:
        self.events: list[bytes] = []
        self.size = 0
        self.ended_at: float | None = None


class EventMemory:
    """Keeps the events of runs.

    Those of a run in flight are kept whole. After its end they are dropped when their time is up
    or, the oldest first, when there are too many bytes.

    Args:
        max_bytes: the greatest number of bytes kept of ended runs, overhead included.
        ttl_seconds: how long events are kept after the end of their run.
    """

    def __init__(self, max_bytes: int, ttl_seconds: float) -> None:
        self._max_bytes = max_bytes
        self._ttl = ttl_seconds
        self._logs: dict[tuple[Scope, str], _Log] = {}
        self._ended: OrderedDict[tuple[Scope, str], _Log] = OrderedDict()
        self._bytes = 0

    @property
    def retained_bytes(self) -> int:
        """The bytes that all events take, those of runs in flight included."""
        return self._bytes

    def open(self, key: tuple[Scope, str]) -> None:
        """Begins to keep a run's events."""
        self._logs[key] = _Log()

    def append(
        self, key: tuple[Scope, str], events: Sequence[bytes], now: float, *, last: bool
    ) -> None:
        """Adds events to a run's, if they are kept."""
        log = self._logs.get(key)
        if log is None or log.ended_at is not None:
            return
        log.events.extend(events)
        size = sum(map(len, events)) + _OVERHEAD * len(events)
        log.size += size
        self._bytes += size
        if last:
            log.ended_at = now
            self._ended[key] = log
        self.expire(now)

    def read(self, key: tuple[Scope, str], start: int, now: float) -> Sequence[bytes] | None:
        """Returns a run's events from a number on, or None if they are not kept."""
        self.expire(now)
        log = self._logs.get(key)
        return None if log is None else log.events[start:]

    def drop(self, key: tuple[Scope, str]) -> None:
        """Drops a run's events."""
        log = self._logs.pop(key, None)
        if log is not None:
            self._bytes -= log.size
            self._ended.pop(key, None)

    def expire(self, now: float) -> None:
        """Drops the events whose time is up, and the oldest while there are too many bytes."""
        while self._ended:
            key, log = next(iter(self._ended.items()))
            assert log.ended_at is not None
            if log.ended_at + self._ttl > now and self._bytes <= self._max_bytes:
                return
            self.drop(key)
