import asyncio
import json
import os
import signal
from collections.abc import Awaitable, Iterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from antiphon.backends.documents import maker as maker_module
from antiphon.backends.documents.job import Job
from antiphon.backends.documents.maker import DocumentMaker
from antiphon.backends.documents.problem import Problem, SchemaProblem
from antiphon.core.errors import ApiError, ErrorKind

CITY = '{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}'
# Forty choices that are made at once: a canonical form would have 2^40 cases.
ENDLESS = json.dumps(
    {
        "type": "object",
        "allOf": [
            {"anyOf": [{"required": [f"a{place}"]}, {"required": [f"b{place}"]}]}
            for place in range(40)
        ],
    }
)


@pytest.fixture
def maker() -> Iterator[DocumentMaker]:
    made = DocumentMaker()
    yield made
    made.close()


async def problem_of(maker: DocumentMaker, schema: Any) -> Problem:
    with pytest.raises(SchemaProblem) as caught:
        await maker.make(Job(schema))
    return caught.value.problem


async def unavailable(made: Awaitable[str]) -> None:
    with pytest.raises(ApiError) as caught:
        await made
    assert caught.value.kind is ErrorKind.UNAVAILABLE


async def test_a_document_is_made_by_a_worker(maker: DocumentMaker) -> None:
    assert await maker.make(Job(CITY, words=("Paris",))) == '{"city":"Paris"}'


async def test_documents_are_made_at_once(maker: DocumentMaker) -> None:
    jobs = [maker.make(Job(CITY, words=(f"City{number}",))) for number in range(40)]
    found = await asyncio.gather(*jobs)
    assert found == [f'{{"city":"City{number}"}}' for number in range(40)]
    # The second job did not wait for the first.
    assert len(maker.workers) == 2


async def test_a_schema_that_keeps_a_worker_busy_is_refused(maker: DocumentMaker) -> None:
    refused = asyncio.create_task(problem_of(maker, ENDLESS))
    # The other worker, and the loop with it, go on meanwhile.
    assert await maker.make(Job(CITY, words=("Rome",))) == '{"city":"Rome"}'
    assert not refused.done()
    assert await refused is Problem.TOO_COMPLEX
    # The next one is made by another worker.
    assert await maker.make(Job(CITY, words=("Paris",))) == '{"city":"Paris"}'


async def test_what_was_asked_before_is_not_worked_on_again(maker: DocumentMaker) -> None:
    made = await maker.make(Job(CITY, 5))
    assert await problem_of(maker, '{"type":"nope"}') is Problem.INVALID
    maker.close()
    assert await maker.make(Job(CITY, 5)) == made
    assert await problem_of(maker, '{"type":"nope"}') is Problem.INVALID


async def test_a_worker_that_was_ended_while_it_was_idle_is_replaced(maker: DocumentMaker) -> None:
    await maker.make(Job(CITY))
    (worker,) = maker.workers
    os.kill(worker, signal.SIGKILL)
    with capture_logs() as logs:
        assert await maker.make(Job('{"type":"boolean"}')) in ("true", "false")
    assert [(log["event"], log["code"]) for log in logs] == [("document_worker_lost", -9)]
    assert worker not in maker.workers


async def test_a_worker_that_cannot_start_is_no_fault_of_the_schema(
    maker: DocumentMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch, capture_logs() as logs:
        patch.setattr(maker_module, "_START", "raise SystemExit('a wheel is missing')")
        await unavailable(maker.make(Job(CITY)))
    assert [log["stderr"].strip() for log in logs] == ["a wheel is missing"] * 2
    assert maker.kept == 0
    assert maker.workers == []
    assert await maker.make(Job(CITY, words=("Rome",))) == '{"city":"Rome"}'


@pytest.mark.parametrize("schema", [CITY, json.dumps({"$comment": "x" * 200_000})])
async def test_a_worker_that_is_silent_is_ended(
    maker: DocumentMaker, monkeypatch: pytest.MonkeyPatch, schema: str
) -> None:
    await maker.make(Job("true"))
    (worker,) = maker.workers
    os.kill(worker, signal.SIGSTOP)
    monkeypatch.setattr(maker_module, "_WALL_SECONDS", 0.01)
    await unavailable(maker.make(Job(schema)))
    assert maker.workers == []
    assert maker.kept == 1


async def test_an_interrupt_at_the_terminal_is_not_for_the_workers(maker: DocumentMaker) -> None:
    await maker.make(Job(CITY))
    (worker,) = maker.workers
    assert os.getsid(worker) != os.getsid(0)


async def test_no_more_than_so_many_jobs_wait() -> None:
    maker = DocumentMaker(workers=1, jobs=2)
    jobs = [asyncio.create_task(maker.make(Job(CITY, seed))) for seed in range(3)]
    await asyncio.wait(jobs)
    await unavailable(jobs.pop())
    assert [await job for job in jobs] == ['{"city":"Paris"}'] * 2
    # Those that are done do not count.
    assert await maker.make(Job(CITY, 3)) == '{"city":"Paris"}'
    maker.close()


async def test_a_maker_that_is_closed_ends_what_it_does_and_refuses_the_rest() -> None:
    maker = DocumentMaker(workers=1)
    await maker.make(Job(CITY))
    jobs = [asyncio.create_task(maker.make(Job(ENDLESS, seed))) for seed in range(3)]
    await asyncio.sleep(0)
    workers = maker.workers
    with capture_logs() as logs:
        maker.close()
    for job in jobs:
        await unavailable(job)
    await unavailable(maker.make(Job(CITY, 1)))
    assert logs == []
    for worker in workers:
        with pytest.raises(ProcessLookupError):
            os.kill(worker, 0)
    maker.close()


async def test_only_so_much_is_remembered() -> None:
    maker = DocumentMaker(kept=2)
    try:
        first = [await maker.make(Job(CITY, seed)) for seed in (1, 2, 3)]
        assert maker.kept == 2
        assert [await maker.make(Job(CITY, seed)) for seed in (1, 2, 3)] == first
    finally:
        maker.close()


async def test_what_is_asked_several_times_at_once_is_remembered_once(
    maker: DocumentMaker,
) -> None:
    found = await asyncio.gather(*(maker.make(Job(CITY, 9)) for _ in range(8)))
    assert len(set(found)) == 1
    assert maker.kept == 1
    assert maker.kept_characters == len(CITY) + len(found[0])


async def test_words_count_for_how_much_is_remembered(maker: DocumentMaker) -> None:
    await maker.make(Job("true", words=("Paris", "Rome"), mentioned=("from", "to")))
    assert maker.kept_characters == len("true") + len("ParisRomefromto") + len('"Paris"')


async def test_a_given_document_is_remembered_with_its_length(maker: DocumentMaker) -> None:
    given = '{ "city": "Rome" }'
    assert await maker.make(Job(CITY, given=given)) == given
    assert await maker.make(Job(CITY, words=("Paris",), given="[]")) == '{"city":"Paris"}'
    made = len('{"city":"Paris"}')
    second = len(CITY) + len("[]") + len("Paris") + made
    assert maker.kept_characters == (len(CITY) + 2 * len(given)) + second


async def test_a_schema_that_is_too_large_is_not_sent(maker: DocumentMaker) -> None:
    assert await problem_of(maker, json.dumps({"$comment": "x" * 300_000})) is Problem.TOO_COMPLEX
    assert maker.workers == []


async def test_a_document_is_the_same_in_every_process() -> None:
    schema = '{"type":"array","items":{"type":"integer"},"minItems":9}'
    found = set()
    for _ in range(2):
        maker = DocumentMaker(1)
        found.add(await maker.make(Job(schema, 7)))
        maker.close()
    assert len(found) == 1
