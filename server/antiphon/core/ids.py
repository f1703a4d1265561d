"""Ids: how they are made, and which ones can exist at all."""

from __future__ import annotations

import os
import re
from typing import Final

from antiphon.core.errors import ApiError, ErrorKind

__all__ = [
    "MAX_LENGTH",
    "check_id",
    "is_id",
    "item_id",
    "new_id",
    "output_item_id",
    "owner_of",
    "prefix_of",
]

MAX_LENGTH: Final = 128
"""The longest id, in characters."""

_PREFIXES: Final = {
    "message": "msg",
    "function_call": "fc",
    "function_call_output": "fco",
    "custom_tool_call": "ctc",
    "custom_tool_call_output": "ctco",
    "reasoning": "rs",
    "web_search_call": "ws",
    "file_search_call": "fs",
    "code_interpreter_call": "ci",
    "image_generation_call": "ig",
    "computer_call": "cu",
    "computer_call_output": "cuo",
    "mcp_call": "mcp",
    "mcp_list_tools": "mcpl",
    "mcp_approval_request": "mcpr",
    "mcp_approval_response": "mcpa",
    "compaction": "cmp",
}
"""What the ids of items begin with, by kind; others begin with `item`."""

_OUTPUT: Final = 0x80000
"""Added to the places of output items, so that they never have the id of an input item."""

_FORM = re.compile(rf"[A-Za-z0-9][A-Za-z0-9_.:-]{{0,{MAX_LENGTH - 1}}}")


def new_id(prefix: str) -> str:
    """Makes an id that nobody can guess.

    Args:
        prefix: what the id is of, such as `resp` or `msg`.
    """
    return f"{prefix}_{os.urandom(16).hex()}"


def prefix_of(kind: str) -> str:
    """Returns what the ids of a kind of items begin with.

    Args:
        kind: the kind, such as `message` or `function_call`.
    """
    return _PREFIXES.get(kind, "item")


def item_id(prefix: str, owner: str, index: int) -> str:
    """Returns the id of an item that its client sent without one.

    It follows from the response's id and the item's place, so that it is stable and need not be
    stored.

    Args:
        prefix: what the item is, such as `msg`.
        owner: the id of the response whose input it stands in.
        index: its place there, from 0.
    """
    return f"{prefix}_{owner.rpartition('_')[2]}{index:05x}"


def output_item_id(prefix: str, owner: str, index: int) -> str:
    """Returns the id of an item of a response's output.

    Args:
        prefix: what the item is, such as `msg`.
        owner: the response's id.
        index: the item's place in the output, from 0.
    """
    return item_id(prefix, owner, _OUTPUT + index)


def owner_of(item: str, prefix: str) -> str:
    """Returns the id of the response that an item is of, if the id was made here.

    Args:
        item: the item's id.
        prefix: what the ids of responses begin with.
    """
    return f"{prefix}_{item.rpartition('_')[2][:-5]}"


def is_id(value: str) -> bool:
    """Returns whether a text can be an id."""
    return _FORM.fullmatch(value) is not None


def check_id(value: str, param: str) -> None:
    """Refuses an id that cannot exist, before any store is asked.

    Args:
        value: the id.
        param: the name of the parameter that holds it.

    Raises:
        ApiError: it is empty, too long, or has other characters than ids have.
    """
    if not is_id(value):
        raise ApiError(
            ErrorKind.INVALID_VALUE,
            f"'{param}' must be an id: 1 to {MAX_LENGTH} letters, digits, '_', '.', ':' or '-'.",
            param,
            "invalid_value",
        )
