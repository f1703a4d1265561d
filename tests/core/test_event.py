import pytest

from antiphon.core.event import (
    CUSTOM_INPUT,
    FUNCTION_ARGUMENTS,
    MCP_ARGUMENTS,
    OUTPUT_TEXT,
    REASONING_TEXT,
    REFUSAL,
    SUMMARY_TEXT,
    DeltaEvents,
    Lifecycle,
    LifecycleEvent,
    MessageEvent,
    Snapshot,
    TextKind,
    TextPart,
    event_type,
)
from antiphon.v1.event_pb2 import ResponseStreamEvent
from antiphon.v1.response_pb2 import Response


@pytest.mark.parametrize("name", ["created", "in_progress", "completed", "failed", "incomplete"])
def test_a_lifecycle_event_shows_the_whole_response(name: Lifecycle) -> None:
    event = LifecycleEvent(7, name, Snapshot(Response(id="resp_1", model="m")))
    (message,) = event.messages
    assert event_type(message) == f"response.{name}"
    assert (message.sequence_number, event.following) == (7, 8)
    assert message.WhichOneof("event") == name
    assert getattr(message, name).response == Response(id="resp_1", model="m")


def test_a_bare_lifecycle_event_is_the_same_without_the_response() -> None:
    event = LifecycleEvent(7, "created", Snapshot(Response(id="resp_1")))
    bare = event.bare_message
    assert bare.WhichOneof("event") == "created"
    assert not bare.created.HasField("response")
    bare.created.response.id = "resp_1"
    assert (bare,) == event.messages


def test_a_message_of_an_event_can_be_changed_without_changing_its_snapshot() -> None:
    snapshot = Snapshot(Response(id="resp_1"))
    (message,) = LifecycleEvent(0, "created", snapshot).messages
    message.created.response.id = "resp_2"
    assert snapshot.response == Response(id="resp_1")


def test_text_deltas_belong_to_their_part_and_are_numbered() -> None:
    entry = DeltaEvents(4, TextPart("msg_1", 2, 3), ["a", "b", "c"])
    assert entry.following == 7
    assert [message.sequence_number for message in entry.messages] == [4, 5, 6]
    for message, text in zip(entry.messages, "abc", strict=True):
        assert event_type(message) == "response.output_text.delta"
        told = message.output_text_delta
        assert (told.item_id, told.output_index, told.content_index) == ("msg_1", 2, 3)
        assert told.delta == text


def test_text_deltas_can_be_read_from_one_of_them_on() -> None:
    entry = DeltaEvents(4, TextPart("msg_1", 2, 3), ["a", "b", "c"])
    assert entry.since(4) == entry
    assert entry.since(6) == DeltaEvents(6, entry.part, ["c"])
    assert list(entry.since(5).messages) == list(entry.messages)[1:]


@pytest.mark.parametrize(
    ("kind", "index"),
    [
        (OUTPUT_TEXT, "content_index"),
        (REFUSAL, "content_index"),
        (REASONING_TEXT, "content_index"),
        (SUMMARY_TEXT, "summary_index"),
        (FUNCTION_ARGUMENTS, None),
        (MCP_ARGUMENTS, None),
        (CUSTOM_INPUT, None),
    ],
    ids=lambda value: value.delta if isinstance(value, TextKind) else "",
)
def test_every_kind_of_text_has_its_delta(kind: TextKind, index: str | None) -> None:
    place = 3 if index else 0
    (message,) = DeltaEvents(4, TextPart("item_1", 2, place, kind), ["text"]).messages
    assert event_type(message) == f"response.{'.'.join(kind.delta.rsplit('_', 1))}"
    assert message.sequence_number == 4
    told = getattr(message, kind.delta)
    assert (told.item_id, told.output_index, told.delta) == ("item_1", 2, "text")
    if index:
        assert getattr(told, index) == place


def test_an_event_that_is_a_message_keeps_its_number_and_type() -> None:
    message = ResponseStreamEvent(sequence_number=5)
    message.output_text_done.text = "text"
    event = MessageEvent(message.sequence_number, message)
    assert (event.sequence_number, event.following) == (5, 6)
    assert event.messages == (message,)
    assert event_type(message) == "response.output_text.done"


@pytest.mark.parametrize(
    "name", [arm.name for arm in ResponseStreamEvent.DESCRIPTOR.oneofs_by_name["event"].fields]
)
def test_every_kind_of_event_has_a_type(name: str) -> None:
    message = ResponseStreamEvent()
    getattr(message, name).SetInParent()
    assert event_type(message)
