"""`antiphon serve` with a simulator that waits where a test says so.

Asked to `hold NAME`, it writes one word and goes on when the line NAME is written to the pipe that
the variable HELD_PIPE names.
"""

import asyncio
import os
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from typing import Final

from antiphon import app
from antiphon.backends.documents.maker import DocumentMaker
from antiphon.backends.protocol import Call
from antiphon.backends.sim import SimBackend
from antiphon.backends.text import last_user_text
from antiphon.cli import main
from antiphon.core.output import Accepted, Finished, Step, TextDelta

__all__ = ["PIPE"]

PIPE: Final = "HELD_PIPE"


class _HeldBackend(SimBackend):
    """The simulator, but for what it is asked to hold."""

    def __init__(self, documents: DocumentMaker) -> None:
        super().__init__(documents)
        self._released: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._pipe: int | None = None

    async def respond(self, call: Call) -> AsyncIterator[Sequence[Step]]:
        word, _, name = last_user_text(call.input).partition(" ")
        if word != "hold":
            async for steps in super().respond(call):
                yield steps
            return
        self._listen()
        yield [Accepted(), TextDelta("held")]
        await self._released[name].wait()
        yield [TextDelta(" and released"), Finished()]

    def _listen(self) -> None:
        if self._pipe is None:
            # Open for writing too, so that it never comes to an end.
            self._pipe = os.open(os.environ[PIPE], os.O_RDWR | os.O_NONBLOCK)
            asyncio.get_running_loop().add_reader(self._pipe, self._release)

    def _release(self) -> None:
        assert self._pipe is not None
        for name in os.read(self._pipe, 4096).decode().split():
            self._released[name].set()


if __name__ == "__main__":
    app.SimBackend = _HeldBackend  # type: ignore[assignment,attr-defined]
    main()
