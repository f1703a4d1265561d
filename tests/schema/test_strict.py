"""What is refused, and how it is told: one table for JSON and for typed callers."""

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message
from openai.types import responses

from antiphon.core.errors import ApiError, ErrorKind, invalid
from antiphon.core.output import Accepted, Finished
from antiphon.core.request import check_request
from antiphon.json import InvalidValue, check, decode
from antiphon.json.plan import Field, descriptor_of, plan
from antiphon.v1.conversations_service_pb2 import CreateConversationRequest
from antiphon.v1.conversations_service_pb2_grpc import ConversationsServiceStub
from antiphon.v1.item_pb2 import Item
from antiphon.v1.responses_service_pb2 import CreateResponseRequest, GetResponseRequest
from antiphon.v1.tool_pb2 import Tool
from tests.schema.samples import samples
from tests.schema.served import MODEL, Refusal, Served, refusal
from tests.schema.test_sdk_round_trip import fitted
from tests.support.backend import Script

MINIMAL: dict[str, Any] = {"model": MODEL, "input": "hi"}


@dataclass(frozen=True)
class Case:
    """A request that is refused.

    Args:
        param: `error.param`.
        code: `error.code`.
        members: what the request has beside, or in place of, those of `MINIMAL`.
        typed: the same as fields of `CreateResponseRequest`, where a typed caller can say it.
        without: what it lacks of `MINIMAL`.
    """

    param: str
    code: str
    members: Mapping[str, Any]
    typed: Mapping[str, Any] = field(default_factory=dict)
    without: str = ""

    @property
    def body(self) -> dict[str, Any]:
        body = {**MINIMAL, **self.members}
        body.pop(self.without, None)
        return body

    @property
    def message(self) -> CreateResponseRequest:
        return typed(**self.typed)


def typed(**fields: Any) -> CreateResponseRequest:
    """Returns a request as a typed caller builds it; nothing has looked at it."""
    message = CreateResponseRequest(**{"model": MODEL, **fields})
    if message.WhichOneof("input") is None:
        message.input_text = "hi"
    return message


TYPE = "invalid_type"
VALUE = "invalid_value"
MISSING = "missing_required_parameter"
UNKNOWN = "unknown_parameter"
LONG = "string_above_max_length"


def function(**members: Any) -> dict[str, Any]:
    return {"type": "function", "name": "f", **members}


def said(**members: Any) -> dict[str, Any]:
    return {"role": "user", "content": "hi", **members}


def typed_items(*items: Mapping[str, Any]) -> dict[str, Any]:
    return {"input_list": {"items": list(items)}}


def schema_format(**members: Any) -> dict[str, Any]:
    return {"format": {"type": "json_schema", "name": "n", "schema": {}, **members}}


def call_output(call_id: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": "x"}


WRONG_TYPES = [
    Case("model", TYPE, {"model": 5}),
    Case("input", TYPE, {"input": 5}),
    Case("input", TYPE, {"input": {"role": "user", "content": "hi"}}),
    Case("input[1]", TYPE, {"input": [said(), "hi"]}),
    Case("input[0].content", TYPE, {"input": [said(content=5)]}),
    Case("input[1].content[0]", TYPE, {"input": [said(), said(content=["hi"])]}),
    Case(
        "input[0].content[0].text",
        TYPE,
        {"input": [said(content=[{"type": "input_text", "text": ["hi"]}])]},
    ),
    Case("instructions", TYPE, {"instructions": ["be brief"]}),
    Case("temperature", TYPE, {"temperature": "1"}),
    Case("temperature", TYPE, {"temperature": True}),
    Case("top_logprobs", TYPE, {"top_logprobs": 1.5}),
    Case("top_logprobs", TYPE, {"top_logprobs": True}),
    Case("store", TYPE, {"store": "true"}),
    Case("stream", TYPE, {"stream": 1}),
    Case("metadata", TYPE, {"metadata": []}),
    Case("metadata.a", TYPE, {"metadata": {"a": 1}}),
    Case("metadata.a", TYPE, {"metadata": {"b": "b", "a": None}}),
    Case("include", TYPE, {"include": "file_search_call.results"}),
    Case("include[0]", TYPE, {"include": [5]}),
    Case("reasoning", TYPE, {"reasoning": "low"}),
    Case("text", TYPE, {"text": "text"}),
    Case("text.format", TYPE, {"text": {"format": "json_object"}}),
    Case("text.format.schema", TYPE, {"text": schema_format(schema=[])}),
    Case("text.format.schema", TYPE, {"text": schema_format(schema="{}")}),
    Case("tools", TYPE, {"tools": function()}),
    Case("tools[0]", TYPE, {"tools": ["f"]}),
    Case("tools[0].type", TYPE, {"tools": [{"type": 5}]}),
    Case("tools[0].name", TYPE, {"tools": [function(name=5)]}),
    Case("tools[1].parameters", TYPE, {"tools": [function(), function(parameters=[])]}),
    Case("tools[0].parameters", TYPE, {"tools": [function(parameters="{}")]}),
    Case("tool_choice", TYPE, {"tool_choice": ["auto"]}),
    Case("stream_options", TYPE, {"stream": True, "stream_options": True}),
]

OUTSIDE_ENUMS = [
    Case("truncation", VALUE, {"truncation": "always"}, {"truncation": "always"}),
    Case("service_tier", VALUE, {"service_tier": ""}, {"service_tier": ""}),
    Case(
        "prompt_cache_retention",
        VALUE,
        {"prompt_cache_retention": "48h"},
        {"prompt_cache_retention": "48h"},
    ),
    Case("reasoning.effort", VALUE, {"reasoning": {"effort": "x"}}, {"reasoning": {"effort": "x"}}),
    Case("text.verbosity", VALUE, {"text": {"verbosity": "x"}}, {"text": {"verbosity": "x"}}),
    Case("tool_choice", VALUE, {"tool_choice": "any"}, {"tool_choice_mode": "any"}),
    Case("tool_choice.type", VALUE, {"tool_choice": {"type": "any"}}),
    Case("text.format.type", VALUE, {"text": {"format": {"type": "xml"}}}),
    Case(
        "include[1]",
        VALUE,
        {"include": ["reasoning.encrypted_content", "everything"]},
        {"include": ["reasoning.encrypted_content", "everything"]},
    ),
    Case(
        "input[0].role",
        VALUE,
        {"input": [said(role="critic")]},
        typed_items({"message": {"role": "ROLE_CRITIC", "content_text": "hi"}}),
    ),
    Case(
        "input[0].role",
        VALUE,
        {"input": [said(role="nobody")]},
        typed_items({"message": {"role": 99, "content_text": "hi"}}),
    ),
    Case(
        "input[0].status",
        VALUE,
        {"input": [said(status="done")]},
        typed_items({"message": {"role": "ROLE_USER", "content_text": "hi", "status": 99}}),
    ),
    Case(
        "input[0].content[0].detail",
        VALUE,
        {"input": [said(content=[{"type": "input_image", "detail": "fine"}])]},
        typed_items(
            {
                "message": {
                    "role": "ROLE_USER",
                    "content_list": {"parts": [{"input_image": {"detail": "fine"}}]},
                }
            }
        ),
    ),
    Case(
        "tools[0].allowed_callers[0]",
        VALUE,
        {"tools": [function(allowed_callers=["anyone"])]},
        {"tools": [{"function": {"name": "f", "allowed_callers": ["anyone"]}}]},
    ),
    Case(
        "image.context_compression",
        VALUE,
        {"image": {"context_compression": "x"}},
        {"image": {"context_compression": "x"}},
    ),
]


def bounded(key: str, low: float, high: float | None, kind: str) -> list[Case]:
    """Returns the cases just outside the bounds of a number."""
    step = 1 if kind == "integer" else 0.001
    values = [(low - step, "below_min")]
    values += [] if high is None else [(high + step, "above_max")]
    return [
        Case(key, f"{kind}_{which}_value", {key: value}, {key: value}) for value, which in values
    ]


OUT_OF_RANGE = [
    *bounded("temperature", 0, 2, "decimal"),
    *bounded("top_p", 0, 1, "decimal"),
    *bounded("top_logprobs", 0, 20, "integer"),
    *bounded("max_output_tokens", 16, None, "integer"),
    *bounded("max_tool_calls", 1, None, "integer"),
    Case("max_output_tokens", VALUE, {"max_output_tokens": 2**63}),
    Case("temperature", VALUE, {"temperature": 10**400}),
]

TOO_LONG = [
    Case(
        "metadata",
        "object_above_max_properties",
        {"metadata": {f"k{at}": "v" for at in range(17)}},
        {"metadata": {f"k{at}": "v" for at in range(17)}},
    ),
    Case("metadata", LONG, {"metadata": {"k" * 65: "v"}}, {"metadata": {"k" * 65: "v"}}),
    Case("metadata", LONG, {"metadata": {"k": "v" * 513}}, {"metadata": {"k": "v" * 513}}),
    Case(
        "safety_identifier",
        LONG,
        {"safety_identifier": "s" * 65},
        {"safety_identifier": "s" * 65},
    ),
    Case("prompt_cache_key", LONG, {"prompt_cache_key": "é" * 65}, {"prompt_cache_key": "é" * 65}),
    Case(
        "input[0].call_id",
        LONG,
        {"input": [call_output("c" * 65)]},
        typed_items({"function_call_output": {"call_id": "c" * 65, "output_text": "x"}}),
    ),
    Case(
        "input[0].call_id",
        LONG,
        {"input": [{"type": "function_call", "call_id": "c" * 65, "name": "f", "arguments": ""}]},
        typed_items({"function_call": {"call_id": "c" * 65, "name": "f"}}),
    ),
    Case(
        "input[0].call_id",
        LONG,
        {
            "input": [
                {"type": "custom_tool_call_output", "call_id": "c" * 65, "output": "x"},
            ]
        },
        typed_items({"custom_tool_call_output": {"call_id": "c" * 65, "output_text": "x"}}),
    ),
]

BAD_NAMES = [
    Case(path, VALUE, json_of(name), typed_of(name))
    for path, json_of, typed_of in (
        (
            "tools[0].name",
            lambda name: {"tools": [function(name=name)]},
            lambda name: {"tools": [{"function": {"name": name}}]} if name else {},
        ),
        (
            "tools[0].name",
            lambda name: {"tools": [{"type": "custom", "name": name}]},
            lambda name: {"tools": [{"custom": {"name": name}}]} if name else {},
        ),
        (
            "text.format.name",
            lambda name: {"text": schema_format(name=name)},
            lambda name: (
                {"text": {"format": {"json_schema": {"name": name, "schema": "{}"}}}}
                if name
                else {}
            ),
        ),
    )
    for name in ("", "a b", "a.b", "f\n", "é", "f" * 65)
]

LACKING = [
    Case("model", MISSING, {}, {"model": None}, without="model"),
    Case("model", MISSING, {"model": None}),
    Case("input", MISSING, {}, without="input"),
    Case("input", "empty_array", {"input": []}, {"input_list": {}}),
    Case("input[0].type", MISSING, {"input": [{}]}, typed_items({})),
    Case("input[0].type", MISSING, {"input": [{"content": "hi"}]}),
    Case(
        "input[0].role",
        MISSING,
        {"input": [{"type": "message", "content": "hi"}]},
        typed_items({"message": {"content_text": "hi"}}),
    ),
    Case(
        "input[1].content",
        MISSING,
        {"input": [said(), {"role": "user"}]},
        typed_items(
            {"message": {"role": "ROLE_USER", "content_text": "hi"}},
            {"message": {"role": "ROLE_USER"}},
        ),
    ),
    Case(
        "input[0].content[0].type",
        MISSING,
        {"input": [said(content=[{"text": "hi"}])]},
        typed_items({"message": {"role": "ROLE_USER", "content_list": {"parts": [{}]}}}),
    ),
    Case(
        "input[0].output",
        MISSING,
        {"input": [{"type": "function_call_output", "call_id": "c"}]},
        typed_items({"function_call_output": {"call_id": "c"}}),
    ),
    Case("text.format.type", MISSING, {"text": {"format": {}}}, {"text": {"format": {}}}),
    Case(
        "text.format.name",
        MISSING,
        {"text": {"format": {"type": "json_schema", "schema": {}}}},
        {"text": {"format": {"json_schema": {"schema": "{}"}}}},
    ),
    Case(
        "text.format.schema",
        MISSING,
        {"text": {"format": {"type": "json_schema", "name": "n"}}},
        {"text": {"format": {"json_schema": {"name": "n"}}}},
    ),
    Case("text.format.schema", MISSING, {"text": schema_format(schema=None)}),
    Case("tools[0].type", MISSING, {"tools": [{"name": "f"}]}, {"tools": [{}]}),
    Case(
        "tools[1].name",
        MISSING,
        {"tools": [function(), {"type": "function"}]},
        {"tools": [{"function": {"name": "f"}}, {"function": {}}]},
    ),
    Case("tools[0].server_label", MISSING, {"tools": [{"type": "mcp"}]}),
    Case("tools[0].vector_store_ids", MISSING, {"tools": [{"type": "file_search"}]}),
    Case("tool_choice.name", MISSING, {"tool_choice": {"type": "function"}}),
    Case(
        "tool_choice.mode",
        MISSING,
        {"tool_choice": {"type": "allowed_tools", "tools": []}},
        {"tool_choice_tool": {"allowed_tools": {}}},
    ),
]

FROM_CHAT = [
    Case("tools[0].name", MISSING, {"tools": [{"type": "function", "function": {"name": "f"}}]}),
    Case(
        "tool_choice.name",
        MISSING,
        {"tool_choice": {"type": "function", "function": {"name": "f"}}},
    ),
    Case(
        "tool_choice.function",
        UNKNOWN,
        {"tool_choice": {"type": "function", "name": "f", "function": {"name": "f"}}},
    ),
    Case(
        "text.format.name",
        MISSING,
        {"text": {"format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}}}},
    ),
    Case("input", MISSING, {"messages": [said()]}, without="input"),
]

EXCLUDED = [
    *(
        Case(
            "previous_response_id",
            "mutually_exclusive_parameters",
            {"previous_response_id": "resp_1", **conversation},
            {"previous_response_id": "resp_1", **fields},
        )
        for conversation, fields in (
            ({"conversation": "conv_1"}, {"conversation_text": "conv_1"}),
            ({"conversation": {"id": "conv_1"}}, {"conversation_reference": {"id": "conv_1"}}),
            ({"conversation_id": "conv_1"}, {"conversation_id": "conv_1"}),
        )
    ),
    Case(
        "background",
        VALUE,
        {"background": True, "store": False},
        {"background": True, "store": False},
    ),
    Case("stream_options", VALUE, {"stream_options": {}}, {"stream_options": {}}),
    Case("stream_options", VALUE, {"stream": False, "stream_options": {}}),
]

NO_IDS = [
    Case(
        "previous_response_id",
        VALUE,
        {"previous_response_id": value},
        {"previous_response_id": value},
    )
    for value in ("", "../resp_1", "r" * 129, "resp 1")
]

CASES = [
    *WRONG_TYPES,
    *OUTSIDE_ENUMS,
    *OUT_OF_RANGE,
    *TOO_LONG,
    *BAD_NAMES,
    *LACKING,
    *FROM_CHAT,
    *EXCLUDED,
    *NO_IDS,
]


def served(**settings: Any) -> Served:
    return Served(Script([Accepted(), Finished()]), **settings)


def held(message: Message) -> Refusal | None:
    """Returns why a typed request is refused before anything is asked, if it is."""
    try:
        check(message)
        if isinstance(message, CreateResponseRequest):
            check_request(message)
    except InvalidValue as error:
        refused = invalid(error)
    except ApiError as error:
        refused = error
    else:
        return None
    return Refusal(refused.kind.value.grpc, refused.param, refused.code, refused.message)


# The table, in JSON and typed.


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.param} {case.code}")
async def test_what_is_wrong_is_refused_by_its_path(case: Case) -> None:
    server = served()
    for stream in {case.body.get("stream", False), True} - {
        True if case.param == "stream_options" else None
    }:
        answer = await server.create({**case.body, "stream": stream})
        refused = answer.refusal
        assert (refused.status, refused.param, refused.code) == ("400", case.param, case.code)
        assert answer.json["error"]["type"] == "invalid_request_error"
        assert case.param in refused.message
        assert refused.message.endswith(".")
    assert server.kept == b""


TYPED = [case for case in CASES if case.typed]


@pytest.mark.parametrize("case", TYPED, ids=lambda case: f"{case.param} {case.code}")
def test_the_same_holds_for_typed_callers(case: Case) -> None:
    refused = held(case.message)
    assert refused is not None
    assert (refused.status, refused.param, refused.code) == (
        "INVALID_ARGUMENT",
        case.param,
        case.code,
    )


async def test_a_typed_caller_gets_the_details() -> None:
    server = served()
    async with server.stub() as stub:
        for case in TYPED:
            with pytest.raises(grpc.aio.AioRpcError) as whole:
                await stub.CreateResponse(case.message)
            told = [whole]
            if case.param != "stream_options":
                with pytest.raises(grpc.aio.AioRpcError) as streamed:
                    await stub.StreamResponse(case.message).read()
                told.append(streamed)
            for caught in told:
                refused = refusal(caught.value)
                assert (refused.status, refused.param, refused.code) == (
                    "INVALID_ARGUMENT",
                    case.param,
                    case.code,
                )
    assert server.kept == b""


def test_every_id_of_a_call_is_bounded() -> None:
    kinds = plan(descriptor_of(Item)).union
    assert kinds is not None
    bounds = {
        arm.name: member.rules.max_length if member.rules is not None else None
        for arm in kinds.arms
        if arm.type is not None
        for member in plan(arm.type).members
        if isinstance(member, Field) and member.name == "call_id"
    }
    assert len(bounds) > 10
    assert set(bounds.values()) == {64}


# The other side of every edge.

ACCEPTED: list[dict[str, Any]] = [
    *(
        {key: value}
        for key, values in (
            ("temperature", (0, 0.0, 2, 2.0)),
            ("top_p", (0, 1, 1.0)),
            ("top_logprobs", (0, 20)),
            ("max_output_tokens", (16, 2**63 - 1)),
            ("max_tool_calls", (1,)),
            ("safety_identifier", ("", "s" * 64, "😀" * 64)),
            ("prompt_cache_key", ("k" * 64,)),
            ("metadata", ({}, {f"{at:064}": "v" * 512 for at in range(16)}, {"": ""})),
            ("truncation", ("auto", "disabled")),
            ("previous_response_id", (None,)),
            ("tool_choice", ("none", "auto")),
        )
        for value in values
    ),
    {"tools": [function(name="f")]},
    {"tools": [function(name="aZ09_-" + "f" * 58)]},
    {"tools": [function(parameters={}), {"type": "invented", "name": 5}]},
    {
        "input": [
            {"type": "function_call", "call_id": "c" * 64, "name": "f", "arguments": ""},
            call_output("c" * 64),
        ]
    },
    {"input": [{"type": "invented", "id": 5}, said(invented={})]},
    {"stream": True, "stream_options": {"include_obfuscation": False}},
    {"conversation": None, "conversation_id": None},
    {"background": False, "store": False},
]


@pytest.mark.parametrize("members", ACCEPTED, ids=" ".join)
async def test_what_is_just_inside_is_accepted(members: dict[str, Any]) -> None:
    answer = await served().create({**MINIMAL, **members})
    assert answer.status == 200, answer.body
    assert held(decode(CreateResponseRequest, json.dumps({**MINIMAL, **members}))) is None


@pytest.mark.parametrize("key", sorted(CreateResponseRequest.DESCRIPTOR.fields_by_name))
async def test_null_stands_for_absence(key: str) -> None:
    if key not in {"model", "input_text", "input_list"}:
        assert (await served().create({**MINIMAL, key: None})).status == 200


# Documents that are none.


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "invalid_json"),
        (b"{", "invalid_json"),
        (b'{"model":"m","input":"hi"} {}', "invalid_json"),
        (b'{"model":"m","input":"\xff"}', "invalid_json"),
        (b'{"model":"m","input":"\\ud800"}', "invalid_json"),
        (b'{"model":"m","input":"a\nb"}', "invalid_json"),
        (b'{"model":"m","input":"hi","temperature":NaN}', "invalid_json"),
        (b'{"model":"m","input":"hi","temperature":01}', "invalid_json"),
        (b"[]", TYPE),
        (b"null", TYPE),
        (b'"hi"', TYPE),
    ],
)
async def test_a_body_that_is_no_object_is_refused(body: bytes, code: str) -> None:
    refused = (await served().create(body)).refusal
    assert (refused.status, refused.param, refused.code) == ("400", None, code)


@pytest.mark.parametrize("depth", [128, 129, 100_000])
async def test_documents_may_be_nested_to_a_depth(depth: int) -> None:
    parameters = '{"a":' * (depth - 1) + "{}" + "}" * (depth - 1)
    tool = f'{{"type":"function","name":"f","parameters":{parameters}}}'
    answer = await served().create(f'{{"model":"{MODEL}","input":"hi","tools":[{tool}]}}')
    assert answer.status == (200 if depth == 128 else 400)
    assert len(answer.body) < 10_000


# Members that the schema does not know.


async def test_unknown_parameters_are_accepted_unless_configured_otherwise() -> None:
    body = {**MINIMAL, "response_format": {"type": "json_object"}, "stop": ["x"]}
    answer = await served().create(body)
    assert answer.status == 200
    assert not {"response_format", "stop"} & answer.json.keys()
    refused = (await served(strict_fields=True).create(body)).refusal
    assert (refused.status, refused.param, refused.code) == ("400", "response_format", UNKNOWN)
    assert refused.message == "Unknown parameter: 'response_format'."


async def test_every_known_parameter_is_accepted_where_unknown_ones_are_not() -> None:
    server = served(strict_fields=True)
    for sample in samples(responses.ResponseCreateParams, whole=0):
        answer = await server.create(fitted(sample))
        assert answer.status == 200 or answer.refusal.code != UNKNOWN
    body = {**MINIMAL, "input": [said(invented=1)], "requestContext": {}, "providerOptions": {}}
    assert (await server.create(body)).status == 200


@pytest.mark.parametrize(
    ("members", "param"),
    [
        ({"text": {"invented": 1}}, "text.invented"),
        ({"reasoning": {"effort": "low", "invented": 1}}, "reasoning.invented"),
        ({"stream": True, "stream_options": {"invented": 1}}, "stream_options.invented"),
    ],
)
async def test_unknown_members_further_in_are_refused_where_they_cannot_be_kept(
    members: dict[str, Any], param: str
) -> None:
    refused = (await served().create({**MINIMAL, **members})).refusal
    assert (refused.status, refused.param, refused.code) == ("400", param, UNKNOWN)


# Parameters of the query.


def encoded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    "parameter",
    [
        encoded('{"b": 9007199254740993, "a": "é>>>???"}'),
        encoded('{"b": 9007199254740993, "a": "é>>>???"}').rstrip("="),
        encoded('{"b": 9007199254740993, "a": "é>>>???"}').replace("-", "+").replace("_", "/"),
        encoded('{"b": 9007199254740993, "a": "é>>>???"}').replace("-", " ").replace("_", "/"),
    ],
)
async def test_the_request_context_may_come_in_the_query(parameter: str) -> None:
    script = Script([Accepted(), Finished()])
    server = Served(script)
    query = {"request_context": (parameter,)}
    assert (await server.ask("CreateResponse", MINIMAL, query=query)).status == 200
    body = {**MINIMAL, "requestContext": {"of": "body"}}
    assert (await server.ask("CreateResponse", body, query=query)).status == 200
    told = [call.request.request_context for call in script.calls]
    assert told == ['{"b":9007199254740993,"a":"é>>>???"}', '{"of":"body"}']


@pytest.mark.parametrize(
    "parameter", ["!", "a", encoded("{"), encoded("["), encoded("{}\n\n{}"), "/w==", "é"]
)
async def test_a_request_context_that_is_none_is_refused(parameter: str) -> None:
    query = {"request_context": (parameter,)}
    refused = (await served().ask("CreateResponse", MINIMAL, query=query)).refusal
    assert (refused.status, refused.param) == ("400", "requestContext")


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ({"include": ("reasoning.encrypted_content", "everything")}, "include[1]"),
        ({"stream": ("yes",)}, "stream"),
    ],
)
async def test_a_retrieve_is_held_to_its_values(
    query: dict[str, tuple[str, ...]], param: str
) -> None:
    server = served()
    response_id = (await server.create(MINIMAL)).json["id"]
    refused = (await server.ask("GetResponse", query=query, response_id=response_id)).refusal
    assert (refused.status, refused.param, refused.code) == ("400", param, VALUE)
    query = {"include": ("reasoning.encrypted_content",), "stream": ("false",)}
    answer = await server.ask("GetResponse", query=query, response_id=response_id)
    assert answer.status == 200
    async with server.stub() as stub:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.GetResponse(GetResponseRequest(response_id=response_id, include=["x"]))
    told = refusal(caught.value)
    assert (told.status, told.param, told.code) == ("INVALID_ARGUMENT", "include[0]", VALUE)


@pytest.mark.parametrize(
    ("operation", "query", "param"),
    [
        ("ListInputItems", {"limit": ("0",)}, "limit"),
        ("ListInputItems", {"limit": ("101",)}, "limit"),
        ("ListInputItems", {"limit": ("many",)}, "limit"),
        ("ListInputItems", {"order": ("up",)}, "order"),
        ("ListInputItems", {"include": ("everything",)}, "include[0]"),
        ("ListConversationItems", {"limit": ("1.0",)}, "limit"),
        ("ListConversationItems", {"order": ("",)}, "order"),
        ("ListConversationItems", {"include": ("everything",)}, "include[0]"),
        ("GetConversationItem", {"include": ("everything",)}, "include[0]"),
        ("CreateConversationItems", {"include": ("everything",)}, "include[0]"),
        ("GetResponse", {"stream": ("true",), "starting_after": ("x",)}, "starting_after"),
        ("GetResponse", {"stream": ("true",), "starting_after": ("9" * 30,)}, "starting_after"),
        ("GetResponse", {"stream": ("true",), "include": ("everything",)}, "include[0]"),
    ],
)
async def test_a_list_is_held_to_its_values(
    operation: str, query: dict[str, tuple[str, ...]], param: str
) -> None:
    server = served()
    made = (await server.ask("CreateConversation", {"items": [said()]})).json["id"]
    answered = (await server.create({**MINIMAL, "conversation": made})).json["id"]
    (item, *_) = (await server.ask("ListConversationItems", conversation_id=made)).json["data"]
    body = {"items": [said()]} if operation == "CreateConversationItems" else b""
    answer = await server.ask(
        operation,
        body,
        query=query,
        response_id=answered,
        conversation_id=made,
        item_id=item["id"],
    )
    assert (answer.refusal.status, answer.refusal.param) == ("400", param)
    small(answer.refusal)


# Conversations are held to the same rules.

CONVERSATIONS: list[tuple[dict[str, Any], dict[str, Any], str, str]] = [
    ({"metadata": {"k": 5}}, {}, "metadata.k", TYPE),
    (
        {"metadata": {f"k{at}": "v" for at in range(17)}},
        {"metadata": {f"k{at}": "v" for at in range(17)}},
        "metadata",
        "object_above_max_properties",
    ),
    ({"metadata": {"k" * 65: "v"}}, {"metadata": {"k" * 65: "v"}}, "metadata", LONG),
    ({"metadata": {"k": "v" * 513}}, {"metadata": {"k": "v" * 513}}, "metadata", LONG),
    (
        {"items": [said()] * 21},
        {"items": [{"message": {"role": "ROLE_USER", "content_text": "hi"}}] * 21},
        "items",
        "array_above_max_length",
    ),
    ({"items": [said(), said(content=5)]}, {}, "items[1].content", TYPE),
    ({"items": [{}]}, {"items": [{}]}, "items[0].type", MISSING),
    (
        {"items": [call_output("c" * 65)]},
        {"items": [{"function_call_output": {"call_id": "c" * 65, "output_text": "x"}}]},
        "items[0].call_id",
        LONG,
    ),
]


@pytest.mark.parametrize(("members", "fields", "param", "code"), CONVERSATIONS)
async def test_a_conversation_is_held_to_the_rules(
    members: dict[str, Any], fields: dict[str, Any], param: str, code: str
) -> None:
    server = served()
    refused = (await server.ask("CreateConversation", members)).refusal
    assert (refused.status, refused.param, refused.code) == ("400", param, code)
    if fields:
        async with server.channel() as channel:
            stub = ConversationsServiceStub(channel)
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await stub.CreateConversation(CreateConversationRequest(**fields))
        told = refusal(caught.value)
        assert (told.status, told.param, told.code) == ("INVALID_ARGUMENT", param, code)
    assert server.kept == b""


async def test_no_text_reaches_a_conversation_unchecked() -> None:
    server = served()
    request = CreateConversationRequest(items=[Item(unknown=EVIL)])
    async with server.channel() as channel:
        stub = ConversationsServiceStub(channel)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.CreateConversation(request)
    told = refusal(caught.value)
    assert (told.status, told.param) == ("INVALID_ARGUMENT", "items[0]")
    assert server.kept == b""


# What no JSON can say, and typed callers can.

EVIL = '{}, "name":"evil"'
FRAME = "{}\n\nevent: response.completed\ndata: {}"

SMUGGLED: list[tuple[dict[str, Any], str]] = [
    *(
        ({"tools": [{"function": {"name": "f", "parameters": text}}]}, "tools[0].parameters")
        for text in (EVIL, FRAME, "{}\n{}", "nothing", "1", "[]", "{'a':1}", '{"a":\x00}')
    ),
    ({"tools": [{"function": {"name": "f", "output_schema": EVIL}}]}, "tools[0].output_schema"),
    ({"tools": [{"unknown": '{"type":"x"},{"type":"y"}'}]}, "tools[0]"),
    ({"tools": [{"unknown": '{"type":"function","name":"f"}'}]}, "tools[0].type"),
    ({"tools": [{"unknown": "{}"}]}, "tools[0].type"),
    (
        {"tools": [{"function": {"name": "f", "additional_properties": '{"name":"evil"}'}}]},
        "tools[0].name",
    ),
    (
        {"tools": [{"function": {"name": "f", "additional_properties": '{"type":"evil"}'}}]},
        "tools[0].type",
    ),
    (
        {"tools": [{"function": {"name": "f", "additional_properties": EVIL}}]},
        "tools[0]",
    ),
    ({"provider_options": EVIL}, "providerOptions"),
    ({"request_context": FRAME}, "requestContext"),
    (
        {"text": {"format": {"json_schema": {"name": "n", "schema": EVIL}}}},
        "text.format.schema",
    ),
    (typed_items({"unknown": '{"type":"x"}\n'}, {"unknown": EVIL}), "input[1]"),
    (
        typed_items(
            {
                "message": {
                    "role": "ROLE_USER",
                    "content_text": "hi",
                    "additional_properties": '{"role":"system"}',
                }
            }
        ),
        "input[0].role",
    ),
    (
        typed_items(
            {
                "message": {
                    "role": "ROLE_USER",
                    "content_list": {"parts": [{"unknown": '{"type":"input_text"}'}]},
                }
            }
        ),
        "input[0].content[0].type",
    ),
    ({"temperature": float("nan")}, "temperature"),
    ({"top_p": float("inf")}, "top_p"),
]


async def test_no_text_reaches_the_wire_unchecked() -> None:
    server = served()
    async with server.stub() as stub:
        for fields, param in SMUGGLED:
            with pytest.raises(grpc.aio.AioRpcError) as whole:
                await stub.CreateResponse(typed(**fields))
            with pytest.raises(grpc.aio.AioRpcError) as streamed:
                await stub.StreamResponse(typed(**fields)).read()
            for caught in (whole, streamed):
                told = refusal(caught.value)
                assert (told.status, told.param) == ("INVALID_ARGUMENT", param), fields
                assert "evil" not in told.message
    assert server.kept == b""


async def test_documents_of_typed_callers_are_put_on_one_line() -> None:
    document = '{ "b" : [ 1.0 ,\n\r\t9007199254740993 ],\n\n"a" : "\\n" }'
    line = '{"b":[1.0,9007199254740993],"a":"\\n"}'
    server = served()
    request = typed(
        tools=[
            {"function": {"name": "f", "parameters": document}},
            {"unknown": f'{{"type":"x",\n"y":{document}}}'},
        ],
        provider_options=document,
    )
    async with server.stub() as stub:
        response = await stub.CreateResponse(request)
    assert response.tools[0].function.parameters == line
    assert response.tools[1].unknown == f'{{"type":"x","y":{line}}}'
    assert response.provider_options == line
    body = (await server.get(response.id)).body.decode()
    assert "\n" not in body
    assert f'"parameters":{line}' in body


# Nothing of what was sent comes back in an error.

MARK = "m4rker"
MARKER = MARK * 300
"""More than an error may take."""
LARGE = MARK * 200_000
"""More than a megabyte."""


def small(refused: Refusal) -> None:
    assert MARK not in f"{refused.message} {refused.param} {refused.code}"
    assert not refused.message.endswith("...")
    assert len(json.dumps(vars(refused)).encode()) < 1024


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.param} {case.code}")
async def test_what_is_right_in_a_request_does_not_come_back(case: Case) -> None:
    body = {"instructions": LARGE, **case.body}
    if body.get("input") == "hi":
        body["input"] = LARGE
    answer = await served().create({**body, MARKER: [MARKER]})
    assert len(answer.body) < 1024
    small(answer.refusal)


@pytest.mark.parametrize(
    "members",
    [
        {"model": LARGE},
        {"truncation": LARGE},
        {"previous_response_id": LARGE},
        {"safety_identifier": LARGE},
        {"metadata": {"k": LARGE}},
        {"metadata": {LARGE: 5}},
        {"include": [LARGE]},
        {"tools": [{"type": "function", "name": LARGE}]},
        {"tools": [{"type": "mcp", LARGE: LARGE}]},
        {"text": {LARGE: LARGE}},
        {"tool_choice": {"type": LARGE}},
        {"input": [{"type": "input_image", "role": LARGE, "content": LARGE}, {}]},
        {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": [LARGE]}]}]},
        {"temperature": [f"data:image/png;base64,{LARGE}"]},
    ],
    ids=" ".join,
)
async def test_what_is_wrong_in_a_request_does_not_come_back(members: dict[str, Any]) -> None:
    answer = await served().create({**MINIMAL, **members})
    assert answer.status in (400, 404)
    assert len(answer.body) < 1024
    small(answer.refusal)


async def test_what_is_wrong_in_an_address_does_not_come_back() -> None:
    server = served()
    for operation in ("GetResponse", "DeleteResponse"):
        small((await server.ask(operation, response_id=LARGE)).refusal)
    small((await server.ask("GetModel", model=LARGE)).refusal)
    query = {"include": (LARGE,)}
    small((await server.ask("GetResponse", query=query, response_id="resp_1")).refusal)
    query = {"request_context": (LARGE,)}
    small((await server.ask("CreateResponse", MINIMAL, query=query)).refusal)


def spoiled(value: Any) -> Iterator[Any]:
    """Yields a document with each of its values in turn replaced by the marker."""
    if isinstance(value, dict):
        for key, member in value.items():
            for each in spoiled(member):
                yield {**value, key: each}
        yield {**value, MARKER: 5}
    elif isinstance(value, list):
        for each in spoiled(value[0]) if value else ():
            yield [each, *value[1:]]
    yield MARKER
    yield [MARKER]
    yield {MARKER: MARKER}


@pytest.mark.parametrize(
    ("annotation", "message", "step"),
    [
        # Every sample has every parameter, and tools and items are whole below.
        (responses.ResponseCreateParams, CreateResponseRequest, 12),
        (responses.ToolParam, Tool, 1),
        (responses.ResponseInputItemParam, Item, 1),
    ],
    ids=["request", "tool", "item"],
)
def test_no_value_of_a_document_comes_back(
    annotation: Any, message: type[Message], step: int
) -> None:
    reasons = set()
    seen: set[str] = set()
    for sample in samples(annotation, whole=-1)[::step]:
        for document in spoiled(fitted(sample)):
            text = json.dumps(document)
            if text in seen:
                continue
            seen.add(text)
            try:
                decode(message, text)
            except InvalidValue as error:
                told = invalid(error)
                small(Refusal("400", told.param, told.code, told.message))
                reasons.add((told.param, told.message))
    assert len(reasons) > 50


def strings(message: Message) -> Iterator[tuple[Message, str]]:
    """Yields the string fields that are set in a message and in those in it."""
    for each, value in message.ListFields():
        if isinstance(value, str):
            yield message, each.name
        elif isinstance(value, Message):
            yield from strings(value)
        elif each.message_type is not None and not each.message_type.GetOptions().map_entry:
            for element in value:
                yield from strings(element)


@pytest.mark.parametrize(
    ("annotation", "message"),
    [(responses.ToolParam, Tool), (responses.ResponseInputItemParam, Item)],
    ids=["tool", "item"],
)
def test_no_field_of_a_typed_caller_comes_back(annotation: Any, message: type[Message]) -> None:
    reasons = set()
    for sample in samples(annotation, whole=0):
        whole = decode(message, json.dumps(fitted(sample)))
        for owner, name in strings(whole):
            before = getattr(owner, name)
            setattr(owner, name, MARKER)
            refused = held(whole)
            setattr(owner, name, before)
            if refused is not None:
                small(refused)
                reasons.add((refused.param, refused.message))
    assert len(reasons) > 10


# What a backend refuses with is as small.


@pytest.mark.parametrize("letter", ["m", "é", "😀", "\ud800", "\n"])
async def test_the_errors_of_backends_are_clamped(letter: str) -> None:
    text = letter * 100_000
    error = ApiError(ErrorKind.BAD_BACKEND, text, text, text)
    server = Served(Script(error))
    answer = await server.create(MINIMAL)
    assert answer.status == 502
    assert len(answer.body) < 8 * 1024
    assert answer.refusal.message.endswith("...")
    async with server.stub() as stub:
        with pytest.raises(grpc.aio.AioRpcError) as whole:
            await stub.CreateResponse(typed())
        with pytest.raises(grpc.aio.AioRpcError) as streamed:
            await stub.StreamResponse(typed()).read()
    for caught in (whole, streamed):
        told = refusal(caught.value)
        assert told.status == "UNAVAILABLE"
        assert vars(told) == {**vars(answer.refusal), "status": "UNAVAILABLE"}
        metadata = dict(caught.value.trailing_metadata() or ())
        assert len(metadata["grpc-status-details-bin"]) < 4 * 1024
