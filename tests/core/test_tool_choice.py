import json
from typing import Any

import pytest

from antiphon.core.errors import ApiError, ErrorKind
from antiphon.core.tool_choice import check_tool_choice
from antiphon.json import decode
from antiphon.v1.responses_service_pb2 import CreateResponseRequest

FUNCTION = {"type": "function", "name": "get_weather"}
CUSTOM = {"type": "custom", "name": "run"}
SEARCH = {"type": "web_search"}
MCP = {"type": "mcp", "server_label": "docs", "server_url": "https://example.com"}
TOOLS = [FUNCTION, CUSTOM, SEARCH, MCP, {"type": "computer"}, {"type": "x_invented"}]


def asked(choice: Any, *tools: Any, input_items: Any = "hi") -> CreateResponseRequest:
    body = {"model": "m", "input": input_items, "tools": list(tools), "tool_choice": choice}
    return decode(CreateResponseRequest, json.dumps(body))


def allowing(mode: str, *tools: Any) -> dict[str, Any]:
    return {"type": "allowed_tools", "mode": mode, "tools": list(tools)}


def refusal(choice: Any, *tools: Any) -> ApiError:
    with pytest.raises(ApiError) as caught:
        check_tool_choice(asked(choice, *tools))
    assert caught.value.param == "tool_choice"
    return caught.value


def test_a_request_need_not_choose() -> None:
    check_tool_choice(CreateResponseRequest())


@pytest.mark.parametrize(
    "choice",
    [
        "auto",
        "none",
        "required",
        FUNCTION,
        CUSTOM,
        allowing("auto"),
        allowing("auto", FUNCTION, CUSTOM, SEARCH, MCP),
        allowing("auto", {"type": "web_search_preview"}, {"type": "computer_use_preview"}),
        allowing("auto", {**MCP, "name": "one_tool_of_many"}),
        allowing("required", FUNCTION),
        allowing("required", SEARCH, CUSTOM),
    ],
    ids=json.dumps,
)
def test_a_tool_that_is_there_can_be_chosen(choice: Any) -> None:
    check_tool_choice(asked(choice, *TOOLS))


@pytest.mark.parametrize("choice", ["auto", "none", allowing("auto")], ids=json.dumps)
def test_what_forces_nothing_needs_no_tools(choice: Any) -> None:
    check_tool_choice(asked(choice))


@pytest.mark.parametrize(
    "item",
    [
        {"type": "additional_tools", "role": "developer", "tools": [FUNCTION]},
        {
            "type": "tool_search_output",
            "call_id": "call_1",
            "execution": "client",
            "status": "completed",
            "tools": [FUNCTION],
        },
    ],
    ids=lambda item: item["type"],
)
@pytest.mark.parametrize("choice", ["required", FUNCTION], ids=json.dumps)
def test_the_input_can_bring_tools(choice: Any, item: Any) -> None:
    check_tool_choice(asked(choice, input_items=[item]))


@pytest.mark.parametrize(
    "choice",
    [
        "required",
        FUNCTION,
        CUSTOM,
        allowing("auto", FUNCTION, CUSTOM),
        allowing("required", FUNCTION),
    ],
    ids=json.dumps,
)
def test_a_tool_in_a_namespace_can_be_chosen(choice: Any) -> None:
    space = {"type": "namespace", "name": "n", "description": "d", "tools": [FUNCTION, CUSTOM]}
    check_tool_choice(asked(choice, space))
    item = {"type": "additional_tools", "role": "developer", "tools": [space]}
    check_tool_choice(asked(choice, input_items=[item]))


@pytest.mark.parametrize(
    ("choice", "named"),
    [
        ({"type": "function", "name": "run"}, "'run'"),
        ({"type": "custom", "name": "get_weather"}, "'get_weather'"),
        ({"type": "function", "name": "x_invented"}, "'x_invented'"),
        ({"type": "mcp", "server_label": "other"}, "'other'"),
        ({"type": "file_search"}, "'file_search'"),
        (allowing("auto", FUNCTION, {"type": "function", "name": "other"}), "'other'"),
        (allowing("required", {"type": "function", "name": "other"}), "'other'"),
        (allowing("auto", {"type": "mcp"}), "'mcp'"),
        (allowing("auto", {"type": "function"}), "'function'"),
        (allowing("auto", {"type": "shell"}), "'shell'"),
        (allowing("auto", {"type": "file_search"}), "'file_search'"),
    ],
    ids=json.dumps,
)
def test_a_tool_that_is_not_there_is_named(choice: Any, named: str) -> None:
    error = refusal(choice, *TOOLS)
    assert (error.kind, error.code) == (ErrorKind.INVALID_VALUE, "invalid_value")
    assert named in error.message
    assert refusal(choice).kind is ErrorKind.INVALID_VALUE


@pytest.mark.parametrize(
    "kind",
    [
        "web_search",
        "web_search_preview",
        "web_search_preview_2025_03_11",
        "computer",
        "computer_use",
        "computer_use_preview",
    ],
)
@pytest.mark.parametrize("choose", [dict, lambda tool: allowing("auto", tool)])
def test_a_hosted_tool_is_named_as_the_client_named_it(kind: str, choose: Any) -> None:
    error = refusal(choose({"type": kind}), FUNCTION)
    assert error.kind is ErrorKind.INVALID_VALUE
    assert error.message == f"The tool '{kind}' of 'tool_choice' is not among 'tools'."


def test_what_can_be_no_name_is_not_repeated() -> None:
    hostile = {"type": "function", "name": "</script>\n" + "x" * 1000}
    assert refusal(hostile, *TOOLS).message == (
        "The tool 'function' of 'tool_choice' is not among 'tools'."
    )
    nothing = allowing("auto", {"type": "\u2028", "name": "\u2028"})
    assert refusal(nothing, *TOOLS).message == "The tool of 'tool_choice' is not among 'tools'."


@pytest.mark.parametrize("choice", ["required", allowing("required")], ids=json.dumps)
def test_nothing_can_be_forced_where_there_is_nothing(choice: Any) -> None:
    assert refusal(choice).kind is ErrorKind.INVALID_VALUE


def test_the_allowed_tools_have_to_hold_one_if_one_is_to_be_called() -> None:
    assert refusal(allowing("required"), *TOOLS).kind is ErrorKind.INVALID_VALUE


@pytest.mark.parametrize(
    ("choice", "tools"),
    [
        ("required", [SEARCH, MCP]),
        ("required", [{"type": "x_invented"}]),
        ({"type": "mcp", "server_label": "docs"}, TOOLS),
        ({"type": "web_search"}, TOOLS),
        ({"type": "web_search"}, [{"type": "web_search_preview"}]),
        ({"type": "web_search_preview"}, TOOLS),
        ({"type": "computer_use"}, TOOLS),
        (allowing("required", SEARCH, MCP), TOOLS),
    ],
    ids=json.dumps,
)
def test_what_the_server_would_have_to_run_is_not_built(choice: Any, tools: list[Any]) -> None:
    assert refusal(choice, *tools).kind is ErrorKind.NOT_BUILT
