import pytest

from antiphon.core.errors import ApiError, ErrorKind
from antiphon.core.parameters import ParametersTable
from antiphon.core.request import check_request, input_items, new_response
from antiphon.json import decode
from antiphon.v1.content_pb2 import Content, ContentList, InputText, OutputText
from antiphon.v1.item_pb2 import Item, ItemList
from antiphon.v1.message_pb2 import Message, Role
from antiphon.v1.response_pb2 import Response, ResponseStatus
from antiphon.v1.responses_service_pb2 import CreateResponseRequest
from antiphon.v1.tool_choice_pb2 import AllowedTool
from antiphon.v1.tool_pb2 import Tool


def asked(json: str) -> CreateResponseRequest:
    return decode(CreateResponseRequest, json)


def refusal(json: str) -> ApiError:
    with pytest.raises(ApiError) as caught:
        check_request(asked(json))
    return caught.value


@pytest.mark.parametrize(
    "json",
    [
        '{"model":"m","input":"hi"}',
        '{"model":"m","input":""}',
        '{"model":"m","input":[{"role":"user","content":"hi"}]}',
        '{"model":"m","previous_response_id":"resp_1"}',
        '{"model":"m","previous_response_id":"resp_1","input":[]}',
        '{"model":"m","input":"hi","stream":true,"stream_options":{}}',
        '{"model":"m","input":"hi","background":false,"tool_choice":"none"}',
        '{"model":"m","input":"hi","text":{"format":{"type":"json_object"}}}',
        '{"model":"m","input":"hi","text":{"format":{"type":"json_schema","name":"n","schema":{}}}}',
        '{"model":"m","input":"","tools":[{"type":"custom","name":"f"}],"tool_choice":"required"}',
    ],
)
def test_a_whole_request_passes(json: str) -> None:
    check_request(asked(json))


@pytest.mark.parametrize("param", ["model", "input"])
def test_what_a_beginning_needs_is_named(param: str) -> None:
    members = {"model": '"model":"m"', "input": '"input":"hi"'}
    del members[param]
    error = refusal("{" + ",".join(members.values()) + "}")
    assert error.kind is ErrorKind.INVALID_VALUE
    assert (error.param, error.code) == (param, "missing_required_parameter")
    assert error.message == f"Missing required parameter: '{param}'."


def test_a_model_has_a_name() -> None:
    error = refusal('{"model":"","input":"hi"}')
    assert (error.param, error.code) == ("model", "missing_required_parameter")


def test_a_beginning_says_something() -> None:
    error = refusal('{"model":"m","input":[]}')
    assert (error.kind, error.param, error.code) == (
        ErrorKind.INVALID_VALUE,
        "input",
        "empty_array",
    )


def test_the_id_of_the_response_to_continue_is_an_id() -> None:
    error = refusal('{"model":"m","input":"hi","previous_response_id":"../x"}')
    assert (error.kind, error.param) == (ErrorKind.INVALID_VALUE, "previous_response_id")
    assert "../x" not in error.message


def test_the_options_of_a_stream_need_a_stream() -> None:
    error = refusal('{"model":"m","input":"hi","stream_options":{}}')
    assert (error.kind, error.param) == (ErrorKind.INVALID_VALUE, "stream_options")


def test_text_is_one_message_of_the_users() -> None:
    assert list(input_items(asked('{"input":"hi"}')).items) == [
        Item(
            message=Message(
                role=Role.ROLE_USER,
                content_list=ContentList(parts=[Content(input_text=InputText(text="hi"))]),
            )
        )
    ]


@pytest.mark.parametrize("role", ["user", "system", "developer"])
def test_the_text_of_a_message_to_the_model_becomes_a_part_of_input(role: str) -> None:
    (item,) = input_items(asked(f'{{"input":[{{"role":"{role}","content":"hi"}}]}}')).items
    assert item.message.content_list == ContentList(
        parts=[Content(input_text=InputText(text="hi"))]
    )


def test_the_text_of_a_message_by_the_model_becomes_a_part_of_output() -> None:
    (item,) = input_items(asked('{"input":[{"role":"assistant","content":"hi"}]}')).items
    part = Content(output_text=OutputText(text="hi"))
    assert item.message.content_list == ContentList(parts=[part])


def test_what_else_a_message_says_is_kept() -> None:
    (item,) = input_items(
        asked('{"input":[{"role":"user","content":"hi","id":"msg_1","x_invented":[1]}]}')
    ).items
    assert item.message.id == "msg_1"
    assert item.message.additional_properties == '{"x_invented":[1]}'


def test_items_stand_in_their_order_and_unknown_kinds_among_them() -> None:
    items = list(
        input_items(
            asked(
                '{"input":[{"role":"user","content":[]},{"type":"x_invented","a":1},'
                '{"role":"user","content":[{"type":"input_text","text":"b"}]}]}'
            )
        ).items
    )
    assert [item.WhichOneof("kind") for item in items] == ["message", "unknown", "message"]
    assert items[1].unknown == '{"type":"x_invented","a":1}'


def test_the_items_are_copies() -> None:
    given = Item(message=Message(role=Role.ROLE_USER, content_text="hi"))
    request = CreateResponseRequest(input_list=ItemList(items=[given]))
    (item,) = input_items(request).items
    item.message.role = Role.ROLE_SYSTEM
    assert request.input_list.items[0] == given


def test_a_request_without_input_has_no_items() -> None:
    assert list(input_items(CreateResponseRequest()).items) == []


def begun(request: CreateResponseRequest, *, store: bool = True) -> Response:
    parameters = ParametersTable()
    begin = new_response(request, parameters, response_id="resp_1", created_at=7, store=store)
    return begin.response


def response_to(json: str) -> Response:
    return begun(asked(json))


def test_a_response_begins_in_progress_with_the_apis_defaults() -> None:
    response = response_to('{"model":"m","input":"hi"}')
    assert (response.id, response.created_at, response.model) == ("resp_1", 7, "m")
    assert response.status == ResponseStatus.RESPONSE_STATUS_IN_PROGRESS
    assert response.parallel_tool_calls
    assert response.store
    assert (response.temperature, response.top_p) == (1.0, 1.0)
    assert (response.tool_choice_mode, response.truncation) == ("auto", "disabled")
    assert response.service_tier == "default"
    assert response.text.format.HasField("text")
    assert not response.output
    told = {field.name for field, _ in response.ListFields()}
    assert told.isdisjoint({"completed_at", "error", "incomplete_details", "usage", "user"})
    assert response.WhichOneof("instructions") is None


def test_a_response_tells_the_settings_that_were_sent() -> None:
    response = response_to(
        '{"model":"m","input":"hi","temperature":0,"top_p":0.5,"top_logprobs":3,'
        '"parallel_tool_calls":false,"truncation":"auto","instructions":"be brief",'
        '"max_output_tokens":50,"max_tool_calls":6,"previous_response_id":"resp_0",'
        '"prompt_cache_key":"k","safety_identifier":"s","user":"u","metadata":{"a":"b"},'
        '"reasoning":{"effort":"low"},"text":{"verbosity":"high"},"tool_choice":"none",'
        '"service_tier":"flex","tools":[{"type":"x_invented"}]}'
    )
    assert (response.temperature, response.top_p, response.top_logprobs) == (0.0, 0.5, 3)
    assert not response.parallel_tool_calls
    assert response.truncation == "auto"
    assert response.instructions_text == "be brief"
    assert (response.max_output_tokens, response.max_tool_calls) == (50, 6)
    assert response.previous_response_id == "resp_0"
    assert (response.prompt_cache_key, response.safety_identifier) == ("k", "s")
    assert response.user == "u"
    assert dict(response.metadata) == {"a": "b"}
    assert response.reasoning.effort == "low"
    assert response.text.verbosity == "high"
    assert response.text.format.HasField("text")
    assert response.tool_choice_mode == "none"
    assert response.service_tier == "flex"
    assert list(response.tools) == [Tool(unknown='{"type":"x_invented"}')]


def test_the_tier_auto_stands_for_the_default_one() -> None:
    assert response_to('{"model":"m","service_tier":"auto"}').service_tier == "default"


def test_a_response_that_is_not_kept_says_so() -> None:
    request = asked('{"model":"m","store":true}')
    assert not begun(request, store=False).store


def test_the_response_does_not_share_with_its_request() -> None:
    request = asked('{"model":"m","tools":[{"type":"x_invented"}],"metadata":{"a":"b"}}')
    response = begun(request)
    request.tools[0].unknown = "{}"
    request.metadata["a"] = "c"
    assert list(response.tools) == [Tool(unknown='{"type":"x_invented"}')]
    assert dict(response.metadata) == {"a": "b"}


# What the API has and this server has not is refused by name, not dropped.


@pytest.mark.parametrize(
    ("member", "param"),
    [
        ('"prompt":{"id":"pmpt_1"}', "prompt"),
        ('"context_management":[{"type":"compaction"}]', "context_management"),
    ],
)
def test_what_is_not_built_is_refused_by_name(member: str, param: str) -> None:
    error = refusal(f'{{"model":"m","input":"hi",{member}}}')
    assert (error.kind, error.param) == (ErrorKind.NOT_BUILT, param)


# Secrets go to the backend with the request, and nowhere else.


SECRET_TOOL = (
    '{"type":"mcp","server_label":"l","server_url":"https://example.com",'
    '"authorization":"token-1","headers":{"x-key":"token-2"}}'
)


def test_a_response_does_not_tell_the_secrets_of_its_tools() -> None:
    request = asked(f'{{"model":"m","input":"hi","tools":[{SECRET_TOOL}]}}')
    response = begun(request)
    assert response.tools[0].mcp.server_label == "l"
    assert b"token-" not in response.SerializeToString()
    assert b"token-2" in request.SerializeToString()


def test_a_response_does_not_tell_the_secrets_of_the_tools_that_it_allows() -> None:
    request = asked(
        f'{{"model":"m","input":"hi","tools":[{SECRET_TOOL}],"tool_choice":'
        f'{{"type":"allowed_tools","mode":"auto","tools":[{SECRET_TOOL}]}}}}'
    )
    check_request(request)
    response = begun(request)
    (allowed,) = response.tool_choice_tool.allowed_tools.tools
    assert allowed == AllowedTool(type="mcp", server_label="l")
    assert b"token-" not in response.SerializeToString()
    assert b"example.com" not in allowed.SerializeToString()
    assert b"token-2" in request.tool_choice_tool.SerializeToString()


def test_the_input_that_is_stored_holds_no_secrets() -> None:
    given = f'{{"type":"additional_tools","role":"developer","tools":[{SECRET_TOOL}]}}'
    request = asked(f'{{"model":"m","input":[{given}]}}')
    (item,) = input_items(request).items
    assert item.additional_tools.tools[0].mcp.server_label == "l"
    assert b"token-" not in item.SerializeToString()
    assert b"token-2" in request.SerializeToString()
