"""Tool choices: which tools a request lets or makes the model call, and whether they are there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from antiphon.core.errors import ApiError, ErrorKind
from antiphon.v1.response_pb2 import Response
from antiphon.v1.responses_service_pb2 import CreateResponseRequest
from antiphon.v1.tool_choice_pb2 import AllowedTool, ToolChoice
from antiphon.v1.tool_pb2 import Tool

__all__ = ["check_tool_choice", "redact_tool_choice"]

_Key: TypeAlias = tuple[str, str]
"""What tells tools apart: their kind, and the name or the label that they have, or ""."""

_NAMED: Final = frozenset({"function", "custom"})
"""The kinds of tools that have a name, which are those that the client runs."""
_FAMILIES: Final = {
    "computer_use": "computer",
    "computer_use_preview": "computer",
    "web_search_2025_08_26": "web_search",
    "web_search_preview": "web_search",
    "web_search_preview_2025_03_11": "web_search",
}
"""Other names of hosted tools: a choice may use another one than the tool does."""
_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


def check_tool_choice(request: CreateResponseRequest) -> None:
    """Holds the tool choice of a request to the tools that the request has.

    Args:
        request: the request.

    Raises:
        ApiError: there are no tools to choose from, a chosen one is not among them, or it is one
            that the server would have to run.
    """
    if request.tool_choice_mode == "required":
        _check_callable(set(_tools(request)), "'required'")
    elif request.HasField("tool_choice_tool"):
        choice = request.tool_choice_tool
        tools = set(_tools(request))
        if choice.HasField("allowed_tools"):
            allowed = [(_allowed(tool), tool.type) for tool in choice.allowed_tools.tools]
            for key, kind in allowed:
                _check_there(key, kind, tools)
            if choice.allowed_tools.mode == "required":
                _check_callable({key for key, _ in allowed}, "'allowed_tools'")
        else:
            key = _chosen(choice)
            _check_there(key, choice.WhichOneof("kind") or "", tools)
            if key[0] not in _NAMED:
                raise _not_built()


def redact_tool_choice(response: Response) -> None:
    """Takes out of the tool choice that a response tells what might be a secret.

    A client may send whole tools as those that are allowed, with the tokens for their servers.
    What names a tool is enough.

    Args:
        response: the response, which is changed.
    """
    if response.HasField("tool_choice_tool"):
        for tool in response.tool_choice_tool.allowed_tools.tools:
            tool.ClearField("additional_properties")


def _tools(request: CreateResponseRequest) -> Iterator[_Key]:
    """Yields the tools that can be chosen, those that the input brings among them."""
    yield from _keys(request.tools)
    for item in request.input_list.items:
        kind = item.WhichOneof("kind")
        if kind == "additional_tools":
            yield from _keys(item.additional_tools.tools)
        elif kind == "tool_search_output":
            yield from _keys(item.tool_search_output.tools)


def _keys(tools: Iterable[Tool]) -> Iterator[_Key]:
    for tool in tools:
        yield _key(tool)
        if tool.HasField("namespace"):
            yield from _keys(tool.namespace.tools)


def _key(tool: Tool) -> _Key:
    kind = tool.WhichOneof("kind") or ""
    if kind in _NAMED:
        return kind, getattr(tool, kind).name
    return _FAMILIES.get(kind, kind), tool.mcp.server_label


def _chosen(choice: ToolChoice) -> _Key:
    kind = choice.WhichOneof("kind") or ""
    if kind in _NAMED:
        return kind, getattr(choice, kind).name
    return _FAMILIES.get(kind, kind), choice.mcp.server_label


def _allowed(tool: AllowedTool) -> _Key:
    if tool.type in _NAMED:
        return tool.type, tool.name
    kind = _FAMILIES.get(tool.type, tool.type)
    return kind, tool.server_label if kind == "mcp" else ""


def _check_there(key: _Key, kind: str, tools: set[_Key]) -> None:
    """Refuses a tool that is not there, by its name or else by the kind as the client wrote it."""
    if key not in tools:
        # Whatever else a client wrote there is not repeated.
        told = next((f"'{part}' " for part in (key[1], kind) if _PLAIN.fullmatch(part)), "")
        raise _refused(f"The tool {told}of 'tool_choice' is not among 'tools'.")


def _check_callable(tools: set[_Key], choice: str) -> None:
    """Refuses to force a call where there is nothing to call, or only what the server runs."""
    if not tools:
        raise _refused(f"{choice} as 'tool_choice' needs a tool to call.")
    if not any(kind in _NAMED for kind, _ in tools):
        raise _not_built()


def _refused(message: str) -> ApiError:
    return ApiError(ErrorKind.INVALID_VALUE, message, "tool_choice", "invalid_value")


def _not_built() -> ApiError:
    message = "'tool_choice' of a tool that the server runs is not built yet."
    return ApiError(ErrorKind.NOT_BUILT, message, "tool_choice")
