from typing import Any

import grpc
import pytest
from google.rpc.error_details_pb2 import ErrorInfo

from antiphon.backends.echo import EchoBackend
from antiphon.core.output import Accepted, Finished, TextDelta
from antiphon.core.scope import Scope
from antiphon.transports.grpc.responses import ResponsesServicer
from antiphon.v1 import responses_service_pb2 as pb
from antiphon.v1.response_pb2 import ResponseStatus
from antiphon.v1.responses_service_pb2_grpc import ResponsesServiceServicer
from tests.support.backend import Script
from tests.support.engine import a_request, an_engine
from tests.support.gate import Gate
from tests.support.serving import Served, failure, refusal, serving
from tests.support.stream import check_stream, message_text

METHODS = [method.name for method in pb.DESCRIPTOR.services_by_name["ResponsesService"].methods]
EVIL = '{}, "name":"evil"'


async def refused(call: Any) -> grpc.aio.AioRpcError:
    came, error = await failure(call)
    assert came == []
    return error


def param_of(error: grpc.aio.AioRpcError) -> str:
    status = refusal(error)
    assert status is not None
    info = ErrorInfo()
    assert status.details[0].Unpack(info)
    return info.metadata["param"]


async def test_a_create_answers_with_the_whole_response() -> None:
    async with serving(an_engine(EchoBackend())) as served:
        response = await served.typed.CreateResponse(a_request("hello"))
    assert response.status == ResponseStatus.RESPONSE_STATUS_COMPLETED
    assert [message_text(item) for item in response.output] == ["hello"]


async def test_a_stream_answers_with_the_events_as_they_come() -> None:
    gate = Gate()
    async with serving(an_engine(Script([TextDelta("a")], gate, [Finished()]))) as served:
        call = aiter(served.typed.StreamResponse(a_request()))
        events = [await anext(call) for _ in range(5)]
        assert events[-1].output_text_delta.delta == "a"
        gate.open()
        events += [event async for event in call]
    check_stream(events)


async def test_a_response_can_be_got_and_deleted() -> None:
    async with serving(an_engine(EchoBackend())) as served:
        response = await served.typed.CreateResponse(a_request())
        asked = pb.GetResponseRequest(response_id=response.id)
        assert await served.typed.GetResponse(asked) == response
        deleted = await served.typed.DeleteResponse(
            pb.DeleteResponseRequest(response_id=response.id)
        )
        assert (deleted.id, deleted.deleted) == (response.id, True)
        error = await refused(served.typed.GetResponse(asked))
        assert error.code() == grpc.StatusCode.NOT_FOUND
        error = await refused(
            served.typed.DeleteResponse(pb.DeleteResponseRequest(response_id=response.id))
        )
        assert error.code() == grpc.StatusCode.NOT_FOUND


@pytest.mark.parametrize("asked", [True, False])
async def test_the_method_says_whether_it_streams(asked: bool) -> None:
    async with serving(an_engine(EchoBackend())) as served:
        response = await served.typed.CreateResponse(a_request(stream=asked))
        assert response.status == ResponseStatus.RESPONSE_STATUS_COMPLETED
        check_stream([e async for e in served.typed.StreamResponse(a_request(stream=asked))])


async def test_a_stream_has_the_options_of_a_stream() -> None:
    request = a_request()
    request.stream_options.SetInParent()
    async with serving(an_engine(EchoBackend())) as served:
        check_stream([event async for event in served.typed.StreamResponse(request)])
        error = await refused(served.typed.CreateResponse(request))
    assert param_of(error) == "stream_options"


@pytest.mark.parametrize("method", ["CreateResponse", "StreamResponse"])
async def test_a_typed_caller_is_held_to_the_schemas_rules(method: str) -> None:
    backend = Script([Finished()])
    request = a_request()
    tool = request.tools.add().function
    tool.name, tool.parameters = "f", EVIL
    async with serving(an_engine(backend)) as served:
        error = await refused(getattr(served.typed, method)(request))
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert param_of(error) == "tools[0].parameters"
    assert "evil" not in repr(error)
    assert not backend.calls


async def test_the_documents_of_a_typed_caller_are_compacted_before_anybody_sees_them() -> None:
    backend = Script([Finished()])
    request = a_request()
    tool = request.tools.add().function
    tool.name, tool.parameters = "f", '{ "a" :\n 1 }'
    async with serving(an_engine(backend)) as served:
        response = await served.typed.CreateResponse(request)
    assert response.tools[0].function.parameters == '{"a":1}'
    assert backend.calls[0].request.tools[0].function.parameters == '{"a":1}'


@pytest.mark.parametrize("method", ["GetResponse", "DeleteResponse"])
async def test_an_id_that_cannot_exist_is_an_invalid_one(method: str) -> None:
    async with serving(an_engine(EchoBackend())) as served:
        for response_id in ("", "../x"):
            request = getattr(pb, f"{method}Request")(response_id=response_id)
            error = await refused(getattr(served.typed, method)(request))
            assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
            assert param_of(error) == "response_id"


async def test_a_client_that_leaves_a_stream_stops_the_run() -> None:
    backend = Script([TextDelta("a")], Gate())
    engine = an_engine(backend)
    async with serving(engine) as served:
        call = served.typed.StreamResponse(a_request())
        created = await call.read()
        call.cancel()
        await backend.left.wait()
        await engine.close()
    stored = await engine.get(Scope(), created.created.response.id)
    assert stored.response.status == ResponseStatus.RESPONSE_STATUS_CANCELLED


async def test_a_client_that_leaves_while_it_waits_stops_the_run() -> None:
    gate = Gate()
    backend = Script([Accepted()], gate)
    engine = an_engine(backend)
    async with serving(engine) as served:
        call = served.typed.CreateResponse(a_request())
        await gate.reached()
        call.cancel()
        await backend.left.wait()
    assert backend.closed == 1


async def test_a_client_that_leaves_before_acceptance_stops_the_run() -> None:
    gate = Gate()
    backend = Script(gate)
    engine = an_engine(backend)
    async with serving(engine) as served:
        call = served.typed.StreamResponse(a_request())
        await gate.reached()
        call.cancel()
        await backend.left.wait()
    assert backend.closed == 1


@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_an_answer_of_ours(method: str) -> None:
    ours = getattr(ResponsesServicer, method)
    assert ours is not getattr(ResponsesServiceServicer, method)


@pytest.mark.parametrize("method", METHODS)
async def test_an_empty_request_is_answered_or_refused_with_a_reason(method: str) -> None:
    descriptor = pb.DESCRIPTOR.services_by_name["ResponsesService"].methods_by_name[method]
    request = getattr(pb, descriptor.input_type.name)()
    async with serving(an_engine(EchoBackend())) as served:
        error = await refused(getattr(served.typed, method)(request))
    assert error.code() in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.UNIMPLEMENTED)
    status = refusal(error)
    assert status is not None
    assert status.details[0].Unpack(ErrorInfo())


async def test_the_calls_of_one_client_run_beside_each_other() -> None:
    gate = Gate()
    engine = an_engine(Script([Accepted()], gate, [Finished()]))

    async def first(served: Served) -> Any:
        call = aiter(served.typed.StreamResponse(a_request()))
        await anext(call)
        return call

    async with serving(engine) as served:
        calls = [await first(served) for _ in range(5)]
        assert engine.running == 5
        gate.open()
        for call in calls:
            events = [event async for event in call]
            assert events[-1].WhichOneof("event") == "completed"
