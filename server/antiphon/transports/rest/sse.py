"""Server-sent events: the bytes of a streamed response."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Sequence
from functools import cache
from typing import Final, Literal

from antiphon.core.event import (
    DeltaEvents,
    Entry,
    ItemEvent,
    Lifecycle,
    LifecycleEvent,
    OutputItem,
    PartEvent,
    PlainMessage,
    Snapshot,
    TextKind,
    TextPart,
    event_type,
)
from antiphon.core.parameters import FIRST
from antiphon.engine.reader import EventReader
from antiphon.json import encode, one_line, quote, quote_all, sections, shape
from antiphon.v1.event_pb2 import ResponseStreamEvent
from antiphon.v1.item_pb2 import Item
from antiphon.v1.item_status_pb2 import ItemStatus
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

_DONE: Final = "data: [DONE]\n\n"
DONE: Final = _DONE.encode()
"""The last frame of every stream."""
KEEP_ALIVE: Final = b": keep-alive\n\n"
"""A comment, which clients ignore, sent so that no proxy takes a silent stream for a dead one."""
KEEP_ALIVE_SECONDS: Final = 15.0
_print_own, _print_output, _print_parameters = sections(Response, ["output", FIRST])
_NUMBERS: Final = [str(number) for number in range(1024)]
"""Printed numbers of events; most streams have no others."""
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
                told = [entry.frames or frames(entry) for entry in entries]
                # The end goes out with the terminal event: one write less for every stream.
                last = reader.at_end
                if last:
                    told.append(_DONE)
                yield "".join(told).encode()
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
        if isinstance(entry, DeltaEvents):
            text = one_line(_delta_frames(entry))
        elif isinstance(entry, LifecycleEvent):
            shown = snapshot_json(entry.snapshot)
            text = _lifecycle_frame(entry.name) % (entry.sequence_number, shown)
        elif isinstance(entry, ItemEvent):
            shown = _item_json(entry.item)
            text = _item_frame(entry.name) % (entry.sequence_number, entry.index, shown)
        elif isinstance(entry, PartEvent):
            frame, with_text = _part_frame(entry.part.kind, entry.name)
            place = _place(entry.part)
            told = (quote(entry.text),) if with_text else ()
            text = one_line(frame % (entry.sequence_number, *place, *told))
        else:
            text = f"{_head(entry.message)}{encode(entry.message)}\n\n"
        entry.frames = text
    return text


def _head(message: ResponseStreamEvent) -> str:
    return f"event: {event_type(message)}\ndata: "


def snapshot_json(snapshot: Snapshot) -> str:
    """Returns a response as JSON, encoded once for all the events and replies that show it.

    Args:
        snapshot: the response.
    """
    text = snapshot.text
    if text is None:
        parameters = snapshot.parameters
        if parameters.text is None:
            parameters.text = _print_parameters(snapshot.response)
        response, output = snapshot.response, snapshot.output
        printed = (
            _print_output(response)
            if output is None
            else f',"output":[{",".join([item.text or _item_json(item) for item in output])}]'
        )
        text = snapshot.text = f"{_print_own(response)}{printed}{parameters.text}"
    return text


def _item_json(item: OutputItem) -> str:
    """Returns an item as JSON, encoded once for all that show it."""
    text = item.text
    if text is None:
        plain = item.plain
        if plain is None:
            text = encode(item.item)
        else:
            told = (quote(plain.text),) if plain.text is not None else ()
            text = one_line(_message_shape(plain.status, bool(told)) % (quote(plain.id), *told))
        item.text = text
    return text


@cache
def _message_shape(status: ItemStatus.ValueType, with_text: bool) -> str:
    """Returns the JSON of a plain message but for its id and its text."""
    item = Item()
    PlainMessage("", status, "" if with_text else None).put(item)
    text = ["message.content_list.parts.0.output_text.text"] if with_text else []
    return shape(item, ["message.id", *text])


@cache
def _lifecycle_frame(name: Lifecycle) -> str:
    """Returns the frame of an event but for its number and the response."""
    message = LifecycleEvent(0, name, Snapshot(Response())).bare_message
    return _with_member(_head(message) + shape(message, ["sequence_number"]), "response")


@cache
def _item_frame(name: Literal["output_item_added", "output_item_done"]) -> str:
    """Returns the frame of an event but for its number, the item's place, and the item."""
    message = ItemEvent(name, 0, OutputItem(None)).bare_message
    json = shape(message, ["sequence_number", f"{name}.output_index"])
    return _with_member(_head(message) + json, "item")


def _with_member(json: str, name: str) -> str:
    return f'{json.removesuffix("}")},"{name}":%s}}\n\n'


@cache
def _part_frame(kind: TextKind, name: str) -> tuple[str, bool]:
    """Returns the frame of an event of a text but for its number, place and text.

    Returns:
        The frame, and whether the text is in it.
    """
    message = ResponseStreamEvent()
    part = f"part.{kind.content}."
    text = {kind.delta: "delta", kind.done: kind.field, f"{kind.part}_done": part + kind.field}
    place = ["item_id", "output_index", *([kind.index] if kind.index else [])]
    fields = [*place, *([text[name]] if name in text else [])]
    if name not in text:
        getattr(getattr(message, name).part, kind.content).SetInParent()
    json = shape(message, ["sequence_number", *(f"{name}.{field}" for field in fields)])
    return f"{_head(message)}{json}\n\n", name in text


def _place(part: TextPart) -> Sequence[object]:
    """Returns the printed values that tell where a text stands."""
    if part.kind.index:
        return quote(part.item_id), part.output_index, part.index
    return quote(part.item_id), part.output_index


def _delta_frames(entry: DeltaEvents) -> str:
    """Returns events of deltas as frames, the texts in them as they are."""
    head, between, tail = entry.part.frame or _delta_frame(entry.part)
    count = len(entry.deltas)
    # Each frame is four pieces, and all pieces of a kind are put into their places at once.
    pieces = [tail + head] * (count * 4)
    pieces[0] = head
    first, end = entry.sequence_number, entry.following
    pieces[1::4] = _NUMBERS[first:end] if end <= len(_NUMBERS) else map(str, range(first, end))
    pieces[2::4] = [between] * count
    pieces[3::4] = quote_all(entry.deltas)
    pieces.append(tail)
    return "".join(pieces)


def _delta_frame(part: TextPart) -> tuple[str, str, str]:
    """Returns what stands around the number and the text of a part's deltas."""
    frame, _ = _part_frame(part.kind, part.kind.delta)
    head, between, tail = (frame % ("\0", *_place(part), '"\0"')).split("\0")
    part.frame = head, between, tail
    return part.frame
