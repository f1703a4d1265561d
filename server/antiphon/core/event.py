"""Events: the entries of a run's log, each encoded at most once for all its readers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from antiphon.core.parameters import Parameters
from antiphon.v1 import json_pb2
from antiphon.v1.content_pb2 import OutputTextLogprob
from antiphon.v1.event_pb2 import ResponseStreamEvent
from antiphon.v1.item_pb2 import Item
from antiphon.v1.item_status_pb2 import ItemStatus
from antiphon.v1.message_pb2 import Role
from antiphon.v1.response_pb2 import Response

__all__ = [
    "CUSTOM_INPUT",
    "FUNCTION_ARGUMENTS",
    "MCP_ARGUMENTS",
    "OUTPUT_TEXT",
    "REASONING_TEXT",
    "REFUSAL",
    "SUMMARY_TEXT",
    "DeltaEvents",
    "Entry",
    "ItemEvent",
    "Lifecycle",
    "LifecycleEvent",
    "MessageEvent",
    "OutputItem",
    "PartEvent",
    "PlainMessage",
    "Snapshot",
    "TextKind",
    "TextPart",
    "event_type",
    "stored_event",
]

_TYPES: Final = {
    arm.name: arm.GetOptions().Extensions[json_pb2.json_field].tag
    for arm in ResponseStreamEvent.DESCRIPTOR.oneofs_by_name["event"].fields
}

_ASSISTANT: Final = Role.ROLE_ASSISTANT

Lifecycle: TypeAlias = Literal[
    "created", "queued", "in_progress", "completed", "failed", "incomplete"
]


class Snapshot:
    """A response as it was at one moment; nothing changes it afterwards.

    Args:
        response: the response.
        parameters: its parameters, if others have the same ones.
        output: its output, if it is known item by item.
    """

    __slots__ = ("output", "parameters", "response", "text")

    def __init__(
        self,
        response: Response,
        parameters: Parameters | None = None,
        output: Sequence[OutputItem] | None = None,
    ) -> None:
        self.response = response
        self.output = output
        self.parameters = parameters if parameters is not None else Parameters()
        self.text: str | None = None
        """The response as JSON, kept by whoever encoded it first."""

    def later(self, response: Response, output: Sequence[OutputItem] | None = None) -> Snapshot:
        """Returns the snapshot of the same response at a later moment.

        Args:
            response: the response as it is then, with the same parameters.
            output: its output, if it is known item by item.
        """
        return Snapshot(response, self.parameters, output)


@dataclass(frozen=True, slots=True, eq=False)
class TextKind:
    """A kind of text that is told in deltas: where it stands and which events tell it.

    Args:
        name: what it is called in words.
        item: the kind of items that it stands in.
        delta: the event that adds to it.
        done: the event that tells it whole.
        field: the field that holds it, in `done` and where it stands.
        index: the field that tells its place among the parts of the item, or "" if the item
            has one such text of its own.
        content: the kind of the part that it is, or "".
        part: what the events of that part are called, or "".
    """

    name: str
    item: str
    delta: str
    done: str
    field: str
    index: str = ""
    content: str = ""
    part: str = ""


OUTPUT_TEXT: Final = TextKind(
    name="text",
    item="message",
    delta="output_text_delta",
    done="output_text_done",
    field="text",
    index="content_index",
    content="output_text",
    part="content_part",
)
REFUSAL: Final = TextKind(
    name="a refusal",
    item="message",
    delta="refusal_delta",
    done="refusal_done",
    field="refusal",
    index="content_index",
    content="refusal",
    part="content_part",
)
REASONING_TEXT: Final = TextKind(
    name="reasoning",
    item="reasoning",
    delta="reasoning_text_delta",
    done="reasoning_text_done",
    field="text",
    index="content_index",
    content="reasoning_text",
    part="content_part",
)
SUMMARY_TEXT: Final = TextKind(
    name="a summary",
    item="reasoning",
    delta="reasoning_summary_text_delta",
    done="reasoning_summary_text_done",
    field="text",
    index="summary_index",
    content="summary_text",
    part="reasoning_summary_part",
)
FUNCTION_ARGUMENTS: Final = TextKind(
    name="input",
    item="function_call",
    delta="function_call_arguments_delta",
    done="function_call_arguments_done",
    field="arguments",
)
MCP_ARGUMENTS: Final = TextKind(
    name="input",
    item="mcp_call",
    delta="mcp_call_arguments_delta",
    done="mcp_call_arguments_done",
    field="arguments",
)
CUSTOM_INPUT: Final = TextKind(
    name="input",
    item="custom_tool_call",
    delta="custom_tool_call_input_delta",
    done="custom_tool_call_input_done",
    field="input",
)


class TextPart:
    """A text that is being written: where it stands, and what it is so far.

    Args:
        item_id: the id of its item.
        output_index: the item's place in the output.
        index: its place among the parts of the item, if it is one of several.
        kind: which kind of text it is.
    """

    __slots__ = ("frame", "index", "item_id", "kind", "logprobs", "output_index", "texts")

    def __init__(
        self, item_id: str, output_index: int, index: int, kind: TextKind = OUTPUT_TEXT
    ) -> None:
        self.item_id = item_id
        self.output_index = output_index
        self.index = index
        self.kind = kind
        self.texts: list[str] = []
        self.logprobs: list[OutputTextLogprob] = []
        self.frame: tuple[str, str, str] | None = None
        """What stands around a delta's number and text, kept by whoever encoded one first."""

    @property
    def text(self) -> str:
        """All of it so far."""
        return "".join(self.texts)

    def place(self, told: Any) -> None:
        """Tells where the text stands.

        Args:
            told: an event of this text.
        """
        told.item_id = self.item_id
        told.output_index = self.output_index
        # What is 0 is so already; the text of a call has no index at all.
        if self.index:
            setattr(told, self.kind.index, self.index)


class MessageEvent(Struct, gc=False):
    """An event that is a message of the schema already.

    Args:
        sequence_number: its number, as the message has it.
        message: the message.
        frames: the event as a client reads it, kept by whoever encoded it first.
    """

    sequence_number: int
    message: ResponseStreamEvent
    frames: str | None = None

    @property
    def following(self) -> int:
        """The number of the event after it."""
        return self.sequence_number + 1

    @property
    def messages(self) -> Sequence[ResponseStreamEvent]:
        """The event as a message of the schema."""
        return (self.message,)


class LifecycleEvent(Struct, gc=False):
    """An event that shows the whole response; the response is shared, not copied.

    Args:
        sequence_number: its number.
        name: which event it is.
        snapshot: the response.
        frames: the event as a client reads it, kept by whoever encoded it first.
    """

    sequence_number: int
    name: Lifecycle
    snapshot: Snapshot
    frames: str | None = None

    @property
    def following(self) -> int:
        """The number of the event after it."""
        return self.sequence_number + 1

    @property
    def messages(self) -> Sequence[ResponseStreamEvent]:
        """The event as a message of the schema."""
        message = self.bare_message
        getattr(message, self.name).response.CopyFrom(self.snapshot.response)
        return (message,)

    @property
    def bare_message(self) -> ResponseStreamEvent:
        """The event without its response."""
        message = ResponseStreamEvent(sequence_number=self.sequence_number)
        getattr(message, self.name).SetInParent()
        return message


class PartEvent(Struct, gc=False):
    """An event that tells of a text, or of a part that is nothing but text.

    Args:
        name: which event it is, such as `output_text_done` or `content_part_added`.
        part: the text.
        text: what it is, in the events that tell it whole.
        sequence_number: its number.
        frames: the event as a client reads it, kept by whoever encoded it first.
    """

    name: str
    part: TextPart
    text: str = ""
    sequence_number: int = 0
    frames: str | None = None

    @property
    def following(self) -> int:
        """The number of the event after it."""
        return self.sequence_number + 1

    @property
    def message(self) -> ResponseStreamEvent:
        """The event as a message of the schema."""
        kind = self.part.kind
        message = ResponseStreamEvent(sequence_number=self.sequence_number)
        told: Any = getattr(message, self.name)
        self.part.place(told)
        setattr(
            told if self.name == kind.done else getattr(told.part, kind.content),
            kind.field,
            self.text,
        )
        return message

    @property
    def messages(self) -> Sequence[ResponseStreamEvent]:
        """The event as a message of the schema."""
        return (self.message,)


class PlainMessage(NamedTuple):
    """A message of the model's with nothing but text in it; most items are such.

    Args:
        id: its id.
        status: how far it is written.
        text: its text, or None if it has no part yet.
    """

    id: str
    status: ItemStatus.ValueType
    text: str | None = None

    def put(self, item: Item) -> None:
        """Makes an item this message.

        Args:
            item: the item, empty.
        """
        message = item.message
        message.id = self.id
        message.status = self.status
        message.role = _ASSISTANT
        message.content_list.SetInParent()
        if self.text is not None:
            message.content_list.parts.add().output_text.text = self.text


class OutputItem:
    """An item of the output as it was at one moment; nothing changes it afterwards.

    Args:
        plain: what it is, if it is a plain message.
        item: the item, if it is none, or if it is there.
    """

    __slots__ = ("_item", "plain", "text")

    def __init__(self, plain: PlainMessage | None, item: Item | None = None) -> None:
        self.plain = plain
        self._item = item
        self.text: str | None = None
        """The item as JSON, kept by whoever encoded it first."""

    @property
    def item(self) -> Item:
        """The item."""
        item = self._item
        if item is None:
            item = self._item = Item()
            assert self.plain is not None
            self.plain.put(item)
        return item


class ItemEvent(Struct, gc=False):
    """An event that tells of a whole item.

    Args:
        name: which event it is.
        index: the item's place in the output.
        item: the item.
        sequence_number: its number.
        frames: the event as a client reads it, kept by whoever encoded it first.
    """

    name: Literal["output_item_added", "output_item_done"]
    index: int
    item: OutputItem
    sequence_number: int = 0
    frames: str | None = None

    @property
    def following(self) -> int:
        """The number of the event after it."""
        return self.sequence_number + 1

    @property
    def messages(self) -> Sequence[ResponseStreamEvent]:
        """The event as a message of the schema."""
        message = self.bare_message
        getattr(message, self.name).item.CopyFrom(self.item.item)
        return (message,)

    @property
    def bare_message(self) -> ResponseStreamEvent:
        """The event without its item."""
        message = ResponseStreamEvent(sequence_number=self.sequence_number)
        getattr(message, self.name).output_index = self.index
        return message


class DeltaEvents(Struct, gc=False):
    """Events that add to one text, one after the other; most events of a stream are such.

    Args:
        sequence_number: the number of the first one.
        part: the text that they add to.
        deltas: what each of them adds.
        frames: the events as a client reads them, kept by whoever encoded them first.
    """

    sequence_number: int
    part: TextPart
    deltas: Sequence[str]
    frames: str | None = None

    @property
    def following(self) -> int:
        """The number of the event after them."""
        return self.sequence_number + len(self.deltas)

    @property
    def messages(self) -> Sequence[ResponseStreamEvent]:
        """The events as messages of the schema."""
        part = self.part
        name = part.kind.delta
        messages = []
        for number, delta in enumerate(self.deltas, self.sequence_number):
            message = ResponseStreamEvent(sequence_number=number)
            told = getattr(message, name)
            part.place(told)
            told.delta = delta
            messages.append(message)
        return messages

    def since(self, number: int) -> DeltaEvents:
        """Returns the events from one of them on.

        Args:
            number: its number.
        """
        return DeltaEvents(number, self.part, self.deltas[number - self.sequence_number :])


# None of them refers to what refers to it, so that the collector need not look at them.
Entry: TypeAlias = MessageEvent | LifecycleEvent | ItemEvent | PartEvent | DeltaEvents
"""An entry of a run's log: one event, or several that are alike; their `sequence_number`s count
from 0, without a gap."""


def stored_event(data: bytes) -> MessageEvent:
    """Returns an event that was read from a store.

    Args:
        data: the event, serialised.
    """
    message = ResponseStreamEvent.FromString(data)
    return MessageEvent(message.sequence_number, message)


def event_type(message: ResponseStreamEvent) -> str:
    """Returns the type of an event that is a message, such as `response.created`.

    Args:
        message: the event; one of its arms is set.
    """
    return _TYPES[message.WhichOneof("event") or ""]
