import asyncio
import base64
import gzip
import json
from collections.abc import Collection
from typing import Any

import pytest

from antiphon.backends.echo import EchoBackend
from antiphon.core.output import Accepted, Finished, TextDelta
from antiphon.transports.rest.message import JSON, RestReply, RestRequest
from antiphon.transports.rest.surface import RestSurface
from antiphon.v1 import rest_service_pb2
from tests.support.backend import Script
from tests.support.clock import Clock
from tests.support.engine import MODEL, an_engine
from tests.support.gate import Gate
from tests.support.serving import a_surface

METHODS = [
    method.name for method in rest_service_pb2.DESCRIPTOR.services_by_name["RestService"].methods
]
UNKNOWN = "resp_0123456789abcdef"
SECRET = "hunter2"


def surface(**options: Any) -> RestSurface:
    return a_surface(an_engine(EchoBackend()), clock=Clock(1_000.5), **options)


def a_body(**members: Any) -> bytes:
    return json.dumps({"model": MODEL, "input": "hi", **members}).encode()


async def ask(on: RestSurface, operation: str, **request: Any) -> RestReply:
    return await on.handle(RestRequest(operation, **request))


def value(reply: RestReply) -> Any:
    assert reply.content_type == JSON
    assert isinstance(reply.body, bytes)
    return json.loads(reply.body)


async def refused(on: RestSurface, operation: str, **request: Any) -> tuple[int, Any]:
    """Returns the status and the error of a request that is refused."""
    reply = await ask(on, operation, **request)
    error = value(reply)
    assert list(error) == ["error"]
    assert list(error["error"]) == ["message", "type", "param", "code"]
    return reply.status, error["error"]


# Create.


async def test_a_create_answers_with_the_response() -> None:
    reply = await ask(surface(), "CreateResponse", body=a_body(input="hello"))
    response = value(reply)
    assert (reply.status, reply.headers) == (200, {})
    assert response["object"] == "response"
    assert response["status"] == "completed"
    assert response["output"][0]["content"][0]["text"] == "hello"


async def test_a_create_with_stream_answers_with_frames() -> None:
    reply = await ask(surface(), "CreateResponse", body=a_body(stream=True))
    assert reply.status == 200
    assert reply.content_type == "text/event-stream; charset=utf-8"
    assert reply.headers["cache-control"] == "no-cache, no-transform"
    assert not isinstance(reply.body, bytes)
    pieces = [piece async for piece in reply.body]
    assert pieces[0].startswith(b"event: response.created\ndata: {")
    assert pieces[-1].endswith(b"data: [DONE]\n\n")


async def test_a_stream_begins_while_the_model_still_writes() -> None:
    gate = Gate()
    on = a_surface(an_engine(Script([Accepted()], gate, [TextDelta("a"), Finished()])))
    reply = await ask(on, "CreateResponse", body=a_body(stream=True))
    assert not isinstance(reply.body, bytes)
    pieces = aiter(reply.body)
    assert b"response.in_progress" in await anext(pieces)
    gate.open()
    assert b"response.completed" in b"".join([piece async for piece in pieces])


async def test_a_value_that_the_schema_refuses_is_told_with_its_path() -> None:
    body = a_body(input=[{"role": "user", "content": [{"type": "input_text", "text": 5}]}])
    status, error = await refused(surface(), "CreateResponse", body=body)
    assert status == 400
    assert error == {
        "message": "'input[0].content[0].text' must be a string, not an integer.",
        "type": "invalid_request_error",
        "param": "input[0].content[0].text",
        "code": "invalid_type",
    }


@pytest.mark.parametrize("stream", [True, False])
async def test_a_rule_of_the_request_is_told_before_any_stream_begins(stream: bool) -> None:
    status, error = await refused(
        surface(), "CreateResponse", body=a_body(previous_response_id=UNKNOWN, stream=stream)
    )
    assert (status, error["code"]) == (400, "previous_response_not_found")


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[]", b"null"])
async def test_a_body_that_is_no_document_is_refused(body: bytes) -> None:
    status, error = await refused(surface(), "CreateResponse", body=body)
    assert (status, error["type"]) == (400, "invalid_request_error")


async def test_no_error_repeats_what_was_sent() -> None:
    for body in (a_body(temperature=SECRET), b'{"model":"' + SECRET.encode(), a_body(model=SECRET)):
        on = a_surface(an_engine(EchoBackend()))
        _, error = await refused(on, "CreateResponse", body=body)
        assert SECRET not in json.dumps(error)


async def test_an_unknown_model_is_not_found() -> None:
    status, error = await refused(surface(), "CreateResponse", body=a_body(model="other"))
    assert (status, error["code"], error["param"]) == (404, "model_not_found", "model")


async def test_a_body_beyond_the_greatest_size_is_refused() -> None:
    body = a_body()
    on = surface(max_body_bytes=len(body))
    assert (await ask(on, "CreateResponse", body=body)).status == 200
    status, error = await refused(on, "CreateResponse", body=body + b" ")
    assert (status, error["code"]) == (413, "request_too_large")


async def test_a_compressed_body_is_read() -> None:
    body = gzip.compress(a_body(input="hello"))
    reply = await ask(surface(), "CreateResponse", body=body, headers={"content-encoding": "gzip"})
    assert value(reply)["output"][0]["content"][0]["text"] == "hello"


async def test_a_compressed_body_is_held_to_the_greatest_size_too() -> None:
    body = gzip.compress(a_body(input="h" * 10_000))
    on = surface(max_body_bytes=5_000)
    status, _ = await refused(on, "CreateResponse", body=body, headers={"content-encoding": "gzip"})
    assert status == 413


async def test_unknown_parameters_are_ignored_unless_it_is_strict() -> None:
    body = a_body(x_invented={"a": 1})
    reply = await ask(surface(), "CreateResponse", body=body)
    assert "x_invented" not in value(reply)
    status, error = await refused(surface(strict_fields=True), "CreateResponse", body=body)
    assert (status, error["param"], error["code"]) == (400, "x_invented", "unknown_parameter")


async def test_the_context_of_the_query_reaches_the_backend() -> None:
    backend = Script([Finished()])
    on = a_surface(an_engine(backend))
    context = base64.b64encode(b'{"a" : 1}').decode()
    query = {"request_context": (context,)}
    assert (await ask(on, "CreateResponse", body=a_body(), query=query)).status == 200
    assert backend.calls[0].request.request_context == '{"a":1}'
    query = {"request_context": ("~",)}
    status, error = await refused(on, "CreateResponse", body=a_body(), query=query)
    assert (status, error["param"]) == (400, "requestContext")


# Get and delete.


async def test_a_stored_response_is_told_as_it_was_told() -> None:
    on = surface()
    created = await ask(on, "CreateResponse", body=a_body(metadata={"b": "1", "a": "2"}))
    path = {"response_id": value(created)["id"]}
    assert (await ask(on, "GetResponse", path=path)).body == created.body


async def test_a_deleted_response_is_gone() -> None:
    on = surface()
    response_id = value(await ask(on, "CreateResponse", body=a_body()))["id"]
    path = {"response_id": response_id}
    assert value(await ask(on, "DeleteResponse", path=path)) == {
        "id": response_id,
        "object": "response",
        "deleted": True,
    }
    for operation in ("GetResponse", "DeleteResponse"):
        status, error = await refused(on, operation, path=path)
        assert (status, error["type"]) == (404, "invalid_request_error")


@pytest.mark.parametrize("operation", ["GetResponse", "DeleteResponse"])
@pytest.mark.parametrize(("response_id", "status"), [(UNKNOWN, 404), ("../x", 400), ("", 400)])
async def test_an_id_is_unknown_or_malformed(operation: str, response_id: str, status: int) -> None:
    found, error = await refused(surface(), operation, path={"response_id": response_id})
    assert (found, error["param"]) == (status, "response_id")


@pytest.mark.parametrize(("stream", "status"), [("true", 400), ("maybe", 400), ("TRUE", 400)])
async def test_a_replay_of_what_is_not_kept_and_a_bad_value_are_refused(
    stream: str, status: int
) -> None:
    on = surface()
    response_id = value(await ask(on, "CreateResponse", body=a_body()))["id"]
    path = {"response_id": response_id}
    found, error = await refused(on, "GetResponse", path=path, query={"stream": (stream,)})
    assert (found, error["param"]) == (status, "stream")
    assert (await ask(on, "GetResponse", path=path, query={"stream": ("false",)})).status == 200


# Models and the server itself.


async def test_the_models_are_listed() -> None:
    model = {"id": MODEL, "object": "model", "created": 1_000, "owned_by": "antiphon"}
    assert value(await ask(surface(), "ListModels")) == {"object": "list", "data": [model]}
    assert value(await ask(surface(), "GetModel", path={"model": MODEL})) == model


async def test_a_model_that_nobody_answers_is_not_found() -> None:
    status, error = await refused(surface(), "GetModel", path={"model": SECRET})
    assert (status, error["code"], error["param"]) == (404, "model_not_found", "model")
    assert SECRET not in error["message"]


async def test_the_server_is_healthy() -> None:
    assert value(await ask(surface(), "GetHealth")) == {"status": "ok"}


async def test_the_document_is_made_once_of_the_operations_that_are_built() -> None:
    made: list[Collection[str]] = []

    def document(built: Collection[str]) -> bytes:
        made.append(built)
        return b'{"openapi":"3.1.0"}'

    on = surface(document=document)
    replies = [await ask(on, "GetOpenApi") for _ in range(3)]
    assert [value(reply) for reply in replies] == [{"openapi": "3.1.0"}] * 3
    assert made == [on.built]
    assert {"CreateResponse", "GetOpenApi"} <= set(on.built)
    status, _ = await refused(surface(), "GetOpenApi")
    assert status == 501


@pytest.mark.parametrize("operation", METHODS)
async def test_every_operation_is_built_or_says_that_it_is_not(operation: str) -> None:
    on = surface(document=lambda _: b"{}")
    path = {"response_id": UNKNOWN, "conversation_id": UNKNOWN, "item_id": UNKNOWN, "model": MODEL}
    reply = await ask(on, operation, path=path)
    assert (reply.status == 501) == (operation not in on.built)
    if reply.status == 501:
        assert value(reply)["error"]["message"] == "This operation is not built yet."


@pytest.mark.parametrize("operation", ["", "Unknown", "__init__", "handle"])
async def test_nothing_else_is_an_operation(operation: str) -> None:
    status, _ = await refused(surface(), operation)
    assert status == 501


def test_what_is_built_is_of_the_service() -> None:
    assert set(surface(document=lambda _: b"").built) <= set(METHODS)


async def test_requests_are_answered_beside_each_other() -> None:
    gate = Gate()
    on = a_surface(an_engine(Script([Accepted()], gate, [Finished()])))
    waiting = asyncio.ensure_future(ask(on, "CreateResponse", body=a_body()))
    await gate.reached()
    assert (await ask(on, "GetHealth")).status == 200
    assert not waiting.done()
    gate.open()
    assert value(await waiting)["status"] == "completed"
