"""What clients are told: every key of a response, what they sent, and none of their secrets."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message
from openai.types import responses
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming
from pydantic import TypeAdapter

from antiphon.backends.protocol import Call
from antiphon.core.output import Accepted, Failed, Finished, ItemAdded, Step, TextDelta
from antiphon.core.tokens import usage
from antiphon.json import decode, encode
from antiphon.v1 import event_pb2, item_pb2, response_pb2, tool_pb2
from antiphon.v1.responses_service_pb2 import (
    CompactResponseRequest,
    CountInputTokensRequest,
    CreateResponseRequest,
    GetResponseRequest,
)
from tests.schema import sdk
from tests.schema.samples import samples
from tests.schema.served import MODEL, Served, parse_frames, refusal
from tests.schema.test_sdk_round_trip import fitted
from tests.support.backend import Script
from tests.support.gate import Gate
from tests.support.items import sdk_events

MINIMAL = {"model": MODEL, "input": "hi"}

DEFAULTS = {
    "id": "resp_…",
    "object": "response",
    "created_at": 1_700_000_000,
    "status": "in_progress",
    "background": False,
    "completed_at": None,
    "error": None,
    "incomplete_details": None,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "model": MODEL,
    "output": [],
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": None,
    "safety_identifier": None,
    "service_tier": "default",
    "store": True,
    "temperature": 1,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1,
    "truncation": "disabled",
    "usage": None,
    "presence_penalty": 0,
    "frequency_penalty": 0,
}
"""A response as it begins, when its request says nothing."""

USAGE = {
    "input_tokens": 3,
    "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
    "output_tokens": 1,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 4,
}

ENDS: tuple[tuple[Step, dict[str, Any]], ...] = (
    (
        Finished(usage(3, 1)),
        {"status": "completed", "completed_at": 1_700_000_000, "usage": USAGE},
    ),
    (
        Finished(usage(3, 1), incomplete="max_output_tokens"),
        {
            "status": "incomplete",
            "incomplete_details": {"reason": "max_output_tokens"},
            "usage": USAGE,
        },
    ),
    (
        Failed("rate_limit_exceeded", "Too much."),
        {"status": "failed", "error": {"code": "rate_limit_exceeded", "message": "Too much."}},
    ),
)

SDK_RESPONSE: TypeAdapter[Any] = TypeAdapter(responses.Response)


def read(adapter: TypeAdapter[Any], text: str) -> None:
    """Has the SDK's models parse a document strictly, and nothing of it be lost in them."""
    model = adapter.validate_json(text, strict=True)
    told = model.model_dump(mode="json", by_alias=True, exclude_unset=True)
    assert told == json.loads(text)


def read_event(text: str) -> None:
    """Has the SDK's model of an event parse it strictly."""
    read(sdk_events()[json.loads(text)["type"]], text)


# Every key is there in every snapshot.


def test_a_response_has_31_keys() -> None:
    assert len(DEFAULTS) == 31


def without_id(snapshot: dict[str, Any]) -> dict[str, Any]:
    assert snapshot["id"].startswith("resp_")
    return {**snapshot, "id": "resp_…"}


@pytest.mark.parametrize(("end", "told"), ENDS)
async def test_every_snapshot_of_a_stream_has_every_key(end: Step, told: dict[str, Any]) -> None:
    served = Served(Script([Accepted(), end]))
    answer = await served.create({**MINIMAL, "stream": True})
    created, in_progress, terminal = answer.events
    assert without_id(created["response"]) == DEFAULTS
    assert without_id(in_progress["response"]) == DEFAULTS
    assert terminal["type"] == f"response.{told['status']}"
    assert without_id(terminal["response"]) == {**DEFAULTS, **told}
    kept = await served.get(created["response"]["id"])
    assert kept.json == terminal["response"]
    for text in parse_frames(answer.body):
        read_event(text)
    read(SDK_RESPONSE, kept.body.decode())


@pytest.mark.parametrize(("end", "told"), ENDS)
async def test_every_whole_response_has_every_key(end: Step, told: dict[str, Any]) -> None:
    served = Served(Script([Accepted(), end]))
    answer = await served.create(MINIMAL)
    assert answer.status == 200
    assert without_id(answer.json) == {**DEFAULTS, **told}
    async with served.stub() as stub:
        response = await stub.CreateResponse(CreateResponseRequest(model=MODEL, input_text="hi"))
        assert without_id(json.loads(encode(response))) == {**DEFAULTS, **told}


async def test_a_response_that_is_running_has_every_key() -> None:
    gate = Gate()
    script = Script([Accepted()], gate, [Finished()])
    served = Served(script)
    running = asyncio.create_task(served.create(MINIMAL))
    await gate.reached()
    answer = await served.get(script.calls[0].response_id)
    assert without_id(answer.json) == DEFAULTS
    gate.open()
    assert (await running).json["status"] == "completed"


async def test_a_response_in_the_background_has_every_key_from_its_queue_to_its_end() -> None:
    gate = Gate()
    served = Served(Script(gate, [Accepted(), Finished(usage(3, 1))]))
    body = {**MINIMAL, "background": True}
    queued = {**DEFAULTS, "background": True, "status": "queued"}
    answer = await served.create(body)
    assert without_id(answer.json) == queued
    await gate.reached()
    read(SDK_RESPONSE, (await served.get(answer.json["id"])).body.decode())
    cancelled = await served.ask("CancelResponse", response_id=answer.json["id"])
    assert without_id(cancelled.json) == {**queued, "status": "cancelled"}
    read(SDK_RESPONSE, cancelled.body.decode())
    assert (await served.get(answer.json["id"])).json == cancelled.json
    gate.open()
    streamed = await served.create({**body, "stream": True})
    for text in parse_frames(streamed.body):
        read_event(text)
    told = {each["type"]: each["response"] for each in streamed.events if "response" in each}
    assert without_id(told["response.queued"]) == queued
    assert without_id(told["response.in_progress"]) == {**queued, "status": "in_progress"}
    assert without_id(told["response.completed"]) == {**queued, **ENDS[0][1]}


async def test_a_continued_response_tells_its_parent_and_all_else_is_as_it_was() -> None:
    served = Served(Script([Accepted(), Finished()]))
    parent = (await served.create({**MINIMAL, "temperature": 0.5})).json
    child = (await served.create({**MINIMAL, "previous_response_id": parent["id"]})).json
    assert without_id(child) == {
        **DEFAULTS,
        "status": "completed",
        "completed_at": 1_700_000_000,
        "previous_response_id": parent["id"],
    }


# The SDK's own models parse what is printed, in strict mode.


@pytest.mark.parametrize(
    ("annotation", "message", "whole"),
    [
        (responses.ResponseOutputItem, item_pb2.Item, 2),
        (responses.ResponseItem, item_pb2.Item, 2),
        (responses.Tool, tool_pb2.Tool, 3),
        (responses.Response, response_pb2.Response, 0),
    ],
    ids=["output", "item", "tool", "response"],
)
def test_the_sdk_reads_what_is_printed(annotation: Any, message: type[Message], whole: int) -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(annotation)
    for sample in samples(annotation, whole=whole):
        read(adapter, encode(decode(message, json.dumps(fitted(sample)))))


def test_the_sdk_reads_every_event() -> None:
    assert len(sdk_events()) == 59
    seen: Counter[str] = Counter()
    for sample in samples(responses.ResponseStreamEvent, whole=0):
        # The responses in events are whole above.
        seen[sample["type"]] += 1
        if seen[sample["type"]] > 5:
            continue
        read_event(encode(decode(event_pb2.ResponseStreamEvent, json.dumps(fitted(sample)))))


def output_items() -> list[item_pb2.Item]:
    return [
        decode(item_pb2.Item, json.dumps(fitted(sample)))
        for sample in samples(responses.ResponseOutputItem, whole=0)
    ]


async def test_the_sdk_reads_a_stream_with_items_of_every_kind() -> None:
    items = output_items()
    steps = [ItemAdded(item, str(at)) for at, item in enumerate(items)]
    served = Served(Script([Accepted(), *steps, TextDelta("hi"), Finished(usage(3, 1))]))
    answer = await served.create({**MINIMAL, "stream": True})
    frames = parse_frames(answer.body)
    for text in frames:
        read_event(text)
    final = json.loads(frames[-1])["response"]
    assert len(final["output"]) == len(items) + 1
    kinds = {arm.name for arm in item_pb2.Item.DESCRIPTOR.oneofs_by_name["kind"].fields}
    assert len({item["type"] for item in final["output"]}) > len(kinds) / 2
    kept = await served.get(final["id"])
    assert kept.json == final
    read(SDK_RESPONSE, kept.body.decode())


# What the client sent is told in every snapshot.

APART = {"conversation", "model", "previous_response_id", "store", "tool_choice"}
"""Parameters that need something to be there, or are there always."""

NOT_ECHOED = {"input", "include", "stream", "stream_options", "requestContext"}

NOT_BUILT: dict[str, Any] = {
    "agent_id": "a",
    "background_options": {"completion_window": "2h"},
    "context_management": [{"type": "compaction"}],
    "moderation": {"model": "m"},
    "prompt": {"id": "pmpt_1"},
}
"""Parameters of the API that this server does not have yet."""


def built(sample: dict[str, Any]) -> dict[str, Any]:
    """Returns a request without what is not built, or excludes the rest."""
    kept = {key: value for key, value in sample.items() if key not in NOT_BUILT}
    for key in (
        "background",
        "conversation",
        "conversation_id",
        "previous_response_id",
        "stream_options",
        "tool_choice",
    ):
        kept.pop(key, None)
    return {**kept, "model": MODEL, "input": "hi", "stream": False}


def printed(tool: dict[str, Any]) -> Any:
    return json.loads(encode(decode(tool_pb2.Tool, json.dumps(tool))))


def requests() -> list[dict[str, Any]]:
    found = [built(fitted(each)) for each in samples(responses.ResponseCreateParams, whole=0)]
    assert len(found) > 1
    return found


@pytest.mark.parametrize("stream", [False, True])
async def test_what_was_sent_is_told(stream: bool) -> None:
    served = Served(Script([Accepted(), Finished()]))
    for sent in requests():
        answer = await served.create({**sent, "stream": stream})
        assert answer.status == 200, answer.body
        told = [event["response"] for event in answer.events] if stream else [answer.json]
        for snapshot in [*told, (await served.get(told[0]["id"])).json]:
            for key, value in sent.items():
                if key in NOT_ECHOED:
                    assert key not in snapshot
                    continue
                expected = value
                if key == "service_tier" and value == "auto":
                    expected = "default"
                if key == "image" and value["context_compression"] == "auto":
                    expected = {"context_compression": "disabled"}
                if key == "tools":
                    expected = [printed(tool) for tool in value]
                if key == "reasoning":
                    expected = {"effort": None, "summary": None, **value}
                assert snapshot[key] == expected, key
            read(SDK_RESPONSE, json.dumps(snapshot))


def bare(annotation: Any) -> list[Any]:
    """Returns values of a type of the SDK in which every object has only what it must have."""
    found: list[Any] = []
    for alternative in sdk.alternatives(annotation):
        match alternative:
            case sdk.Class(cls):
                needed = {
                    key: member
                    for key, member in sdk.members(cls).items()
                    if member.presence != "optional"
                }
                found.append({key: bare(member.annotation)[0] for key, member in needed.items()})
            case sdk.ListOf(element):
                found.append(bare(element))
            case sdk.MapOf():
                found.append({})
            case sdk.Literals(values):
                found.extend(values)
            case sdk.Primitive(name):
                found.append({"string": "words", "int": 3, "float": 0.5, "bool": True}[name])
    return found


BARE = [
    (key, value)
    for key, member in sdk.members(ResponseCreateParamsNonStreaming).items()
    if key not in NOT_BUILT.keys() | NOT_ECHOED | APART
    for value in bare(member.annotation)
]
"""Parameters one by one, with as little as a client may send in them."""


@pytest.mark.parametrize(("key", "value"), BARE)
async def test_the_sdk_reads_what_is_told_of_little(key: str, value: Any) -> None:
    read(SDK_RESPONSE, json.dumps(await echoed(**{key: fitted(value, key)})))


async def echoed(**members: Any) -> dict[str, Any]:
    """Returns what a response to a request with these members tells."""
    served = Served(Script([Accepted(), Finished()]))
    answer = await served.create({**MINIMAL, **members})
    assert answer.status == 200, answer.body
    told: dict[str, Any] = answer.json
    return told


async def test_an_echoed_function_always_has_its_three_members() -> None:
    told = await echoed(tools=[{"type": "function", "name": "f"}])
    assert told["tools"] == [
        {"type": "function", "name": "f", "description": None, "parameters": None, "strict": None}
    ]
    whole = {
        "type": "function",
        "name": "f",
        "description": "d",
        "parameters": {"type": "object", "properties": {"b": {}, "a": {}}},
        "strict": True,
    }
    told = await echoed(tools=[whole])
    assert told["tools"] == [whole]
    assert list(told["tools"][0]["parameters"]["properties"]) == ["b", "a"]


async def test_reasoning_always_has_its_two_members() -> None:
    assert (await echoed(reasoning={}))["reasoning"] == {"effort": None, "summary": None}
    told = (await echoed(reasoning={"effort": "low"}))["reasoning"]
    assert told == {"effort": "low", "summary": None}


async def test_the_tier_that_is_told_is_one_that_was_used() -> None:
    assert (await echoed(service_tier="auto"))["service_tier"] == "default"
    assert (await echoed(service_tier="priority"))["service_tier"] == "priority"


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        ({"image": {}}, {"image": {"context_compression": "disabled"}}),
        (
            {"image": {"context_compression": "auto"}},
            {"image": {"context_compression": "disabled"}},
        ),
        (
            {"image": {"context_compression": "enabled"}},
            {"image": {"context_compression": "enabled"}},
        ),
        (
            {"prompt_cache_options": {}},
            {"prompt_cache_options": {"mode": "implicit", "ttl": "30m"}},
        ),
        (
            {"prompt_cache_options": {"mode": "explicit", "ttl": "12h"}},
            {"prompt_cache_options": {"mode": "explicit", "ttl": "12h"}},
        ),
        ({"access_programs": {}}, {}),
        ({"access_programs": {"cyber": "standard"}}, {"access_programs": {"cyber": "standard"}}),
    ],
)
async def test_what_was_left_to_the_server_is_told_as_it_was_done(
    sent: dict[str, Any], told: dict[str, Any]
) -> None:
    response = await echoed(**sent)
    assert {key: value for key, value in response.items() if key not in DEFAULTS} == told


# What is unset is left out, not null.


@pytest.mark.parametrize(
    ("key", "unset", "given"),
    [
        (
            "phase",
            {"type": "message", "role": "assistant", "content": []},
            {"phase": "final_answer"},
        ),
        (
            "logprobs",
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "t", "annotations": []}],
            },
            {
                "content": [
                    {
                        "type": "output_text",
                        "text": "t",
                        "annotations": [],
                        "logprobs": [
                            {"token": "t", "bytes": [116], "logprob": 0, "top_logprobs": []}
                        ],
                    }
                ]
            },
        ),
        (
            "encrypted_content",
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {"encrypted_content": "words"},
        ),
    ],
)
async def test_what_an_item_does_not_have_is_left_out(
    key: str, unset: dict[str, Any], given: dict[str, Any]
) -> None:
    for item, there in ((unset, False), ({**unset, **given}, True)):
        added = ItemAdded(decode(item_pb2.Item, json.dumps(item)))
        served = Served(Script([Accepted(), added, Finished()]))
        answer = await served.create({**MINIMAL, "stream": True})
        response = answer.events[-1]["response"]
        kept = await served.get(response["id"])
        for output in (response["output"], kept.json["output"]):
            told = json.dumps(output, separators=(",", ":"))
            assert (f'"{key}":' in told) == there
            assert f'"{key}":null' not in told


@pytest.mark.parametrize(
    "choice",
    [
        "none",
        "auto",
        "required",
        {"type": "function", "name": "f"},
        {"type": "custom", "name": "c"},
        {
            "type": "allowed_tools",
            "mode": "required",
            "tools": [{"type": "function", "name": "f"}, {"type": "custom", "name": "c"}],
        },
    ],
    ids=json.dumps,
)
async def test_the_choice_of_tools_is_told(choice: Any) -> None:
    tools = [{"type": "function", "name": "f"}, {"type": "custom", "name": "c"}]
    told = await echoed(tools=tools, tool_choice=choice)
    assert told["tool_choice"] == choice
    read(SDK_RESPONSE, json.dumps(told))


async def test_verbosity_is_left_out_when_it_was_not_sent() -> None:
    assert (await echoed(text={}))["text"] == {"format": {"type": "text"}}
    told = (await echoed(text={"verbosity": "low"}))["text"]
    assert told == {"format": {"type": "text"}, "verbosity": "low"}


# Secrets reach the model, and nobody else.

SECRET = "5ecret-of-the-client"

MCP = {
    "type": "mcp",
    "server_label": "l",
    "server_url": "https://mcp.example",
    "authorization": f"{SECRET}-1",
    "headers": {"x-key": f"{SECRET}-2"},
}
NETWORK = {
    "type": "allowlist",
    "allowed_domains": ["a.example"],
    "domain_secrets": [{"domain": "a.example", "name": "n", "value": f"{SECRET}-3"}],
}
SECRET_TOOLS = [
    MCP,
    {"type": "code_interpreter", "container": {"type": "auto", "network_policy": NETWORK}},
    {"type": "shell", "environment": {"type": "container_auto", "network_policy": NETWORK}},
]
SECRET_REQUEST = {
    "model": MODEL,
    "input": [
        {"role": "user", "content": "hi"},
        {"type": "additional_tools", "role": "developer", "tools": SECRET_TOOLS},
        {"type": "tool_search_output", "execution": "server", "tools": SECRET_TOOLS},
    ],
    "tools": SECRET_TOOLS,
    "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": SECRET_TOOLS},
}


class Repeating:
    """A backend that gives its client's tools back as those that it found."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    async def respond(self, call: Call) -> AsyncIterator[Sequence[Step]]:
        self.calls.append(call)
        found = item_pb2.Item()
        found.tool_search_output.tools.extend(call.request.tools)
        found.tool_search_output.execution = "server"
        yield [Accepted(), ItemAdded(found), Finished(usage(3, 1))]


def told_without_secrets(response: dict[str, Any]) -> None:
    """Checks that the tools are told, but for what is secret in them."""
    assert response["tool_choice"]["tools"] == [
        {"type": "mcp", "server_label": "l"},
        {"type": "code_interpreter"},
        {"type": "shell"},
    ]
    for tools in (response["tools"], *(item["tools"] for item in response["output"])):
        assert tools[0] == {key: MCP[key] for key in ("type", "server_label", "server_url")}
        for tool, place in ((tools[1], "container"), (tools[2], "environment")):
            assert tool[place]["network_policy"] == {
                "type": "allowlist",
                "allowed_domains": ["a.example"],
            }


@pytest.mark.parametrize("stream", [False, True])
async def test_secrets_are_not_told_or_kept_by_the_rest_surface(
    stream: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    backend = Repeating()
    served = Served(backend)
    answer = await served.create({**SECRET_REQUEST, "stream": stream})
    assert answer.status == 200
    final = answer.events[-1]["response"] if stream else answer.json
    kept = await served.get(final["id"])
    for body in (answer.body, kept.body, served.kept, "".join(capfd.readouterr()).encode()):
        assert SECRET.encode() not in body
    assert b"mcp.example" in served.kept
    told_without_secrets(final)
    told_without_secrets(kept.json)
    assert_reached(backend.calls)


async def test_secrets_are_not_told_or_kept_by_the_typed_service() -> None:
    backend = Repeating()
    served = Served(backend)
    request = decode(CreateResponseRequest, json.dumps(SECRET_REQUEST))
    async with served.stub() as stub:
        response = await stub.CreateResponse(request)
        events = [event async for event in stub.StreamResponse(request)]
        kept = await stub.GetResponse(GetResponseRequest(response_id=response.id))
    assert len(events) > 3
    for message in (response, *events, kept):
        assert SECRET.encode() not in message.SerializeToString()
    assert SECRET.encode() not in served.kept
    told_without_secrets(json.loads(encode(response)))
    assert_reached(backend.calls)


def assert_reached(calls: list[Call]) -> None:
    """Checks that the backend got every secret."""
    for call in calls:
        for tools in (
            call.request.tools,
            call.request.input_list.items[1].additional_tools.tools,
            call.request.input_list.items[2].tool_search_output.tools,
        ):
            assert tools[0].mcp.authorization == f"{SECRET}-1"
            assert dict(tools[0].mcp.headers) == {"x-key": f"{SECRET}-2"}
            policies = (
                tools[1].code_interpreter.container_auto.network_policy,
                tools[2].shell.environment.container_auto.network_policy,
            )
            for policy in policies:
                assert policy.allowlist.domain_secrets[0].value == f"{SECRET}-3"


async def test_a_continued_turn_does_not_tell_the_secrets_of_the_one_before() -> None:
    backend = Repeating()
    served = Served(backend)
    parent = (await served.create(SECRET_REQUEST)).json
    answer = await served.create({**MINIMAL, "previous_response_id": parent["id"]})
    assert answer.status == 200
    history = await backend.calls[1].history()
    assert len(history) == 4
    assert all(SECRET.encode() not in item.SerializeToString() for item in history)
    assert SECRET.encode() not in answer.body + served.kept


async def test_secrets_in_a_conversation_are_not_told_or_kept() -> None:
    backend = Repeating()
    served = Served(backend)
    given = {"items": SECRET_REQUEST["input"]}
    made = await served.ask("CreateConversation", given)
    place = {"conversation_id": made.json["id"]}
    added = await served.ask("CreateConversationItems", given, **place)
    body = {**SECRET_REQUEST, "conversation": made.json["id"]}
    answer = await served.create({**body, "background": True, "stream": True})
    response_id = answer.events[0]["response"]["id"]
    listed = await served.ask("ListConversationItems", **place)
    items = await served.ask("ListInputItems", response_id=response_id)
    replayed = await served.ask("GetResponse", query={"stream": ("true",)}, response_id=response_id)
    for told in (made, added, answer, listed, items, replayed):
        assert told.status == 200, told.body
        assert SECRET.encode() not in told.body
    assert replayed.events == answer.events
    assert len(listed.json["data"]) == 10
    assert SECRET.encode() not in served.kept
    assert_reached(backend.calls)


# The dialect of agents, and what is not built.


async def test_the_members_of_the_dialect_are_there_only_when_they_are_used() -> None:
    told = await echoed()
    assert told.keys() == DEFAULTS.keys()
    options = {"b": [9007199254740993, 1.0], "a": None}
    told = await echoed(providerOptions=options, requestContext={"user": "u"})
    assert told.keys() == DEFAULTS.keys() | {"providerOptions"}
    assert json.dumps(told["providerOptions"]) == json.dumps(options)


async def test_a_conversation_is_told_by_the_names_that_were_used() -> None:
    served = Served(Script([Accepted(), Finished()]))
    made = (await served.ask("CreateConversation", {"metadata": {"a": "b"}})).json
    for name, sent, told in (
        ("conversation", made["id"], {"conversation"}),
        ("conversation", {"id": made["id"]}, {"conversation"}),
        ("conversation_id", made["id"], {"conversation", "conversation_id"}),
    ):
        answer = await served.create({**MINIMAL, name: sent})
        for response in (answer.json, (await served.get(answer.json["id"])).json):
            assert response.keys() == DEFAULTS.keys() | told
            assert response["conversation"] == {"id": made["id"]}
            assert response.get("conversation_id", made["id"]) == made["id"]
            read(SDK_RESPONSE, json.dumps(response))


async def test_what_is_for_the_agent_reaches_it() -> None:
    script = Script([Accepted(), Finished()])
    served = Served(script)
    document = '{"b":9007199254740993,"a":{}}'
    body = f'{{"model":"{MODEL}","input":"hi","requestContext":{document}}}'
    await served.create(body)
    assert script.calls[0].request.request_context == document


async def test_a_part_of_the_type_text_is_kept_as_it_is() -> None:
    script = Script([Accepted(), Finished()])
    part = {"type": "text", "text": "hi"}
    await Served(script).create({**MINIMAL, "input": [{"role": "user", "content": [part]}]})
    (item,) = script.calls[0].input
    assert json.loads(encode(item))["content"] == [part]


async def test_operations_that_are_not_built_say_so() -> None:
    served = Served(Script())
    for operation in ("CompactResponse", "CountInputTokens"):
        refused = (await served.ask(operation, MINIMAL)).refusal
        assert (refused.status, refused.param, refused.code) == ("501", None, None)
    async with served.stub() as stub:
        with pytest.raises(grpc.aio.AioRpcError) as compact:
            await stub.CompactResponse(CompactResponseRequest(model=MODEL))
        with pytest.raises(grpc.aio.AioRpcError) as count:
            await stub.CountInputTokens(CountInputTokensRequest(model=MODEL))
    for caught in (compact, count):
        assert refusal(caught.value).status == "UNIMPLEMENTED"


@pytest.mark.parametrize("key", sorted(NOT_BUILT))
@pytest.mark.parametrize("named", [MINIMAL, {"input": "hi"}], ids=["model", "no model"])
async def test_what_is_not_built_is_refused_by_name(key: str, named: dict[str, Any]) -> None:
    served = Served(Script())
    body = {**named, key: NOT_BUILT[key]}
    refused = (await served.create(body)).refusal
    assert (refused.status, refused.param) == ("501", key)
    assert key in refused.message
    request = decode(CreateResponseRequest, json.dumps(body))
    async with served.stub() as stub:
        with pytest.raises(grpc.aio.AioRpcError) as whole:
            await stub.CreateResponse(request)
        with pytest.raises(grpc.aio.AioRpcError) as streamed:
            await stub.StreamResponse(request).read()
    for caught in (whole, streamed):
        told = refusal(caught.value)
        assert (told.status, told.param) == ("UNIMPLEMENTED", key)
    assert served.kept == b""
