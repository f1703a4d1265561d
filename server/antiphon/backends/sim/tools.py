"""Tools: what a request lets the simulator call, and what it calls."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from antiphon.backends.sim.phrases import NamedCalls, read_calls
from antiphon.backends.sim.words import name_words, spoken
from antiphon.core.errors import ApiError, ErrorKind
from antiphon.v1.item_pb2 import Item
from antiphon.v1.responses_service_pb2 import CreateResponseRequest
from antiphon.v1.tool_pb2 import Tool

__all__ = ["Choice", "PlannedCall", "SimTool", "choose", "tools_of"]

_MAX_TOOLS: Final = 1024


@dataclass(frozen=True, slots=True)
class SimTool:
    """A tool that the simulator can call: a function or a custom tool.

    Args:
        name: its name.
        namespace: the group that it is of, or "".
        custom: whether it takes free text.
        schema: the JSON Schema of its arguments, or None.
        grammar: the regular expression of its free text, or None.
        param: where it stands in the request.
    """

    name: str
    namespace: str
    custom: bool
    schema: str | None
    grammar: str | None
    param: str


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call to be made.

    Args:
        tool: what is called.
        place: how many calls of the same tool come before it.
        given: its arguments or input, if the message has them.
    """

    tool: SimTool
    place: int = 0
    given: str | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """What the simulator calls.

    Args:
        calls: the calls of this response.
        interleaved: whether they are written at once.
        text: the message without the words that name the calls.
    """

    calls: Sequence[PlannedCall] = ()
    interleaved: bool = False
    text: str = ""


def tools_of(request: CreateResponseRequest, items: Sequence[Item]) -> Sequence[SimTool]:
    """Returns the functions and custom tools of a request, those in namespaces included.

    Args:
        request: the request.
        items: its input, which may bring more tools.
    """
    found = list(_tools(request.tools, "tools", "")) if request.tools else []
    for index, item in enumerate(items):
        if item.HasField("additional_tools"):
            found += _tools(item.additional_tools.tools, f"input[{index}].tools", "")
        elif item.HasField("tool_search_output"):
            found += _tools(item.tool_search_output.tools, f"input[{index}].tools", "")
    return found[:_MAX_TOOLS]


def _tools(tools: Iterable[Tool], param: str, namespace: str) -> Iterable[SimTool]:
    for index, tool in enumerate(tools):
        place = f"{param}[{index}]"
        kind = tool.WhichOneof("kind")
        if kind == "function":
            function = tool.function
            schema = function.parameters if function.HasField("parameters") else None
            yield SimTool(function.name, namespace, False, schema, None, place)
        elif kind == "custom":
            form = tool.custom.format.grammar
            grammar = form.definition if form.syntax == "regex" else None
            yield SimTool(tool.custom.name, namespace, True, None, grammar, place)
        elif kind == "namespace":
            yield from _tools(tool.namespace.tools, f"{place}.tools", tool.namespace.name)


def choose(
    request: CreateResponseRequest,
    tools: Sequence[SimTool],
    text: str,
    since: Sequence[Item],
) -> Choice:
    """Returns what is called now.

    Args:
        request: the request.
        tools: its tools.
        text: the last message of the user's.
        since: the items after it.

    Raises:
        ApiError: a tool is to be called that cannot be.
    """
    allowed, forced = _allowed(request, tools)
    if not allowed:
        return Choice(text=text)
    named = read_calls(text, {name: tool.custom for name, tool in _by_name(allowed).items()})
    wanted = _wanted(allowed, named)
    made = [name for name in map(_called, since) if name]
    for name in made:
        for index, call in enumerate(wanted):
            if call.tool.name == name:
                del wanted[index]
                break
    if forced and not wanted:
        # A tool that was not called yet comes first, so that a client that waits for one gets it.
        rest = [tool for tool in allowed if tool.name not in made]
        wanted = [PlannedCall((rest or allowed)[0])]
    most = len(wanted)
    if request.HasField("parallel_tool_calls") and not request.parallel_tool_calls:
        most = 1
    if request.HasField("max_tool_calls"):
        most = min(most, request.max_tool_calls)
    calls = wanted[:most]
    return Choice(calls, named.interleaved and len(calls) > 1, named.rest)


def _allowed(
    request: CreateResponseRequest, tools: Sequence[SimTool]
) -> tuple[Sequence[SimTool], bool]:
    """Returns the tools that may be called, and whether one has to be."""
    if not request.HasField("tool_choice_tool"):
        mode = request.tool_choice_mode
        if mode == "required" and not tools:
            raise _refused("'tool_choice' is 'required', and no function or custom tool is given.")
        return (() if mode == "none" else tools), mode == "required"
    choice = request.tool_choice_tool
    kind = choice.WhichOneof("kind") or ""
    if kind == "allowed_tools":
        names = {
            (tool.type, tool.name) for tool in choice.allowed_tools.tools if tool.HasField("name")
        }
        allowed = [
            tool for tool in tools if ("custom" if tool.custom else "function", tool.name) in names
        ]
        required = choice.allowed_tools.mode == "required"
        if required and not allowed:
            raise _refused("'tool_choice' allows no function or custom tool that is given.")
        return allowed, required
    if kind in ("function", "custom"):
        name = getattr(choice, kind).name
        allowed = [t for t in tools if t.name == name and t.custom == (kind == "custom")]
        if allowed:
            return allowed[:1], True
        raise _refused("'tool_choice' names a tool that is not in 'tools'.")
    raise _refused("'tool_choice' names a tool that this model cannot call.")


def _wanted(tools: Sequence[SimTool], named: NamedCalls) -> list[PlannedCall]:
    """Returns all calls that a message asks for, by name or by what it is about."""
    if named.calls:
        places: dict[str, int] = {}
        known = _by_name(tools)
        calls = []
        for call in named.calls:
            place = places.get(call.name, 0)
            places[call.name] = place + 1
            calls.append(PlannedCall(known[call.name], place, call.given))
        return calls
    said = set(spoken(named.rest))
    said |= {word.removesuffix("s") for word in said}
    shared = [(name_words(tool.name) & said, tool) for tool in tools]
    # The best match comes first; each word is answered by one tool.
    shared.sort(key=lambda each: -len(each[0]))
    wanted = []
    claimed: frozenset[str] = frozenset()
    for words, tool in shared:
        if words - claimed:
            claimed |= words
            wanted.append(tool)
    return [PlannedCall(tool) for tool in tools if tool in wanted]


def _by_name(tools: Sequence[SimTool]) -> dict[str, SimTool]:
    known: dict[str, SimTool] = {}
    for tool in tools:
        known.setdefault(tool.name, tool)
        if tool.namespace:
            known.setdefault(f"{tool.namespace}.{tool.name}", tool)
    return known


def _called(item: Item) -> str:
    if item.HasField("function_call"):
        return item.function_call.name
    return item.custom_tool_call.name if item.HasField("custom_tool_call") else ""


def _refused(message: str) -> ApiError:
    return ApiError(ErrorKind.INVALID_VALUE, message, "tool_choice", "invalid_value")
