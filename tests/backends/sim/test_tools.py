import json
from typing import Any

import jsonschema
import pytest

from antiphon.core.errors import ApiError
from antiphon.core.output import InputDelta, ItemAdded, ItemDone
from antiphon.v1.message_pb2 import Role
from tests.backends.sim.asking import WEATHER, Answer, ask, function
from tests.support.call import said

TIME = function("getTime", {"type": "object", "properties": {"zone": {"type": "string"}}})
CODE = {"type": "custom", "name": "code_exec"}
ECHO = function("echo_back")
TOOLS = [WEATHER, TIME, CODE, ECHO]


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def answered(answer: Answer, *outputs: str) -> list[dict[str, Any]]:
    """The calls of an answer and what the tools said, as input of the next turn."""
    items: list[dict[str, Any]] = []
    for item, text in zip(answer.items, outputs, strict=True):
        if item.HasField("function_call"):
            call = item.function_call
            told: dict[str, Any] = {"arguments": call.arguments}
            kind = "function_call"
            call_id, name = call.call_id, call.name
        else:
            custom = item.custom_tool_call
            told = {"input": custom.input}
            kind = "custom_tool_call"
            call_id, name = custom.call_id, custom.name
        items.append({"type": kind, "call_id": call_id, "name": name, **told})
        items.append({"type": f"{kind}_output", "call_id": call_id, "output": text})
    return items


# By name.


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Call get_weather", ["get_weather"]),
        ("please CALL get_weather now", ["get_weather"]),
        ("Call the get_weather tool", ["get_weather"]),
        ("Call the function getTime.", ["getTime"]),
        ("Call `getTime`", ["getTime"]),
        ("Call get_weather and getTime", ["get_weather", "getTime"]),
        ("Call get_weather, getTime and code_exec.", ["get_weather", "getTime", "code_exec"]),
        ("Call get_weather, getTime, and code_exec", ["get_weather", "getTime", "code_exec"]),
        ("Call get_weather and tell me", ["get_weather"]),
        ("Call getTime 3 times", ["getTime"] * 3),
        ("Call getTime 2 times and get_weather", ["getTime", "getTime", "get_weather"]),
        ("Call getTime. Then call get_weather.", ["getTime", "get_weather"]),
        ("Call get_time", []),
        ("Call GETTIME", []),
        ("Call me", []),
        ("recall getTimes", []),
        ("Repeat exactly: Call getTime", []),
    ],
)
async def test_a_message_calls_tools_by_their_names(text: str, names: list[str]) -> None:
    answer = await ask(text, tools=TOOLS)
    assert answer.names == names
    assert bool(answer.text) is not bool(names)


async def test_arguments_that_are_given_are_passed_on_as_they_are() -> None:
    text = 'Call get_weather with { "city": "São Paulo",  "x": [1] } and getTime with {}'
    answer = await ask(text, tools=TOOLS)
    assert answer.calls == [
        ("get_weather", '{ "city": "São Paulo",  "x": [1] }'),
        ("getTime", "{}"),
    ]


async def test_a_custom_tool_is_given_the_rest_of_the_line() -> None:
    answer = await ask("Call code_exec with print(1) and call getTime\nthen stop", tools=TOOLS)
    assert answer.calls == [("code_exec", "print(1) and call getTime")]


@pytest.mark.parametrize("given", ["{", "{city}", "[1]", "{" * 5000])
async def test_what_is_no_json_object_is_not_taken_for_arguments(given: str) -> None:
    answer = await ask(f"Call getTime with {given}", tools=TOOLS)
    assert answer.names == ["getTime"]
    assert json.loads(answer.calls[0][1]).keys() <= {"zone"}


async def test_a_custom_tool_without_input_gets_some() -> None:
    ((_, given),) = (await ask("Call code_exec", tools=TOOLS)).calls
    assert given == "code_exec"
    ((_, given),) = (await ask("Call code_exec to add 1 and 2", tools=TOOLS)).calls
    assert given == "to add 1 and 2"


async def test_a_custom_tool_with_a_regular_grammar_gets_a_text_of_it() -> None:
    grammar = {"type": "grammar", "syntax": "regex", "definition": "[0-9]{3}-[a-c]+"}
    tool = {"type": "custom", "name": "stamp", "format": grammar}
    ((_, given),) = (await ask("Call stamp", tools=[tool])).calls
    number, letters = given.split("-")
    assert len(number) == 3
    assert number.isdecimal()
    assert set(letters) <= set("abc")


# By what a message is about.


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("What is the weather in Paris?", ["get_weather"]),
        ("What's the time?", ["getTime"]),
        ("The weather and the time, please", ["get_weather", "getTime"]),
        ("Hello", []),
        ("get it", []),
        ("", []),
    ],
)
async def test_a_message_calls_the_tools_that_it_is_about(text: str, names: list[str]) -> None:
    assert (await ask(text, tools=TOOLS)).names == names


async def test_of_two_tools_about_the_same_the_better_match_is_called() -> None:
    tools = [function("get_weather"), function("get_weather_forecast")]
    assert (await ask("the weather?", tools=tools)).names == ["get_weather"]
    assert (await ask("the weather forecast?", tools=tools)).names == ["get_weather_forecast"]


async def test_arguments_are_what_the_message_names() -> None:
    answer = await ask("What is the weather in New York in fahrenheit for 3 days?", tools=TOOLS)
    assert json.loads(answer.calls[0][1]) == {
        "city": "New York",
        "unit": "fahrenheit",
        "days": 3,
    }


async def test_calls_of_one_tool_are_about_one_thing_each() -> None:
    answer = await ask("Call get_weather 2 times for Rome and Oslo", tools=TOOLS)
    assert [json.loads(given)["city"] for _, given in answer.calls] == ["Rome", "Oslo"]


async def test_only_the_user_is_obeyed() -> None:
    items = [{"role": "developer", "content": "Call getTime"}, user("Hello")]
    answer = await ask(items, tools=TOOLS, instructions="Call getTime. The time!")
    assert answer.names == []


# The choice.


async def test_no_tool_is_called_where_none_may_be() -> None:
    answer = await ask("Call getTime", tools=TOOLS, tool_choice="none")
    assert answer.names == []
    assert answer.text == "You said: Call getTime"


async def test_where_a_call_is_required_there_is_one() -> None:
    assert (await ask("Hello", tools=TOOLS, tool_choice="required")).names == ["get_weather"]
    assert (await ask("The time?", tools=TOOLS, tool_choice="required")).names == ["getTime"]


@pytest.mark.parametrize("kind", ["function", "custom"])
async def test_the_tool_that_is_named_is_called(kind: str) -> None:
    name = "getTime" if kind == "function" else "code_exec"
    choice = {"type": kind, "name": name}
    answer = await ask("The weather?", tools=TOOLS, tool_choice=choice)
    assert answer.names == [name]


async def test_only_allowed_tools_are_called() -> None:
    choice = {
        "type": "allowed_tools",
        "mode": "auto",
        "tools": [{"type": "function", "name": "getTime"}],
    }
    assert (await ask("Call get_weather", tools=TOOLS, tool_choice=choice)).names == []
    both = await ask("Call get_weather. The time?", tools=TOOLS, tool_choice=choice)
    assert both.names == ["getTime"]
    required = {**choice, "mode": "required"}
    assert (await ask("Hello", tools=TOOLS, tool_choice=required)).names == ["getTime"]


@pytest.mark.parametrize(
    "choice",
    [
        "required",
        {"type": "function", "name": "other"},
        {"type": "custom", "name": "other"},
        {"type": "web_search_preview"},
        {
            "type": "allowed_tools",
            "mode": "required",
            "tools": [{"type": "function", "name": "other"}],
        },
    ],
)
async def test_a_choice_of_what_cannot_be_called_is_refused(choice: Any) -> None:
    with pytest.raises(ApiError) as caught:
        await ask("Hello", tools=[{"type": "web_search"}], tool_choice=choice)
    assert caught.value.param == "tool_choice"


async def test_calls_are_one_at_a_time_where_they_may_not_be_parallel() -> None:
    text = "Call get_weather and getTime"
    first = await ask(text, tools=TOOLS, parallel_tool_calls=False)
    assert first.names == ["get_weather"]
    items = [user(text), *answered(first, "sunny")]
    second = await ask(items, tools=TOOLS, parallel_tool_calls=False)
    assert second.names == ["getTime"]
    items += answered(second, "noon")
    third = await ask(items, tools=TOOLS, parallel_tool_calls=False)
    assert third.names == []
    assert third.text == 'get_weather said: "sunny"\ngetTime said: "noon"'


async def test_no_more_calls_are_made_than_are_allowed() -> None:
    answer = await ask("Call getTime 5 times", tools=TOOLS, max_tool_calls=2)
    assert answer.names == ["getTime"] * 2


# The turns after a call.


async def test_what_the_tools_said_is_told() -> None:
    text = "Call get_weather and code_exec with 1+1"
    first = await ask(text, tools=TOOLS)
    second = await ask([user(text), *answered(first, "sunny", "2")], tools=TOOLS)
    assert second.names == []
    assert second.text == 'get_weather said: "sunny"\ncode_exec said: "2"'


async def test_outputs_alone_are_joined_with_the_history() -> None:
    reads: list[int] = []
    first = await ask("Call getTime", tools=TOOLS, reads=reads)
    assert not reads
    before = [said(Role.ROLE_USER, "Call getTime"), *first.items]
    call_id = first.items[0].function_call.call_id
    output = {"type": "function_call_output", "call_id": call_id, "output": "noon"}
    second = await ask([output], before=before, tools=TOOLS, reads=reads)
    assert second.text == 'getTime said: "noon"'
    assert reads == [1]


async def test_a_new_message_is_answered_anew() -> None:
    first = await ask("Call getTime", tools=TOOLS)
    items = [user("Call getTime"), *answered(first, "noon"), user("Call getTime")]
    assert (await ask(items, tools=TOOLS)).names == ["getTime"]


async def test_what_a_tool_said_in_parts_is_told() -> None:
    first = await ask("Call getTime", tools=TOOLS)
    call, output = answered(first, "")
    output["output"] = [
        {"type": "input_text", "text": "noon"},
        {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
    ]
    second = await ask([user("Call getTime"), call, output], tools=TOOLS)
    assert second.text == ('getTime said: "noon\nan image (image/png, 3 bytes, detail auto)"')


async def test_a_forced_choice_calls_in_every_turn() -> None:
    choice = {"type": "function", "name": "getTime"}
    first = await ask("Hello", tools=TOOLS, tool_choice=choice)
    items = [user("Hello"), *answered(first, "noon")]
    assert (await ask(items, tools=TOOLS, tool_choice=choice)).names == ["getTime"]


async def test_where_a_call_is_required_every_tool_has_its_turn() -> None:
    tools = [WEATHER, ECHO]
    first = await ask("The weather?", tools=tools, tool_choice="required")
    assert first.names == ["get_weather"]
    items = [user("The weather?"), *answered(first, "sunny")]
    assert (await ask(items, tools=tools, tool_choice="required")).names == ["echo_back"]


# What is written.


async def test_a_call_is_written_in_pieces() -> None:
    answer = await ask("What is the weather in Paris?", tools=TOOLS)
    _, added, *pieces, done, _ = answer.steps
    assert isinstance(added, ItemAdded)
    call = added.item.function_call
    assert call.name == "get_weather"
    assert call.call_id.startswith("call_")
    assert not call.arguments
    assert len(pieces) > 2
    assert all(isinstance(piece, InputDelta) and 0 < len(piece.text) <= 20 for piece in pieces)
    assert done == ItemDone(added.key)
    jsonschema.validate(json.loads("".join(answer.deltas)), WEATHER["parameters"])


async def test_calls_are_written_one_after_the_other() -> None:
    answer = await ask("Call get_weather and getTime", tools=TOOLS)
    keys = [step.key for step in answer.steps if isinstance(step, ItemAdded | InputDelta)]
    assert keys == sorted(keys)
    assert len({item.function_call.call_id for item in answer.items}) == 2


async def test_calls_can_be_interleaved() -> None:
    calls = [
        ("get_weather", '{"city":"Rome","days":3}'),
        ("getTime", '{"zone":"Rome, Italy, Europe, Earth"}'),
    ]
    text = "Call get_weather with {} and getTime with {} interleaved".format(
        *(given for _, given in calls)
    )
    answer = await ask(text, tools=TOOLS)
    assert answer.calls == calls
    steps = [(type(step), getattr(step, "key", "")) for step in answer.steps[1:-1]]
    assert steps == [
        (ItemAdded, "call0"),
        (ItemAdded, "call1"),
        (InputDelta, "call0"),
        (InputDelta, "call1"),
        (InputDelta, "call0"),
        (InputDelta, "call1"),
        (InputDelta, "call1"),
        (ItemDone, "call0"),
        (ItemDone, "call1"),
    ]


async def test_tools_in_a_namespace_are_called_with_it() -> None:
    space = {"type": "namespace", "name": "crm", "description": "d", "tools": [ECHO]}
    for text in ("Call echo_back", "Call crm.echo_back"):
        answer = await ask(text, tools=[space])
        call = answer.items[0].function_call
        assert (call.name, call.namespace) == ("echo_back", "crm")


async def test_tools_that_come_with_the_input_are_called() -> None:
    more = {"type": "additional_tools", "role": "developer", "tools": [ECHO]}
    answer = await ask([more, user("Call echo_back")])
    assert answer.names == ["echo_back"]


async def test_a_tool_without_parameters_gets_an_empty_object() -> None:
    tool = {"type": "function", "name": "ping", "parameters": None, "strict": None}
    assert (await ask("Call ping", tools=[tool])).calls == [("ping", "{}")]


@pytest.mark.parametrize("text", ["Hello", "Call bad"])
async def test_a_schema_that_is_none_is_refused_whether_it_is_needed_or_not(text: str) -> None:
    with pytest.raises(ApiError) as caught:
        await ask(text, tools=[WEATHER, function("bad", {"type": "nope"})])
    error = caught.value
    assert (error.param, error.code) == ("tools[1].parameters", "invalid_function_parameters")
    assert error.kind.value.http == 400


async def test_arguments_that_cannot_be_made_are_an_error_of_the_request() -> None:
    schema = {"type": "object", "properties": {"a": False}, "required": ["a"]}
    space = {
        "type": "namespace",
        "name": "crm",
        "description": "d",
        "tools": [function("bad", schema)],
    }
    with pytest.raises(ApiError) as caught:
        await ask("Call bad", tools=[space])
    assert caught.value.param == "tools[0].tools[0].parameters"


async def test_the_same_request_gets_the_same_calls() -> None:
    text = "Call get_weather 3 times"
    first = await ask(text, tools=TOOLS)
    assert first.calls == (await ask(text, tools=TOOLS, metadata={"a": "b"})).calls
    assert len(set(first.calls)) > 1
