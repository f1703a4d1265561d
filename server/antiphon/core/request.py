"""Requests: the rules that span several parameters, and what follows from a request."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeVar

from antiphon.core.errors import ApiError, ErrorKind
from antiphon.core.ids import check_id
from antiphon.core.tool_choice import check_tool_choice, redact_tool_choice
from antiphon.json import InvalidValue, redact
from antiphon.json.raw import recompact
from antiphon.v1 import response_pb2
from antiphon.v1.content_pb2 import Content, ContentList, InputText, OutputText
from antiphon.v1.item_pb2 import Item
from antiphon.v1.message_pb2 import Role
from antiphon.v1.response_pb2 import Response
from antiphon.v1.responses_service_pb2 import CreateResponseRequest
from antiphon.v1.text_config_pb2 import TextConfig, TextFormat, TextFormatText

T = TypeVar("T")

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
    _check_exclusions(request, store_by_default)
    _check_built(request)
    if not request.model:
        raise _missing("model")
    if request.HasField("previous_response_id"):
        check_id(request.previous_response_id, "previous_response_id")
    elif not conversation_of(request):
        # A request that continues may go without input; one that begins has nothing else to say.
        kind = request.WhichOneof("input")
        if kind is None:
            raise _missing("input")
        if kind == "input_list" and not request.input_list.items:
            raise _refused("input", "'input' must have at least 1 element.", "empty_array")
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


def _check_exclusions(request: CreateResponseRequest, store_by_default: bool) -> None:
    """Refuses parameters that exclude each other, whether they are built or not."""
    in_conversation = request.WhichOneof("conversation") or request.HasField("conversation_id")
    if request.HasField("previous_response_id") and in_conversation:
        raise _refused(
            "previous_response_id",
            "'previous_response_id' and 'conversation' exclude each other.",
            "mutually_exclusive_parameters",
        )
    if request.background and not _or(request, "store", store_by_default):
        raise _refused("background", "'background' needs 'store' to be true.")
    if request.HasField("stream_options") and not request.stream:
        raise _refused("stream_options", "'stream_options' needs 'stream' to be true.")


def _check_built(request: CreateResponseRequest) -> None:
    """Refuses by name what the API has and this server has not yet; nothing is dropped silently."""
    given: Any = request
    for name, repeated in _NOT_BUILT:
        if getattr(given, name) if repeated else given.HasField(name):
            raise _not_built(name)


_NOT_BUILT: Final = tuple(
    (name, CreateResponseRequest.DESCRIPTOR.fields_by_name[name].is_repeated)
    for name in ("agent_id", "background_options", "context_management", "moderation", "prompt")
)
"""The fields that are refused, and whether they are lists."""


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


def input_items(request: CreateResponseRequest) -> Iterator[Item]:
    """Yields the request's input as items; text becomes a message of one part.

    Args:
        request: the request. The items are copies.
    """
    if request.WhichOneof("input") == "input_text":
        # Filled in place: messages given to a constructor are copied, level by level.
        item = Item()
        message = item.message
        message.role = _USER
        message.content_list.parts.add().input_text.text = request.input_text
        yield item
        return
    yield from plain_items(request.input_list.items)


def plain_items(items: Iterable[Item]) -> Iterator[Item]:
    """Yields copies of items as they are kept: without secrets, text as a list of one part.

    Args:
        items: the items, as a client sent them.
    """
    for given in items:
        item = Item()
        item.CopyFrom(given)
        redact(item)
        message = item.message
        if item.HasField("message") and message.WhichOneof("content") == "content_text":
            text = message.content_text
            said = message.role == Role.ROLE_ASSISTANT
            message.content_list.CopyFrom(_parts(text, said_by_model=said))
        yield item


def _parts(text: str, *, said_by_model: bool = False) -> ContentList:
    if said_by_model:
        return ContentList(parts=[Content(output_text=OutputText(text=text))])
    return ContentList(parts=[Content(input_text=InputText(text=text))])


def new_response(
    request: CreateResponseRequest, *, response_id: str, created_at: int, store: bool
) -> Response:
    """Returns the response of a request as it begins: queued or in progress, every setting told.

    Args:
        request: the request.
        response_id: the response's id.
        created_at: the time, in seconds since 1970.
        store: whether it is kept.
    """
    response = Response()
    response.CopyFrom(_DEFAULTS)
    response.id = response_id
    response.created_at = created_at
    response.store = store
    if request.background:
        response.status = response_pb2.RESPONSE_STATUS_QUEUED
    told: Any = response
    structured = False
    # Few of the parameters are set; only those are looked at.
    for field, value in request.ListFields():
        name = field.name
        if name in _ECHOED:
            setattr(told, name, value)
        elif name in _ECHOED_WHOLE:
            getattr(told, name).MergeFrom(value)
            structured = True
        elif name == "metadata":
            response.metadata.update(value)
        elif name == "instructions":
            response.instructions_text = value
        elif name == "service_tier" and value not in ("", "auto"):
            response.service_tier = value
    if not response.truncation:
        response.truncation = _DEFAULTS.truncation
    conversation = conversation_of(request)
    if conversation:
        response.conversation.id = conversation
    if request.HasField("conversation_id"):
        response.conversation_id = conversation
    if structured:
        _tell_choices(response)
        redact(response)
        redact_tool_choice(response)
    return response


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
        "previous_response_id",
        "prompt_cache_key",
        "prompt_cache_retention",
        "provider_options",
        "safety_identifier",
        "temperature",
        "tool_choice_mode",
        "top_logprobs",
        "top_p",
        "truncation",
        "user",
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
_DEFAULTS: Final = Response(
    background=False,
    parallel_tool_calls=True,
    service_tier="default",
    status=response_pb2.RESPONSE_STATUS_IN_PROGRESS,
    temperature=1.0,
    text=TextConfig(format=TextFormat(text=TextFormatText())),
    tool_choice_mode="auto",
    top_logprobs=0,
    top_p=1.0,
    truncation="disabled",
)
"""What a response tells of the parameters that its request leaves out."""


def _or(request: Any, name: str, default: T) -> T:
    value: T = getattr(request, name) if request.HasField(name) else default
    return value
