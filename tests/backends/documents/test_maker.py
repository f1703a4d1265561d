import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from antiphon.backends.documents.job import Job
from antiphon.backends.documents.maker import DocumentMaker
from antiphon.backends.documents.problem import Problem, SchemaProblem

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


async def test_a_document_is_made_by_a_worker(maker: DocumentMaker) -> None:
    assert await maker.make(Job(CITY, words=("Paris",))) == '{"city":"Paris"}'


async def test_documents_are_made_at_once(maker: DocumentMaker) -> None:
    jobs = [maker.make(Job(CITY, words=(f"City{number}",))) for number in range(40)]
    found = await asyncio.gather(*jobs)
    assert found == [f'{{"city":"City{number}"}}' for number in range(40)]


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
    assert maker.idle == 0


async def test_a_maker_that_was_closed_can_be_asked_again(maker: DocumentMaker) -> None:
    await maker.make(Job(CITY, 1))
    assert maker.idle == 1
    maker.close()
    assert maker.idle == 0
    assert await maker.make(Job(CITY, 2))


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


async def test_a_given_document_is_remembered_with_its_length(maker: DocumentMaker) -> None:
    given = '{ "city": "Rome" }'
    assert await maker.make(Job(CITY, given=given)) == given
    assert await maker.make(Job(CITY, words=("Paris",), given="[]")) == '{"city":"Paris"}'
    made = len('{"city":"Paris"}')
    assert maker.kept_characters == (len(CITY) + 2 * len(given)) + (len(CITY) + len("[]") + made)


async def test_a_schema_that_is_too_large_is_not_sent(maker: DocumentMaker) -> None:
    assert await problem_of(maker, json.dumps({"$comment": "x" * 300_000})) is Problem.TOO_COMPLEX
    assert maker.idle == 0


async def test_a_document_is_the_same_in_every_process() -> None:
    schema = '{"type":"array","items":{"type":"integer"},"minItems":9}'
    found = set()
    for _ in range(2):
        maker = DocumentMaker(1)
        found.add(await maker.make(Job(schema, 7)))
        maker.close()
    assert len(found) == 1
