"""Clients that leave, and readers of one run at different places."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any

import grpc
import pytest

from antiphon.backends.protocol import Call
from antiphon.core.output import Accepted, Finished, Step, TextDelta
from antiphon.engine.engine import EngineOptions
from antiphon.stores.memory import Bounds, MemoryStore
from antiphon.transports.rest.message import RestReply
from antiphon.transports.rest.sse import KEEP_ALIVE
from antiphon.v1.responses_service_pb2 import CreateResponseRequest, StreamResponseEventsRequest
from tests.lifecycle.desk import Asked, Desk
from tests.lifecycle.house import LONG_SECONDS, MODEL, House, Json, settled, texts_of
from tests.support.gate import Gate
from tests.support.memory import Samples
from tests.support.store import SteeredStore

DONE = b"data: [DONE]\n\n"
STREAMED: Json = {"model": MODEL, "input": "hi", "stream": True}
IN_BACKGROUND: Json = {**STREAMED, "background": True}


def pieces(reply: RestReply) -> AsyncIterator[bytes]:
    """Returns the pieces of a stream."""
    assert (reply.status, isinstance(reply.body, bytes)) == (200, False)
    assert not isinstance(reply.body, bytes)
    return reply.body


async def leave(reply: RestReply) -> None:
    """Leaves a stream, as the transport does when its client has left."""
    body: Any = pieces(reply)
    await body.aclose()


async def read(reply: RestReply) -> bytes:
    """Reads a stream to its end; comments, which tell nothing, are left out."""
    return b"".join([piece async for piece in pieces(reply) if piece != KEEP_ALIVE])


async def follow(house: House, response_id: str, after: int | None = None) -> RestReply:
    """Asks for the events of a response, those after a number or all."""
    query = {"stream": "true"} | ({} if after is None else {"starting_after": str(after)})
    return await house.reply("GetResponse", query=query, response_id=response_id)


def frames_after(body: bytes, number: int) -> bytes:
    """Returns the end of a stream: what follows the event of a number."""
    frames = body.removesuffix(DONE).split(b"\n\n")[:-1]
    return b"".join(frame + b"\n\n" for frame in frames[number + 1 :]) + DONE


async def is_cancelled(house: House, call: Asked, *texts: str) -> None:
    """Checks that a run was stopped and stored with what it had."""
    await call.left.wait()
    await settled()
    stored = await house.get("GetResponse", response_id=call.call.response_id)
    assert stored["status"] == "cancelled"
    assert texts_of(stored["output"]) == list(texts)
    assert house.engine.running == 0


# A client in the foreground that leaves.


async def test_a_stream_whose_client_leaves_is_cancelled() -> None:
    desk = Desk()
    house = House(desk)
    reply = await house.reply("CreateResponse", STREAMED)
    call = await desk.next()
    call.say("half")
    stream = pieces(reply)
    while b"half" not in await anext(stream):
        pass
    await leave(reply)
    await is_cancelled(house, call, "half")


async def test_so_is_one_whose_client_leaves_before_the_first_piece() -> None:
    desk = Desk()
    house = House(desk)
    reply = await house.reply("CreateResponse", STREAMED)
    await leave(reply)
    await is_cancelled(house, await desk.next())


async def test_a_client_that_stops_waiting_for_a_whole_response_cancels_it() -> None:
    desk = Desk()
    house = House(desk)
    asking = asyncio.ensure_future(house.create())
    call = await desk.next()
    call.say("half")
    await settled()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await is_cancelled(house, call, "half")


async def test_a_client_that_leaves_before_the_answer_begins_leaves_nothing() -> None:
    gate = Gate()

    class Silent:
        closed = False

        async def respond(self, call: Call) -> AsyncIterator[Sequence[Step]]:
            try:
                await gate.enter()
                yield [Accepted(), Finished()]
            finally:
                self.closed = True

    backend, store = Silent(), SteeredStore()
    house = House(backend, store)
    for body in ({**STREAMED, "stream": False}, STREAMED):
        asking = asyncio.ensure_future(house.reply("CreateResponse", body))
        await gate.reached()
        await settled()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await settled()
        assert backend.closed
        assert (house.engine.running, store.retained_turns) == (0, 0)


async def test_a_backend_that_does_not_let_go_does_not_keep_the_run() -> None:
    desk = Desk(stubborn=True)
    house = House(desk)
    reply = await house.reply("CreateResponse", STREAMED)
    call = await desk.next()
    call.say("half")
    await settled()
    await leave(reply)
    await settled()
    stored = await house.get("GetResponse", response_id=call.call.response_id)
    assert (stored["status"], texts_of(stored["output"])) == ("cancelled", ["half"])
    assert house.engine.running == 0
    call.finish("late")
    await is_cancelled(house, call, "half")


@pytest.mark.parametrize("method", ["CreateResponse", "StreamResponse"])
async def test_a_grpc_client_that_leaves_cancels_its_run(method: str) -> None:
    desk = Desk()
    house = House(desk)
    async with house.stubs() as (responses, _):
        request = CreateResponseRequest(model=MODEL, input_text="hi")
        asked = getattr(responses, method)(request)
        reading = None
        if method == "StreamResponse":
            await asked.read()
            reading = asked
        call = await desk.next()
        call.say("half")
        await settled()
        asked.cancel()
        with suppress(asyncio.CancelledError, grpc.aio.AioRpcError):
            await (asked if reading is None else reading.read())
        await is_cancelled(house, call, "half")


async def test_an_unstored_run_is_stopped_as_well() -> None:
    desk = Desk()
    house = House(desk)
    reply = await house.reply("CreateResponse", {**STREAMED, "store": False})
    call = await desk.next()
    await leave(reply)
    await call.left.wait()
    await settled()
    assert house.engine.running == 0
    assert (await house.ask("GetResponse", response_id=call.call.response_id)).status == 404


class Endless:
    """Says something, then nothing, until it is stopped."""

    def __init__(self) -> None:
        self.open = 0

    async def respond(self, call: Call) -> AsyncIterator[Sequence[Step]]:
        self.open += 1
        try:
            yield [TextDelta("half")]
            await asyncio.Event().wait()
        finally:
            self.open -= 1


async def drop(house: House, count: int) -> None:
    """Begins streams and leaves each of them after its first events."""
    for first in range(0, count, 100):
        replies = [
            await house.reply("CreateResponse", STREAMED) for _ in range(min(100, count - first))
        ]
        for reply in replies:
            await anext(pieces(reply))
        for reply in replies:
            await leave(reply)
        await settled()


async def test_ten_thousand_dropped_streams_leave_nothing() -> None:
    backend = Endless()
    store = MemoryStore(Bounds(max_turns=100))
    house = House(backend, store)
    tasks = asyncio.all_tasks()
    samples = Samples()
    for _ in range(10):
        await drop(house, 1_000)
        samples.take()
    # Less than one object for ten of them, and less than a kilobyte for each.
    assert samples.objects < 100
    assert samples.bytes < 1_000 * 1_024
    assert (house.engine.running, backend.open) == (0, 0)
    assert asyncio.all_tasks() == tasks
    assert store.retained_turns == 100


# A client in the background that leaves.


async def test_a_background_run_goes_on_without_its_reader() -> None:
    desk = Desk()
    house = House(desk)
    reply = await house.reply("CreateResponse", IN_BACKGROUND)
    call = await desk.next()
    stream = pieces(reply)
    first = await anext(stream)
    await leave(reply)
    await settled()
    assert not call.left.is_set()
    stored = await house.get("GetResponse", response_id=call.call.response_id)
    assert stored["status"] == "in_progress"
    call.finish("whole")
    await settled()
    stored = await house.get("GetResponse", response_id=call.call.response_id)
    assert (stored["status"], texts_of(stored["output"])) == ("completed", ["whole"])
    assert (await read(await follow(house, call.call.response_id))).startswith(first)


async def test_a_follower_that_leaves_changes_nothing_for_others() -> None:
    desk = Desk()
    house = House(desk)
    reply = await house.reply("CreateResponse", IN_BACKGROUND)
    call = await desk.next()
    leaving = await follow(house, call.call.response_id)
    await anext(pieces(leaving))
    await leave(leaving)
    staying = asyncio.ensure_future(read(await follow(house, call.call.response_id)))
    call.finish("whole")
    assert await read(reply) == await staying


# Replay.

ENDS = ["finish", "fail", "break_down", "stop", "cancel"]


async def end_run(house: House, call: Asked, how: str) -> None:
    """Ends a run in some way."""
    if how == "cancel":
        await house.get("CancelResponse", response_id=call.call.response_id)
    else:
        getattr(call, how)()


@pytest.mark.parametrize("how", ENDS)
async def test_a_replay_is_what_the_client_was_sent(how: str) -> None:
    desk = Desk()
    house = House(desk)
    reply = await house.reply("CreateResponse", IN_BACKGROUND)
    call = await desk.next()
    for text in ('so"me\n', "té\u2028xt", "😀"):
        call.say(text)
    await settled()
    followed = asyncio.ensure_future(read(await follow(house, call.call.response_id)))
    await end_run(house, call, how)
    live = await read(reply)
    assert live.endswith(DONE)
    assert await followed == live
    await settled()
    count = live.count(b"\nevent: ") + 1
    assert count >= 9
    for after in (None, *range(count + 2)):
        again = await read(await follow(house, call.call.response_id, after))
        assert again == frames_after(live, -1 if after is None else after)


async def test_readers_at_different_places_are_each_sent_what_follows_theirs() -> None:
    desk = Desk()
    house = House(desk)
    reply = await house.reply("CreateResponse", IN_BACKGROUND)
    call = await desk.next()
    call.say("one")
    await settled()
    reading = {
        after: asyncio.ensure_future(read(await follow(house, call.call.response_id, after)))
        for after in (0, 3, 5, 7, 10, 1_000)
    }
    for text in "two", "three":
        call.say(text)
        await settled()
    call.finish()
    live = await read(reply)
    for after, found in reading.items():
        assert await found == frames_after(live, after), after


async def test_a_reader_that_has_to_wait_is_answered_at_once() -> None:
    desk = Desk()
    house = House(desk)
    reply = await house.reply("CreateResponse", IN_BACKGROUND)
    call = await desk.next()
    waiting = await follow(house, call.call.response_id, 1_000)
    assert await anext(pieces(waiting)) == KEEP_ALIVE
    # Whoever has something to read gets that.
    assert (await anext(pieces(await follow(house, call.call.response_id)))).startswith(b"event:")
    call.finish()
    assert await anext(pieces(waiting)) == DONE
    await leave(reply)


async def test_a_reader_far_ahead_of_the_run_does_not_disturb_it() -> None:
    desk = Desk()
    house = House(desk)
    reply = await house.reply("CreateResponse", IN_BACKGROUND)
    call = await desk.next()
    await leave(reply)
    ahead = asyncio.ensure_future(read(await follow(house, call.call.response_id, 2**53)))
    for number in range(1_000):
        call.say(f"{number} ")
        if number % 100 == 0:
            await settled()
    await settled()
    followed = asyncio.ensure_future(read(await follow(house, call.call.response_id)))
    call.finish()
    assert await ahead == DONE
    live = await followed
    assert live.count(b"response.output_text.delta\n") == 1_000
    assert await read(await follow(house, call.call.response_id)) == live


async def a_trimmed_run(house: House, desk: Desk) -> tuple[Asked, RestReply]:
    """Begins a run whose client reads along, until its log has lost its beginning."""
    reply = await house.reply("CreateResponse", IN_BACKGROUND)
    call = await desk.next()
    stream = pieces(reply)
    for number in range(1_000):
        call.say(f"{number} ")
        await anext(stream)
        await settled()
    return call, reply


async def test_what_was_trimmed_is_read_from_the_store() -> None:
    desk = Desk()
    house = House(desk)
    call, reply = await a_trimmed_run(house, desk)
    followed = [await follow(house, call.call.response_id, after) for after in (None, 100, 900)]
    whole, late, later = [asyncio.ensure_future(read(each)) for each in followed]
    await settled()
    call.finish("end")
    live = await whole
    assert live.count(b"response.output_text.delta\n") == 1_001
    assert live.endswith(await read(reply))
    assert await late == frames_after(live, 100)
    assert await later == frames_after(live, 900)


async def test_a_slow_reader_gets_its_end_when_the_response_is_deleted() -> None:
    desk = Desk()
    house = House(desk)
    call, reply = await a_trimmed_run(house, desk)
    slow = await follow(house, call.call.response_id)
    first = await anext(pieces(slow))
    await house.get("DeleteResponse", response_id=call.call.response_id)
    rest = await read(slow)
    assert b"event: response.failed\n" in rest
    assert rest.endswith(DONE)
    numbers = [
        int(frame.split(b'"sequence_number":', 1)[1].split(b",", 1)[0].rstrip(b"}"))
        for frame in (first + rest).split(b"\n\n")
        if frame.startswith(b"event:")
    ]
    assert numbers == list(range(len(numbers)))
    assert b"event: response.failed\n" in await read(reply)


async def test_a_cancel_in_the_middle_of_storing_events_loses_none() -> None:
    store = SteeredStore()
    desk = Desk()
    house = House(desk, store)
    reply = await house.reply("CreateResponse", IN_BACKGROUND)
    call = await desk.next()
    await settled()
    gate = store.gates["append_events"] = Gate()
    call.say("half")
    await gate.reached()
    cancelling = asyncio.ensure_future(
        house.get("CancelResponse", response_id=call.call.response_id)
    )
    await settled()
    gate.open()
    assert (await cancelling)["status"] == "cancelled"
    live = await read(reply)
    assert await read(await follow(house, call.call.response_id)) == live


async def test_who_comes_while_the_end_is_being_stored_is_told_of_it() -> None:
    store = SteeredStore()
    desk = Desk()
    house = House(desk, store)
    reply = await house.reply("CreateResponse", IN_BACKGROUND)
    call = await desk.next()
    call.say("whole")
    await settled()
    gate = store.gates["append_events"] = Gate()
    call.finish()
    await gate.reached()
    late = await follow(house, call.call.response_id)
    gate.open()
    assert await read(late) == await read(reply)


@pytest.mark.parametrize("how", ENDS)
async def test_a_replay_over_grpc_has_the_same_events(how: str) -> None:
    desk = Desk()
    house = House(desk)
    async with house.stubs() as (responses, _):
        asked = CreateResponseRequest(model=MODEL, input_text="hi", background=True)
        stream = responses.StreamResponse(asked)
        call = await desk.next()
        call.say("some")
        call.say("text")
        await settled()
        request = StreamResponseEventsRequest(response_id=call.call.response_id)
        following = asyncio.ensure_future(collect(responses.StreamResponseEvents(request)))
        await settled()
        await end_run(house, call, how)
        live = await collect(stream)
        assert await following == live
        for after in range(len(live) + 1):
            request.starting_after = after
            assert await collect(responses.StreamResponseEvents(request)) == live[after + 1 :]


async def collect(stream: Any) -> list[Any]:
    return [event async for event in stream]


async def test_every_stored_stream_can_be_replayed_if_so_configured() -> None:
    desk = Desk()
    options = EngineOptions(accept_seconds=LONG_SECONDS, replay_all=True)
    house = House(desk, options=options)
    reply = await house.reply("CreateResponse", STREAMED)
    call = await desk.next()
    call.say("half")
    followed = asyncio.ensure_future(read(await follow(house, call.call.response_id)))
    await settled()
    call.finish()
    live = await read(reply)
    assert await followed == live
    assert await read(await follow(house, call.call.response_id)) == live
