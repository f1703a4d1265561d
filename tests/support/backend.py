"""A backend that follows a script."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TypeAlias

from antiphon.backends.protocol import Call
from antiphon.core.output import Step
from tests.support.gate import Gate

__all__ = ["Entry", "Script"]

Entry: TypeAlias = Sequence[Step] | Gate | BaseException | Callable[[], object]


class Script:
    """Yields batches, waits at gates, raises exceptions and calls functions, one after another.

    Args:
        entries: what to do.
    """

    def __init__(self, *entries: Entry) -> None:
        self._entries = entries
        self.calls: list[Call] = []
        """What it was asked."""
        self.closed = 0
        """How many of its answers have ended, whichever way."""
        self.left = asyncio.Event()
        """Set when the first of its answers has ended."""

    async def respond(self, call: Call) -> AsyncIterator[Sequence[Step]]:
        self.calls.append(call)
        try:
            for entry in self._entries:
                if isinstance(entry, Gate):
                    await entry.enter()
                elif isinstance(entry, BaseException):
                    raise entry
                elif callable(entry):
                    entry()
                else:
                    yield entry
        finally:
            self.closed += 1
            self.left.set()
