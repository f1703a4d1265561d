"""Calls: which ones wait for an answer, and whether a turn answers them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from antiphon.core.errors import ApiError, ErrorKind
from antiphon.v1.item_pb2 import Item
from antiphon.v1.item_status_pb2 import ItemStatus

__all__ = ["CALLS", "calls_after", "check_calls", "is_call", "open_calls"]

CALLS: Final = frozenset(
    {
        "apply_patch_call",
        "computer_call",
        "custom_tool_call",
        "function_call",
        "local_shell_call",
        "shell_call",
        "tool_search_call",
    }
)
"""The kinds of calls that the client runs and answers."""
_ANSWERS: Final = frozenset(f"{kind}_output" for kind in CALLS - {"tool_search_call"}) | {
    "tool_search_output"
}
_UNFINISHED: Final = frozenset(
    {
        ItemStatus.ITEM_STATUS_IN_PROGRESS,
        ItemStatus.ITEM_STATUS_INCOMPLETE,
        # Some kinds have a set of their own.
        "in_progress",
        "incomplete",
    }
)


def is_call(item: Item) -> bool:
    """Returns whether an item is a call that its client answers, or such an answer."""
    return item.WhichOneof("kind") in CALLS | _ANSWERS


def open_calls(output: Iterable[Item]) -> frozenset[str]:
    """Returns the ids of the completed calls of an output that its client has to answer.

    Args:
        output: the items of one response, or of an input that repeats one.
    """
    return calls_after(frozenset(), output)


def calls_after(waiting: frozenset[str], items: Iterable[Item]) -> frozenset[str]:
    """Returns the ids of the calls that wait for an answer after some items.

    Args:
        waiting: the ids of the calls that waited before them.
        items: the items, oldest first.
    """
    found = set(waiting)
    for item in items:
        kind = item.WhichOneof("kind")
        if kind in CALLS:
            call = getattr(item, kind)
            if call.call_id and call.status not in _UNFINISHED and not _on_server(call):
                found.add(call.call_id)
        elif kind in _ANSWERS:
            found.discard(_answered(item))
    return frozenset(found)


def check_calls(items: Sequence[Item], waiting: frozenset[str]) -> None:
    """Holds a turn to the rule that every call is answered, and every answer has its call.

    Args:
        items: the turn's input.
        waiting: the ids of the calls that the turn before left open.

    Raises:
        ApiError: an answer has no call, or a call of the turn before has no answer.
    """
    known = set(waiting)
    unanswered = set(waiting)
    for index, item in enumerate(items):
        kind = item.WhichOneof("kind")
        if kind in CALLS:
            known.add(getattr(item, kind).call_id)
        elif kind in _ANSWERS:
            call_id = _answered(item)
            # A search that the server ran has no call id; neither has its result.
            if call_id and call_id not in known:
                raise _refused(f"No tool call was found for 'input[{index}]'.")
            unanswered.discard(call_id)
    if unanswered:
        raise _refused(f"A tool call has no output in the input: {min(unanswered)}.")


def _answered(item: Item) -> str:
    """Returns the id of the call that an item answers."""
    answer: Any = getattr(item, item.WhichOneof("kind") or "")
    # A local shell call is answered by the item's id, which is the call's.
    call_id: str = answer.id if item.HasField("local_shell_call_output") else answer.call_id
    return call_id


def _on_server(call: Any) -> bool:
    """Whether the server runs a call that could also be the client's."""
    return getattr(call, "execution", "") == "server"


def _refused(message: str) -> ApiError:
    return ApiError(ErrorKind.INVALID_VALUE, message, "input", "invalid_value")
