import asyncio
import itertools
from types import SimpleNamespace

import pytest

from antiphon.backends.protocol import Backend
from antiphon.core.errors import ApiError, ErrorKind
from antiphon.core.event import event_type
from antiphon.core.output import (
    Accepted,
    Failed,
    Finished,
    ItemAdded,
    ItemDone,
    Step,
    TextDelta,
)
from antiphon.engine.engine import Engine
from antiphon.engine.run import Run
from antiphon.v1.item_pb2 import Item
from antiphon.v1.response_pb2 import Response, ResponseStatus
from tests.support.backend import Script
from tests.support.engine import SCOPE, a_request, an_engine, answer, read_all, stream
from tests.support.gate import Gate
from tests.support.store import SteeredStore
from tests.support.stream import check_stream, message_text, messages_of

SECRET = "password=hunter2"


async def told_and_stored(engine: Engine, run: Run) -> Response:
    """Returns the final response, which the stream, the result and the store tell alike."""
    final = check_stream(await read_all(run.client))
    assert (await run.result()).response == final
    assert (await engine.get(SCOPE, run.response_id)).response == final
    return final


async def nothing_is_left(engine: Engine, store: SteeredStore) -> bool:
    """Whether, after the run's last steps, neither the engine nor the store knows of it."""
    await settled()
    return engine.running == 0 and store.retained_turns == 0


async def settled() -> None:
    """Lets everything happen that waits for nothing."""
    for _ in range(20):
        await asyncio.sleep(0)


async def creating(engine: Engine) -> "asyncio.Task[Run]":
    return asyncio.create_task(engine.create(SCOPE, a_request(stream=True)))


# Before the backend accepts.


async def test_a_backend_that_refuses_is_the_answer_and_nothing_is_stored() -> None:
    store = SteeredStore()
    error = ApiError(ErrorKind.RATE_LIMIT, "Too many.", retry_after=3)
    engine = an_engine(Script(error), store)
    with pytest.raises(ApiError) as caught:
        await answer(engine)
    assert caught.value is error
    assert store.calls == []
    assert await nothing_is_left(engine, store)


async def test_a_backend_that_breaks_before_it_accepts_stores_nothing() -> None:
    store = SteeredStore()
    engine = an_engine(Script(ZeroDivisionError(SECRET)), store)
    with pytest.raises(ZeroDivisionError):
        await answer(engine)
    assert await nothing_is_left(engine, store)


async def test_an_answer_does_not_begin_before_the_backend_accepts() -> None:
    gate = Gate()
    store = SteeredStore()
    engine = an_engine(Script(gate, [Accepted()], [Finished()]), store)
    task = await creating(engine)
    await gate.reached()
    await settled()
    assert not task.done()
    assert store.calls == []
    gate.open()
    check_stream(await read_all((await task).client))


async def types_read(run: Run) -> list[str]:
    """Reads what is there for the client that asked, and returns the types of the events."""
    assert run.client is not None
    return [event_type(event) for event in messages_of(await run.client.read() or ())]


async def test_an_answer_begins_when_the_backend_accepts() -> None:
    gate = Gate()
    engine = an_engine(Script([Accepted()], gate, [Finished()]))
    run = await stream(engine)
    assert run.client is not None
    assert await types_read(run) == ["response.created", "response.in_progress"]
    gate.open()


async def test_a_turn_is_stored_before_its_first_event_can_be_read() -> None:
    store = SteeredStore()
    store.gates["begin"] = Gate()
    engine = an_engine(Script([Finished()]), store)
    task = await creating(engine)
    await store.gates["begin"].reached()
    await settled()
    assert not task.done()
    store.gates["begin"].open()
    run = await task
    assert run.length > 0


async def test_a_client_that_leaves_before_acceptance_leaves_nothing() -> None:
    gate = Gate()
    store = SteeredStore()
    backend = Script(gate)
    engine = an_engine(backend, store)
    task = await creating(engine)
    await gate.reached()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await nothing_is_left(engine, store)
    assert backend.closed == 1


async def test_a_store_that_cannot_begin_refuses_the_request() -> None:
    store = SteeredStore()
    store.faults["begin"] = ConnectionError(SECRET)
    backend = Script([Accepted()], [Finished()])
    engine = an_engine(backend, store)
    with pytest.raises(ConnectionError):
        await answer(engine)
    assert await nothing_is_left(engine, store)
    assert backend.closed == 1


# When the time to accept is up.


async def test_an_answer_begins_without_acceptance_when_the_time_is_up() -> None:
    gate = Gate()
    engine = an_engine(Script(gate, [Accepted(), TextDelta("a"), Finished()]), accept_seconds=0)
    run = await stream(engine)
    stored = (await engine.get(SCOPE, run.response_id)).response
    assert stored.status == ResponseStatus.RESPONSE_STATUS_IN_PROGRESS
    gate.open()
    final = await told_and_stored(engine, run)
    assert final.status == ResponseStatus.RESPONSE_STATUS_COMPLETED


async def test_a_refusal_after_the_answer_has_begun_is_in_the_stream() -> None:
    gate = Gate()
    refusal = ApiError(ErrorKind.RATE_LIMIT, "Too many.")
    engine = an_engine(Script(gate, refusal), accept_seconds=0)
    run = await stream(engine)
    gate.open()
    final = await told_and_stored(engine, run)
    assert final.status == ResponseStatus.RESPONSE_STATUS_FAILED
    assert (final.error.code, final.error.message) == ("rate_limit_exceeded", "Too many.")


async def test_a_backend_that_accepts_while_the_answer_begins_begins_it_no_second_time() -> None:
    gate = Gate()
    store = SteeredStore()
    store.gates["begin"] = Gate()
    engine = an_engine(Script(gate, [Accepted()], [Finished()]), store, accept_seconds=0)
    task = await creating(engine)
    await store.gates["begin"].reached()
    gate.open()
    await settled()
    store.gates["begin"].open()
    check_stream(await read_all((await task).client))
    assert store.calls.count("begin") == 1


async def test_the_time_is_up_while_the_answer_begins_and_begins_it_no_second_time() -> None:
    store = SteeredStore()
    store.gates["begin"] = Gate()
    engine = an_engine(Script([Accepted()], [Finished()]), store, accept_seconds=0)
    task = await creating(engine)
    await store.gates["begin"].reached()
    await settled()
    store.gates["begin"].open()
    check_stream(await read_all((await task).client))
    assert store.calls.count("begin") == 1


async def test_a_store_that_cannot_begin_then_refuses_the_request_at_once() -> None:
    gate = Gate()
    store = SteeredStore()
    store.faults["begin"] = ConnectionError(SECRET)
    backend = Script(gate)
    engine = an_engine(backend, store, accept_seconds=0)
    with pytest.raises(ConnectionError):
        await answer(engine)
    assert await nothing_is_left(engine, store)
    assert backend.closed == 1


async def test_a_client_that_leaves_while_the_answer_begins_leaves_no_turn_running() -> None:
    gate = Gate()
    store = SteeredStore()
    store.gates["begin"] = Gate()
    backend = Script(gate)
    engine = an_engine(backend, store, accept_seconds=0)
    task = await creating(engine)
    await store.gates["begin"].reached()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await settled()
    store.gates["begin"].open()
    await settled()
    assert engine.running == 0
    assert backend.closed == 1
    turn = await store.find(SCOPE, backend.calls[0].response_id)
    assert turn is None or turn.ended


# How it ends.


@pytest.mark.parametrize(
    ("end", "status"),
    [
        (Finished(), ResponseStatus.RESPONSE_STATUS_COMPLETED),
        (Finished(incomplete="max_output_tokens"), ResponseStatus.RESPONSE_STATUS_INCOMPLETE),
        (Failed("server_error", "It failed."), ResponseStatus.RESPONSE_STATUS_FAILED),
    ],
)
async def test_a_run_ends_as_its_backend_says(
    end: Finished | Failed, status: ResponseStatus.ValueType
) -> None:
    engine = an_engine(Script([TextDelta("a"), end]))
    final = await told_and_stored(engine, await stream(engine))
    assert final.status == status


async def test_what_a_backend_does_after_the_end_is_not_told() -> None:
    backend = Script([TextDelta("a"), Finished(), TextDelta("b")], [TextDelta("c")])
    engine = an_engine(backend)
    final = await told_and_stored(engine, await stream(engine))
    assert [message_text(item) for item in final.output] == ["a"]
    assert backend.closed == 1


@pytest.mark.parametrize(
    "fault",
    [
        [ItemDone(key="x")],
        [TextDelta("a\ud800")],
        [Finished(incomplete="\ud800")],
        [Finished(usage=5)],  # type: ignore[arg-type]
        [ItemAdded(Item(unknown='{"type":"x_invented"}'), key="y"), TextDelta("a", key="y")],
        ["text"],
        5,
        ZeroDivisionError(SECRET),
    ],
    ids=ascii,
)
async def test_a_backend_that_breaks_in_its_answer_fails_it(
    fault: "list[Step] | BaseException",
) -> None:
    engine = an_engine(Script([TextDelta("half")], fault))
    final = await told_and_stored(engine, await stream(engine))
    assert final.status == ResponseStatus.RESPONSE_STATUS_FAILED
    assert final.error.code == "server_error"
    assert final.error.message == "The model failed."
    assert message_text(final.output[0]) == "half"


async def test_an_error_that_is_meant_for_clients_is_told_in_the_answer() -> None:
    fault = ApiError(ErrorKind.BAD_BACKEND, "The backend answered badly.")
    engine = an_engine(Script([TextDelta("half")], fault))
    final = await told_and_stored(engine, await stream(engine))
    assert final.error.code == "server_error"
    assert final.error.message == "The backend answered badly."
    assert message_text(final.output[0]) == "half"


@pytest.mark.parametrize("batches", [[], [[]], [[Accepted()]], [[TextDelta("half")]]], ids=str)
async def test_a_backend_that_ends_without_finishing_fails_its_answer(
    batches: list[list[Step]],
) -> None:
    engine = an_engine(Script(*batches))
    final = await told_and_stored(engine, await stream(engine))
    assert final.status == ResponseStatus.RESPONSE_STATUS_FAILED
    assert final.error.code == "server_error"


async def test_the_response_is_stored_before_its_terminal_event_can_be_read() -> None:
    store = SteeredStore()
    gate = store.gates["finish"] = Gate()
    engine = an_engine(Script([TextDelta("a"), Finished()]), store)
    run = await stream(engine)
    await gate.reached()
    await settled()
    assert run.client is not None
    assert (await types_read(run))[-1] == "response.output_item.done"
    assert not run.over
    assert await run.client.read(0) is None
    result = asyncio.ensure_future(run.result())
    await settled()
    assert not result.done()

    gate.open()
    assert await types_read(run) == ["response.completed"]
    turn = await store.find(SCOPE, run.response_id)
    assert turn is not None
    assert turn.ended
    assert (await result).response.status == ResponseStatus.RESPONSE_STATUS_COMPLETED


async def test_a_response_that_cannot_be_stored_is_not_told_as_if_it_were() -> None:
    store = SteeredStore()
    store.faults["finish"] = ConnectionError(SECRET)
    engine = an_engine(Script([TextDelta("a"), Finished()]), store)
    run = await stream(engine)
    final = check_stream(await read_all(run.client))
    assert (await run.result()).response == final
    assert final.status == ResponseStatus.RESPONSE_STATUS_FAILED
    assert final.error.code == "server_error"
    assert final.error.message == "The response could not be stored."
    assert not final.HasField("completed_at")
    await settled()
    assert engine.running == 0


# Cancellation.


async def test_a_cancelled_run_keeps_its_output_and_closes_its_backend() -> None:
    gate = Gate()
    backend = Script([TextDelta("half")], gate, [Finished()])
    engine = an_engine(backend)
    run = await stream(engine)
    await gate.reached()
    run.cancel()
    run.cancel()
    final = await told_and_stored(engine, run)
    assert final.status == ResponseStatus.RESPONSE_STATUS_CANCELLED
    assert message_text(final.output[0]) == "half"
    assert backend.closed == 1


async def test_a_client_that_stops_waiting_for_the_result_cancels_the_run() -> None:
    gate = Gate()
    engine = an_engine(Script([TextDelta("half")], gate, [Finished()]))
    run = await engine.create(SCOPE, a_request())
    waiting = asyncio.ensure_future(run.result())
    await gate.reached()
    await settled()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await run.wait_closed()
    stored = (await engine.get(SCOPE, run.response_id)).response
    assert stored.status == ResponseStatus.RESPONSE_STATUS_CANCELLED
    assert message_text(stored.output[0]) == "half"


async def test_an_answer_that_is_being_stored_cannot_be_cancelled_any_more() -> None:
    store = SteeredStore()
    store.gates["finish"] = Gate()
    engine = an_engine(Script([TextDelta("whole"), Finished()]), store)
    run = await stream(engine)
    await store.gates["finish"].reached()
    run.cancel()
    await settled()
    store.gates["finish"].open()
    final = await told_and_stored(engine, run)
    assert final.status == ResponseStatus.RESPONSE_STATUS_COMPLETED


async def test_a_run_that_is_over_cannot_be_cancelled() -> None:
    engine = an_engine(Script([Finished()]))
    run = await stream(engine)
    final = await told_and_stored(engine, run)
    run.cancel()
    await settled()
    assert (await engine.get(SCOPE, run.response_id)).response == final
    assert run.length == 3


async def test_a_backend_that_breaks_when_it_is_closed_does_not_keep_the_run_from_ending() -> None:
    class Stubborn(Script):
        async def respond(self, call):  # type: ignore[no-untyped-def]
            try:
                yield [TextDelta("half")]
                gate.open()
                await asyncio.Event().wait()
            finally:
                raise ZeroDivisionError(SECRET)

    gate = Gate()
    engine = an_engine(Stubborn())
    run = await stream(engine)
    await gate.enter()
    run.cancel()
    final = await told_and_stored(engine, run)
    assert final.status == ResponseStatus.RESPONSE_STATUS_CANCELLED
    assert SECRET not in str(final)


# Fairness.


async def turns_of_others(backend: Backend) -> int:
    """Returns how often another task had its turn while a backend answered."""
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    engine = an_engine(backend)
    task = asyncio.create_task(other())
    await answer(engine)
    task.cancel()
    return turns


STEPS = 3_200


async def test_a_backend_that_never_waits_leaves_turns_to_others() -> None:
    batches = [[TextDelta("a")] for _ in range(STEPS)]
    assert await turns_of_others(Script(*batches, [Finished()])) >= STEPS // 256


async def test_one_large_batch_leaves_turns_to_others() -> None:
    batch: list[Step] = [TextDelta("a") for _ in range(STEPS)]
    assert await turns_of_others(Script([*batch, Finished()])) >= STEPS // 256


async def test_batches_without_steps_leave_turns_to_others_by_the_time_they_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Every look at this clock finds a millisecond and a bit gone.
    ticks = itertools.count()
    clock = SimpleNamespace(perf_counter=lambda: next(ticks) * 0.0011)
    monkeypatch.setattr("antiphon.engine.run.time", clock)
    batches: list[list[Step]] = [[] for _ in range(100)]
    assert await turns_of_others(Script(*batches, [Finished()])) >= 100


async def test_the_events_of_a_large_batch_can_be_read_before_it_ends() -> None:
    batch: list[Step] = [TextDelta("a") for _ in range(STEPS)]
    engine = an_engine(Script([*batch, Finished()]))
    run = await stream(engine)
    assert run.client is not None
    reads = 0
    while await run.client.read():
        reads += 1
    assert reads >= STEPS // 256


async def test_no_task_is_left_when_runs_are_over() -> None:
    before = asyncio.all_tasks()
    gate = Gate()
    engine = an_engine(Script(gate, [TextDelta("a"), Finished()]), accept_seconds=0)
    runs = [await stream(engine) for _ in range(5)]
    gate.open()
    for run in runs:
        await read_all(run.client)
    await settled()
    assert asyncio.all_tasks() == before
    assert engine.running == 0


async def test_who_asks_in_the_background_is_told_of_a_response_that_has_only_begun() -> None:
    request = a_request()
    request.background = True
    run = await an_engine(Script([TextDelta("a"), Finished()])).create(SCOPE, request)
    assert run.current().status == ResponseStatus.RESPONSE_STATUS_QUEUED
    assert (await run.ended()).response.status == ResponseStatus.RESPONSE_STATUS_COMPLETED
