import asyncio

import pytest

from antiphon.core.output import Accepted, Finished, Step, TextDelta
from antiphon.engine.reader import BATCH_EVENTS
from antiphon.engine.run import Run
from tests.support.backend import Script
from tests.support.engine import SCOPE, a_request, an_engine, read_all, stream
from tests.support.gate import Gate
from tests.support.stream import check_stream, messages_of

DELTAS = 1_000
OPENING = 4
"""The events before the first delta: two of the run, the item's and the part's."""
CLOSING = 4
ALL = OPENING + DELTAS + CLOSING


def long_answer(gate: Gate) -> Script:
    deltas: list[Step] = [TextDelta(str(number)) for number in range(DELTAS)]
    return Script([Accepted(), *deltas], gate, [Finished()])


async def test_all_readers_read_the_same_events() -> None:
    gate = Gate()
    run = await stream(an_engine(Script([Accepted()], gate, [TextDelta("a"), Finished()])))
    readers = [run.client, run.reader(), run.reader()]
    reading = [asyncio.ensure_future(read_all(reader)) for reader in readers]
    await gate.reached()
    gate.open()
    first, *others = [await task for task in reading]
    check_stream(first)
    assert others == [first, first]


async def test_a_reader_may_come_late() -> None:
    gate = Gate()
    run = await stream(an_engine(Script([TextDelta("a")], gate, [Finished()])))
    await gate.reached()
    late = run.reader()
    gate.open()
    assert check_stream(await read_all(late)) == check_stream(await read_all(run.client))


async def test_a_reader_may_come_after_the_end() -> None:
    run = await stream(an_engine(Script([TextDelta("a"), Finished()])))
    await run.result()
    check_stream(await read_all(run.reader()))


async def test_a_reader_is_given_a_batch_at_a_time() -> None:
    run = await stream(an_engine(long_answer(gate := Gate())))
    gate.open()
    await run.result()
    reader = run.client
    assert reader is not None
    sizes = []
    while entries := await reader.read():
        sizes.append(len(messages_of(entries)))
    # The last entry of a batch is given whole.
    assert BATCH_EVENTS <= max(sizes) < 2 * BATCH_EVENTS
    assert sum(sizes) == ALL


async def test_nothing_is_read_after_the_end() -> None:
    run = await stream(an_engine(Script([Finished()])))
    reader = run.reader()
    await read_all(reader)
    assert list(await reader.read() or ()) == []
    assert list(await reader.read(0) or ()) == []
    assert await reader.read(0) is not None


async def test_a_reader_is_told_when_its_time_is_up() -> None:
    gate = Gate()
    run = await stream(an_engine(Script([Accepted()], gate, [Finished()])))
    reader = run.reader()
    assert len(await reader.read() or ()) == 2
    for _ in range(3):
        assert await reader.read(0) is None
    gate.open()
    assert len(await reader.read() or ()) == 1


async def test_what_is_there_is_read_even_without_any_time() -> None:
    gate = Gate()
    run = await stream(an_engine(Script([TextDelta("a")], gate)))
    await gate.reached()
    assert len(messages_of(await run.reader().read(0) or ())) == 5


async def test_a_reader_that_stops_waiting_disturbs_no_other() -> None:
    gate = Gate()
    run = await stream(an_engine(Script([Accepted()], gate, [Finished()])))
    leaver, stayer = run.reader(), run.reader()
    await leaver.read()
    leaving = asyncio.ensure_future(leaver.read())
    staying = asyncio.ensure_future(read_all(stayer))
    await gate.reached()
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    leaver.close()
    gate.open()
    check_stream(await staying)


async def test_a_reader_that_leaves_does_not_stop_the_run() -> None:
    gate = Gate()
    run = await stream(an_engine(Script([Accepted()], gate, [TextDelta("a"), Finished()])))
    reader = run.reader()
    reader.close()
    reader.close()
    gate.open()
    check_stream(await read_all(run.client))


async def test_a_run_wakes_its_readers_when_it_is_cancelled() -> None:
    gate = Gate()
    run = await stream(an_engine(Script([Accepted()], gate)))
    reading = asyncio.ensure_future(read_all(run.client))
    await gate.reached()
    run.cancel()
    check_stream(await reading)


# The log is trimmed behind the slowest reader; a new reader begins where the log does.


async def begun(gate: Gate) -> Run:
    """Returns a run that has written all its deltas."""
    run = await stream(an_engine(long_answer(gate)))
    await gate.reached()
    return run


async def test_an_answer_that_is_given_whole_has_no_events() -> None:
    gate = Gate()
    run = await an_engine(long_answer(gate)).create(SCOPE, a_request())
    await gate.reached()
    assert run.length == 0
    gate.open()
    (item,) = (await run.result()).response.output
    texts = [part.output_text.text for part in item.message.content_list.parts]
    assert texts == ["".join(str(number) for number in range(DELTAS))]
    assert (run.over, run.length) == (True, 0)


async def test_what_nobody_reads_is_not_kept() -> None:
    gate = Gate()
    request = a_request(stream=True)
    request.background = True
    run = await an_engine(long_answer(gate)).create(SCOPE, request)
    assert run.client is not None
    run.client.close()
    await gate.reached()
    assert run.length == OPENING + 1 + DELTAS
    assert run.length - run.reader().position <= 2 * BATCH_EVENTS
    gate.open()


async def test_what_a_reader_has_not_read_is_kept() -> None:
    gate = Gate()
    run = await begun(gate)
    assert run.reader().position == 0
    gate.open()
    assert len(await read_all(run.client)) == ALL


async def test_the_slowest_reader_decides_what_is_kept() -> None:
    gate = Gate()
    run = await begun(gate)
    slow, fast = run.client, run.reader()
    assert slow is not None
    for _ in range(3):
        await slow.read()
    while fast.position < run.length:
        await fast.read()
    gate.open()
    await run.result()
    # The entry of the next event stays whole.
    assert slow.position - BATCH_EVENTS < run.reader().position <= slow.position
    assert run.reader().position > 0
    left = ALL - slow.position
    assert len(await read_all(slow)) == left


async def test_a_reader_that_left_keeps_nothing() -> None:
    gate = Gate()
    run = await begun(gate)
    assert run.client is not None
    run.client.close()
    gate.open()
    await run.result()
    assert run.length == ALL
    assert run.length - run.reader().position <= 2 * BATCH_EVENTS


async def test_numbers_stay_contiguous_for_a_reader_while_the_log_is_trimmed() -> None:
    deltas = [[TextDelta(str(number))] for number in range(DELTAS)]
    run = await stream(an_engine(Script(*deltas, [Finished()])))
    events = await read_all(run.client)
    check_stream(events)
    assert len(events) == ALL
