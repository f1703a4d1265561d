"""Readers: cursors over the events of a run, while it goes on or after its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol

from antiphon.core.event import Entry, stored_event

if TYPE_CHECKING:
    from antiphon.engine.run import Run

__all__ = ["BATCH_EVENTS", "EventReader", "Reader", "Replay"]

BATCH_EVENTS: Final = 256
"""About how many events a reader is given at once, at most."""


class EventReader(Protocol):
    """Reads events in their order."""

    async def read(self, seconds: float | None = None) -> Sequence[Entry] | None:
        """Waits for the next events.

        Args:
            seconds: how long to wait, or None for as long as it takes.

        Returns:
            What is there, as entries of the log; none after the end, or None when the time was up.
        """

    @property
    def at_end(self) -> bool:
        """Whether everything has been read and nothing follows."""

    def close(self) -> None:
        """Ends the reading."""


class Reader:
    """A cursor over a run's log.

    Args:
        run: the run.
        position: the number of the first event to read.
        owner: whether the run's own client reads.
    """

    __slots__ = ("_run", "_trimmed", "owner", "position")

    def __init__(self, run: Run, position: int, *, owner: bool) -> None:
        self._run = run
        self._trimmed: Replay | None = None
        self.position = position
        self.owner = owner

    async def fetch_trimmed(self) -> None:
        """Fetches the events that have left the log, before they leave the store too.

        From then on the log keeps what this reader has not read.
        """
        trimmed = await self._run.trimmed_from(self.position)
        self._trimmed = Replay(trimmed) if trimmed else None

    async def read(self, seconds: float | None = None) -> Sequence[Entry] | None:
        """Waits for the next events; see `EventReader`."""
        run = self._run
        while True:
            if self._trimmed is not None:
                entries = await self._trimmed.read() or ()
                self._trimmed = None if self._trimmed.at_end else self._trimmed
            else:
                entries = run.entries_from(self.position)
            if entries:
                self.position = entries[-1].following
                return entries
            if run.over:
                return entries
            if not await run.wait(seconds):
                return None

    @property
    def at_end(self) -> bool:
        """Whether everything has been read and nothing follows."""
        return self._run.over and self.position >= self._run.length

    def close(self) -> None:
        """Ends the reading."""
        self._run.leave(self)


class Replay:
    """Reads the events of a run that has ended.

    Args:
        events: the serialised events, from the first one to read.
    """

    __slots__ = ("_events", "_position")

    def __init__(self, events: Sequence[bytes]) -> None:
        self._events = events
        self._position = 0

    async def read(self, seconds: float | None = None) -> Sequence[Entry] | None:
        """Returns the next events at once; see `EventReader`."""
        events = self._events[self._position : self._position + BATCH_EVENTS]
        self._position += len(events)
        return [stored_event(data) for data in events]

    @property
    def at_end(self) -> bool:
        """Whether everything has been read and nothing follows."""
        return self._position >= len(self._events)

    def close(self) -> None:
        """Ends the reading."""
