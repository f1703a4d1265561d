"""The queue of the runs that have more to do: how they share the loop with what comes in."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

__all__ = ["RunQueue"]

_ITERATIONS: Final = 6
"""Iterations of the loop that a call needs from its arrival to the first event of its answer."""


class RunQueue:
    """Lets runs go on one at a time, and not before what came in meanwhile has been answered.

    Without it, a new call would wait in each iteration of the loop for all runs that have more
    to do, and its client that many times longer for the first event.
    """

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._left = 0
        """The iterations until the next run goes on; 0 while none waits."""

    async def turn(self) -> None:
        """Waits until it is the caller's turn, after those that came before."""
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append(turn)
        if not self._left:
            self._left = _ITERATIONS
            loop.call_soon(self._iterate, loop)
        await turn

    def _iterate(self, loop: asyncio.AbstractEventLoop) -> None:
        self._left -= 1
        if not self._left:
            # Those that were cancelled meanwhile are passed over.
            while self._waiting and self._waiting[0].done():
                self._waiting.popleft()
            if not self._waiting:
                return
            self._waiting.popleft().set_result(None)
            self._left = _ITERATIONS
        loop.call_soon(self._iterate, loop)
