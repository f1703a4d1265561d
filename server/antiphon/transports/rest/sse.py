"""Server-sent events: the bytes of a streamed response."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from functools import cache
from typing import Final

from antiphon.core.event import (
    Entry,
    Lifecycle,
    LifecycleEvent,
    Snapshot,
    TextDeltas,
    TextPart,
    event_type,
)
from antiphon.engine.reader import EventReader
from antiphon.json import encode, one_line, quote
from antiphon.v1.event_pb2 import ResponseStreamEvent
from antiphon.v1.response_pb2 import Response

__all__ = [
    "DONE",
    "HEADERS",
    "KEEP_ALIVE",
    "KEEP_ALIVE_SECONDS",
    "Frames",
    "frames",
    "snapshot_json",
]

DONE: Final = b"data: [DONE]\n\n"
"""The last frame of every stream."""
KEEP_ALIVE: Final = b": keep-alive\n\n"
"""A comment, which clients ignore, sent so that no proxy takes a silent stream for a dead one."""
KEEP_ALIVE_SECONDS: Final = 15.0
HEADERS: Final = {
    "cache-control": "no-cache, no-transform",
    # Asks nginx not to collect the events into larger pieces.
    "x-accel-buffering": "no",
}


class Frames:
    """Events as frames, several at once when several are there; each piece is whole frames.

    Args:
        reader: the events, which is closed at the end or when the client leaves.
        keep_alive_seconds: the silence after which a comment is sent.
    """

    def __init__(self, reader: EventReader, keep_alive_seconds: float = KEEP_ALIVE_SECONDS) -> None:
        self._reader = reader
        self._pieces = _pieces(reader, keep_alive_seconds)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._pieces

    def __anext__(self) -> Awaitable[bytes]:
        return self._pieces.__anext__()

    async def aclose(self) -> None:
        """Tells that the client has left, be it before the first piece."""
        await self._pieces.aclose()
        # A generator that has not begun is closed without the end of its `try`.
        self._reader.close()


async def _pieces(reader: EventReader, keep_alive_seconds: float) -> AsyncGenerator[bytes, None]:
    # A reader that has to wait for its first event gets a comment at once: the gateway sends no
    # head of an answer before the first piece of it.
    seconds = 0.0
    try:
        while True:
            entries = await reader.read(seconds)
            seconds = keep_alive_seconds
            if entries:
                text = "".join([entry.frames or frames(entry) for entry in entries])
                # The end goes out with the terminal event: one write less for every stream.
                last = reader.at_end
                yield text.encode() + DONE if last else text.encode()
                if last:
                    return
            elif entries is None:
                yield KEEP_ALIVE
            else:
                yield DONE
                return
    finally:
        reader.close()


def frames(entry: Entry) -> str:
    """Returns an entry of a log as frames, encoded once however many readers it has.

    Args:
        entry: the entry.
    """
    text = entry.frames
    if text is None:
        if isinstance(entry, TextDeltas):
            head, middle, tail = entry.part.frame or _text_delta_frame(entry.part)
            texts = [
                f"{head}{number}{middle}{quote(delta)}{tail}"
                for number, delta in enumerate(entry.deltas, entry.sequence_number)
            ]
            text = one_line("".join(texts))
        elif isinstance(entry, LifecycleEvent):
            head, middle = _lifecycle_frame(entry.name)
            shown = snapshot_json(entry.snapshot)
            text = f"{head}{entry.sequence_number}{middle}{shown}}}\n\n"
        else:
            text = _frame(entry.message)
        entry.frames = text
    return text


def _frame(message: ResponseStreamEvent) -> str:
    return f"event: {event_type(message)}\ndata: {encode(message)}\n\n"


def snapshot_json(snapshot: Snapshot) -> str:
    """Returns a response as JSON, encoded once for all the events and replies that show it.

    Args:
        snapshot: the response.
    """
    text = snapshot.text
    if text is None:
        text = snapshot.text = encode(snapshot.response)
    return text


@cache
def _lifecycle_frame(name: Lifecycle) -> tuple[str, str]:
    """Returns what stands before the number of an event, and between that and its response."""
    bare = LifecycleEvent(0, name, Snapshot(Response())).bare_message
    head, number, rest = _frame(bare).partition('"sequence_number":0')
    return head + number[:-1], rest.removesuffix("}\n\n") + ',"response":'


def _text_delta_frame(part: TextPart) -> tuple[str, str, str]:
    """Returns what stands around the number and the text of a part's deltas."""
    # Quotes inside strings are escaped, so that these two can only be the members themselves.
    (message,) = TextDeltas(0, part, [""]).messages
    head, number, rest = _frame(message).partition('"sequence_number":0')
    middle, delta, tail = rest.partition('"delta":""')
    part.frame = head + number[:-1], middle + delta[:-2], tail
    return part.frame
