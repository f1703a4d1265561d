"""Server-sent events: the bytes of a streamed response."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Sequence
from typing import Final

from antiphon.core.event import Event, LifecycleEvent, Snapshot, TextDeltaEvent, TextPart
from antiphon.engine.reader import EventReader
from antiphon.json import encode, quote

__all__ = [
    "DONE",
    "HEADERS",
    "KEEP_ALIVE",
    "KEEP_ALIVE_SECONDS",
    "Frames",
    "event_json",
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
            events = await reader.read(seconds)
            seconds = keep_alive_seconds
            if events:
                text = _frames(events)
                # The end goes out with the terminal event: one write less for every stream.
                last = reader.at_end
                yield text.encode() + DONE if last else text.encode()
                if last:
                    return
            elif events is None:
                yield KEEP_ALIVE
            else:
                yield DONE
                return
    finally:
        reader.close()


def _frames(events: Sequence[Event]) -> str:
    """Returns events as frames."""
    return "".join(
        [f"event: {each.type}\ndata: {each.frame or event_json(each)}\n\n" for each in events]
    )


def event_json(event: Event) -> str:
    """Returns an event as JSON, encoded once however many readers it has.

    Args:
        event: the event.
    """
    text = event.frame
    if text is None:
        if isinstance(event, TextDeltaEvent):
            head, middle, tail = event.part.frame or _text_delta_frame(event.part)
            text = f"{head}{event.sequence_number}{middle}{quote(event.delta)}{tail}"
        elif isinstance(event, LifecycleEvent):
            bare = encode(event.bare_message)
            text = f'{bare[:-1]},"response":{snapshot_json(event.snapshot)}}}'
        else:
            text = encode(event.message)
        event.frame = text
    return text


def snapshot_json(snapshot: Snapshot) -> str:
    """Returns a response as JSON, encoded once for all the events and replies that show it.

    Args:
        snapshot: the response.
    """
    text = snapshot.text
    if text is None:
        text = snapshot.text = encode(snapshot.response)
    return text


def _text_delta_frame(part: TextPart) -> tuple[str, str, str]:
    """Returns the JSON around the number and the text of a part's deltas."""
    # Quotes inside strings are escaped, so that these two can only be the members themselves.
    head, number, rest = encode(TextDeltaEvent(0, part, "").message).partition(
        '"sequence_number":0'
    )
    middle, delta, tail = rest.partition('"delta":""')
    part.frame = head + number[:-1], middle + delta[:-2], tail
    return part.frame
