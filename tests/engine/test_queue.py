import asyncio

import pytest

from antiphon.core.output import Finished, Step, TextDelta
from antiphon.engine.queue import RunQueue
from antiphon.engine.run import Run
from tests.support.backend import Script
from tests.support.engine import an_engine, read_all, stream
from tests.support.stream import check_stream


async def test_one_goes_on_at_a_time_and_in_order() -> None:
    queue = RunQueue()
    gone_on: list[int] = []
    together: list[int] = []

    async def go_on(number: int) -> None:
        for _ in range(3):
            await queue.turn()
            gone_on.append(number)

    tasks = [asyncio.ensure_future(go_on(number)) for number in range(4)]
    while not all(task.done() for task in tasks):
        before = len(gone_on)
        await asyncio.sleep(0)
        together.append(len(gone_on) - before)
    assert gone_on == [0, 1, 2, 3] * 3
    assert max(together) == 1


async def test_between_two_of_them_a_call_can_be_answered() -> None:
    queue = RunQueue()
    first, second = (asyncio.ensure_future(queue.turn()) for _ in range(2))
    await first
    count = 0
    while not second.done():
        await asyncio.sleep(0)
        count += 1
    assert count >= 5


@pytest.mark.parametrize("cancelled", [[0], [1], [0, 1], [2]])
async def test_one_that_was_cancelled_is_passed_over(cancelled: list[int]) -> None:
    queue = RunQueue()
    tasks = [asyncio.ensure_future(queue.turn()) for _ in range(3)]
    await asyncio.sleep(0)
    for number in cancelled:
        tasks[number].cancel()
    done = await asyncio.gather(*tasks, return_exceptions=True)
    for number, result in enumerate(done):
        assert isinstance(result, asyncio.CancelledError) == (number in cancelled)
    await queue.turn()


async def test_a_queue_that_has_emptied_begins_again() -> None:
    queue = RunQueue()
    for _ in range(3):
        await queue.turn()
        for _ in range(20):
            await asyncio.sleep(0)


async def test_a_client_hears_that_its_answer_begins_before_other_answers_go_on() -> None:
    batch: list[Step] = [TextDelta("a") for _ in range(2_000)]
    engine = an_engine(Script([*batch, Finished()]))
    runs: list[Run] = [await stream(engine) for _ in range(5)]
    late = await stream(engine)
    assert late.length == 2
    # Each of them has been waiting for its turn since it began.
    assert sum(run.length > 2 for run in runs) <= 2
    for run in (*runs, late):
        check_stream(await read_all(run.client))
