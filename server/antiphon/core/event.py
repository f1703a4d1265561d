"""Events: what a run's log holds, each encoded at most once for all its readers."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from antiphon.v1 import json_pb2
from antiphon.v1.event_pb2 import ResponseStreamEvent
from antiphon.v1.response_pb2 import Response

__all__ = [
    "Event",
    "Lifecycle",
    "LifecycleEvent",
    "MessageEvent",
    "Snapshot",
    "StoredEvent",
    "TextDeltaEvent",
    "TextPart",
    "event_type",
]

_TYPES: Final = {
    arm.name: arm.GetOptions().Extensions[json_pb2.json_field].tag
    for arm in ResponseStreamEvent.DESCRIPTOR.oneofs_by_name["event"].fields
}

Lifecycle: TypeAlias = Literal[
    "created", "queued", "in_progress", "completed", "failed", "incomplete"
]


class Snapshot:
    """A response as it was at one moment; nothing changes it afterwards.

    Args:
        response: the response.
    """

    __slots__ = ("response", "text")

    def __init__(self, response: Response) -> None:
        self.response = response
        self.text: str | None = None
        """The response as JSON, kept by whoever encoded it first."""


class TextPart:
    """Where the deltas of one text part belong.

    Args:
        item_id: the id of the message.
        output_index: the message's place in the output.
        content_index: the part's place in the message.
    """

    __slots__ = ("content_index", "frame", "item_id", "output_index", "texts")

    def __init__(self, item_id: str, output_index: int, content_index: int) -> None:
        self.item_id = item_id
        self.output_index = output_index
        self.content_index = content_index
        self.texts: list[str] = []
        self.frame: tuple[str, str, str] | None = None
        """The text around a delta's number and text, kept by whoever encoded one first."""


class Event:
    """One event of a run.

    Args:
        sequence_number: its number, from 0, without a gap.
    """

    __slots__ = ("frame", "sequence_number")

    def __init__(self, sequence_number: int) -> None:
        self.sequence_number = sequence_number
        self.frame: str | None = None
        """The event as JSON, kept by whoever encoded it first."""

    @property
    def type(self) -> str:
        """The event's type, such as `response.created`."""
        raise NotImplementedError

    @property
    def message(self) -> ResponseStreamEvent:
        """The event as a message of the schema."""
        raise NotImplementedError


class MessageEvent(Event):
    """An event that is a message of the schema already."""

    __slots__ = ("_message",)

    def __init__(self, message: ResponseStreamEvent) -> None:
        super().__init__(message.sequence_number)
        self._message = message

    @property
    def type(self) -> str:
        return event_type(self._message)

    @property
    def message(self) -> ResponseStreamEvent:
        return self._message


class LifecycleEvent(Event):
    """An event that shows the whole response; the response is shared, not copied.

    Args:
        sequence_number: its number.
        name: which event it is.
        snapshot: the response.
    """

    __slots__ = ("name", "snapshot")

    def __init__(self, sequence_number: int, name: Lifecycle, snapshot: Snapshot) -> None:
        super().__init__(sequence_number)
        self.name = name
        self.snapshot = snapshot

    @property
    def type(self) -> str:
        return f"response.{self.name}"

    @property
    def message(self) -> ResponseStreamEvent:
        message = self.bare_message
        getattr(message, self.name).response.CopyFrom(self.snapshot.response)
        return message

    @property
    def bare_message(self) -> ResponseStreamEvent:
        """The event without its response."""
        message = ResponseStreamEvent(sequence_number=self.sequence_number)
        getattr(message, self.name).SetInParent()
        return message


class TextDeltaEvent(Event):
    """An event that adds text, light enough to make for every delta.

    Args:
        sequence_number: its number.
        part: where the text belongs.
        delta: the text.
    """

    __slots__ = ("delta", "part")

    def __init__(self, sequence_number: int, part: TextPart, delta: str) -> None:
        self.sequence_number = sequence_number
        self.frame = None
        self.part = part
        self.delta = delta

    @property
    def type(self) -> str:
        return "response.output_text.delta"

    @property
    def message(self) -> ResponseStreamEvent:
        message = ResponseStreamEvent(sequence_number=self.sequence_number)
        delta = message.output_text_delta
        delta.item_id = self.part.item_id
        delta.output_index = self.part.output_index
        delta.content_index = self.part.content_index
        delta.delta = self.delta
        return message


class StoredEvent(Event):
    """An event that was read from a store.

    Args:
        data: the event, serialised.
    """

    __slots__ = ("_message",)

    def __init__(self, data: bytes) -> None:
        self._message = ResponseStreamEvent.FromString(data)
        super().__init__(self._message.sequence_number)

    @property
    def type(self) -> str:
        return event_type(self._message)

    @property
    def message(self) -> ResponseStreamEvent:
        return self._message


def event_type(message: ResponseStreamEvent) -> str:
    """Returns the type of an event that is a message, such as `response.created`.

    Args:
        message: the event; one of its arms is set.
    """
    return _TYPES[message.WhichOneof("event") or ""]
