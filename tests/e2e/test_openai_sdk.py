"""The official Python SDK, as it is, against the server."""

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Literal

import httpx
import openai
import pytest
from openai.types.responses import Response, ResponseCompletedEvent

from tests.e2e.server import Server, final, parse_stream

Mode = Literal["create", "stream", "helper"]
Call = Callable[[openai.OpenAI], object]

MODES: tuple[Mode, ...] = ("create", "stream", "helper")
UNKNOWN = "resp_" + "0" * 32
BLUE = "My favourite colour is blue"
GREEN = "My favourite colour is green"
ASK = "Which colour did I name?"

ECHOED: dict[str, Any] = {
    "instructions": "Answer briefly.",
    "max_output_tokens": 4096,
    "metadata": {"topic": "tests", "empty": ""},
    "parallel_tool_calls": False,
    "prompt_cache_key": "cache-me",
    "reasoning": {"effort": "none", "summary": "auto"},
    "safety_identifier": "somebody",
    "service_tier": "flex",
    "temperature": 0.25,
    "text": {"format": {"type": "text"}, "verbosity": "low"},
    "tool_choice": "none",
    "top_p": 0.5,
    "truncation": "auto",
    "user": "somebody else",
}


@pytest.fixture(scope="module")
def sdk(server: Server) -> Iterator[openai.OpenAI]:
    with connect(server) as client:
        yield client


def connect(server: Server) -> openai.OpenAI:
    # Strict: whatever does not fit the SDK's types is an error.
    return openai.OpenAI(
        base_url=f"{server.url}/v1",
        api_key="unused",
        max_retries=0,
        http_client=openai.DefaultHttpxClient(trust_env=False),
        _strict_response_validation=True,
    )


@pytest.fixture
async def async_sdk(server: Server) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(
        base_url=f"{server.url}/v1",
        api_key="unused",
        max_retries=0,
        http_client=openai.DefaultAsyncHttpxClient(trust_env=False),
        _strict_response_validation=True,
    ) as client:
        yield client


def ask(sdk: openai.OpenAI, mode: Mode, **asked: Any) -> Response:
    """Asks in one of the three ways that the SDK has, and returns the final response."""
    asked = {"model": "sim", **asked}
    if mode == "create":
        created: Response = sdk.responses.create(**asked)
        return created
    if mode == "helper":
        with sdk.responses.stream(**asked) as stream:
            return stream.get_final_response()
    *_, last = sdk.responses.create(stream=True, **asked)
    assert isinstance(last, ResponseCompletedEvent)
    return last.response


async def ask_async(sdk: openai.AsyncOpenAI, mode: Mode, **asked: Any) -> Response:
    asked = {"model": "sim", **asked}
    if mode == "create":
        created: Response = await sdk.responses.create(**asked)
        return created
    if mode == "helper":
        async with sdk.responses.stream(**asked) as stream:
            return await stream.get_final_response()
    *_, last = [event async for event in await sdk.responses.create(stream=True, **asked)]
    assert isinstance(last, ResponseCompletedEvent)
    return last.response


def told(response: Response) -> dict[str, Any]:
    """Returns what the server told, without what the SDK's helper adds by itself."""
    members = response.to_dict()
    for item in members["output"]:  # type: ignore[attr-defined]
        for part in item["content"]:
            part.pop("parsed", None)
    return members


each_mode = pytest.mark.parametrize("mode", MODES)


@each_mode
def test_a_response_has_the_text(sdk: openai.OpenAI, mode: Mode) -> None:
    response = ask(sdk, mode, input="Hello there")
    assert response.output_text == "You said: Hello there"
    assert response.status == "completed"
    assert response.error is None
    assert response.created_at <= (response.completed_at or 0)
    assert response.usage is not None
    assert response.usage.total_tokens == response.usage.input_tokens + response.usage.output_tokens


@each_mode
def test_the_input_can_be_items(sdk: openai.OpenAI, mode: Mode) -> None:
    items = [
        {"role": "user", "content": BLUE},
        {"role": "assistant", "content": "Noted."},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": ASK}]},
    ]
    assert ask(sdk, mode, input=items).output_text == f'Earlier you said: "{BLUE}"'


@each_mode
def test_the_settings_are_echoed(sdk: openai.OpenAI, mode: Mode) -> None:
    response = told(ask(sdk, mode, input="Hello", **ECHOED))
    assert {name: response[name] for name in ECHOED} == ECHOED


@each_mode
def test_without_settings_the_defaults_are_told(sdk: openai.OpenAI, mode: Mode) -> None:
    response = ask(sdk, mode, input="Hello")
    assert (response.instructions, response.metadata, response.tools) == (None, {}, [])
    assert (response.temperature, response.top_p, response.tool_choice) == (1, 1, "auto")
    assert (response.background, response.parallel_tool_calls) == (False, True)
    assert (response.previous_response_id, response.truncation) == (None, "disabled")


@each_mode
def test_what_is_retrieved_is_what_was_told(sdk: openai.OpenAI, mode: Mode) -> None:
    response = ask(sdk, mode, input="Hello", **ECHOED)
    assert told(sdk.responses.retrieve(response.id)) == told(response)


def test_so_is_the_raw_json(sdk: openai.OpenAI) -> None:
    created = sdk.responses.with_raw_response.create(model="sim", input="Hello", **ECHOED)
    response_id = created.parse().id
    retrieved = sdk.responses.with_raw_response.retrieve(response_id)
    assert retrieved.http_response.json() == created.http_response.json()
    assert list(retrieved.http_response.json()) == list(created.http_response.json())


def test_so_is_the_raw_json_of_a_stream(sdk: openai.OpenAI) -> None:
    with sdk.responses.with_streaming_response.create(
        model="sim", input="Hello", stream=True, **ECHOED
    ) as reply:
        streamed = final(parse_stream(reply.read()))
    retrieved = sdk.responses.with_raw_response.retrieve(streamed["id"])
    assert retrieved.http_response.json() == streamed
    assert list(retrieved.http_response.json()) == list(streamed)


@each_mode
def test_a_chain_remembers_its_beginning(sdk: openai.OpenAI, mode: Mode) -> None:
    first = ask(sdk, mode, input=BLUE)
    second = ask(sdk, mode, input="Nice weather.", previous_response_id=first.id)
    third = ask(sdk, mode, input=ASK, previous_response_id=second.id)
    assert third.output_text == f'Earlier you said: "{BLUE}"'
    assert third.previous_response_id == second.id
    usages = [response.usage for response in (first, second, third)]
    tokens = [usage.input_tokens for usage in usages if usage is not None]
    assert len(set(tokens)) == 3
    assert sorted(tokens) == tokens


@each_mode
def test_what_is_not_chained_is_not_remembered(sdk: openai.OpenAI, mode: Mode) -> None:
    ask(sdk, mode, input=BLUE)
    assert ask(sdk, mode, input=ASK).output_text == f"You said: {ASK}"


@each_mode
def test_two_children_do_not_see_each_other(sdk: openai.OpenAI, mode: Mode) -> None:
    root = ask(sdk, mode, input="Hello")
    blue = ask(sdk, mode, input=BLUE, previous_response_id=root.id)
    green = ask(sdk, mode, input=GREEN.replace("colour", "shade"), previous_response_id=root.id)
    of_blue = ask(sdk, mode, input=ASK, previous_response_id=blue.id)
    of_green = ask(sdk, mode, input="Which shade did I name?", previous_response_id=green.id)
    assert of_blue.output_text == f'Earlier you said: "{BLUE}"'
    assert of_green.output_text == f'Earlier you said: "{GREEN.replace("colour", "shade")}"'
    # The other way round neither knows the word.
    crossed = ask(sdk, mode, input="Which shade did I name?", previous_response_id=blue.id)
    assert "green" not in crossed.output_text
    crossed = ask(sdk, mode, input=ASK, previous_response_id=green.id)
    assert "blue" not in crossed.output_text


@each_mode
def test_instructions_are_not_inherited(sdk: openai.OpenAI, mode: Mode) -> None:
    first = ask(sdk, mode, input="Hello", **ECHOED)
    second = ask(sdk, mode, input="Hello", previous_response_id=first.id)
    assert (second.instructions, second.metadata, second.temperature) == (None, {}, 1)


@each_mode
def test_a_deleted_response_is_gone(sdk: openai.OpenAI, mode: Mode) -> None:
    response = ask(sdk, mode, input=BLUE)
    child = ask(sdk, mode, input="Nice weather.", previous_response_id=response.id)
    sdk.responses.delete(response.id)
    check_gone(sdk, mode, response.id)
    # What continues it has kept its whole context.
    grandchild = ask(sdk, mode, input=ASK, previous_response_id=child.id)
    assert grandchild.output_text == f'Earlier you said: "{BLUE}"'


def test_a_delete_says_so(sdk: openai.OpenAI) -> None:
    response = ask(sdk, "create", input="Hello")
    reply = sdk.responses.with_raw_response.delete(response.id)
    assert reply.http_response.json() == {
        "id": response.id,
        "object": "response",
        "deleted": True,
    }


@each_mode
def test_a_response_that_is_not_stored_is_unknown(sdk: openai.OpenAI, mode: Mode) -> None:
    response = ask(sdk, mode, input="Hello", store=False)
    assert told(response)["store"] is False
    assert response.output_text == "You said: Hello"
    check_gone(sdk, mode, response.id)


@each_mode
def test_the_operator_can_make_that_the_default(small_server: Server, mode: Mode) -> None:
    with connect(small_server) as sdk:
        response = ask(sdk, mode, model="parrot", input="Hello")
        assert told(response)["store"] is False
        with pytest.raises(openai.NotFoundError):
            sdk.responses.retrieve(response.id)
        kept = ask(sdk, mode, model="parrot", input="Hello", store=True)
        assert told(sdk.responses.retrieve(kept.id)) == told(kept)


def check_gone(sdk: openai.OpenAI, mode: Mode, response_id: str) -> None:
    """Checks that an id behaves exactly like one that never was."""
    operations: tuple[Callable[[str], object], ...] = (
        sdk.responses.retrieve,
        sdk.responses.delete,
        lambda previous: ask(sdk, mode, input="Hello", previous_response_id=previous),
    )
    for operation in operations:
        assert refusal(operation, response_id) == refusal(operation, UNKNOWN)
    kind, param, code, _ = refusal(operations[-1], response_id)
    assert kind is openai.BadRequestError
    assert (param, code) == ("previous_response_id", "previous_response_not_found")


def refusal(operation: Callable[[str], object], response_id: str) -> tuple[object, ...]:
    """Returns all that a client is told of an id, but for the id itself."""
    with pytest.raises(openai.APIStatusError) as caught:
        operation(response_id)
    error = caught.value
    return type(error), error.param, error.code, error.response.text.replace(response_id, "ID")


ERRORS: dict[str, tuple[Call, type[openai.APIStatusError], str | None, str | None]] = {
    "no_input": (
        lambda sdk: sdk.responses.create(model="sim"),
        openai.BadRequestError,
        "input",
        "missing_required_parameter",
    ),
    "no_model": (
        lambda sdk: sdk.responses.create(input="Hello"),
        openai.BadRequestError,
        "model",
        "missing_required_parameter",
    ),
    "a_value_out_of_range": (
        lambda sdk: sdk.responses.create(model="sim", input="Hello", temperature=5),
        openai.BadRequestError,
        "temperature",
        "decimal_above_max_value",
    ),
    "a_wrong_type": (
        lambda sdk: sdk.responses.create(
            model="sim", input="Hello", extra_body={"metadata": ["a"]}
        ),
        openai.BadRequestError,
        "metadata",
        "invalid_type",
    ),
    "a_wrong_role": (
        lambda sdk: sdk.responses.create(
            model="sim",
            input=[
                {"role": "user", "content": "Hello"},
                {"role": "king", "content": "Hello"},  # type: ignore[misc, list-item]
            ],
        ),
        openai.BadRequestError,
        "input[1].role",
        "invalid_value",
    ),
    "a_wrong_value_of_a_stream": (
        lambda sdk: sdk.responses.create(model="sim", input="Hello", top_p=-1, stream=True),
        openai.BadRequestError,
        "top_p",
        "decimal_below_min_value",
    ),
    "an_unknown_parent": (
        lambda sdk: sdk.responses.create(model="sim", input="Hello", previous_response_id=UNKNOWN),
        openai.BadRequestError,
        "previous_response_id",
        "previous_response_not_found",
    ),
    "an_unknown_response": (
        lambda sdk: sdk.responses.retrieve(UNKNOWN),
        openai.NotFoundError,
        "response_id",
        None,
    ),
    "a_malformed_id": (
        lambda sdk: sdk.responses.retrieve("a b"),
        openai.BadRequestError,
        "response_id",
        "invalid_value",
    ),
    "a_delete_of_an_unknown_response": (
        lambda sdk: sdk.responses.delete(UNKNOWN),
        openai.NotFoundError,
        "response_id",
        None,
    ),
}


@pytest.mark.parametrize(("call", "kind", "param", "code"), ERRORS.values(), ids=ERRORS)
def test_an_error_is_the_exception_of_its_kind(
    sdk: openai.OpenAI,
    call: Call,
    kind: type[openai.APIStatusError],
    param: str | None,
    code: str | None,
) -> None:
    with pytest.raises(openai.APIStatusError) as caught:
        call(sdk)
    error = caught.value
    assert type(error) is kind
    assert (error.param, error.code, error.type) == (param, code, "invalid_request_error")
    assert error.request_id


def test_the_models_are_listed(sdk: openai.OpenAI) -> None:
    models = sdk.models.list().data
    assert [model.id for model in models] == ["sim", "echo"]
    assert [sdk.models.retrieve(model.id) for model in models] == models


@pytest.mark.parametrize(
    "call",
    [
        lambda sdk: sdk.models.retrieve("sim"),
        lambda sdk: sdk.responses.create(model="sim", input="Hello"),
        lambda sdk: sdk.responses.create(model="sim", input="Hello", stream=True),
    ],
    ids=["retrieve", "create", "stream"],
)
def test_a_model_that_is_not_configured_is_unknown(small_server: Server, call: Call) -> None:
    with connect(small_server) as sdk:
        assert [model.id for model in sdk.models.list()] == ["parrot"]
        with pytest.raises(openai.NotFoundError) as caught:
            call(sdk)
    assert (caught.value.param, caught.value.code) == ("model", "model_not_found")


def test_a_model_may_have_any_name(sdk: openai.OpenAI) -> None:
    for name in ("gpt-5", "org/model:latest", "mit Leerzeichen", "模型"):
        assert ask(sdk, "create", model=name, input="Hello").model == name
        assert sdk.models.retrieve(name).id == name


@pytest.mark.parametrize("prefix", ["", "/v1", "/api/v1"], ids=["bare", "v1", "api_v1"])
def test_the_base_url_may_have_either_form(server: Server, prefix: str) -> None:
    with connect(server) as sdk, sdk.with_options(base_url=f"{server.url}{prefix}") as moved:
        response = ask(moved, "stream", input="Hello")
        assert told(moved.responses.retrieve(response.id)) == told(response)
        assert moved.models.list().data
        moved.responses.delete(response.id)


def test_a_helper_tells_the_events(sdk: openai.OpenAI) -> None:
    with sdk.responses.stream(model="sim", input="Hello there") as stream:
        events = list(stream)
        response = stream.get_final_response()
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert text == response.output_text == "You said: Hello there"
    assert [event.sequence_number for event in events] == list(range(len(events)))


@each_mode
async def test_the_asynchronous_client_does_the_same(
    async_sdk: openai.AsyncOpenAI, mode: Mode
) -> None:
    first = await ask_async(async_sdk, mode, input=BLUE, **ECHOED)
    assert first.output_text == f"You said: {BLUE}"
    assert told(await async_sdk.responses.retrieve(first.id)) == told(first)
    second = await ask_async(async_sdk, mode, input="Nice.", previous_response_id=first.id)
    third = await ask_async(async_sdk, mode, input=ASK, previous_response_id=second.id)
    assert third.output_text == f'Earlier you said: "{BLUE}"'
    await async_sdk.responses.delete(third.id)
    with pytest.raises(openai.NotFoundError):
        await async_sdk.responses.retrieve(third.id)
    with pytest.raises(openai.BadRequestError) as caught:
        await ask_async(async_sdk, mode, input="Hello", previous_response_id=third.id)
    assert caught.value.code == "previous_response_not_found"
    assert [model.id async for model in async_sdk.models.list()] == ["sim", "echo"]


async def test_a_stream_can_be_left(async_sdk: openai.AsyncOpenAI) -> None:
    long = "Repeat exactly: " + "many words " * 5_000
    stream = await async_sdk.responses.create(model="sim", input=long, stream=True)
    async with stream:
        async for event in stream:
            if event.type == "response.output_text.delta":
                break
    assert (await ask_async(async_sdk, "create", input="Hello")).status == "completed"


def test_a_connection_is_reused(server: Server) -> None:
    """Nothing of one answer is left on the wire for the next."""
    limits = httpx.Limits(max_connections=1)
    with httpx.Client(base_url=server.url, limits=limits, trust_env=False, timeout=60) as client:
        for number in range(50):
            asked = {"model": "echo", "input": f"text {number}", "stream": number % 2 == 0}
            reply = client.post("/v1/responses", json=asked)
            response = reply.json() if number % 2 else final(parse_stream(reply.content))
            assert response["output"][0]["content"][0]["text"] == f"text {number}"
