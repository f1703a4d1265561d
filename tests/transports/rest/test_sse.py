import asyncio
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.core.event import (
    DeltaEvents,
    Entry,
    Lifecycle,
    LifecycleEvent,
    MessageEvent,
    Snapshot,
    TextPart,
    event_type,
)
from antiphon.core.output import Accepted, Finished, Step, TextDelta
from antiphon.engine.run import Run
from antiphon.json import decode, encode
from antiphon.json.plan import descriptor_of
from antiphon.transports.rest.sse import (
    DONE,
    HEADERS,
    KEEP_ALIVE,
    Frames,
    frames,
    snapshot_json,
)
from antiphon.v1.event_pb2 import ResponseStreamEvent
from antiphon.v1.response_pb2 import Response, ResponseStatus
from tests.support.backend import Script
from tests.support.engine import SCOPE, an_engine, read_all, stream
from tests.support.gate import Gate
from tests.support.strategies import messages
from tests.support.stream import check_stream, messages_of

AWKWARD = '\u2028\u2029\x85\r\n\n"delta":""\\\x00\x1f\x7fé😀\ufeff'
PARTS = [
    TextPart("msg_1", 0, 0),
    TextPart("msg_1", 12, 345),
    # No id has such characters; should one ever, it must not be taken for a member.
    TextPart('"delta":""', 1, 2),
    TextPart('"sequence_number":0', 0, 0),
    TextPart('\\","delta":"', 0, 0),
    TextPart("\u2028\n", 0, 0),
]


def frames_of(run: Run, **options: float) -> Frames:
    """Returns the frames for the client that asked."""
    reader = run.client if run.client is not None else run.reader()
    return Frames(reader, **options)


def lines_of(text: str) -> int:
    """Returns the number of lines of a text, for any reader's idea of a line."""
    return len(f"{text}.".splitlines())


# An event's JSON is that of its message, whichever way it was made.


@pytest.mark.parametrize("part", PARTS, ids=lambda part: ascii(part.item_id))
@pytest.mark.parametrize("number", [0, 1, 12, 2**40])
def test_text_deltas_are_encoded_like_their_messages(part: TextPart, number: int) -> None:
    entry = DeltaEvents(number, part, ["a", "", " ", AWKWARD, *AWKWARD])
    messages_of([entry])
    assert lines_of(frames(entry)) == 1 + 3 * len(entry.deltas)


@given(st.lists(st.text(), min_size=1, max_size=5), st.data())
def test_the_deltas_of_a_part_are_encoded_like_their_messages(
    deltas: list[str], data: st.DataObject
) -> None:
    entry = DeltaEvents(7, TextPart("msg_1", 3, 4), deltas)
    messages = messages_of([entry])
    start = data.draw(st.integers(0, len(deltas) - 1))
    assert messages_of([entry.since(7 + start)]) == messages[start:]


@pytest.mark.parametrize("name", ["created", "in_progress", "completed", "failed", "incomplete"])
@settings(max_examples=5)
@given(st.data())
def test_a_lifecycle_event_is_encoded_like_its_message(
    name: Lifecycle, data: st.DataObject
) -> None:
    response = data.draw(messages(descriptor_of(Response), depth=2))
    assert isinstance(response, Response)
    messages_of([LifecycleEvent(7, name, Snapshot(response))])


@pytest.mark.parametrize(
    "name", [arm.name for arm in ResponseStreamEvent.DESCRIPTOR.oneofs_by_name["event"].fields]
)
@settings(max_examples=5)
@given(st.data())
def test_every_other_event_is_encoded_like_its_message(name: str, data: st.DataObject) -> None:
    message = ResponseStreamEvent(sequence_number=3)
    arm = getattr(message, name)
    arm.CopyFrom(data.draw(messages(descriptor_of(arm), depth=1)))
    entry = MessageEvent(message.sequence_number, message)
    messages_of([entry])
    head, body, *rest = frames(entry).split("\n")
    assert rest == ["", ""]
    told = json.loads(body.removeprefix("data: "))
    assert head == f"event: {told['type']}" == f"event: {event_type(message)}"
    assert told["sequence_number"] == 3
    assert lines_of(frames(entry)) == 4


def test_an_event_is_encoded_once() -> None:
    message = ResponseStreamEvent(sequence_number=3)
    message.output_text_done.text = "a"
    entry = MessageEvent(message.sequence_number, message)
    first = frames(entry)
    message.output_text_done.text = "changed afterwards"
    assert frames(entry) is first


def test_a_response_is_encoded_once_for_all_that_show_it() -> None:
    snapshot = Snapshot(Response(id="resp_1", status=ResponseStatus.RESPONSE_STATUS_IN_PROGRESS))
    events: list[Entry] = [
        LifecycleEvent(0, "created", snapshot),
        LifecycleEvent(1, "in_progress", snapshot),
    ]
    text = snapshot_json(snapshot)
    assert text == encode(snapshot.response)
    snapshot.response.id = "changed afterwards"
    assert snapshot_json(snapshot) is text
    assert all(f'"response":{text}' in frames(event) for event in events)


# Frames.


def parsed(pieces: list[bytes]) -> list[ResponseStreamEvent]:
    """Reads frames back, and holds each to its form."""
    *found, done, rest = b"".join(pieces).decode().split("\n\n")
    assert (f"{done}\n\n".encode(), rest) == (DONE, "")
    events = []
    for frame in found:
        name, data = frame.split("\n")
        assert name.startswith("event: ")
        assert data.startswith("data: {")
        event = decode(ResponseStreamEvent, data.removeprefix("data: "))
        assert name == f"event: {event_type(event)}"
        events.append(event)
    return events


async def test_a_stream_is_the_frames_of_its_events_and_the_end() -> None:
    run = await stream(an_engine(Script([TextDelta(AWKWARD)], [TextDelta("b"), Finished()])))
    other = run.reader()
    pieces = [piece async for piece in frames_of(run)]
    events = parsed(pieces)
    check_stream(events)
    assert events == await read_all(other)


async def test_every_piece_is_whole_frames_and_the_end_goes_with_the_last_one() -> None:
    steps: list[Step] = [TextDelta("a") for _ in range(500)]
    run = await stream(an_engine(Script([*steps, Finished()])))
    pieces = [piece async for piece in frames_of(run)]
    assert len(pieces) > 1
    assert all(piece.startswith(b"event: ") and piece.endswith(b"\n\n") for piece in pieces)
    assert pieces[-1].endswith(DONE)
    assert b"".join(pieces).count(DONE) == 1
    assert len(parsed(pieces)) == 500 + 8


async def test_an_event_is_sent_the_moment_it_is_there() -> None:
    gate = Gate()
    run = await stream(an_engine(Script([TextDelta("a")], gate, [Finished()])))
    pieces = frames_of(run)
    seen = await anext(pieces)
    await gate.reached()
    while b"delta" not in seen:
        seen += await anext(pieces)
    assert b"response.completed" not in seen
    gate.open()
    rest = [piece async for piece in pieces]
    check_stream(parsed([seen, *rest]))


async def test_silence_is_broken_by_comments() -> None:
    gate = Gate()
    run = await stream(an_engine(Script([Accepted()], gate, [Finished()])))
    pieces = frames_of(run, keep_alive_seconds=0)
    opening = await anext(pieces)
    assert [await anext(pieces) for _ in range(3)] == [KEEP_ALIVE] * 3
    assert KEEP_ALIVE.startswith(b":")
    assert KEEP_ALIVE.endswith(b"\n\n")
    gate.open()
    rest = [piece async for piece in pieces if piece != KEEP_ALIVE]
    check_stream(parsed([opening, *rest]))


async def test_a_client_that_leaves_stops_the_run() -> None:
    backend = Script([TextDelta("a")], Gate())
    engine = an_engine(backend)
    run = await stream(engine)
    pieces = frames_of(run)
    await anext(pieces)
    await pieces.aclose()
    await run.wait_closed()
    assert backend.closed == 1
    stored = (await engine.get(SCOPE, run.response_id)).response
    assert stored.status == ResponseStatus.RESPONSE_STATUS_CANCELLED


async def test_a_client_that_leaves_before_the_first_piece_stops_the_run_too() -> None:
    backend = Script([Accepted()], Gate())
    run = await stream(an_engine(backend))
    await frames_of(run).aclose()
    await run.wait_closed()
    assert backend.closed == 1


async def test_a_client_whose_wait_is_cancelled_stops_the_run() -> None:
    gate = Gate()
    backend = Script([Accepted()], gate)
    run = await stream(an_engine(backend))

    async def follow() -> None:
        async for _ in frames_of(run):
            pass

    following = asyncio.ensure_future(follow())
    await gate.reached()
    await asyncio.sleep(0)
    following.cancel()
    with pytest.raises(asyncio.CancelledError):
        await following
    await run.wait_closed()
    assert backend.closed == 1


def test_no_proxy_keeps_or_changes_a_stream() -> None:
    assert HEADERS["cache-control"] == "no-cache, no-transform"
    assert HEADERS["x-accel-buffering"] == "no"
