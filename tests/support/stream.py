"""The rules of a stream of events, held against a whole one."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from antiphon.core.event import event_type
from antiphon.v1.event_pb2 import ResponseStreamEvent
from antiphon.v1.item_pb2 import Item
from antiphon.v1.item_status_pb2 import ItemStatus
from antiphon.v1.response_pb2 import Response, ResponseStatus

__all__ = ["TERMINAL", "check_stream", "message_text"]

TERMINAL = {
    "response.completed": {ResponseStatus.RESPONSE_STATUS_COMPLETED},
    "response.incomplete": {ResponseStatus.RESPONSE_STATUS_INCOMPLETE},
    "response.failed": {
        ResponseStatus.RESPONSE_STATUS_FAILED,
        # The API has no event of its own for it.
        ResponseStatus.RESPONSE_STATUS_CANCELLED,
    },
}


@dataclass
class _Message:
    """A message of the stream, as its events tell it."""

    id: str
    deltas: list[str] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    """The events that only come once, in the order in which they came."""


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
        assert _response(opening).status == ResponseStatus.RESPONSE_STATUS_IN_PROGRESS
        assert not _response(opening).output

    messages: dict[int, _Message] = {}
    items: dict[int, Item] = {}
    for kind, event in zip(kinds[2:-1], events[2:-1], strict=True):
        if kind == "response.output_item.added":
            added = event.output_item_added
            assert added.output_index == len(messages)
            if added.item.HasField("message"):
                assert added.item.message.status == ItemStatus.ITEM_STATUS_IN_PROGRESS
            messages[added.output_index] = _Message(added.item.message.id)
        elif kind == "response.output_item.done":
            done = event.output_item_done
            message = messages[done.output_index]
            assert done.item.message.id == message.id
            assert message_text(done.item) == "".join(message.deltas)
            assert message.steps in ([], ["part", "text.done", "part.done"])
            message.steps.append("done")
            assert done.output_index not in items
            items[done.output_index] = done.item
        else:
            _check_part(kind, event, messages)

    assert all(message.steps[-1] == "done" for message in messages.values())
    final = _response(events[-1])
    assert final.status in TERMINAL[kinds[-1]]
    assert final.id == events[0].created.response.id
    assert list(final.output) == [items[index] for index in range(len(items))]
    return final


def _check_part(kind: str, event: ResponseStreamEvent, messages: dict[int, _Message]) -> None:
    told = getattr(event, event.WhichOneof("event") or "")
    message = messages[told.output_index]
    assert told.item_id == message.id
    assert told.content_index == 0
    steps = message.steps
    if kind == "response.content_part.added":
        assert steps == []
        assert told.part.HasField("output_text")
        assert told.part.output_text.text == ""
        steps.append("part")
    elif kind == "response.output_text.delta":
        assert steps == ["part"]
        assert told.delta
        message.deltas.append(told.delta)
    elif kind == "response.output_text.done":
        assert steps == ["part"]
        assert told.text == "".join(message.deltas)
        steps.append("text.done")
    else:
        assert kind == "response.content_part.done"
        assert steps == ["part", "text.done"]
        assert told.part.output_text.text == "".join(message.deltas)
        steps.append("part.done")


def _response(event: ResponseStreamEvent) -> Response:
    told = getattr(event, event.WhichOneof("event") or "")
    response = told.response
    assert isinstance(response, Response)
    return response
