import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from google.api.httpbody_pb2 import HttpBody
from structlog.testing import capture_logs

from antiphon.core.output import TextDelta
from antiphon.core.scope import Scope
from antiphon.transports.rest import servicer
from antiphon.transports.rest.message import JSON, RestReply, RestRequest
from antiphon.transports.rest.servicer import STATUS_HEADER
from antiphon.v1 import rest_service_pb2 as pb
from antiphon.v1.response_pb2 import ResponseStatus
from tests.support.backend import Script
from tests.support.engine import an_engine
from tests.support.gate import Gate
from tests.support.serving import Served, serving

SECRET = "password=hunter2"
STREAM = b'{"model":"m","input":"hi","stream":true}'
METHODS = [*pb.DESCRIPTOR.services_by_name["RestService"].methods]


class Surface:
    """Keeps what it is asked, and answers what it is told to."""

    def __init__(self, reply: RestReply | Exception | None = None) -> None:
        self._reply = RestReply(200, JSON, b"{}") if reply is None else reply
        self.asked: list[RestRequest] = []

    async def handle(self, request: RestRequest) -> RestReply:
        self.asked.append(request)
        if isinstance(self._reply, Exception):
            raise self._reply
        return self._reply


async def call(
    served: Served, method: str, request: Any, **options: Any
) -> tuple[dict[str, Any], list[HttpBody]]:
    """Returns the initial metadata and the messages of a call."""
    made = getattr(served.rest, method)(request, **options)
    messages = [message async for message in made] if hasattr(made, "__aiter__") else [await made]
    return dict(await made.initial_metadata()), messages


async def asked(method: str, request: Any, **options: Any) -> RestRequest:
    """Returns the REST request that a call becomes."""
    surface = Surface()
    async with serving(None, surface) as served:
        await call(served, method, request, **options)
    (found,) = surface.asked
    return found


# From a call to a request.


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
async def test_every_method_of_the_service_reaches_the_surface(method: Any) -> None:
    request = getattr(pb, method.input_type.name)()
    found = await asked(method.name, request)
    assert found.operation == method.name
    assert found.query == {}
    assert found.body == b""
    assert all(value == "" for value in found.path.values())


async def test_the_body_is_passed_on_as_it_came() -> None:
    body = b'{"model" : "m"}\n\xff\x00'
    request = pb.RestCreateResponseRequest(body=HttpBody(content_type="text/odd", data=body))
    found = await asked("CreateResponse", request)
    assert found.body == body
    assert (found.path, found.query) == ({}, {})


async def test_variables_of_the_path_are_no_query_parameters() -> None:
    request = pb.RestGetResponseRequest(
        response_id="resp_1", include=["a", "b"], stream="true", starting_after="3"
    )
    found = await asked("GetResponse", request)
    assert found.path == {"response_id": "resp_1"}
    assert found.query == {"include": ("a", "b"), "stream": ("true",), "starting_after": ("3",)}


async def test_a_variable_may_have_a_pattern() -> None:
    found = await asked("GetModel", pb.RestGetModelRequest(model="org/model"))
    assert found.path == {"model": "org/model"}


async def test_a_query_beside_a_body_is_passed_on() -> None:
    request = pb.RestCreateResponseRequest(body=HttpBody(data=b"{}"), request_context="e30")
    found = await asked("CreateResponse", request)
    assert found.query == {"request_context": ("e30",)}


async def test_headers_are_passed_on() -> None:
    found = await asked(
        "GetHealth",
        pb.RestGetHealthRequest(),
        metadata=(("x-request-id", "req-7"), ("x-odd-bin", b"\x00")),
    )
    assert found.headers["x-request-id"] == "req-7"
    # Bytes are gRPC's own: HTTP has no such headers.
    assert "x-odd-bin" not in found.headers


# From a reply to a call's answer.


async def test_a_reply_is_one_message_of_its_type() -> None:
    surface = Surface(RestReply(200, "text/odd", b"body", {"x-odd": "1"}))
    async with serving(None, surface) as served:
        for method, request in (
            ("GetResponse", pb.RestGetResponseRequest()),
            ("GetHealth", pb.RestGetHealthRequest()),
        ):
            metadata, messages = await call(served, method, request)
            assert messages == [HttpBody(content_type="text/odd", data=b"body")]
            assert metadata["x-odd"] == "1"
            assert STATUS_HEADER not in metadata


async def test_another_status_is_told_by_a_header() -> None:
    async with serving(None, Surface(RestReply(418, JSON, b"{}"))) as served:
        for method, request in (
            ("GetResponse", pb.RestGetResponseRequest()),
            ("GetHealth", pb.RestGetHealthRequest()),
        ):
            metadata, _ = await call(served, method, request)
            assert metadata[STATUS_HEADER] == "418"


async def test_the_pieces_of_a_stream_are_sent_one_by_one() -> None:
    gate = Gate()

    async def pieces() -> AsyncIterator[bytes]:
        yield b"one"
        await gate.enter()
        yield b"two"

    async with serving(None, Surface(RestReply(200, "text/odd", pieces()))) as served:
        made = aiter(served.rest.CreateResponse(pb.RestCreateResponseRequest()))
        assert await anext(made) == HttpBody(content_type="text/odd", data=b"one")
        gate.open()
        assert [message.data async for message in made] == [b"two"]


# What goes wrong.


@pytest.mark.parametrize("request_id", ["", "req-7"])
async def test_an_unexpected_exception_is_told_by_a_fixed_text(request_id: str) -> None:
    metadata = (("x-request-id", request_id),) if request_id else ()
    surface = Surface(ZeroDivisionError(SECRET))
    with capture_logs() as logs:
        async with serving(None, surface) as served:
            for method, request in (
                ("CreateResponse", pb.RestCreateResponseRequest()),
                ("GetHealth", pb.RestGetHealthRequest()),
            ):
                headers, (message,) = await call(served, method, request, metadata=metadata)
                assert headers[STATUS_HEADER] == "500"
                error = json.loads(message.data)["error"]
                assert error["type"] == "server_error"
                assert error["message"] == (
                    f"The server had an error. Request id: {request_id}."
                    if request_id
                    else "The server had an error."
                )
    assert [entry["request_id"] for entry in logs] == [request_id] * 2
    assert all(entry["exc_info"] for entry in logs)


async def test_a_client_that_leaves_a_stream_stops_the_run() -> None:
    backend = Script([TextDelta("a")], Gate())
    engine = an_engine(backend)
    async with serving(engine) as served:
        made = served.rest.CreateResponse(pb.RestCreateResponseRequest(body=HttpBody(data=STREAM)))
        first = await made.read()
        made.cancel()
        await backend.left.wait()
        await engine.close()
    response_id = json.loads(first.data.decode().split("\n")[1].removeprefix("data: "))["response"][
        "id"
    ]
    stored = await engine.get(Scope(), response_id)
    assert stored.response.status == ResponseStatus.RESPONSE_STATUS_CANCELLED


async def test_a_client_that_leaves_while_it_waits_stops_the_run() -> None:
    gate = Gate()
    backend = Script([TextDelta("a")], gate)
    async with serving(an_engine(backend)) as served:
        body = HttpBody(data=STREAM.replace(b"true", b"false"))
        made = served.rest.CreateResponse(pb.RestCreateResponseRequest(body=body))
        await gate.reached()
        made.cancel()
        await backend.left.wait()
    assert backend.closed == 1


async def test_a_client_that_leaves_while_the_headers_are_sent_closes_the_body() -> None:
    closed = asyncio.Event()

    class Body:
        def __aiter__(self) -> AsyncIterator[bytes]:
            raise AssertionError("nothing is read for a client that has left")

        async def __anext__(self) -> bytes:
            raise AssertionError("nothing is read for a client that has left")

        async def aclose(self) -> None:
            closed.set()

    class Context:
        async def send_initial_metadata(self, metadata: Any) -> None:
            raise asyncio.CancelledError

        async def write(self, message: HttpBody) -> None:
            raise AssertionError("nothing is written for a client that has left")

    reply = RestReply(200, "text/event-stream", Body(), {"cache-control": "no-cache"})
    with pytest.raises(asyncio.CancelledError):
        await servicer._send(reply, Context())  # type: ignore[arg-type]
    assert closed.is_set()
