"""The generated stub, straight to the gRPC port and through the gateway's."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import grpc
import httpx
import pytest
from google.protobuf.descriptor_pool import DescriptorPool
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)
from grpc_status import rpc_status

from antiphon.json import encode
from antiphon.v1 import response_pb2, responses_service_pb2
from antiphon.v1.content_pb2 import Content, ContentList, InputText
from antiphon.v1.item_pb2 import Item, ItemList
from antiphon.v1.message_pb2 import Message, Role
from antiphon.v1.response_pb2 import Response
from antiphon.v1.responses_service_pb2 import (
    CreateResponseRequest,
    DeleteResponseRequest,
    GetResponseRequest,
)
from antiphon.v1.responses_service_pb2_grpc import ResponsesServiceStub
from tests.e2e.server import Server, check_events, final, parse_stream

Stub: TypeAlias = ResponsesServiceStub
Call: TypeAlias = Callable[[Stub], object]

UNKNOWN = "resp_" + "0" * 32
BLUE = "My favourite colour is blue"
ASK = "Which colour did I name?"
RESPONSES_SERVICE = responses_service_pb2.DESCRIPTOR.services_by_name["ResponsesService"].full_name
REST_SERVICE = RESPONSES_SERVICE.replace("ResponsesService", "RestService")

OPTIONS = [
    ("grpc.enable_http_proxy", 0),
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
]


def connect(address: str) -> grpc.Channel:
    return grpc.insecure_channel(address, OPTIONS)


@pytest.fixture(scope="module", params=["direct", "gateway"])
def channel(server: Server, request: pytest.FixtureRequest) -> Iterator[grpc.Channel]:
    address = server.grpc if request.param == "direct" else server.gateway
    with connect(address) as channel:
        yield channel


@pytest.fixture(scope="module")
def stub(channel: grpc.Channel) -> Stub:
    return ResponsesServiceStub(channel)


def create(stub: Stub, text: str, **members: Any) -> Response:
    return stub.CreateResponse(
        CreateResponseRequest(**{"model": "sim", "input_text": text, **members})
    )


def stream(stub: Stub, text: str, **members: Any) -> Response:
    """Streams, holds the events to the rules, and returns the final response."""
    request = CreateResponseRequest(**{"model": "sim", "input_text": text, **members})
    events = list(stub.StreamResponse(request))
    check_events([json.loads(encode(event)) for event in events])
    assert events[-1].WhichOneof("event") == "completed"
    return events[-1].completed.response


def get(stub: Stub, response_id: str) -> Response:
    return stub.GetResponse(GetResponseRequest(response_id=response_id))


def delete(stub: Stub, response_id: str) -> None:
    stub.DeleteResponse(DeleteResponseRequest(response_id=response_id))


def text_of(response: Response) -> str:
    (item,) = response.output
    (part,) = item.message.content_list.parts
    return part.output_text.text


def said(text: str) -> Item:
    parts = ContentList(parts=[Content(input_text=InputText(text=text))])
    return Item(message=Message(role=Role.ROLE_USER, content_list=parts))


each_way = pytest.mark.parametrize("ask", [create, stream])


@each_way
def test_a_response_has_the_text(stub: Stub, ask: Callable[..., Response]) -> None:
    response = ask(stub, "Hello there")
    assert text_of(response) == "You said: Hello there"
    assert response.status == response_pb2.RESPONSE_STATUS_COMPLETED
    assert response.created_at <= response.completed_at
    assert response.usage.total_tokens == response.usage.input_tokens + response.usage.output_tokens


@each_way
def test_the_input_can_be_items(stub: Stub, ask: Callable[..., Response]) -> None:
    items = ItemList(items=[said(BLUE), said(ASK)])
    request = {"model": "sim", "input_list": items, "input_text": None}
    assert text_of(ask(stub, "", **request)) == f'Earlier you said: "{BLUE}"'


@each_way
def test_the_settings_are_echoed(stub: Stub, ask: Callable[..., Response]) -> None:
    response = ask(
        stub,
        "Hello",
        instructions="Answer briefly.",
        metadata={"topic": "tests"},
        temperature=0.25,
        top_p=0,
        max_output_tokens=2**53 + 1,
        user="somebody",
    )
    assert response.instructions_text == "Answer briefly."
    assert dict(response.metadata) == {"topic": "tests"}
    assert (response.temperature, response.top_p) == (0.25, 0)
    assert (response.max_output_tokens, response.user) == (2**53 + 1, "somebody")


@each_way
def test_what_is_retrieved_is_what_was_told(stub: Stub, ask: Callable[..., Response]) -> None:
    response = ask(stub, "Hello", metadata={"a": "b"})
    assert get(stub, response.id) == response


@each_way
def test_a_chain_remembers_its_beginning(stub: Stub, ask: Callable[..., Response]) -> None:
    first = ask(stub, BLUE)
    second = ask(stub, "Nice weather.", previous_response_id=first.id)
    third = ask(stub, ASK, previous_response_id=second.id)
    assert text_of(third) == f'Earlier you said: "{BLUE}"'
    assert third.previous_response_id == second.id


@each_way
def test_two_children_do_not_see_each_other(stub: Stub, ask: Callable[..., Response]) -> None:
    root = ask(stub, "Hello")
    blue = ask(stub, BLUE, previous_response_id=root.id)
    other = ask(stub, "Nice weather.", previous_response_id=root.id)
    assert "blue" in text_of(ask(stub, ASK, previous_response_id=blue.id))
    assert "blue" not in text_of(ask(stub, ASK, previous_response_id=other.id))


@each_way
def test_a_deleted_response_is_gone(stub: Stub, ask: Callable[..., Response]) -> None:
    response = ask(stub, "Hello")
    deleted = stub.DeleteResponse(DeleteResponseRequest(response_id=response.id))
    assert (deleted.id, deleted.deleted) == (response.id, True)
    check_gone(stub, ask, response.id)


@each_way
def test_a_response_that_is_not_stored_is_unknown(stub: Stub, ask: Callable[..., Response]) -> None:
    response = ask(stub, "Hello", store=False)
    assert not response.store
    check_gone(stub, ask, response.id)


def check_gone(stub: Stub, ask: Callable[..., Response], response_id: str) -> None:
    """Checks that an id behaves exactly like one that never was."""

    def continued(each: str) -> None:
        ask(stub, "Hello", previous_response_id=each)

    for operation, code in (
        (lambda each: get(stub, each), grpc.StatusCode.NOT_FOUND),
        (lambda each: delete(stub, each), grpc.StatusCode.NOT_FOUND),
        (continued, grpc.StatusCode.INVALID_ARGUMENT),
    ):
        refusals = []
        for each in (response_id, UNKNOWN):
            error = refused(functools.partial(operation, each))
            refusals.append((error.code(), error.details().replace(each, "ID")))
        assert refusals[0] == refusals[1]
        assert refusals[0][0] is code


def refused(call: Callable[[], object]) -> Any:
    """Makes a call that is refused, and returns its error, which grpc types as none."""
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return caught.value


class TestSurfaces:
    """A response is the same on both surfaces, whichever has made it."""

    @each_way
    def test_rest_retrieves_what_grpc_made(
        self, stub: Stub, http: httpx.Client, ask: Callable[..., Response]
    ) -> None:
        response = ask(stub, "Hello", metadata={"a": "b"}, temperature=0.5)
        retrieved = http.get(f"/v1/responses/{response.id}").json()
        assert retrieved == json.loads(encode(response))

    @pytest.mark.parametrize("streamed", [True, False], ids=["stream", "create"])
    def test_grpc_retrieves_what_rest_made(
        self, stub: Stub, http: httpx.Client, streamed: bool
    ) -> None:
        asked = {"model": "sim", "input": "Hello", "metadata": {"a": "b"}, "stream": streamed}
        reply = http.post("/v1/responses", json=asked)
        response = final(parse_stream(reply.content)) if streamed else reply.json()
        assert json.loads(encode(get(stub, response["id"]))) == response

    def test_a_chain_may_change_sides(self, stub: Stub, http: httpx.Client) -> None:
        first = create(stub, BLUE)
        asked = {"model": "sim", "input": "Nice weather.", "previous_response_id": first.id}
        second = http.post("/v1/responses", json=asked).json()
        third = create(stub, ASK, previous_response_id=second["id"])
        assert text_of(third) == f'Earlier you said: "{BLUE}"'


class TestEvents:
    def test_they_come_one_by_one(self, stub: Stub) -> None:
        words = " ".join(map(str, range(1000)))
        request = CreateResponseRequest(model="sim", input_text=f"Repeat exactly: {words}")
        deltas = [
            event.output_text_delta.delta
            for event in stub.StreamResponse(request)
            if event.HasField("output_text_delta")
        ]
        assert len(deltas) == 1000
        assert "".join(deltas) == words

    def test_a_stream_can_be_left(self, stub: Stub) -> None:
        text = "Repeat exactly: " + "many words " * 5_000
        for _ in range(10):
            call = stub.StreamResponse(CreateResponseRequest(model="sim", input_text=text))
            assert next(iter(call)).HasField("created")
            call.cancel()
        assert text_of(create(stub, "Hello")) == "You said: Hello"

    @pytest.mark.parametrize("text", ["a\x00b", "👩‍👩‍👧 \U0010ffff", "\u2028\u2029\x85\r\n"])
    @each_way
    def test_text_comes_back_unchanged(
        self, stub: Stub, ask: Callable[..., Response], text: str
    ) -> None:
        response = ask(stub, text, model="echo")
        assert text_of(response) == text
        assert get(stub, response.id) == response

    @pytest.mark.parametrize("size", [65_535, 65_536, 1 << 20, 10 << 20])
    def test_a_message_may_be_large(self, stub: Stub, size: int) -> None:
        assert len(text_of(create(stub, "x" * size, model="echo", store=False))) == size


ERRORS: dict[str, tuple[Call, grpc.StatusCode, str | None, str | None, str]] = {
    "no_input": (
        lambda stub: stub.CreateResponse(CreateResponseRequest(model="sim")),
        grpc.StatusCode.INVALID_ARGUMENT,
        "input",
        "missing_required_parameter",
        "MISSING_REQUIRED_PARAMETER",
    ),
    "no_model": (
        lambda stub: stub.CreateResponse(CreateResponseRequest(input_text="x")),
        grpc.StatusCode.INVALID_ARGUMENT,
        "model",
        "missing_required_parameter",
        "MISSING_REQUIRED_PARAMETER",
    ),
    "a_value_out_of_range": (
        lambda stub: create(stub, "x", temperature=5),
        grpc.StatusCode.INVALID_ARGUMENT,
        "temperature",
        "decimal_above_max_value",
        "DECIMAL_ABOVE_MAX_VALUE",
    ),
    "a_number_that_is_none": (
        lambda stub: create(stub, "x", temperature=float("nan")),
        grpc.StatusCode.INVALID_ARGUMENT,
        "temperature",
        "invalid_value",
        "INVALID_VALUE",
    ),
    "a_message_without_a_role": (
        lambda stub: create(
            stub,
            "",
            input_text=None,
            input_list=ItemList(items=[said("x"), Item(message=Message(content_text="x"))]),
        ),
        grpc.StatusCode.INVALID_ARGUMENT,
        "input[1].role",
        "missing_required_parameter",
        "MISSING_REQUIRED_PARAMETER",
    ),
    "raw_json_that_is_none": (
        lambda stub: create(
            stub, "", input_text=None, input_list=ItemList(items=[Item(unknown='{"type":"x"\n\n')])
        ),
        grpc.StatusCode.INVALID_ARGUMENT,
        "input[0]",
        "invalid_json",
        "INVALID_JSON",
    ),
    "a_stream_of_a_bad_value": (
        lambda stub: stream(stub, "x", top_p=-1),
        grpc.StatusCode.INVALID_ARGUMENT,
        "top_p",
        "decimal_below_min_value",
        "DECIMAL_BELOW_MIN_VALUE",
    ),
    "an_unknown_parent": (
        lambda stub: create(stub, "x", previous_response_id=UNKNOWN),
        grpc.StatusCode.INVALID_ARGUMENT,
        "previous_response_id",
        "previous_response_not_found",
        "PREVIOUS_RESPONSE_NOT_FOUND",
    ),
    "an_unknown_response": (
        lambda stub: get(stub, UNKNOWN),
        grpc.StatusCode.NOT_FOUND,
        "response_id",
        None,
        "NOT_FOUND",
    ),
    "no_id": (
        lambda stub: get(stub, ""),
        grpc.StatusCode.INVALID_ARGUMENT,
        "response_id",
        "invalid_value",
        "INVALID_VALUE",
    ),
    "a_malformed_id": (
        lambda stub: delete(stub, "a\x00/b\n"),
        grpc.StatusCode.INVALID_ARGUMENT,
        "response_id",
        "invalid_value",
        "INVALID_VALUE",
    ),
}


@pytest.mark.parametrize(("call", "status", "param", "code", "reason"), ERRORS.values(), ids=ERRORS)
def test_an_error_has_its_details(
    stub: Stub,
    call: Call,
    status: grpc.StatusCode,
    param: str | None,
    code: str | None,
    reason: str,
) -> None:
    error = refused(lambda: call(stub))
    assert error.code() is status
    rich = rpc_status.from_call(error)
    assert rich is not None
    assert (rich.code, rich.message) == (status.value[0], error.details())
    info, violations = ErrorInfo(), BadRequest()
    packed_info, packed_violations = rich.details
    assert packed_info.Unpack(info)
    assert packed_violations.Unpack(violations)
    assert (info.domain, info.reason) == ("antiphon", reason)
    told = {"type": "invalid_request_error", "param": param, "code": code}
    assert dict(info.metadata) == {name: value for name, value in told.items() if value}
    (violation,) = violations.field_violations
    assert (violation.field, violation.description) == (param, error.details())


def test_an_unknown_model_is_not_found(small_server: Server) -> None:
    with connect(small_server.grpc) as channel:
        stub = ResponsesServiceStub(channel)
        error = refused(lambda: create(stub, "x", model="sim"))
    assert error.code() is grpc.StatusCode.NOT_FOUND


def test_a_message_over_the_limit_is_refused(small_server: Server) -> None:
    for address in (small_server.grpc, small_server.gateway):
        with connect(address) as channel:
            stub = ResponsesServiceStub(channel)
            error = refused(functools.partial(create, stub, "x" * (2 << 20), model="parrot"))
            assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert text_of(create(stub, "Hello", model="parrot")) == "Hello"


def test_a_method_that_does_not_exist_is_not_implemented(channel: grpc.Channel) -> None:
    call: Any = channel.unary_unary(f"/{RESPONSES_SERVICE}/Nothing")
    assert refused(lambda: call(b"")).code() is grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.parametrize("method", ["GetResponse", "StreamResponse"])
def test_a_message_that_cannot_be_read_is_refused(
    channel: grpc.Channel, stub: Stub, method: str
) -> None:
    path = f"/{RESPONSES_SERVICE}/{method}"
    streams = method == "StreamResponse"
    call: Any = channel.unary_stream(path) if streams else channel.unary_unary(path)
    error = refused(lambda: list(call(b"\xff\xff\xff")))
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert error.details() == "The message cannot be read."
    assert text_of(create(stub, "Hello")) == "You said: Hello"


class TestHealth:
    @pytest.mark.parametrize("service", ["", RESPONSES_SERVICE, REST_SERVICE])
    def test_every_service_is_serving(self, channel: grpc.Channel, service: str) -> None:
        health: Any = health_pb2_grpc.HealthStub(channel)
        answer = health.Check(health_pb2.HealthCheckRequest(service=service))
        assert answer.status == health_pb2.HealthCheckResponse.SERVING

    def test_it_can_be_watched(self, channel: grpc.Channel) -> None:
        health: Any = health_pb2_grpc.HealthStub(channel)
        watch = health.Watch(health_pb2.HealthCheckRequest())
        assert next(iter(watch)).status == health_pb2.HealthCheckResponse.SERVING
        watch.cancel()

    def test_another_service_is_unknown(self, channel: grpc.Channel) -> None:
        health: Any = health_pb2_grpc.HealthStub(channel)
        unknown = health_pb2.HealthCheckRequest(service="nothing")
        assert refused(lambda: health.Check(unknown)).code() is grpc.StatusCode.NOT_FOUND

    def test_rest_clients_have_their_own_check(self, http: httpx.Client) -> None:
        reply = http.get("/healthz")
        assert reply.status_code == 200
        assert reply.headers["content-type"] == "application/json"
        assert reply.json() == {"status": "ok"}


class TestReflection:
    def test_it_lists_the_services(self, channel: grpc.Channel) -> None:
        services = ProtoReflectionDescriptorDatabase(channel).get_services()
        assert {RESPONSES_SERVICE, REST_SERVICE, "grpc.health.v1.Health"} <= set(services)

    def test_it_describes_a_service_and_its_messages(self, channel: grpc.Channel) -> None:
        pool = DescriptorPool(ProtoReflectionDescriptorDatabase(channel))
        service = pool.FindServiceByName(RESPONSES_SERVICE)
        method = service.methods_by_name["StreamResponse"]
        assert (method.client_streaming, method.server_streaming) == (False, True)
        assert method.input_type.full_name == CreateResponseRequest.DESCRIPTOR.full_name
        response = pool.FindMessageTypeByName(Response.DESCRIPTOR.full_name)
        assert set(response.fields_by_name) == set(Response.DESCRIPTOR.fields_by_name)
