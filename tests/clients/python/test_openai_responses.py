"""What the official SDK can ask of a response, and what it is told."""

import base64
from inspect import isawaitable, signature
from typing import Any, Final, get_args, get_type_hints

import openai
import pytest
from openai.resources.responses import Responses
from openai.types.responses import ToolParam

from tests.clients.python.sdk import Sdk, told

in_session = pytest.mark.asyncio(loop_scope="session")

BLUE: Final = "My favourite colour is blue"
ASK: Final = "Which colour did I name?"
QUOTED: Final = f'Earlier you said: "{BLUE}"'

# The smallest image: one pixel.
PNG: Final = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
IMAGE: Final = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
FILE: Final = f"data:application/pdf;base64,{base64.b64encode(b'%PDF-1.4').decode()}"

SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
WEATHER: Final[dict[str, Any]] = {
    "type": "function",
    "name": "get_weather",
    "description": "Tells the weather.",
    "parameters": SCHEMA,
    "strict": True,
}

ECHOED: Final[dict[str, Any]] = {
    "access_programs": {"cyber": "standard"},
    "background": True,
    "conversation": None,  # one that the test makes
    "image": {"context_compression": "enabled"},
    "instructions": "Answer briefly.",
    "max_output_tokens": 4096,
    "max_tool_calls": 7,
    "metadata": {"topic": "tests", "empty": ""},
    "model": "some-model",
    "parallel_tool_calls": False,
    "previous_response_id": None,  # one that the test makes
    "prompt_cache_key": "cache-me",
    "prompt_cache_options": {"mode": "explicit", "ttl": "30m"},
    "prompt_cache_retention": "24h",
    "reasoning": {"effort": "low", "summary": "auto"},
    "safety_identifier": "somebody",
    "service_tier": "flex",
    "store": False,
    "temperature": 0.25,
    "text": {"format": {"type": "text"}, "verbosity": "low"},
    "tool_choice": "none",
    "tools": [WEATHER],
    "top_logprobs": 3,
    "top_p": 0.5,
    "truncation": "auto",
    "user": "somebody else",
}
"""The parameters that the answer repeats."""

OBEYED: Final = ("include", "input", "stream", "stream_options")
"""The parameters whose effect is another one, each driven by a test."""

NOT_BUILT: Final[dict[str, Any]] = {
    "background_options": {"completion_window": "2h"},
    "context_management": [{"type": "compaction", "compact_threshold": 1000}],
    "moderation": {"model": "omni-moderation-latest"},
    "prompt": {"id": "pmpt_1"},
}
"""The parameters that are refused by name."""

_OWN: Final = {"self", "extra_headers", "extra_query", "extra_body", "timeout"}


def test_every_parameter_is_driven() -> None:
    parameters = set(signature(Responses.create).parameters)
    assert parameters - _OWN == {*ECHOED, *OBEYED, *NOT_BUILT}


@in_session
@pytest.mark.parametrize("name", ECHOED)
@pytest.mark.parametrize("stream", [False, True], ids=["create", "stream"])
async def test_a_parameter_is_echoed(sdk: Sdk, name: str, stream: bool) -> None:
    value = ECHOED[name]
    if name == "previous_response_id":
        value = (await sdk("responses.create", model="sim", input=BLUE)).id
    if name == "conversation":
        value = {"id": (await sdk("conversations.create")).id}
    asked = {"model": "sim", "input": "Hello", name: value}
    answer = await sdk("responses.create", **asked, stream=stream)
    shown = (
        [event.response for event in answer if hasattr(event, "response")] if stream else [answer]
    )
    assert [told(response)[name] for response in shown] == [value] * len(shown)


@in_session
@pytest.mark.parametrize("name", NOT_BUILT)
@pytest.mark.parametrize("stream", [False, True], ids=["create", "stream"])
async def test_a_parameter_that_is_not_built_is_refused(sdk: Sdk, name: str, stream: bool) -> None:
    asked = {"model": "sim", "input": "Hello", "background": True, name: NOT_BUILT[name]}
    with pytest.raises(openai.InternalServerError) as caught:
        await sdk("responses.create", **asked, stream=stream)
    assert (caught.value.status_code, caught.value.param) == (501, name)


# Input.


@in_session
async def test_the_input_can_be_messages_of_every_role(sdk: Sdk) -> None:
    given: list[dict[str, Any]] = [
        {"role": "system", "content": "Be kind."},
        {"role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]},
        {"role": "user", "content": BLUE},
        {"role": "assistant", "content": "Noted."},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": ASK}]},
    ]
    response = await sdk("responses.create", model="sim", input=given)
    assert response.output_text == QUOTED
    items = await sdk("responses.input_items.list", response.id, order="asc")
    assert [item.role for item in items] == [message["role"] for message in given]


@in_session
async def test_an_output_can_be_sent_back_as_it_is(sdk: Sdk) -> None:
    """The pattern of the documentation: a list that grows, without a stored parent."""
    context: list[Any] = [{"role": "user", "content": BLUE}]
    first = await sdk("responses.create", model="sim", input=context, store=False)
    context += first.output
    context += [told(each) for each in first.output]
    context.append({"role": "user", "content": ASK})
    second = await sdk("responses.create", model="sim", input=context, store=False)
    assert second.output_text == QUOTED


@in_session
async def test_an_item_can_be_referred_to(sdk: Sdk) -> None:
    first = await sdk("responses.create", model="sim", input=BLUE)
    (item,) = await sdk("responses.input_items.list", first.id)
    given = [{"type": "item_reference", "id": item.id}, {"role": "user", "content": ASK}]
    assert (await sdk("responses.create", model="sim", input=given)).output_text == QUOTED


MEDIA: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "an image as data": (
        {"type": "input_image", "image_url": IMAGE, "detail": "auto"},
        f"an image (image/png, {len(PNG)} bytes, detail auto)",
    ),
    "an image by its address": (
        {"type": "input_image", "image_url": "https://example.com/a.png", "detail": "low"},
        "an image (by URL, detail low)",
    ),
    "an image by its id": (
        {"type": "input_image", "file_id": "file-1", "detail": "high"},
        "an image (file id file-1, detail high)",
    ),
    "a file as data": (
        {"type": "input_file", "filename": "a.pdf", "file_data": FILE},
        "a file (a.pdf, application/pdf, 8 bytes)",
    ),
    "a file by its address": (
        {"type": "input_file", "file_url": "https://example.com/a.pdf"},
        "a file (by URL)",
    ),
    "a file by its id": (
        {"type": "input_file", "file_id": "file-1"},
        "a file (file id file-1)",
    ),
}


@in_session
@pytest.mark.parametrize(("part", "seen"), MEDIA.values(), ids=MEDIA)
async def test_the_input_can_be(sdk: Sdk, part: dict[str, Any], seen: str) -> None:
    content = [{"type": "input_text", "text": "What is this?"}, part]
    response = await sdk(
        "responses.create", model="sim", input=[{"role": "user", "content": content}]
    )
    assert f"I see {seen}" in response.output_text
    (item,) = await sdk("responses.input_items.list", response.id)
    kept = told(item.content[1])
    assert {name: kept[name] for name in part} == part


@in_session
async def test_a_tool_may_return_media(sdk: Sdk) -> None:
    part = {"type": "input_image", "image_url": IMAGE, "detail": "auto"}
    asked: dict[str, Any] = {"model": "sim", "tools": [WEATHER]}
    first = await sdk("responses.create", input="Call get_weather", **asked)
    output = {
        "type": "function_call_output",
        "call_id": first.output[0].call_id,
        "output": [{"type": "input_text", "text": "a map"}, part],
    }
    second = await sdk("responses.create", input=[output], previous_response_id=first.id, **asked)
    assert "a map" in second.output_text
    given, *_ = await sdk("responses.input_items.list", second.id)
    assert told(given.output[1])["image_url"] == IMAGE


# Tools, as they are told back.

TOOLS: Final[dict[str, dict[str, Any]]] = {
    "function": WEATHER,
    "custom": {
        "type": "custom",
        "name": "run_sql",
        "description": "Runs it.",
        "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"},
    },
    "namespace": {
        "type": "namespace",
        "name": "crm",
        "description": "Customers.",
        "tools": [{**WEATHER, "name": "find"}],
    },
    "file_search": {"type": "file_search", "vector_store_ids": ["vs_1"], "max_num_results": 5},
    "computer_use_preview": {
        "type": "computer_use_preview",
        "display_width": 800,
        "display_height": 600,
        "environment": "linux",
    },
    "computer": {"type": "computer"},
    "web_search": {
        "type": "web_search",
        "search_context_size": "low",
        "filters": {"allowed_domains": ["example.com"]},
        "user_location": {"type": "approximate", "country": "FR"},
    },
    "web_search_preview": {"type": "web_search_preview", "search_context_size": "low"},
    "mcp": {
        "type": "mcp",
        "server_label": "a",
        "server_url": "https://example.com/mcp",
        "allowed_tools": ["b"],
        "require_approval": "never",
    },
    "code_interpreter": {"type": "code_interpreter", "container": {"type": "auto"}},
    "image_generation": {"type": "image_generation", "quality": "low"},
    "local_shell": {"type": "local_shell"},
    "shell": {"type": "shell", "environment": {"type": "local"}},
    "apply_patch": {"type": "apply_patch"},
    "tool_search": {"type": "tool_search", "execution": "server"},
    "programmatic_tool_calling": {"type": "programmatic_tool_calling"},
}


def test_every_kind_of_tool_is_sent() -> None:
    kinds = get_args(ToolParam)
    declared = {get_args(get_type_hints(kind)["type"])[0] for kind in kinds}
    assert set(TOOLS) == declared


@in_session
@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
async def test_a_tool_is_told_back(sdk: Sdk, tool: dict[str, Any]) -> None:
    response = await sdk(
        "responses.create", model="sim", input="Hello", tools=[tool], tool_choice="none"
    )
    (given,) = told(response)["tools"]
    assert {name: given[name] for name in tool} == tool


# Streams.


@in_session
async def test_a_stream_has_the_events_in_their_order(sdk: Sdk) -> None:
    events = await sdk(
        "responses.create",
        model="sim",
        input="Repeat exactly: one two",
        stream=True,
        stream_options={"include_obfuscation": False},
    )
    assert [event.type for event in events] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert [event.sequence_number for event in events] == list(range(10))
    assert [event.delta for event in events[4:6]] == ["one", " two"]
    got = await sdk("responses.retrieve", events[0].response.id)
    assert told(got) == told(events[-1].response)


@in_session
async def test_reasoning_is_told_and_understood(sdk: Sdk) -> None:
    asked: dict[str, Any] = {
        "model": "sim",
        "input": "What is love?",
        "reasoning": {"effort": "high", "summary": "detailed"},
        "include": ["reasoning.encrypted_content"],
        "store": False,
    }
    events = await sdk("responses.create", **asked, stream=True)
    response = events[-1].response
    thought, answer = response.output
    assert (thought.type, answer.type) == ("reasoning", "message")
    assert len(thought.summary) == 2
    for index, part in enumerate(thought.summary):
        own = [event for event in events if getattr(event, "summary_index", None) == index]
        assert [event.type for event in own] == [
            "response.reasoning_summary_part.added",
            *["response.reasoning_summary_text.delta"] * (len(own) - 3),
            "response.reasoning_summary_text.done",
            "response.reasoning_summary_part.done",
        ]
        assert "".join(event.delta for event in own[1:-2]) == own[-2].text == part.text
        assert {event.item_id for event in own} == {thought.id}
    assert 0 < response.usage.output_tokens_details.reasoning_tokens < response.usage.output_tokens
    again = await sdk("responses.create", **asked)
    assert told(again.output[0])["summary"] == told(thought)["summary"]

    # What is encrypted is enough to remember by.
    memory = {**told(thought), "summary": []}
    question = {"role": "user", "content": "What did you think?"}
    context = [{"role": "user", "content": "What is love?"}, memory, told(answer), question]
    asked = {"model": "sim", "store": False}
    assert "What is love?" in (await sdk("responses.create", input=context, **asked)).output_text
    memory["encrypted_content"] = "nothing of ours"
    with pytest.raises(openai.BadRequestError) as caught:
        await sdk("responses.create", input=context, **asked)
    assert caught.value.code == "invalid_encrypted_content"
    assert caught.value.param == "input[1].encrypted_content"


@in_session
async def test_a_refusal_is_told(sdk: Sdk) -> None:
    events = await sdk("responses.create", model="sim", input="Refuse to answer", stream=True)
    (part,) = events[-1].response.output[0].content
    assert part.type == "refusal"
    deltas = [event.delta for event in events if event.type == "response.refusal.delta"]
    (done,) = [event for event in events if event.type == "response.refusal.done"]
    assert "".join(deltas) == done.refusal == part.refusal


@in_session
async def test_log_probabilities_are_told(sdk: Sdk) -> None:
    asked = {
        "model": "sim",
        "input": "Repeat exactly: one two",
        "include": ["message.output_text.logprobs"],
        "top_logprobs": 3,
    }
    events = await sdk("responses.create", **asked, stream=True)
    streamed = [
        token
        for event in events
        if event.type == "response.output_text.delta"
        for token in event.logprobs
    ]
    (part,) = events[-1].response.output[0].content
    assert "".join(token.token for token in part.logprobs) == part.text == "one two"
    assert [(token.token, token.logprob) for token in streamed] == [
        (token.token, token.logprob) for token in part.logprobs
    ]
    for token in part.logprobs:
        assert bytes(token.bytes) == token.token.encode()
        assert len(token.top_logprobs) == 3
        assert token.logprob == max(top.logprob for top in token.top_logprobs) <= 0
    plain = await sdk("responses.create", **{**asked, "include": []})
    assert not plain.output[0].content[0].logprobs


@in_session
async def test_what_is_included_is_told_again(sdk: Sdk) -> None:
    asked = {
        "model": "sim",
        "input": "Hello",
        "reasoning": {"effort": "low"},
        "include": ["reasoning.encrypted_content", "message.output_text.logprobs"],
    }
    response = await sdk("responses.create", **asked)
    again = await sdk("responses.retrieve", response.id, include=asked["include"])
    assert told(again) == told(response)
    assert again.output[0].encrypted_content


@in_session
async def test_a_stream_that_is_left_is_cancelled(sdk: Sdk) -> None:
    asked = {"model": "sim", "input": "Be slow: 60000 ms", "stream": True}
    stream = sdk.client.responses.create(**asked)
    if isawaitable(stream):
        async with await stream as events:
            response_id = (await anext(events)).response.id
    else:
        with stream as events:
            response_id = next(events).response.id
    status = "in_progress"
    while status == "in_progress":
        status = (await sdk("responses.retrieve", response_id)).status
    assert status == "cancelled"


@in_session
async def test_a_background_response_is_asked_for_until_it_has_ended(sdk: Sdk) -> None:
    response = await sdk("responses.create", model="sim", input=BLUE, background=True)
    assert response.status == "queued"
    while response.status in ("queued", "in_progress"):
        response = await sdk("responses.retrieve", response.id)
    assert (response.status, response.output_text) == ("completed", f"You said: {BLUE}")


# Options of a request.


@in_session
async def test_headers_queries_and_members_can_be_added(sdk: Sdk) -> None:
    mine = {"x-agent-user-isolation-key": "me"}
    response = await sdk(
        "responses.create",
        model="sim",
        input=BLUE,
        extra_headers=mine,
        extra_body={"metadata": {"topic": "more"}, "input": ASK},
    )
    assert (response.output_text, response.metadata) == (f"You said: {ASK}", {"topic": "more"})
    with pytest.raises(openai.NotFoundError):
        await sdk("responses.retrieve", response.id)
    query = {"stream": "true"}
    with pytest.raises(openai.BadRequestError, match="not kept"):
        await sdk("responses.retrieve", response.id, extra_headers=mine, extra_query=query)
    await sdk("responses.delete", response.id, extra_headers=mine)


@in_session
async def test_an_answer_bears_the_id_of_its_request(sdk: Sdk) -> None:
    response = await sdk("responses.create", model="sim", input=BLUE)
    again = await sdk("responses.retrieve", response.id)
    assert response._request_id
    assert again._request_id not in (None, response._request_id)
    raw = sdk.client.responses.with_raw_response.retrieve(response.id)
    raw = await raw if isawaitable(raw) else raw
    assert raw.headers["content-type"] == "application/json"
    assert raw.request_id not in (None, response._request_id, again._request_id)
    assert raw.http_response.json() == told(response)


@in_session
async def test_usage_adds_up(sdk: Sdk) -> None:
    usage = (await sdk("responses.create", model="sim", input=BLUE)).usage
    assert usage.input_tokens > 0
    assert usage.output_tokens > 0
    assert usage.total_tokens == usage.input_tokens + usage.output_tokens
    assert usage.input_tokens_details.cached_tokens == 0
    assert usage.output_tokens_details.reasoning_tokens == 0
