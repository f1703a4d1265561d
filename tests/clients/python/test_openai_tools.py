"""Tools through the official SDK: what the simulator calls, what it is told, what it answers."""

import itertools
import json
from collections.abc import Sequence
from typing import Any, Final, Literal

import openai
import pydantic
import pytest

from tests.clients.python.sdk import Sdk, told

in_session = pytest.mark.asyncio(loop_scope="session")

Mode = Literal["create", "stream", "helper"]
each_mode = pytest.mark.parametrize("mode", ["create", "stream", "helper"])


def function(name: str, **properties: Any) -> dict[str, Any]:
    return {
        "type": "function",
        "name": name,
        "description": f"Does {name}.",
        "strict": True,
        "parameters": {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        },
    }


WEATHER: Final = function("get_weather", city={"type": "string"})
TIME: Final = function("get_time", zone={"type": "string", "enum": ["UTC", "CET"]})
SQL: Final[dict[str, Any]] = {"type": "custom", "name": "run_sql", "description": "Runs SQL."}
TOOLS: Final = [WEATHER, TIME, SQL]


async def ask(sdk: Sdk, mode: Mode, text: str | list[Any], **asked: Any) -> Any:
    """Asks in one of the ways that the SDK has, and returns the final response."""
    asked = {"model": "sim", "input": text, "tools": TOOLS, **asked}
    if mode == "create":
        return await sdk("responses.create", **asked)
    if mode == "helper":
        _, response = await sdk("responses.stream", **asked)
        return response
    events = await sdk("responses.create", **asked, stream=True)
    check_calls(events)
    return events[-1].response


def check_calls(events: Sequence[Any]) -> None:
    """Checks that the events of calls say what the calls at the end say."""
    for index, item in enumerate(events[-1].response.output):
        own = [event for event in events if getattr(event, "output_index", None) == index]
        assert (own[0].type, own[-1].type) == (
            "response.output_item.added",
            "response.output_item.done",
        )
        assert told(own[-1].item) == told(item)
        if item.type == "function_call":
            kind, whole = "response.function_call_arguments", item.arguments
            assert (own[0].item.arguments, own[0].item.status) == ("", "in_progress")
            assert (own[-2].arguments, own[-2].name) == (whole, item.name)
        elif item.type == "custom_tool_call":
            kind, whole = "response.custom_tool_call_input", item.input
            assert own[0].item.input == ""
            assert own[-2].input == whole
        else:
            continue
        assert own[0].item.call_id == item.call_id
        assert {event.item_id for event in own[1:-1]} == {item.id}
        assert [event.type for event in own[1:-1]] == [
            *[f"{kind}.delta"] * (len(own) - 3),
            f"{kind}.done",
        ]
        assert "".join(event.delta for event in own[1:-2]) == whole


def calls(response: Any) -> list[tuple[str, Any]]:
    """Returns the names of what was called, each with what it is given."""
    return [
        (item.name, item.input if item.type == "custom_tool_call" else json.loads(item.arguments))
        for item in response.output
        if item.type.endswith("_call")
    ]


def outputs(response: Any, *results: str) -> list[dict[str, str]]:
    """Returns the outputs of the calls of a response."""
    found = [item for item in response.output if item.type.endswith("_call")]
    return [
        {"type": f"{item.type}_output", "call_id": item.call_id, "output": result}
        for item, result in zip(found, results, strict=True)
    ]


@in_session
@each_mode
async def test_a_tool_is_called_and_its_output_told(sdk: Sdk, mode: Mode) -> None:
    first = await ask(sdk, mode, "What is the weather in Paris?")
    assert calls(first) == [("get_weather", {"city": "Paris"})]
    assert first.status == "completed"
    assert first.output[0].status == "completed"
    assert first.output[0].call_id.startswith("call_")
    second = await ask(sdk, mode, outputs(first, "rain"), previous_response_id=first.id)
    assert second.output_text == 'get_weather said: "rain"'


@in_session
@each_mode
async def test_the_turns_can_be_kept_by_the_client(sdk: Sdk, mode: Mode) -> None:
    context: list[Any] = [{"role": "user", "content": "What is the weather in Paris?"}]
    first = await ask(sdk, mode, context, store=False)
    context += [told(item) for item in first.output]
    context += outputs(first, "sun")
    second = await ask(sdk, mode, context, store=False)
    assert second.output_text == 'get_weather said: "sun"'


@in_session
@each_mode
async def test_they_can_be_kept_in_a_conversation(sdk: Sdk, mode: Mode) -> None:
    conversation = (await sdk("conversations.create")).id
    first = await ask(sdk, mode, "What is the weather in Paris?", conversation=conversation)
    second = await ask(sdk, mode, outputs(first, "fog"), conversation=conversation)
    assert second.output_text == 'get_weather said: "fog"'
    items = await sdk("conversations.items.list", conversation, order="asc")
    assert [item.type for item in items] == [
        "message",
        "function_call",
        "function_call_output",
        "message",
    ]


@in_session
@each_mode
async def test_a_custom_tool_gets_raw_input(sdk: Sdk, mode: Mode) -> None:
    first = await ask(sdk, mode, "Call run_sql with SELECT 'é' FROM \"a\"")
    assert calls(first) == [("run_sql", "SELECT 'é' FROM \"a\"")]
    second = await ask(sdk, mode, outputs(first, "1 row"), previous_response_id=first.id)
    assert second.output_text == 'run_sql said: "1 row"'


@in_session
@each_mode
@pytest.mark.parametrize("how", ["", " interleaved"], ids=["in order", "interleaved"])
async def test_several_are_called_at_once(sdk: Sdk, mode: Mode, how: str) -> None:
    first = await ask(sdk, mode, f"Call get_weather and get_time{how}")
    assert [name for name, _ in calls(first)] == ["get_weather", "get_time"]
    assert len({item.call_id for item in first.output}) == 2
    second = await ask(sdk, mode, outputs(first, "rain", "noon"), previous_response_id=first.id)
    assert 'get_weather said: "rain"' in second.output_text
    assert 'get_time said: "noon"' in second.output_text


@in_session
@each_mode
async def test_one_after_the_other_if_they_may_not_be_parallel(sdk: Sdk, mode: Mode) -> None:
    one: dict[str, Any] = {"parallel_tool_calls": False}
    first = await ask(sdk, mode, "Call get_weather and get_time", **one)
    assert [name for name, _ in calls(first)] == ["get_weather"]
    second = await ask(sdk, mode, outputs(first, "rain"), previous_response_id=first.id, **one)
    assert [name for name, _ in calls(second)] == ["get_time"]
    third = await ask(sdk, mode, outputs(second, "noon"), previous_response_id=second.id, **one)
    assert 'get_weather said: "rain"' in third.output_text
    assert 'get_time said: "noon"' in third.output_text


CHOICES: Final[dict[str, tuple[Any, set[str]]]] = {
    "none": ("none", set()),
    "required": ("required", {"get_weather", "get_time", "run_sql"}),
    "a function": ({"type": "function", "name": "get_time"}, {"get_time"}),
    "a custom tool": ({"type": "custom", "name": "run_sql"}, {"run_sql"}),
    "some of them": (
        {
            "type": "allowed_tools",
            "mode": "required",
            "tools": [{"type": "function", "name": "get_time"}],
        },
        {"get_time"},
    ),
    "some of them, if at all": (
        {
            "type": "allowed_tools",
            "mode": "auto",
            "tools": [{"type": "function", "name": "get_weather"}],
        },
        set(),
    ),
}


@in_session
@each_mode
@pytest.mark.parametrize(("choice", "names"), CHOICES.values(), ids=CHOICES)
async def test_the_choice_is_obeyed(sdk: Sdk, mode: Mode, choice: Any, names: set[str]) -> None:
    response = await ask(sdk, mode, "Hello", tool_choice=choice)
    found = {name for name, _ in calls(response)}
    assert found <= names
    assert bool(found) == bool(names)
    assert told(response)["tool_choice"] == choice


@in_session
@pytest.mark.parametrize(
    "choice",
    [
        {"type": "function", "name": "nobody"},
        {"type": "custom", "name": "get_time"},
        {
            "type": "allowed_tools",
            "mode": "auto",
            "tools": [{"type": "function", "name": "nobody"}],
        },
    ],
    ids=["a function", "another kind", "allowed"],
)
async def test_a_choice_that_is_not_there_is_refused(sdk: Sdk, choice: Any) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        await ask(sdk, "create", "Hello", tool_choice=choice)
    assert caught.value.param is not None
    assert caught.value.param.startswith("tool_choice")


@in_session
@each_mode
async def test_an_answer_to_nothing_is_refused(sdk: Sdk, mode: Mode) -> None:
    output = {"type": "function_call_output", "call_id": "call_nobody", "output": "rain"}
    with pytest.raises(openai.BadRequestError) as caught:
        await ask(sdk, mode, [output])
    assert caught.value.param == "input"
    first = await ask(sdk, mode, "What is the weather in Paris?")
    with pytest.raises(openai.BadRequestError, match="call_") as caught:
        await ask(sdk, mode, "And now?", previous_response_id=first.id)
    assert caught.value.param == "input"


# Functions from pydantic models.


class Unit(pydantic.BaseModel):
    name: Literal["celsius", "kelvin"]
    digits: int = pydantic.Field(ge=0, le=3)


class Forecast(pydantic.BaseModel):
    """Foretells the weather."""

    city: str
    days: list[int]
    unit: Unit | None


FORECAST: Final = openai.pydantic_function_tool(Forecast, name="forecast")


@in_session
async def test_the_arguments_become_a_model(sdk: Sdk) -> None:
    text = "Give me a forecast for Paris"
    for response in (
        await sdk("responses.parse", model="sim", input=text, tools=[FORECAST]),
        (await sdk("responses.stream", model="sim", input=text, tools=[FORECAST]))[1],
    ):
        (call,) = response.output
        assert isinstance(call.parsed_arguments, Forecast)
        assert call.parsed_arguments.city == "Paris"
        assert Forecast.model_validate_json(call.arguments) == call.parsed_arguments


@in_session
async def test_the_helper_tells_the_arguments_so_far(sdk: Sdk) -> None:
    events, response = await sdk(
        "responses.stream", model="sim", input='Call get_weather with {"city":"Rome"}', tools=TOOLS
    )
    shown = [
        event.snapshot for event in events if event.type == "response.function_call_arguments.delta"
    ]
    assert shown[-1] == response.output[0].arguments == '{"city":"Rome"}'
    assert all(each.startswith(before) for before, each in itertools.pairwise(shown))
