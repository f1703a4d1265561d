"""A backend that a test answers for, call by call, while the runs are in flight."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from antiphon.backends.protocol import Call
from antiphon.core.output import Accepted, Failed, Finished, Step, TextDelta

__all__ = ["Asked", "Desk"]


class Asked:
    """One call in flight.

    Args:
        call: what was asked.
    """

    def __init__(self, call: Call) -> None:
        self.call = call
        self.left = asyncio.Event()
        """Set when the backend was closed or has ended."""
        self._entries: asyncio.Queue[Sequence[Step] | BaseException | None] = asyncio.Queue()

    @property
    def text(self) -> str:
        """The text that was asked."""
        return "".join(
            part.input_text.text
            for item in self.call.input
            for part in item.message.content_list.parts
        )

    def say(self, text: str) -> None:
        """Writes text."""
        self.give(TextDelta(text))

    def give(self, *steps: Step) -> None:
        """Takes steps, in one batch."""
        self._entries.put_nowait(steps)

    def finish(self, text: str = "") -> None:
        """Writes text and finishes the answer."""
        self.give(*([TextDelta(text)] if text else []), Finished())

    def fail(self) -> None:
        """Fails, as backends are meant to."""
        self.give(Failed("server_error", "It failed."))

    def break_down(self) -> None:
        """Raises an exception."""
        self._entries.put_nowait(ZeroDivisionError("secret"))

    def stop(self) -> None:
        """Ends without finishing."""
        self._entries.put_nowait(None)

    async def entry(self, *, stubborn: bool) -> Sequence[Step] | None:
        """Waits for what to do next."""
        while True:
            try:
                entry = await self._entries.get()
            except asyncio.CancelledError:
                if not stubborn:
                    raise
                continue
            if isinstance(entry, BaseException):
                raise entry
            return entry


class Desk:
    """Accepts every call at once, and lets the test answer it.

    Args:
        stubborn: whether it goes on when it is cancelled.
    """

    def __init__(self, *, stubborn: bool = False) -> None:
        self._stubborn = stubborn
        self._arrived: asyncio.Queue[Asked] = asyncio.Queue()
        self.asked: list[Asked] = []
        """All calls, in the order in which they came."""

    async def next(self) -> Asked:
        """Waits for the next call that this has not returned yet."""
        return await self._arrived.get()

    async def respond(self, call: Call) -> AsyncIterator[Sequence[Step]]:
        asked = Asked(call)
        self.asked.append(asked)
        self._arrived.put_nowait(asked)
        try:
            yield [Accepted()]
            while (steps := await asked.entry(stubborn=self._stubborn)) is not None:
                yield steps
        finally:
            asked.left.set()
