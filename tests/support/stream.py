"""The rules of a stream of events, held against a whole one."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from antiphon.core.event import Entry, event_type
from antiphon.json import encode
from antiphon.transports.rest.sse import frames
from antiphon.v1.content_pb2 import Content
from antiphon.v1.event_pb2 import ResponseStreamEvent
from antiphon.v1.item_pb2 import Item
from antiphon.v1.item_status_pb2 import ItemStatus
from antiphon.v1.response_pb2 import Response, ResponseStatus

__all__ = ["TERMINAL", "check_stream", "message_text", "messages_of"]

TERMINAL = {
    "response.completed": {ResponseStatus.RESPONSE_STATUS_COMPLETED},
    "response.incomplete": {ResponseStatus.RESPONSE_STATUS_INCOMPLETE},
    "response.failed": {
        ResponseStatus.RESPONSE_STATUS_FAILED,
        # The API has no event of its own for it.
        ResponseStatus.RESPONSE_STATUS_CANCELLED,
    },
}

IN_PROGRESS = ItemStatus.ITEM_STATUS_IN_PROGRESS


def messages_of(entries: Iterable[Entry]) -> list[ResponseStreamEvent]:
    """Returns the events of a log, and holds them to their numbers and to what clients read."""
    messages: list[ResponseStreamEvent] = []
    for entry in entries:
        own = list(entry.messages)
        assert entry.sequence_number == own[0].sequence_number
        assert entry.following == own[-1].sequence_number + 1
        assert frames(entry) == "".join(
            f"event: {event_type(each)}\ndata: {encode(each)}\n\n" for each in own
        )
        messages += own
    return messages


_PARTS = {
    "response.content_part": ("content_index", {"output_text", "refusal", "reasoning_text"}),
    "response.reasoning_summary_part": ("summary_index", {"summary_text"}),
}
"""The events of parts without `.added` and `.done`, and what parts they are of."""
_TEXTS = {
    "response.output_text": ("content_index", "output_text", "text"),
    "response.refusal": ("content_index", "refusal", "refusal"),
    "response.reasoning_text": ("content_index", "reasoning_text", "text"),
    "response.reasoning_summary_text": ("summary_index", "summary_text", "text"),
}
"""The events of the texts in parts, what parts they are in, and the field of the text."""
_INPUTS = {
    "response.function_call_arguments": ("function_call", "arguments"),
    "response.mcp_call_arguments": ("mcp_call", "arguments"),
    "response.custom_tool_call_input": ("custom_tool_call", "input"),
}
"""The events of the input of calls, the kind of the item, and the field of the input."""


@dataclass
class _Part:
    """A part of an item, as its events tell it."""

    kind: str
    deltas: list[str] = field(default_factory=list)
    logprobs: list[str] = field(default_factory=list)
    whole: str | None = None
    """Its text, once it was told whole."""
    done: Content | None = None


@dataclass
class _Item:
    """An item of the stream, as its events tell it."""

    added: Item
    parts: dict[str, list[_Part]] = field(default_factory=dict)
    """Its parts, by the name of their index."""
    deltas: list[str] = field(default_factory=list)
    """What was added to the input of a call."""
    input: str | None = None
    """The input of a call, once it was told whole."""
    done: Item | None = None

    @property
    def kind(self) -> str:
        return self.added.WhichOneof("kind") or ""

    @property
    def id(self) -> str:
        return str(_body(self.added).id)


def message_text(item: Item) -> str:
    """Returns the text that the model wrote in a message."""
    return "".join(part.output_text.text for part in item.message.content_list.parts)


def check_stream(events: Sequence[ResponseStreamEvent]) -> Response:
    """Holds the events of a run to the API's order; returns the response of the terminal event.

    Args:
        events: all events of one run, from the first to the last.
    """
    assert [event.sequence_number for event in events] == list(range(len(events)))
    kinds = [event_type(event) for event in events]
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert [kind for kind in kinds if kind in TERMINAL] == kinds[-1:]
    for opening in events[:2]:
        assert _told(opening).response.status == ResponseStatus.RESPONSE_STATUS_IN_PROGRESS
        assert not _told(opening).response.output

    items: list[_Item] = []
    for kind, event in zip(kinds[2:-1], events[2:-1], strict=True):
        told = _told(event)
        if kind == "response.output_item.added":
            assert told.output_index == len(items)
            _check_new(told.item)
            items.append(_Item(told.item))
            continue
        item = items[told.output_index]
        assert item.done is None
        if kind == "response.output_item.done":
            item.done = told.item
            _check_done(item)
        else:
            assert told.item_id == item.id
            _check_inside(kind, told, item)

    final: Response = _told(events[-1]).response
    assert final.status in TERMINAL[kinds[-1]]
    assert final.id == events[0].created.response.id
    assert list(final.output) == [item.done for item in items]
    return final


def _check_new(item: Item) -> None:
    """An item that begins has no text, and is in progress if it can say so."""
    body = _body(item)
    if hasattr(body, "status"):
        assert body.status in (IN_PROGRESS, "in_progress", "")
    for kind, name in _INPUTS.values():
        if item.WhichOneof("kind") == kind:
            assert getattr(body, name) == ""
    assert not any(_parts_of(item).values())


def _check_done(item: _Item) -> None:
    """A finished item has all that was told of it, and is who it was."""
    done = item.done
    assert done is not None
    assert done.WhichOneof("kind") == item.kind
    for name in ("id", "call_id", "name"):
        assert getattr(_body(done), name, None) == getattr(_body(item.added), name, None)
    for index, contents in _parts_of(done).items():
        assert [part.done for part in item.parts.get(index, [])] == contents
    for kind, name in _INPUTS.values():
        if item.kind == kind:
            assert item.input == "".join(item.deltas) == getattr(_body(done), name)
    if hasattr(_body(done), "status"):
        assert _body(done).status not in (IN_PROGRESS, "in_progress")


def _check_inside(kind: str, told: Any, item: _Item) -> None:
    """Holds an event of an item that is open to what came before it."""
    stem, _, what = kind.rpartition(".")
    if stem in _PARTS:
        index, kinds = _PARTS[stem]
        parts = item.parts.setdefault(index, [])
        content = told.part.WhichOneof("kind")
        assert content in kinds
        if what == "added":
            assert all(part.done is not None for part in parts)
            assert getattr(told, index) == len(parts)
            assert _text_of(told.part) == ""
            parts.append(_Part(content))
        else:
            assert what == "done"
            part = parts[getattr(told, index)]
            assert (part.kind, part.done) == (content, None)
            assert _text_of(told.part) == part.whole
            assert [each.token for each in told.part.output_text.logprobs] == part.logprobs
            part.done = told.part
    elif stem in _TEXTS:
        index, content, name = _TEXTS[stem]
        part = item.parts[index][getattr(told, index)]
        assert (part.kind, part.whole, part.done) == (content, None, None)
        logprobs = [each.token for each in getattr(told, "logprobs", [])]
        if what == "delta":
            assert told.delta or logprobs
            part.deltas.append(told.delta)
            part.logprobs.extend(logprobs)
        else:
            assert what == "done"
            part.whole = getattr(told, name)
            assert part.whole == "".join(part.deltas)
            assert logprobs == part.logprobs
    elif stem in _INPUTS:
        of, name = _INPUTS[stem]
        assert (item.kind, item.input) == (of, None)
        if what == "delta":
            assert told.delta
            item.deltas.append(told.delta)
        else:
            assert what == "done"
            item.input = getattr(told, name)
            if of == "function_call":
                assert told.name == item.added.function_call.name
    elif kind == "response.output_text.annotation.added":
        assert item.parts["content_index"][told.content_index].whole is None
    else:
        assert stem == "response.mcp_call"
        assert item.kind == "mcp_call"
        assert (what == "in_progress") == (item.input is None)


def _body(item: Item) -> Any:
    return getattr(item, item.WhichOneof("kind") or "")


def _parts_of(item: Item) -> dict[str, list[Content]]:
    """Returns the parts of an item that events tell, by the name of their index."""
    if item.HasField("message"):
        return {"content_index": list(item.message.content_list.parts)}
    if item.HasField("reasoning"):
        reasoning = item.reasoning
        return {"content_index": list(reasoning.content), "summary_index": list(reasoning.summary)}
    return {}


def _text_of(part: Content) -> str:
    told = getattr(part, part.WhichOneof("kind") or "")
    return str(told.refusal if part.HasField("refusal") else told.text)


def _told(event: ResponseStreamEvent) -> Any:
    """Returns the event itself."""
    return getattr(event, event.WhichOneof("event") or "")
