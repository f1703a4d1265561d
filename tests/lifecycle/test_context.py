"""What a response was made from, and what was found wrong with it once."""

import json
from typing import Any

import pytest

from antiphon.backends.echo import EchoBackend
from antiphon.core.errors import ApiError, ErrorKind
from antiphon.core.output import Accepted, Failed, Finished, TextDelta
from antiphon.core.page import PageRequest
from antiphon.core.request import conversation_of
from antiphon.core.scope import Scope
from antiphon.engine.conversations import Conversations
from antiphon.json import decode
from antiphon.stores.protocol import TurnEnd
from antiphon.v1.conversations_service_pb2 import CreateConversationRequest
from antiphon.v1.item_pb2 import ItemPage
from antiphon.v1.response_pb2 import ResponseStatus
from antiphon.v1.responses_service_pb2 import CreateResponseRequest
from tests.support.backend import Script
from tests.support.engine import SCOPE, an_engine, answer
from tests.support.gate import Gate
from tests.support.store import SteeredStore


def a_request(**members: Any) -> CreateResponseRequest:
    return decode(CreateResponseRequest, json.dumps({"model": "m", **members}))


def texts(page: ItemPage) -> list[str]:
    return [item.message.content_list.parts[0].input_text.text for item in page.data]


async def test_a_response_is_read_once_for_all_the_references_to_its_items() -> None:
    store = SteeredStore()
    engine = an_engine(EchoBackend(), store)
    first = await answer(engine, "one")
    found = store.calls.count("find")
    references = [{"type": "item_reference", "id": first.output[0].message.id}] * 1_000
    run = await engine.create(SCOPE, a_request(input=references))
    await run.result()
    assert store.calls.count("find") == found + 1


async def test_an_item_that_is_repeated_is_listed_once_so_that_paging_ends() -> None:
    engine = an_engine(EchoBackend())
    first = await answer(engine, "one")
    again = {"type": "item_reference", "id": first.output[0].message.id}
    told = {"role": "user", "content": "two"}
    run = await engine.create(SCOPE, a_request(previous_response_id=first.id, input=[again, told]))
    second = (await run.result()).response
    seen: list[str] = []
    asked = PageRequest(limit=1, ascending=True)
    for _ in range(10):
        page = await engine.list_input_items(SCOPE, second.id, asked)
        seen.append(page.last_id)
        if not page.has_more:
            break
        asked = asked._replace(after=page.last_id)
    assert len(seen) == len(set(seen)) == 3


async def test_calls_of_the_input_of_the_turn_before_can_be_answered() -> None:
    engine = an_engine(EchoBackend())
    call = {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}
    run = await engine.create(SCOPE, a_request(input=[call]))
    first = (await run.result()).response
    with pytest.raises(ApiError) as refused:
        await engine.create(SCOPE, a_request(previous_response_id=first.id, input="on"))
    assert (refused.value.kind, refused.value.param) == (ErrorKind.INVALID_VALUE, "input")
    output = {"type": "function_call_output", "call_id": "call_1", "output": "4"}
    run = await engine.create(SCOPE, a_request(previous_response_id=first.id, input=[output]))
    assert (await run.result()).response.status == ResponseStatus.RESPONSE_STATUS_COMPLETED


async def test_a_failed_response_of_a_conversation_lists_nothing_that_came_later() -> None:
    store = SteeredStore()
    backend = Script([Accepted(), Failed("server_error", "no")])
    engine = an_engine(backend, store)
    made = await Conversations(store).create(SCOPE, CreateConversationRequest(id="c"))
    failing = a_request(input="one", conversation=made.id)
    assert conversation_of(failing) == "c"
    failed = (await (await engine.create(SCOPE, failing)).result()).response
    later = an_engine(EchoBackend(), store)
    await (await later.create(SCOPE, a_request(input="two", conversation="c"))).result()
    assert texts(await engine.list_input_items(SCOPE, failed.id, PageRequest())) == ["one"]


async def test_a_refused_request_stores_nothing_though_its_time_to_accept_is_up() -> None:
    store = SteeredStore()
    refusal = ApiError(ErrorKind.BAD_BACKEND, "no")
    engine = an_engine(Script(refusal), store, accept_seconds=0)
    refused = 0
    for _ in range(20):
        try:
            run = await engine.create(SCOPE, a_request(input="hi"))
        except ApiError:
            refused += 1
        else:
            # The time was up first: then the failure is part of the answer, and it has an end.
            assert (await run.result()).response.status == ResponseStatus.RESPONSE_STATUS_FAILED
    assert store.retained_turns == 20 - refused
    assert engine.running == 0


class FailsOnce(SteeredStore):
    """A store that is out of order for one moment."""

    failed = False

    async def finish(self, scope: Scope, response_id: str, end: TurnEnd) -> bool:
        if not self.failed:
            self.failed = True
            raise ConnectionError("gone")
        return await super().finish(scope, response_id, end)


async def test_what_could_not_be_stored_is_stored_as_failed() -> None:
    engine = an_engine(Script([TextDelta("a"), Finished(incomplete="content_filter")]), FailsOnce())
    run = await engine.create(SCOPE, a_request(input="hi"))
    told = (await run.result()).response
    assert told.status == ResponseStatus.RESPONSE_STATUS_FAILED
    assert not told.HasField("incomplete_details")
    assert (await engine.get(SCOPE, told.id)).response == told


async def test_readers_that_stop_waiting_are_forgotten() -> None:
    gate = Gate()
    engine = an_engine(Script([Accepted()], gate, [Finished()]))
    run = await engine.create(SCOPE, a_request(input="hi", stream=True))
    assert run.client is not None
    while await run.client.read(0):
        pass
    for _ in range(100):
        assert await run.client.read(0) is None
    assert len(run._waiters) == 0
    gate.open()
    await run.result()
