"""The schema has everything that the official Python SDK declares for the two APIs.

A failure names what is missing as a path from the root: `Response.output[]<shell_call>.action`.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor
from openai.types import conversations, responses
from openai.types.responses.computer_action_param import ComputerActionParam
from openai.types.shared import error_object

from antiphon.json.plan import Field, Message, Oneof
from antiphon.v1 import rest_service_pb2
from tests.schema import sdk
from tests.schema.coverage import Coverage, Problem
from tests.schema.shape import Shapes

Change = Callable[[Message], Message]

ROOTS: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (responses.ResponseCreateParams, ("CreateResponseRequest",)),
    (responses.Response, ("Response",)),
    (responses.ResponseStreamEvent, ("ResponseStreamEvent",)),
    (responses.ResponseInputItem, ("Item",)),
    (responses.ResponseInputItemParam, ("Item",)),
    (responses.ResponseItem, ("Item",)),
    (responses.ResponseOutputItem, ("Item",)),
    (conversations.ConversationItem, ("Item",)),
    (responses.Tool, ("Tool",)),
    (responses.ToolParam, ("Tool",)),
    (responses.ResponseInputAudio, ("Content",)),
    (responses.ResponseInputAudioParam, ("Content",)),
    (ComputerActionParam, ("ComputerAction",)),
    (responses.ResponsesClientEvent, ("ResponsesClientEvent",)),
    (responses.ResponsesClientEventParam, ("ResponsesClientEvent",)),
    # On a WebSocket an error has a form of its own; most events are those of a stream.
    (responses.ResponsesServerEvent, ("ResponsesServerEvent", "ResponseStreamEvent")),
    (responses.ResponseRetrieveParams, ("StreamResponseEventsRequest",)),
    (responses.InputItemListParams, ("ListInputItemsRequest",)),
    (responses.ResponseItemList, ("ItemPage",)),
    (responses.ResponseCompactParams, ("CompactResponseRequest",)),
    (responses.CompactedResponse, ("CompactedResponse",)),
    (responses.InputTokenCountParams, ("CountInputTokensRequest",)),
    (responses.InputTokenCountResponse, ("CountInputTokensResponse",)),
    (conversations.Conversation, ("Conversation",)),
    (conversations.ConversationCreateParams, ("CreateConversationRequest",)),
    (conversations.ConversationUpdateParams, ("UpdateConversationRequest",)),
    (conversations.ConversationDeletedResource, ("DeleteConversationResponse",)),
    (conversations.ItemCreateParams, ("CreateConversationItemsRequest",)),
    (conversations.ItemListParams, ("ListConversationItemsRequest",)),
    (conversations.ItemRetrieveParams, ("GetConversationItemRequest",)),
    (conversations.ConversationItemList, ("ItemPage",)),
    (error_object.ErrorObject, ("Error",)),
)
"""The SDK's types that a client sends or gets, and the messages that stand for them."""

EXCEPTIONS: dict[str, tuple[str, ...]] = {
    "a time is in whole seconds": (
        "Response.created_at type",
        "Response.completed_at type",
    ),
    "a client may leave an item's id out, and the server gives it one; always there in output": (
        *(
            f"{item}.id {rule}"
            for rule in ("printed", "required")
            for item in (
                "CodeInterpreterCall",
                "ComputerCall",
                "FileSearchCall",
                "ImageGenerationCall",
                "LocalShellCall",
                "McpApprovalRequest",
                "McpCall",
                "McpListTools",
                "Program",
                "ProgramOutput",
                "ReasoningItem",
                "WebSearchCall",
            )
        ),
        # Clients must send these; they are `optional`, as every item's id is.
        "ItemReference.id printed",
        "LocalShellCallOutput.id printed",
    ),
    "a list that a client leaves out is empty": (
        "OutputText.annotations required",
        "OutputTextLogprob.bytes required",
        "OutputTextLogprob.top_logprobs required",
        "OutputTextTopLogprob.bytes required",
    ),
    "of a response, 31 keys are always there, and this is not one of them": (
        "Response.access_programs printed",
    ),
    "a secret is never printed": ("ContainerDomainSecret.value printed",),
    "the SDK says nothing of the values, its text says that they are labels": (
        "Conversation.metadata type",
    ),
    "steering declares any string, but its items are items like others": ("Message.status type",),
    "the id comes from the path, not from the body": (
        "GetConversationItemRequest.conversation_id required",
    ),
    "the method itself says that it streams": ("StreamResponseEventsRequest.stream member",),
}
"""What the schema does otherwise than the SDK, by the reason."""

NOT_REACHED = {
    # The SDK's own: answers parsed at the client, and the common parts of two kinds of request.
    "ParsedResponse",
    "ParsedResponseFunctionToolCall",
    "ParsedResponseOutputMessage",
    "ParsedResponseOutputText",
    "ResponseCreateParamsBase",
    "ResponseRetrieveParamsBase",
}

QUERIES: tuple[tuple[Any, Descriptor], ...] = (
    (
        responses.response_retrieve_params.ResponseRetrieveParamsStreaming,
        rest_service_pb2.RestGetResponseRequest.DESCRIPTOR,
    ),
    (
        responses.InputItemListParams,
        rest_service_pb2.RestListInputItemsRequest.DESCRIPTOR,
    ),
    (
        conversations.ItemListParams,
        rest_service_pb2.RestListConversationItemsRequest.DESCRIPTOR,
    ),
    (
        conversations.ItemRetrieveParams,
        rest_service_pb2.RestGetConversationItemRequest.DESCRIPTOR,
    ),
)
"""Parameters that the SDK sends in the query, and the requests that bind them."""

ALWAYS_NULL = {
    "completed_at",
    "error",
    "incomplete_details",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "previous_response_id",
    "prompt_cache_key",
    "reasoning",
    "safety_identifier",
    "usage",
}
"""The keys of a response that are null when they are not set."""

ALWAYS_SET = {
    "background",
    "created_at",
    "frequency_penalty",
    "id",
    "metadata",
    "model",
    "output",
    "parallel_tool_calls",
    "presence_penalty",
    "service_tier",
    "status",
    "store",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
}
"""The other keys of a response that are always there, but for the constant `object`."""


def walk(changes: Mapping[str, Change] | None = None) -> Coverage:
    """Walks over all roots beside a schema with some changes."""
    coverage = Coverage(Shapes(changes))
    for annotation, names in ROOTS:
        coverage.cover(annotation, *names)
    return coverage


def excepted() -> set[str]:
    return {what for each in EXCEPTIONS.values() for what in each}


def key(problem: Problem) -> str:
    return f"{problem.place} {problem.rule}"


def test_the_schema_has_what_the_sdk_declares() -> None:
    missing = [problem for problem in walk().problems() if key(problem) not in excepted()]
    assert not missing, "\n".join(map(str, missing))


def test_every_exception_is_still_one() -> None:
    assert excepted() == {key(problem) for problem in walk().problems()} & excepted()


def test_every_class_of_the_sdk_is_reached() -> None:
    reached = walk().classes
    missing = {
        f"{cls.__module__}.{cls.__name__}"
        for package in ("openai.types.responses", "openai.types.conversations")
        for cls in sdk.classes(package)
        if cls not in reached and cls.__name__ not in NOT_REACHED
    }
    assert not missing


@pytest.mark.parametrize(("params", "request_type"), QUERIES)
def test_every_parameter_of_the_query_is_bound(params: type, request_type: Descriptor) -> None:
    bound = {field.name for field in request_type.fields}
    assert set(sdk.members(params)) <= bound


def test_a_response_always_has_its_31_keys() -> None:
    shape = Shapes().message("Response")
    constants = {name for name, _ in shape.constants}
    members = {member.key: member for member in shape.members}
    assert len(ALWAYS_NULL | ALWAYS_SET | constants) == 31
    assert {name for name, member in members.items() if member.emit_null} == ALWAYS_NULL
    plain = {
        name
        for name, member in members.items()
        if isinstance(member, Field) and not member.presence and not member.omit_empty
    }
    # A message and a union have no default to print; the engine sets them.
    assert plain | {"text", "tool_choice"} == ALWAYS_SET


def without(name: str) -> Change:
    """Takes a member, or an arm of the tagged union, out of a message."""

    def change(message: Message) -> Message:
        return replace(
            message,
            members=tuple(
                replace(member, arms=tuple(arm for arm in member.arms if arm.name != name))
                if isinstance(member, Oneof)
                else member
                for member in message.members
                if member.name != name
            ),
        )

    return change


def having(name: str, **changes: Any) -> Change:
    """Changes a member, or an arm of a union, of a message."""

    def changed(member: Field) -> Field:
        return replace(member, **changes) if member.name == name else member

    def change(message: Message) -> Message:
        return replace(
            message,
            members=tuple(
                replace(member, arms=tuple(map(changed, member.arms)))
                if isinstance(member, Oneof)
                else changed(member)
                for member in message.members
            ),
        )

    return change


def no_longer(name: str, value: str) -> Change:
    """Takes a value out of those that a member accepts."""

    def change(message: Message) -> Message:
        member = next(member for member in message.members if member.name == name)
        assert isinstance(member, Field)
        if member.enum is not None:
            strings = {
                number: string for number, string in member.enum.strings.items() if string != value
            }
            return having(name, enum=replace(member.enum, strings=strings))(message)
        assert member.rules is not None
        values = tuple(each for each in member.rules.values if each != value)
        return having(name, rules=replace(member.rules, values=values))(message)

    return change


@pytest.mark.parametrize(
    ("message", "change", "where", "what"),
    [
        ("Response", without("usage"), "Response.usage", "there is no such member"),
        ("Item", without("shell_call"), "<shell_call>", "there is no such arm"),
        ("ResponseStreamEvent", without("queued"), "<response.queued>", "there is no such arm"),
        ("Item", having("message", implied_by=""), "<message>", "is not implied"),
        ("Item", having("message", tag="msg"), "<message>", "there is no such arm"),
        ("CreateResponseRequest", without("input_list"), ".input", "holds no list"),
        ("McpTool", without("require_approval_filter"), ".require_approval", "holds no object"),
        ("Prompt", having("variables", kind="string"), ".prompt.variables", "holds no map"),
        ("ResponseUsage", having("total_tokens", kind="string"), ".total_tokens", "holds no int"),
        ("OutputTextLogprob", having("logprob", kind="int"), ".logprob", "holds no float"),
        ("Filter", without("unknown"), ".filters[]", "holds no any"),
        ("AllowedTool", lambda shape: replace(shape, additional=""), ".tools[]", "holds no map"),
        (
            "WebSearchSource",
            lambda shape: replace(shape, constants=(("type", "uri"),)),
            ".sources[].type",
            "is always 'uri'",
        ),
        (
            "FunctionTool",
            no_longer("allowed_callers", "programmatic"),
            "<function>.allowed_callers[]",
            "'programmatic' is not accepted",
        ),
        ("Message", no_longer("role", "critic"), "<message>.role", "'critic' is not accepted"),
        ("Message", no_longer("role", "user"), "<message>.role", "'user' is not accepted"),
        ("Response", having("model", presence=True), "Response.model", "is not always printed"),
        ("Response", having("tools", omit_empty=True), "Response.tools", "is not always printed"),
        ("ResponseErrorEvent", having("code", emit_null=False), ".code", "is not always printed"),
        (
            "ResponseOutputTextAnnotationAddedEvent",
            having("annotation", emit_null=False),
            ".annotation",
            "is not always printed",
        ),
        ("FunctionCall", having("call_id", required=False), ".call_id", "is not required"),
        (
            "CreateResponseRequest",
            having("model", required=True),
            "CreateResponseRequest.model",
            "is required, and the SDK may leave it out",
        ),
    ],
)
def test_what_is_missing_is_named(message: str, change: Change, where: str, what: str) -> None:
    found = [
        problem for problem in walk({message: change}).problems() if key(problem) not in excepted()
    ]
    assert any(where in problem.text and what in problem.text for problem in found), found


def test_a_rule_of_an_enum_binds_clients_only() -> None:
    # The server may print the role `critic`; no client can send it.
    shape = Shapes().message("Message")
    role = next(member for member in shape.members if member.name == "role")
    assert isinstance(role, Field)
    assert role.enum is not None
    assert role.rules is not None
    assert "critic" in role.enum.strings.values()
    assert "critic" not in role.rules.values
