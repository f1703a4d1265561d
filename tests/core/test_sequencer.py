from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.core.event import LifecycleEvent, Snapshot, event_type
from antiphon.core.output import (
    Accepted,
    Failed,
    Finished,
    ItemAdded,
    ItemDone,
    Step,
    TextDelta,
    TextDeltas,
)
from antiphon.core.sequencer import BackendFault, Sequencer
from antiphon.core.tokens import usage
from antiphon.json import InvalidValue
from antiphon.v1.event_pb2 import ResponseStreamEvent
from antiphon.v1.item_pb2 import Item
from antiphon.v1.item_status_pb2 import ItemStatus
from antiphon.v1.message_pb2 import Message, Role
from antiphon.v1.response_pb2 import Response, ResponseStatus
from tests.support.stream import check_stream, message_text, messages_of

AT = 1_700_000_000

IN_PROGRESS = ItemStatus.ITEM_STATUS_IN_PROGRESS
COMPLETED = ItemStatus.ITEM_STATUS_COMPLETED
INCOMPLETE = ItemStatus.ITEM_STATUS_INCOMPLETE


def a_response() -> Response:
    return Response(
        id="resp_1", model="m", status=ResponseStatus.RESPONSE_STATUS_IN_PROGRESS, created_at=AT
    )


def a_message(**fields: str) -> Item:
    return Item(message=Message(role=Role.ROLE_ASSISTANT, **fields))  # type: ignore[arg-type]


def begun() -> Sequencer:
    sequencer = Sequencer(Snapshot(a_response()))
    sequencer.begin()
    return sequencer


def after(*steps: Step) -> Sequencer:
    sequencer = begun()
    for step in steps:
        sequencer.apply(step)
    return sequencer


def messages(sequencer: Sequencer) -> list[ResponseStreamEvent]:
    return messages_of(sequencer.entries)


def types(sequencer: Sequencer) -> list[str]:
    return [event_type(message) for message in messages(sequencer)]


def ended(sequencer: Sequencer, response: Response) -> Response:
    """Ends a run and holds all its events to the rules of a stream."""
    sequencer.end(response)
    return check_stream(messages(sequencer))


def texts_of(response: Response) -> list[str]:
    return [message_text(item) for item in response.output]


def test_an_answer_in_one_message_has_the_events_of_the_api_in_their_order() -> None:
    sequencer = after(Accepted(), TextDelta("Hel"), TextDelta("lo"))
    ended(sequencer, sequencer.complete(Finished(), AT))
    assert types(sequencer) == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]


def test_numbers_begin_at_0_and_have_no_gap() -> None:
    sequencer = after(TextDelta("a"), TextDelta("b"))
    sequencer.end(sequencer.complete(Finished(), AT))
    numbers = [message.sequence_number for message in messages(sequencer)]
    assert numbers == list(range(len(numbers)))
    assert sequencer.following == len(numbers)


def test_numbers_go_on_when_events_are_taken_away() -> None:
    sequencer = begun()
    del sequencer.entries[:]
    sequencer.apply(TextDelta("a"))
    assert [event.sequence_number for event in sequencer.entries] == [2, 3, 4]


def test_an_empty_answer_has_no_items() -> None:
    sequencer = begun()
    final = ended(sequencer, sequencer.complete(Finished(), AT))
    assert final.status == ResponseStatus.RESPONSE_STATUS_COMPLETED
    assert not final.output


def test_texts_that_are_there_at_once_are_an_event_each_and_one_entry() -> None:
    sequencer = Sequencer(Snapshot(a_response()), max_event_bytes=100)
    sequencer.begin()
    sequencer.apply(TextDelta("a"))
    before = len(sequencer.entries)
    # Together they are larger than a single one may be.
    texts = ["", "b", "c" * 100, "", "d" * 100]
    sequencer.apply(TextDeltas(texts))
    texts.append("changed afterwards")
    assert len(sequencer.entries) == before + 1
    final = ended(sequencer, sequencer.complete(Finished(), AT))
    deltas = [
        message.output_text_delta.delta
        for message in messages(sequencer)
        if message.HasField("output_text_delta")
    ]
    assert deltas == ["a", "b", "c" * 100, "d" * 100]
    assert texts_of(final) == ["".join(deltas)]


def test_a_step_of_acceptance_is_no_event() -> None:
    assert types(after(Accepted())) == types(begun())


def test_the_deltas_join_to_the_text_of_the_message() -> None:
    sequencer = after(*map(TextDelta, ("Grüß", " ", "\u2028", "😀", "\n")))
    final = ended(sequencer, sequencer.complete(Finished(), AT))
    assert texts_of(final) == ["Grüß \u2028😀\n"]


def test_an_empty_delta_is_no_event_and_yet_opens_its_part() -> None:
    sequencer = after(TextDelta(""), TextDelta(""))
    assert types(sequencer)[2:] == ["response.output_item.added", "response.content_part.added"]
    final = ended(sequencer, sequencer.complete(Finished(), AT))
    assert texts_of(final) == [""]
    assert len(final.output[0].message.content_list.parts) == 1


def test_a_message_without_text_has_no_part() -> None:
    sequencer = after(ItemAdded(a_message()), ItemDone())
    final = ended(sequencer, sequencer.complete(Finished(), AT))
    assert final.output[0].message.WhichOneof("content") == "content_list"
    assert not final.output[0].message.content_list.parts


def test_a_message_keeps_the_id_that_its_backend_gave() -> None:
    sequencer = after(ItemAdded(a_message(id="msg_given")), TextDelta("a"))
    final = ended(sequencer, sequencer.complete(Finished(), AT))
    assert final.output[0].message.id == "msg_given"


def test_a_message_without_an_id_gets_one() -> None:
    sequencer = after(ItemAdded(a_message()), ItemDone(), ItemAdded(a_message()))
    final = ended(sequencer, sequencer.complete(Finished(), AT))
    first, second = (item.message.id for item in final.output)
    assert first.startswith("msg_")
    assert second.startswith("msg_")
    assert first != second


def test_text_without_a_message_opens_one_of_the_assistants() -> None:
    final = after(TextDelta("a")).current()
    assert final.output[0].message.role == Role.ROLE_ASSISTANT


def test_text_after_a_finished_message_opens_another() -> None:
    sequencer = after(TextDelta("a"), ItemDone(), TextDelta("b"))
    assert texts_of(ended(sequencer, sequencer.complete(Finished(), AT))) == ["a", "b"]


def test_parallel_items_interleave_and_keep_their_ids_and_places() -> None:
    sequencer = after(
        TextDelta("1", key="x"),
        TextDelta("a", key="y"),
        TextDelta("2", key="x"),
        ItemDone(key="x"),
        TextDelta("!", key="z"),
        TextDelta("b", key="y"),
    )
    assert texts_of(ended(sequencer, sequencer.complete(Finished(), AT))) == ["12", "ab", "!"]


def test_an_item_of_an_unknown_kind_is_told_whole() -> None:
    item = Item(unknown='{"type":"x_invented","a":1}')
    sequencer = after(ItemAdded(item, key="x"), ItemDone(key="x"))
    sequencer.end(sequencer.complete(Finished(), AT))
    added, done = messages(sequencer)[2:4]
    assert added.output_item_added.item == done.output_item_done.item == item
    assert list(sequencer.snapshot.response.output) == [item]


def test_what_an_added_event_showed_does_not_change_with_the_item() -> None:
    sequencer = after(ItemAdded(a_message()))
    sequencer.apply(TextDelta("a"))
    sequencer.end(sequencer.complete(Finished(), AT))
    told = messages(sequencer)[2].output_item_added.item.message
    assert told.status == IN_PROGRESS
    assert not told.content_list.parts


def test_a_completed_response_has_its_time_and_completed_items() -> None:
    sequencer = after(TextDelta("a"))
    final = ended(sequencer, sequencer.complete(Finished(usage(1, 2)), AT + 5))
    assert final.status == ResponseStatus.RESPONSE_STATUS_COMPLETED
    assert final.completed_at == AT + 5
    assert final.output[0].message.status == COMPLETED
    assert final.usage == usage(1, 2)
    assert not final.HasField("error")
    assert not final.HasField("incomplete_details")


def test_an_answer_cut_short_is_incomplete_with_its_reason() -> None:
    sequencer = after(TextDelta("a"))
    final = ended(sequencer, sequencer.complete(Finished(incomplete="max_output_tokens"), AT))
    assert types(sequencer)[-1] == "response.incomplete"
    assert final.status == ResponseStatus.RESPONSE_STATUS_INCOMPLETE
    assert final.incomplete_details.reason == "max_output_tokens"
    assert not final.HasField("completed_at")
    assert final.output[0].message.status == INCOMPLETE


def test_a_failed_response_keeps_its_output_so_far() -> None:
    sequencer = after(TextDelta("a"), ItemDone(), TextDelta("b"))
    failed = Failed("rate_limit_exceeded", "Too many.", usage(3, 4))
    final = ended(sequencer, sequencer.fail(failed))
    assert types(sequencer)[-1] == "response.failed"
    assert final.status == ResponseStatus.RESPONSE_STATUS_FAILED
    assert (final.error.code, final.error.message) == ("rate_limit_exceeded", "Too many.")
    assert final.usage == usage(3, 4)
    assert not final.HasField("completed_at")
    assert texts_of(final) == ["a", "b"]
    assert [item.message.status for item in final.output] == [COMPLETED, INCOMPLETE]


@pytest.mark.parametrize("code", ["", "overloaded", "SERVER_ERROR", "rate_limit"])
def test_a_code_outside_the_apis_set_becomes_server_error(code: str) -> None:
    assert begun().fail(Failed(code, "It failed.")).error.code == "server_error"


@pytest.mark.parametrize("code", ["server_error", "invalid_prompt", "image_file_not_found"])
def test_a_code_of_the_apis_set_is_kept(code: str) -> None:
    assert begun().fail(Failed(code, "It failed.")).error.code == code


def test_a_cancelled_response_ends_in_a_failed_event_and_keeps_its_output() -> None:
    sequencer = after(TextDelta("a"))
    final = ended(sequencer, sequencer.cancel())
    assert types(sequencer)[-1] == "response.failed"
    assert final.status == ResponseStatus.RESPONSE_STATUS_CANCELLED
    assert not final.HasField("error")
    assert texts_of(final) == ["a"]
    assert final.output[0].message.status == INCOMPLETE


def test_no_terminal_event_exists_before_the_end() -> None:
    sequencer = after(TextDelta("a"))
    final = sequencer.complete(Finished(), AT)
    assert not sequencer.ended
    assert types(sequencer)[-1] == "response.output_item.done"
    sequencer.end(final)
    assert sequencer.ended


def test_a_run_ends_once() -> None:
    sequencer = begun()
    sequencer.end(sequencer.complete(Finished(), AT))
    with pytest.raises(BackendFault, match="ends once"):
        sequencer.end(sequencer.cancel())
    check_stream(messages(sequencer))


@pytest.mark.parametrize("end", [Finished(), Failed("server_error", "It failed.")])
def test_a_step_that_ends_the_answer_is_given_back(end: Finished | Failed) -> None:
    sequencer = begun()
    assert sequencer.apply(end) is end
    assert not sequencer.ended


def test_the_open_keys_are_unique() -> None:
    sequencer = after(ItemAdded(a_message(), key="x"))
    with pytest.raises(BackendFault, match="one that is open"):
        sequencer.apply(ItemAdded(a_message(), key="x"))


def test_a_key_may_be_used_again_after_its_item_is_done() -> None:
    sequencer = after(TextDelta("a", key="x"), ItemDone(key="x"), TextDelta("b", key="x"))
    assert texts_of(sequencer.current()) == ["a", "b"]


def test_an_item_that_is_not_open_cannot_be_finished() -> None:
    with pytest.raises(BackendFault, match="not open"):
        begun().apply(ItemDone(key="x"))


def test_text_is_for_messages_only() -> None:
    sequencer = after(ItemAdded(Item(unknown='{"type":"x_invented"}')))
    with pytest.raises(BackendFault, match="not a message"):
        sequencer.apply(TextDelta("a"))


@pytest.mark.parametrize(
    "item",
    [
        Item(),
        Item(message=Message()),
        Item(unknown='{"type":"x_invented"}, "id":"evil"'),
        Item(unknown='{"type":"message","role":"system","content":[]}'),
        Item(message=Message(role=Role.ROLE_ASSISTANT, additional_properties='{"id":"evil"}')),
    ],
    ids=range(5),
)
def test_an_item_is_held_to_the_schemas_rules_when_it_comes(item: Item) -> None:
    sequencer = after(TextDelta("a", key="x"))
    before = messages(sequencer)
    with pytest.raises(InvalidValue):
        sequencer.apply(ItemAdded(item, key="y"))
    assert messages(sequencer) == before
    final = ended(sequencer, sequencer.fail(Failed("server_error", "It failed.")))
    assert texts_of(final) == ["a"]


def test_a_step_of_no_known_kind_is_refused() -> None:
    with pytest.raises(BackendFault, match="no known kind"):
        begun().apply("text")  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["a\ud800", "\udfff", b"bytes", 5], ids=ascii)
def test_what_is_not_text_is_refused_when_it_comes(text: str) -> None:
    sequencer = after(TextDelta("a"))
    before = messages(sequencer)
    with pytest.raises((UnicodeEncodeError, TypeError)):
        sequencer.apply(TextDelta(text))
    assert messages(sequencer) == before
    # The run can still be ended, with what was written before.
    assert texts_of(ended(sequencer, sequencer.fail(Failed("server_error", "It failed.")))) == ["a"]


def test_the_current_response_has_the_output_so_far() -> None:
    sequencer = after(TextDelta("a", key="x"), TextDelta("b", key="y"), ItemDone(key="x"))
    now = sequencer.current()
    assert now.status == ResponseStatus.RESPONSE_STATUS_IN_PROGRESS
    assert texts_of(now) == ["a", "b"]
    assert [item.message.status for item in now.output] == [COMPLETED, IN_PROGRESS]


def test_what_is_current_does_not_change_afterwards() -> None:
    sequencer = after(TextDelta("a"))
    now = sequencer.current()
    kept = now.SerializeToString(deterministic=True)
    sequencer.apply(TextDelta("b"))
    sequencer.end(sequencer.complete(Finished(), AT))
    assert now.SerializeToString(deterministic=True) == kept


def test_the_current_response_leaves_the_run_as_it_is() -> None:
    sequencer = after(TextDelta("a"))
    sequencer.current().output[0].message.content_list.parts[0].output_text.text = "changed"
    sequencer.apply(TextDelta("b"))
    assert texts_of(ended(sequencer, sequencer.complete(Finished(), AT))) == ["ab"]


def test_after_the_end_the_current_response_is_the_final_one() -> None:
    sequencer = after(TextDelta("a"))
    final = ended(sequencer, sequencer.complete(Finished(), AT))
    assert sequencer.current() == final


def test_the_response_it_was_given_is_not_changed() -> None:
    given = a_response()
    sequencer = Sequencer(Snapshot(given))
    sequencer.begin()
    sequencer.apply(TextDelta("a"))
    sequencer.end(sequencer.complete(Finished(usage(1, 1)), AT))
    assert given == a_response()


def test_the_opening_events_show_the_response_as_it_began() -> None:
    sequencer = after(TextDelta("a"))
    sequencer.end(sequencer.complete(Finished(), AT))
    created, in_progress = messages(sequencer)[:2]
    assert created.created.response == in_progress.in_progress.response == a_response()


def test_the_opening_events_share_one_snapshot() -> None:
    first, second = begun().entries
    assert isinstance(first, LifecycleEvent)
    assert isinstance(second, LifecycleEvent)
    assert first.snapshot is second.snapshot


KEYS = st.sampled_from(["", "x", "y"])
STEPS = st.lists(
    st.one_of(
        st.builds(TextDelta, st.text(max_size=3), KEYS),
        st.builds(ItemDone, KEYS),
        st.builds(ItemAdded, st.builds(a_message), KEYS),
        st.builds(Accepted),
    ),
    max_size=20,
)
ENDS = st.sampled_from(["complete", "incomplete", "fail", "cancel"])


@given(STEPS, ENDS)
def test_whatever_a_backend_does_the_stream_keeps_the_rules(
    steps: Sequence[Step], end: str
) -> None:
    sequencer = begun()
    for step in steps:
        try:
            sequencer.apply(step)
        except BackendFault:
            break
    so_far = texts_of(sequencer.current())
    response = {
        "complete": lambda: sequencer.complete(Finished(), AT),
        "incomplete": lambda: sequencer.complete(Finished(incomplete="max_output_tokens"), AT),
        "fail": lambda: sequencer.fail(Failed("server_error", "It failed.")),
        "cancel": sequencer.cancel,
    }[end]()
    assert texts_of(ended(sequencer, response)) == so_far
