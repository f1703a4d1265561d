import asyncio

import pytest

from antiphon.backends.echo import EchoBackend
from antiphon.core.errors import ApiError, ErrorKind
from antiphon.core.output import Accepted, Failed, Finished, ItemAdded, TextDelta
from antiphon.core.scope import Scope
from antiphon.core.tokens import usage
from antiphon.engine.engine import Engine
from antiphon.v1.item_pb2 import Item, ItemList
from antiphon.v1.item_status_pb2 import ItemStatus
from antiphon.v1.response_pb2 import Response, ResponseStatus
from tests.support.backend import Script
from tests.support.clock import Clock
from tests.support.engine import (
    MODEL,
    OTHER,
    SCOPE,
    a_request,
    an_engine,
    answer,
    read_all,
    stream,
)
from tests.support.gate import Gate
from tests.support.store import SteeredStore
from tests.support.stream import check_stream, message_text

SECRET = "password=hunter2"
UNKNOWN = "resp_0123456789abcdef"


async def stored(engine: Engine, response_id: str, scope: Scope = SCOPE) -> Response:
    return (await engine.get(scope, response_id)).response


async def refused_create(engine: Engine, **request: str) -> ApiError:
    with pytest.raises(ApiError) as caught:
        await engine.create(SCOPE, a_request(**request))  # type: ignore[arg-type]
    return caught.value


async def refused_get(engine: Engine, response_id: str, scope: Scope = SCOPE) -> ApiError:
    with pytest.raises(ApiError) as caught:
        await engine.get(scope, response_id)
    return caught.value


async def refused_delete(engine: Engine, response_id: str, scope: Scope = SCOPE) -> ApiError:
    with pytest.raises(ApiError) as caught:
        await engine.delete(scope, response_id)
    return caught.value


def said(items: list[Item]) -> list[str]:
    """Returns the text of messages, of input and of output alike."""
    return [
        "".join(
            part.input_text.text + part.output_text.text for part in item.message.content_list.parts
        )
        for item in items
    ]


# Create.


async def test_a_response_has_a_new_id_and_the_time_of_the_clock() -> None:
    clock = Clock(1_000.9)
    engine = an_engine(Script(lambda: setattr(clock, "now", 1_005.9), [Finished()]), clock=clock)
    response = await answer(engine)
    assert response.id.startswith("resp_")
    assert response.created_at == 1_000
    assert response.completed_at == 1_005


async def test_a_response_has_what_the_backend_wrote_and_its_usage() -> None:
    engine = an_engine(Script([TextDelta("Hel")], [TextDelta("lo"), Finished(usage(1, 2))]))
    response = await answer(engine)
    assert response.status == ResponseStatus.RESPONSE_STATUS_COMPLETED
    assert [message_text(item) for item in response.output] == ["Hello"]
    assert response.usage == usage(1, 2)


async def test_a_stream_ends_in_the_response_that_is_stored() -> None:
    engine = an_engine(EchoBackend(deltas=3))
    run = await stream(engine, "one two three")
    final = check_stream(await read_all(run.client))
    assert message_text(final.output[0]) == "one two three"
    assert await stored(engine, run.response_id) == final


async def test_a_response_is_stored_as_the_client_was_told() -> None:
    engine = an_engine(EchoBackend())
    response = await answer(engine)
    assert response.store
    assert await stored(engine, response.id) == response


async def test_the_input_is_stored_with_the_response() -> None:
    store = SteeredStore()
    engine = an_engine(EchoBackend(), store)
    response = await answer(engine, "what I said")
    turn = await store.find(SCOPE, response.id)
    assert turn is not None
    items = ItemList.FromString((await turn.read()).input).items
    assert said(list(items)) == ["what I said"]


async def test_the_backend_is_asked_the_request_with_its_input_as_items() -> None:
    backend = Script([Finished()])
    response = await answer(an_engine(backend), "what I said")
    (call,) = backend.calls
    assert call.request == a_request("what I said")
    assert call.response_id == response.id
    assert said(list(call.input)) == ["what I said"]
    assert list(await call.history()) == []
    assert call.context_tokens > 0


async def test_only_models_that_somebody_answers_can_be_asked() -> None:
    backend = Script([Finished()])
    engine = an_engine(backend)
    request = a_request()
    request.model = "another"
    with pytest.raises(ApiError) as caught:
        await engine.create(SCOPE, request)
    assert caught.value.kind is ErrorKind.MODEL_NOT_FOUND
    assert caught.value.param == "model"
    assert "another" not in caught.value.message
    assert not backend.calls
    assert list(engine.models) == [MODEL]
    assert engine.serves(MODEL)
    assert not engine.serves("another")


async def test_a_request_that_breaks_a_rule_reaches_no_backend() -> None:
    backend = Script([Finished()])
    request = a_request()
    request.ClearField("input_text")
    with pytest.raises(ApiError, match="Missing required parameter: 'input'"):
        await an_engine(backend).create(SCOPE, request)
    assert not backend.calls


# What is stored.


async def test_what_is_not_to_be_stored_leaves_no_trace() -> None:
    store = SteeredStore()
    engine = an_engine(EchoBackend(), store)
    run = await engine.create(SCOPE, a_request(store=False))
    response = (await run.result()).response
    assert not response.store
    assert store.calls == []
    unknown = await refused_get(engine, UNKNOWN)
    mine = await refused_get(engine, response.id)
    assert (mine.kind, mine.message) == (
        unknown.kind,
        unknown.message.replace(UNKNOWN, response.id),
    )
    error = await refused_create(engine, parent=response.id)
    assert error.kind is ErrorKind.PREVIOUS_RESPONSE_NOT_FOUND


async def test_a_running_response_that_is_not_stored_cannot_be_found() -> None:
    gate = Gate()
    engine = an_engine(Script([Accepted()], gate, [Finished()]))
    run = await engine.create(SCOPE, a_request(store=False))
    assert (await refused_get(engine, run.response_id)).kind is ErrorKind.NOT_FOUND
    assert (await refused_delete(engine, run.response_id)).kind is ErrorKind.NOT_FOUND
    gate.open()
    assert (await run.result()).response.status == ResponseStatus.RESPONSE_STATUS_COMPLETED


@pytest.mark.parametrize(
    ("by_default", "asked", "kept"),
    [(True, None, True), (False, None, False), (True, False, False), (False, True, True)],
)
async def test_what_a_request_says_of_storing_stands_above_the_default(
    by_default: bool, asked: bool | None, kept: bool
) -> None:
    store = SteeredStore()
    engine = an_engine(EchoBackend(), store, store_by_default=by_default)
    run = await engine.create(SCOPE, a_request(store=asked))
    assert (await run.result()).response.store is kept
    assert store.retained_turns == int(kept)


# Chains.


async def test_a_backend_can_read_the_turns_before_oldest_first() -> None:
    backend = Script([TextDelta("answer"), Finished()])
    engine = an_engine(backend)
    first = await answer(engine, "one")
    second = await answer(engine, "two", parent=first.id)
    await answer(engine, "three", parent=second.id)
    history = list(await backend.calls[-1].history())
    assert said(history) == ["one", "answer", "two", "answer"]
    assert said(list(backend.calls[-1].input)) == ["three"]


async def test_a_response_names_the_one_it_continues() -> None:
    engine = an_engine(EchoBackend())
    first = await answer(engine)
    assert not first.HasField("previous_response_id")
    assert (await answer(engine, parent=first.id)).previous_response_id == first.id


async def test_a_turn_can_be_continued_more_than_once() -> None:
    backend = Script([Finished()])
    engine = an_engine(backend)
    root = await answer(engine, "root")
    for branch in ("left", "right"):
        child = await answer(engine, branch, parent=root.id)
        await answer(engine, "leaf", parent=child.id)
        assert said(list(await backend.calls[-1].history())) == ["root", branch]


async def test_the_context_is_counted_along_the_chain() -> None:
    backend = Script([TextDelta("a" * 400), Finished(usage(0, 100))])
    engine = an_engine(backend)
    first = await answer(engine, "one")
    await answer(engine, "one", parent=first.id)
    alone, continued = (call.context_tokens for call in backend.calls)
    assert continued == alone + 100 + alone


async def test_instructions_are_of_one_turn_only() -> None:
    backend = Script([Finished()])
    engine = an_engine(backend)
    request = a_request("one")
    request.instructions = "be brief"
    first = await (await engine.create(SCOPE, request)).result()
    second = await answer(engine, "two", parent=first.response.id)
    assert first.response.instructions_text == "be brief"
    assert second.WhichOneof("instructions") is None
    assert said(list(await backend.calls[-1].history())) == ["one"]


async def test_a_deleted_turn_stays_in_the_history_of_those_after_it() -> None:
    backend = Script([Finished()])
    engine = an_engine(backend)
    first = await answer(engine, "one")
    second = await answer(engine, "two", parent=first.id)
    await engine.delete(SCOPE, first.id)
    await answer(engine, "three", parent=second.id)
    assert said(list(await backend.calls[-1].history())) == ["one", "two"]


@pytest.mark.parametrize(
    "end", [Failed("server_error", "It failed."), Finished(incomplete="max_output_tokens")]
)
async def test_a_turn_that_did_not_complete_can_be_continued(end: Failed | Finished) -> None:
    backend = Script([TextDelta("half"), end])
    engine = an_engine(backend)
    first = await answer(engine, "one")
    await answer(engine, "two", parent=first.id)
    assert said(list(await backend.calls[-1].history())) == ["one", "half"]


async def test_a_cancelled_turn_can_be_continued() -> None:
    gate = Gate()
    backend = Script([TextDelta("half")], gate, [Finished()])
    engine = an_engine(backend)
    run = await engine.create(SCOPE, a_request("one"))
    await gate.reached()
    run.cancel()
    await run.wait_closed()
    gate.open()
    await answer(engine, "two", parent=run.response_id)
    assert said(list(await backend.calls[-1].history())) == ["one", "half"]


async def test_a_running_turn_cannot_be_continued() -> None:
    gate = Gate()
    engine = an_engine(Script([Accepted()], gate, [Finished()]))
    run = await engine.create(SCOPE, a_request())
    error = await refused_create(engine, parent=run.response_id)
    assert error.kind is ErrorKind.NOT_NOW
    assert error.param == "previous_response_id"
    gate.open()
    await run.result()
    await answer(engine, parent=run.response_id)


async def test_an_unknown_turn_cannot_be_continued() -> None:
    error = await refused_create(an_engine(EchoBackend()), parent=UNKNOWN)
    assert error.kind is ErrorKind.PREVIOUS_RESPONSE_NOT_FOUND
    assert (error.code, error.param) == ("previous_response_not_found", "previous_response_id")


async def test_a_deleted_turn_cannot_be_continued() -> None:
    engine = an_engine(EchoBackend())
    first = await answer(engine)
    await engine.delete(SCOPE, first.id)
    deleted = await refused_create(engine, parent=first.id)
    unknown = await refused_create(engine, parent=UNKNOWN)
    assert (deleted.kind, deleted.message) == (unknown.kind, unknown.message)


async def test_a_turn_answers_the_calls_of_the_turn_it_continues() -> None:
    call = Item()
    call.function_call.call_id = "call_1"
    call.function_call.status = ItemStatus.ITEM_STATUS_COMPLETED
    backend = Script([ItemAdded(call), Finished()])
    engine = an_engine(backend)
    first = await answer(engine)
    error = await refused_create(engine, parent=first.id)
    assert (error.kind, error.param) == (ErrorKind.INVALID_VALUE, "input")
    assert len(backend.calls) == 1

    request = a_request(parent=first.id)
    given = request.input_list.items.add().function_call_output
    given.call_id, given.output_text = "call_1", "4"
    final = (await (await engine.create(SCOPE, request)).result()).response
    assert final.status == ResponseStatus.RESPONSE_STATUS_COMPLETED


async def test_a_turn_answers_no_call_that_was_not_made() -> None:
    request = a_request()
    request.input_list.items.add().function_call_output.call_id = "call_1"
    with pytest.raises(ApiError) as caught:
        await an_engine(EchoBackend()).create(SCOPE, request)
    assert (caught.value.kind, caught.value.param) == (ErrorKind.INVALID_VALUE, "input")


async def test_secrets_reach_the_backend_and_are_neither_told_nor_stored() -> None:
    backend = Script([Finished()])
    store = SteeredStore()
    request = a_request()
    request.tools.add().mcp.authorization = SECRET
    given = request.input_list.items.add().additional_tools
    given.tools.add().mcp.headers["x-key"] = SECRET
    response = (await (await an_engine(backend, store).create(SCOPE, request)).result()).response
    assert backend.calls[0].request.tools[0].mcp.authorization == SECRET
    assert SECRET.encode() not in response.SerializeToString()
    turn = await store.find(SCOPE, response.id)
    assert turn is not None
    content = await turn.read()
    assert SECRET.encode() not in content.input + content.response


# Get.


async def test_a_running_response_is_told_as_it_is_now() -> None:
    first, second = Gate(), Gate()
    script = Script([TextDelta("Hel")], first, [TextDelta("lo")], second, [Finished()])
    engine = an_engine(script)
    run = await engine.create(SCOPE, a_request())
    for gate, text in ((first, "Hel"), (second, "Hello")):
        await gate.reached()
        now = await stored(engine, run.response_id)
        assert now.status == ResponseStatus.RESPONSE_STATUS_IN_PROGRESS
        assert [message_text(item) for item in now.output] == [text]
        gate.open()
    final = (await run.result()).response
    assert await stored(engine, run.response_id) == final


async def test_an_unknown_response_is_not_found() -> None:
    error = await refused_get(an_engine(EchoBackend()), UNKNOWN)
    assert error.kind is ErrorKind.NOT_FOUND
    assert error.message == f"Response with id '{UNKNOWN}' not found."


@pytest.mark.parametrize("response_id", ["", "../x", "a" * 129])
async def test_an_id_that_cannot_exist_reaches_no_store(response_id: str) -> None:
    store = SteeredStore()
    engine = an_engine(EchoBackend(), store)
    for error in (
        await refused_get(engine, response_id),
        await refused_delete(engine, response_id),
    ):
        assert (error.kind, error.param) == (ErrorKind.INVALID_VALUE, "response_id")
    error = await refused_create(engine, parent=response_id)
    assert (error.kind, error.param) == (ErrorKind.INVALID_VALUE, "previous_response_id")
    assert store.calls == []


# Delete.


async def test_a_deleted_response_is_unknown() -> None:
    engine = an_engine(EchoBackend())
    response = await answer(engine)
    await engine.delete(SCOPE, response.id)
    assert (await refused_get(engine, response.id)).kind is ErrorKind.NOT_FOUND
    assert (await refused_delete(engine, response.id)).kind is ErrorKind.NOT_FOUND


async def test_deleting_a_running_response_cancels_it_for_good() -> None:
    gate = Gate()
    backend = Script([TextDelta("a")], gate, [Finished()])
    engine = an_engine(backend)
    run = await stream(engine)
    await gate.reached()
    await engine.delete(SCOPE, run.response_id)
    final = check_stream(await read_all(run.client))
    assert final.status == ResponseStatus.RESPONSE_STATUS_CANCELLED
    assert backend.closed == 1
    assert (await refused_get(engine, run.response_id)).kind is ErrorKind.NOT_FOUND


# Isolation.


async def test_a_response_of_another_scope_is_an_unknown_one() -> None:
    engine = an_engine(EchoBackend())
    theirs = await answer(engine, scope=OTHER)
    for refused in (refused_get, refused_delete):
        foreign, unknown = await refused(engine, theirs.id), await refused(engine, UNKNOWN)
        assert foreign.kind is unknown.kind
        assert foreign.body.error.message == unknown.body.error.message.replace(UNKNOWN, theirs.id)
        assert (foreign.param, foreign.code) == (unknown.param, unknown.code)
    foreign = await refused_create(engine, parent=theirs.id)
    unknown = await refused_create(engine, parent=UNKNOWN)
    assert (foreign.kind, foreign.body) == (unknown.kind, unknown.body)
    assert await stored(engine, theirs.id, OTHER) == theirs


async def test_a_running_response_of_another_scope_is_an_unknown_one() -> None:
    gate = Gate()
    engine = an_engine(Script([Accepted()], gate, [Finished()]))
    run = await engine.create(OTHER, a_request())
    assert (await refused_get(engine, run.response_id)).kind is ErrorKind.NOT_FOUND
    assert (await refused_delete(engine, run.response_id)).kind is ErrorKind.NOT_FOUND
    error = await refused_create(engine, parent=run.response_id)
    assert error.kind is ErrorKind.PREVIOUS_RESPONSE_NOT_FOUND
    gate.open()
    assert (await run.result()).response.status == ResponseStatus.RESPONSE_STATUS_COMPLETED


# Close.


async def test_closing_ends_every_run_with_its_terminal_event_and_stores_it() -> None:
    gate = Gate()
    engine = an_engine(Script([TextDelta("a")], gate))
    runs = [await stream(engine) for _ in range(3)]
    await gate.reached()
    await engine.close()
    assert engine.running == 0
    for run in runs:
        final = check_stream(await read_all(run.client))
        assert final.status == ResponseStatus.RESPONSE_STATUS_FAILED
        assert await stored(engine, run.response_id) == final


async def test_closing_waits_for_what_is_being_stored() -> None:
    store = SteeredStore()
    store.gates["finish"] = Gate()
    engine = an_engine(EchoBackend(), store)
    run = await engine.create(SCOPE, a_request())
    await store.gates["finish"].reached()
    closing = asyncio.ensure_future(engine.close())
    await asyncio.sleep(0)
    assert not closing.done()
    store.gates["finish"].open()
    await closing
    assert (await run.result()).response.status == ResponseStatus.RESPONSE_STATUS_COMPLETED


async def test_a_request_that_waits_for_its_backend_is_refused_at_closing() -> None:
    gate = Gate()
    engine = an_engine(Script(gate))
    creating = asyncio.ensure_future(engine.create(SCOPE, a_request()))
    await gate.reached()
    await engine.close()
    with pytest.raises(ApiError) as caught:
        await creating
    assert caught.value.kind is ErrorKind.UNAVAILABLE


async def test_a_closed_engine_takes_no_new_work_and_still_tells_what_is_stored() -> None:
    engine = an_engine(EchoBackend())
    response = await answer(engine)
    await engine.close()
    error = await refused_create(engine)
    assert (error.kind, error.retry_after) == (ErrorKind.UNAVAILABLE, 1)
    assert await stored(engine, response.id) == response


async def test_a_request_that_looks_for_its_parent_does_not_slip_through_closing() -> None:
    store = SteeredStore()
    backend = Script([Finished()])
    engine = an_engine(backend, store)
    parent = await answer(engine)
    store.gates["find"] = Gate()
    creating = asyncio.ensure_future(engine.create(SCOPE, a_request(parent=parent.id)))
    await store.gates["find"].reached()
    await engine.close()
    store.gates["find"].open()
    with pytest.raises(ApiError) as caught:
        await creating
    assert caught.value.kind is ErrorKind.UNAVAILABLE
    assert len(backend.calls) == 1


async def test_an_ended_run_is_forgotten() -> None:
    engine = an_engine(EchoBackend())
    runs = [await engine.create(SCOPE, a_request()) for _ in range(3)]
    for run in runs:
        await run.wait_closed()
    await asyncio.sleep(0)
    assert engine.running == 0


async def test_a_running_run_is_counted() -> None:
    gate = Gate()
    engine = an_engine(Script([Accepted()], gate))
    run = await engine.create(SCOPE, a_request())
    assert engine.running == 1
    run.cancel()
    await run.result()
