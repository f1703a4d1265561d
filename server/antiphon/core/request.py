"""Requests: the rules that span several parameters, and what follows from a request."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Set
from typing import Any, Final

from antiphon.core.errors import ApiError, ErrorKind
from antiphon.core.event import Snapshot
from antiphon.core.ids import check_id
from antiphon.core.parameters import ParametersTable
from antiphon.core.tool_choice import check_tool_choice, redact_tool_choice
from antiphon.json import InvalidValue, redact
from antiphon.json.raw import recompact
from antiphon.v1 import response_pb2
from antiphon.v1.content_pb2 import Content, ContentList, InputText, OutputText
from antiphon.v1.item_pb2 import Item, ItemList
from antiphon.v1.message_pb2 import Role
from antiphon.v1.response_pb2 import Response
from antiphon.v1.responses_service_pb2 import CreateResponseRequest
from antiphon.v1.text_config_pb2 import TextConfig, TextFormat, TextFormatText

__all__ = [
    "check_request",
    "conversation_of",
    "input_items",
    "new_response",
    "plain_items",
    "request_context",
]


_USER: Final = Role.ROLE_USER


def check_request(request: CreateResponseRequest, *, store_by_default: bool = True) -> None:
    """Holds a request to the rules that no single parameter shows.

    Args:
        request: the request, each of whose values is valid by itself.
        store_by_default: whether it is stored if it does not say so.

    Raises:
        ApiError: a parameter is missing, excluded by another one, or not built yet.
    """
    # Few of the parameters are set; asking for each of them takes longer.
    given = {field.name for field, _ in request.ListFields()}
    _check_exclusions(request, given, store_by_default)
    _check_built(given)
    if not request.model:
        raise _missing("model")
    if "previous_response_id" in given:
        check_id(request.previous_response_id, "previous_response_id")
    elif given.isdisjoint(_CONVERSATION) or not conversation_of(request):
        # A request that continues may go without input; one that begins has nothing else to say.
        if given.isdisjoint(_INPUT):
            raise _missing("input")
        if "input_list" in given and not request.input_list.items:
            raise _refused("input", "'input' must have at least 1 element.", "empty_array")
    if not given.isdisjoint(_TOOL_CHOICE):
        check_tool_choice(request)


def conversation_of(request: CreateResponseRequest) -> str:
    """Returns the id of the conversation that a request is part of, or "".

    Args:
        request: the request: `conversation` is an id or an object with one, and
            `conversation_id` is another name for it.

    Raises:
        ApiError: the id is malformed, or the names say different things.
    """
    kind = request.WhichOneof("conversation")
    found = ""
    if kind is not None:
        text = kind == "conversation_text"
        found = request.conversation_text if text else request.conversation_reference.id
        check_id(found, "conversation" if text else "conversation.id")
    if request.HasField("conversation_id"):
        check_id(request.conversation_id, "conversation_id")
        if found and found != request.conversation_id:
            message = "'conversation_id' and 'conversation' name different conversations."
            raise _refused("conversation_id", message, "mutually_exclusive_parameters")
        found = request.conversation_id
    return found


def _check_exclusions(
    request: CreateResponseRequest, given: Set[str], store_by_default: bool
) -> None:
    """Refuses parameters that exclude each other, whether they are built or not."""
    if "previous_response_id" in given and not given.isdisjoint(_CONVERSATION):
        raise _refused(
            "previous_response_id",
            "'previous_response_id' and 'conversation' exclude each other.",
            "mutually_exclusive_parameters",
        )
    if request.background and not (request.store if "store" in given else store_by_default):
        raise _refused("background", "'background' needs 'store' to be true.")
    if "stream_options" in given and not request.stream:
        raise _refused("stream_options", "'stream_options' needs 'stream' to be true.")


def _check_built(given: Set[str]) -> None:
    """Refuses by name what the API has and this server has not yet; nothing is dropped silently."""
    for name in _NOT_BUILT:
        if name in given:
            raise _not_built(name)


_NOT_BUILT: Final = ("agent_id", "background_options", "context_management", "moderation", "prompt")
"""The fields that are refused."""
_FIELDS: Final = CreateResponseRequest.DESCRIPTOR.oneofs_by_name
_INPUT: Final = frozenset(arm.name for arm in _FIELDS["input"].fields)
_TOOL_CHOICE: Final = frozenset(arm.name for arm in _FIELDS["tool_choice"].fields)
_CONVERSATION: Final = frozenset(arm.name for arm in _FIELDS["conversation"].fields) | {
    "conversation_id"
}
"""The fields in which a request names its conversation."""


def _missing(param: str) -> ApiError:
    return ApiError(
        ErrorKind.INVALID_VALUE,
        f"Missing required parameter: '{param}'.",
        param,
        "missing_required_parameter",
    )


def _refused(param: str, message: str, code: str = "invalid_value") -> ApiError:
    return ApiError(ErrorKind.INVALID_VALUE, message, param, code)


def _not_built(param: str) -> ApiError:
    return ApiError(ErrorKind.NOT_BUILT, f"'{param}' is not built yet.", param)


def request_context(parameter: str) -> str:
    """Returns the JSON document of the query parameter `requestContext`.

    Args:
        parameter: the document in base64, of either alphabet, with or without padding.

    Raises:
        ApiError: it is not base64, or not of a JSON document.
    """
    # A plus sign that was not escaped has become a space.
    text = parameter.translate({ord("-"): "+", ord("_"): "/", ord(" "): "+"}).rstrip("=")
    try:
        return recompact(base64.b64decode(text + "=" * (-len(text) % 4), validate=True))
    except (InvalidValue, ValueError):
        message = "'requestContext' must be a JSON document in base64."
        raise _refused("requestContext", message) from None


def input_items(request: CreateResponseRequest) -> ItemList:
    """Returns the request's input as items; text becomes a message of one part.

    Args:
        request: the request. The items are copies.
    """
    found = ItemList()
    if request.WhichOneof("input") == "input_text":
        # Filled in place: messages given to a constructor are copied, level by level.
        message = found.items.add().message
        message.role = _USER
        message.content_list.parts.add().input_text.text = request.input_text
    else:
        found.CopyFrom(request.input_list)
        for item in found.items:
            _make_plain(item)
    return found


def plain_items(items: Iterable[Item]) -> Iterator[Item]:
    """Yields copies of items as they are kept: without secrets, text as a list of one part.

    Args:
        items: the items, as a client sent them.
    """
    for given in items:
        item = Item()
        item.CopyFrom(given)
        _make_plain(item)
        yield item


def _make_plain(item: Item) -> None:
    redact(item)
    message = item.message
    if item.HasField("message") and message.WhichOneof("content") == "content_text":
        text = message.content_text
        said = message.role == Role.ROLE_ASSISTANT
        message.content_list.CopyFrom(_parts(text, said_by_model=said))


def _parts(text: str, *, said_by_model: bool = False) -> ContentList:
    if said_by_model:
        return ContentList(parts=[Content(output_text=OutputText(text=text))])
    return ContentList(parts=[Content(input_text=InputText(text=text))])


def new_response(
    request: CreateResponseRequest,
    parameters: ParametersTable,
    *,
    response_id: str,
    created_at: int,
    store: bool,
) -> Snapshot:
    """Returns the response of a request as it begins: queued or in progress, every parameter told.

    Args:
        request: the request.
        parameters: the parameters of other responses.
        response_id: the response's id.
        created_at: the time, in seconds since 1970.
        store: whether it is kept.
    """
    response = Response()
    response.CopyFrom(_DEFAULTS)
    response.store = store
    told: Any = response
    structured = False
    own: list[tuple[str, Any]] = []
    # Few of the parameters are set; only those are looked at.
    for field, value in request.ListFields():
        name = field.name
        if name in _ECHOED_APART:
            own.append((name, value))
        elif name in _ECHOED:
            setattr(told, name, value)
        elif name in _ECHOED_WHOLE:
            getattr(told, name).MergeFrom(value)
            structured = True
        elif name == "service_tier" and value not in ("", "auto"):
            response.service_tier = value
    if not response.truncation:
        response.truncation = _DEFAULTS.truncation
    if structured:
        _tell_choices(response)
        redact(response)
        redact_tool_choice(response)
    begin = Snapshot(response, parameters.of(response))
    response.id = response_id
    response.created_at = created_at
    response.status = (
        response_pb2.RESPONSE_STATUS_QUEUED
        if request.background
        else response_pb2.RESPONSE_STATUS_IN_PROGRESS
    )
    for name, value in own:
        if name == "metadata":
            response.metadata.update(value)
        elif name == "instructions":
            response.instructions_text = value
        elif name in _CONVERSATION:
            response.conversation.id = conversation_of(request)
            if name == "conversation_id":
                response.conversation_id = value
        else:
            setattr(told, name, value)
    return begin


def _tell_choices(response: Response) -> None:
    """Replaces what was left to the server by what it does: the API has it in every answer."""
    if response.HasField("image") and response.image.context_compression in ("", "auto"):
        response.image.context_compression = "disabled"
    if response.HasField("prompt_cache_options"):
        options = response.prompt_cache_options
        options.mode = options.mode or "implicit"
        options.ttl = options.ttl or "30m"
    if not response.access_programs.cyber:
        response.ClearField("access_programs")


_ECHOED: Final = frozenset(
    {
        "background",
        "max_output_tokens",
        "max_tool_calls",
        "model",
        "parallel_tool_calls",
        "prompt_cache_retention",
        "temperature",
        "tool_choice_mode",
        "top_logprobs",
        "top_p",
        "truncation",
    }
)
_ECHOED_WHOLE: Final = frozenset(
    {
        "access_programs",
        "image",
        "prompt_cache_options",
        "reasoning",
        "text",
        "tool_choice_tool",
        "tools",
    }
)
_ECHOED_APART: Final = _CONVERSATION | {
    "instructions",
    "metadata",
    "previous_response_id",
    "prompt_cache_key",
    "provider_options",
    "safety_identifier",
    "user",
}
"""What other responses are not likely to repeat: the request's own."""
_DEFAULTS: Final = Response(
    background=False,
    parallel_tool_calls=True,
    service_tier="default",
    temperature=1.0,
    text=TextConfig(format=TextFormat(text=TextFormatText())),
    tool_choice_mode="auto",
    top_logprobs=0,
    top_p=1.0,
    truncation="disabled",
)
"""What a response tells of the parameters that its request leaves out."""
