"""A gate: a place where code under test waits until the test lets it pass."""

import asyncio

__all__ = ["Gate"]


class Gate:
    """Holds whoever comes until it is opened, and tells that somebody has come."""

    def __init__(self) -> None:
        self._reached = asyncio.Event()
        self._opened = asyncio.Event()

    async def enter(self) -> None:
        """Waits at the gate."""
        self._reached.set()
        await self._opened.wait()

    async def reached(self) -> None:
        """Waits until somebody is at the gate, or has passed it."""
        await self._reached.wait()

    def open(self) -> None:
        """Lets everybody pass, now and later."""
        self._opened.set()
