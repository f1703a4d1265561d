"""The contract, through the gateway: the document, bodies, errors and secrets."""

import base64
import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import httpx
import openai
import pytest
import zstandard
from click.testing import CliRunner

from antiphon.cli import main
from antiphon.json import encode
from antiphon.v1.responses_service_pb2 import CreateResponseRequest, GetResponseRequest
from antiphon.v1.responses_service_pb2_grpc import ResponsesServiceStub
from tests.e2e.conftest import SMALL_BODY_BYTES
from tests.e2e.server import Server, check_error, final, parse_stream, text_of
from tests.schema import test_strict
from tests.schema.served import refusal

PATHS = ("/openapi.json", "/responses/docs/openapi.json")
ASK = {"model": "echo", "input": "Wie heißt du? 😀"}


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose operator knows every parameter, and describes it in other words."""
    directory = tmp_path_factory.mktemp("own")
    override = directory / "openapi.json"
    override.write_text('{"info":{"title":"Ours"},"paths":{"/v1/models":null}}')
    config = directory / "antiphon.toml"
    config.write_text(f"strict_fields = true\nopenapi_override = {json.dumps(str(override))}\n")
    with Server("--port", "0", "--grpc-port", "0", "--config", str(config)) as server:
        yield server
        assert server.stop() == 0
        assert not server.log, server.log


@pytest.fixture
def sdk(server: Server) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(
        base_url=f"{server.url}/v1",
        api_key="unused",
        max_retries=0,
        http_client=openai.DefaultHttpxClient(trust_env=False),
        _strict_response_validation=True,
    ) as client:
        yield client


def post(
    client: httpx.Client, body: bytes | dict[str, Any], coding: str | None = None, query: str = ""
) -> httpx.Response:
    headers = {"content-type": "application/json"}
    if coding is not None:
        headers["content-encoding"] = coding
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return client.post(f"/v1/responses{query}", content=content, headers=headers)


def client_of(server: Server) -> httpx.Client:
    return httpx.Client(base_url=server.url, trust_env=False, timeout=60)


# The document.


def test_the_document_is_served_at_both_paths_and_exported(
    http: httpx.Client, tmp_path: Path
) -> None:
    assert CliRunner().invoke(main, ["schema", "export", str(tmp_path)]).exit_code == 0
    exported = (tmp_path / "openapi.json").read_bytes()
    for path in PATHS:
        reply = http.get(path)
        assert (reply.status_code, reply.headers["content-type"]) == (200, "application/json")
        assert reply.content == exported


def test_the_document_is_as_the_operator_changed_it(http: httpx.Client, own_server: Server) -> None:
    expected = http.get(PATHS[0]).json()
    expected["info"]["title"] = "Ours"
    del expected["paths"]["/v1/models"]
    with client_of(own_server) as client:
        for path in PATHS:
            assert client.get(path).json() == expected


# Compressed bodies.


def zstd(body: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(body)


CODINGS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "zstd": zstd,
    "identity": bytes,
}
COMPRESSED = ("gzip", "zstd")


@pytest.mark.parametrize("coding", CODINGS)
def test_a_compressed_body_is_read(http: httpx.Client, coding: str) -> None:
    compress = CODINGS[coding]
    reply = post(http, compress(json.dumps(ASK).encode()), coding)
    assert reply.status_code == 200, reply.text
    assert text_of(reply.json()) == ASK["input"]
    streamed = post(http, compress(json.dumps({**ASK, "stream": True}).encode()), coding)
    assert text_of(final(parse_stream(streamed.content))) == ASK["input"]
    large = "x" * 300_000
    reply = post(http, compress(json.dumps({**ASK, "input": large}).encode()), coding)
    assert text_of(reply.json()) == large


@pytest.mark.parametrize("coding", ["br", "deflate", "gzip, gzip"])
def test_an_unknown_coding_is_refused(http: httpx.Client, coding: str) -> None:
    reply = post(http, json.dumps(ASK).encode(), coding)
    check_error(reply, 415, code="unsupported_media_type")


@pytest.mark.parametrize("coding", COMPRESSED)
def test_a_bomb_is_refused(small_server: Server, coding: str) -> None:
    with client_of(small_server) as client:
        for size in (SMALL_BODY_BYTES + 1, 100 * SMALL_BODY_BYTES):
            body = CODINGS[coding](b" " * size)
            assert len(body) < SMALL_BODY_BYTES
            check_error(post(client, body, coding), 413, code="request_too_large")
        body = CODINGS[coding](json.dumps({"model": "parrot", "input": "hi"}).encode())
        assert text_of(post(client, body, coding).json()) == "hi"


@pytest.mark.parametrize("coding", COMPRESSED)
def test_a_damaged_body_is_refused(http: httpx.Client, coding: str) -> None:
    whole = CODINGS[coding](json.dumps(ASK).encode())
    for body in (whole[:-1], whole[1:], whole + b"x", json.dumps(ASK).encode()):
        check_error(post(http, body, coding), 400, code="invalid_body")


# Errors.


def test_every_rule_is_held(http: httpx.Client) -> None:
    for case in test_strict.CASES:
        check_error(post(http, case.body), 400, param=case.param, code=case.code)


def test_everything_inside_the_rules_is_accepted(http: httpx.Client) -> None:
    for members in test_strict.ACCEPTED:
        reply = post(http, {**ASK, **members})
        assert reply.status_code == 200, reply.text


def test_the_sdk_tells_what_is_wrong(sdk: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        sdk.responses.create(model="echo", input="hi", temperature=3)
    assert caught.value.param == "temperature"
    assert caught.value.code == "decimal_above_max_value"
    assert caught.value.type == "invalid_request_error"


def test_a_large_picture_does_not_come_back(http: httpx.Client) -> None:
    picture = f"data:image/png;base64,{'iVBORw0KGgo' * 200_000}"
    part = {"type": "input_image", "image_url": picture, "detail": "fine"}
    reply = post(http, {**ASK, "input": [{"role": "user", "content": [part]}]})
    check_error(
        reply,
        400,
        param="input[0].content[0].detail",
        code="invalid_value",
        secret="iVBORw0KGgo",
    )
    assert len(reply.content) < 1024


def test_unknown_parameters_are_accepted_or_refused(http: httpx.Client, own_server: Server) -> None:
    body = {**ASK, "response_format": {"type": "text"}}
    assert post(http, body).status_code == 200
    with client_of(own_server) as client:
        check_error(post(client, body), 400, param="response_format", code="unknown_parameter")
        assert post(client, ASK).status_code == 200


def test_the_request_context_may_come_in_the_query(http: httpx.Client) -> None:
    context = base64.b64encode(b'{"user":"\xc3\xa9>>>???"}').decode()
    assert post(http, ASK, query=f"?requestContext={context}").status_code == 200
    with_escapes = str(httpx.QueryParams({"requestContext": context}))
    assert post(http, ASK, query=f"?{with_escapes}").status_code == 200
    for wrong in ("e30", "%7B%7D", "bm90aGluZw=="):
        reply = post(http, ASK, query=f"?requestContext={wrong}")
        if wrong == "e30":
            assert reply.status_code == 200
        else:
            check_error(reply, 400, param="requestContext", code="invalid_value")


def test_no_text_of_a_typed_caller_reaches_the_wire_unchecked(server: Server) -> None:
    evil = '{}, "name":"evil"\n'
    request = CreateResponseRequest(model="echo", input_text="hi")
    request.tools.add().function.name = "f"
    request.tools[0].function.parameters = evil
    with grpc.insecure_channel(server.gateway) as channel:
        stub = ResponsesServiceStub(channel)
        for call in (stub.CreateResponse, lambda asked: list(stub.StreamResponse(asked))):
            with pytest.raises(grpc.RpcError) as caught:
                call(request)
            told = refusal(caught.value)  # type: ignore[arg-type]
            assert (told.status, told.param) == ("INVALID_ARGUMENT", "tools[0].parameters")
            assert "evil" not in told.message


# Secrets.

SECRET = "5ecret-of-the-client"
MCP: Any = {
    "type": "mcp",
    "server_label": "l",
    "server_url": "https://mcp.example",
    "authorization": f"{SECRET}-1",
    "headers": {"x-key": f"{SECRET}-2"},
    "require_approval": "never",
}
TOLD = {
    "type": "mcp",
    "server_label": "l",
    "server_url": "https://mcp.example",
    "require_approval": "never",
}


def test_the_secrets_of_an_mcp_server_do_not_come_back(
    sdk: openai.OpenAI, http: httpx.Client, server: Server
) -> None:
    tools = {"type": "additional_tools", "role": "developer", "tools": [MCP]}
    given: Any = [{"role": "user", "content": "hi"}, tools]
    created = sdk.responses.create(model="echo", input=given, tools=[MCP])
    (tool,) = created.tools
    assert tool.to_dict() == TOLD
    events = list(sdk.responses.create(model="echo", input=given, tools=[MCP], stream=True))
    kept = sdk.responses.retrieve(created.id)
    assert kept == created
    items = http.get(f"/v1/responses/{created.id}/input_items")
    assert items.json()["data"], items.text
    for text in (
        created.to_json(),
        *(event.to_json() for event in events),
        kept.to_json(),
        items.text,
        http.get(f"/v1/responses/{created.id}").text,
    ):
        assert SECRET not in text
    with grpc.insecure_channel(server.gateway) as channel:
        stub = ResponsesServiceStub(channel)
        response = stub.GetResponse(GetResponseRequest(response_id=created.id))
    assert SECRET not in str(response)
    assert json.loads(encode(response.tools[0])) == TOLD
    assert SECRET not in server.log


def test_the_secrets_in_a_conversation_do_not_come_back(http: httpx.Client) -> None:
    tools = {"type": "additional_tools", "role": "developer", "tools": [MCP]}
    made = http.post("/v1/conversations", json={"items": [tools]})
    assert made.status_code == 200, made.text
    items = f"/v1/conversations/{made.json()['id']}/items"
    added = http.post(items, json={"items": [tools]})
    listed = http.get(items)
    (first, second) = listed.json()["data"]
    got = http.get(f"{items}/{first['id']}")
    for reply in (made, added, listed, got):
        assert reply.status_code == 200
        assert SECRET not in reply.text
    assert first["tools"] == second["tools"] == got.json()["tools"] == [TOLD]
