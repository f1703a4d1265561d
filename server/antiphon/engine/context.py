"""Contexts: what comes before a turn, and the items that it consists of."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from antiphon.core.calls import is_call
from antiphon.core.ids import is_id, item_id, prefix_of
from antiphon.stores.protocol import StoredItem, Turn, TurnContent
from antiphon.v1.item_pb2 import Item, ItemList
from antiphon.v1.item_status_pb2 import ItemStatus
from antiphon.v1.response_pb2 import Response

__all__ = ["context_items", "history_items", "identified", "named_items", "stored_items"]


async def _turns(last: Turn | None) -> list[TurnContent]:
    """Reads a chain of turns.

    Args:
        last: its last turn, or None.

    Returns:
        The turns, oldest first.
    """
    contents: list[TurnContent] = []
    turn = last
    while turn is not None:
        contents.append(await turn.read())
        turn = await turn.parent()
    contents.reverse()
    return contents


async def history_items(last: Turn | None) -> Sequence[Item]:
    """Reads the items of a chain of turns as a model is given them, oldest first.

    Args:
        last: its last turn, or None.
    """
    items: list[Item] = []
    for content in await _turns(last):
        items.extend(ItemList.FromString(content.input).items)
        items.extend(Response.FromString(content.response).output)
    return items


async def context_items(turn: Turn) -> Sequence[Item]:
    """Reads all items that a response was made from, oldest first, each with its id.

    Args:
        turn: the response's turn; its own output is left out.
    """
    items: list[Item] = []
    contents = await _turns(turn)
    for content in contents:
        response = Response.FromString(content.response)
        items.extend(named_items(ItemList.FromString(content.input).items, response.id))
        if content is not contents[-1]:
            items.extend(response.output)
    return items


def named_items(items: Sequence[Item], response_id: str) -> Sequence[Item]:
    """Gives the items of an input that were sent without an id their ids.

    Args:
        items: the items, which are changed.
        response_id: the response whose input they are: their ids follow from it, so that they
            are the same whenever they are asked for.
    """
    for index, item in enumerate(items):
        identified(item, response_id, index)
    return items


def identified(item: Item, owner: str, index: int) -> str:
    """Returns an item's id, which it is given if it has none.

    Args:
        item: the item, which is changed.
        owner: the id of the response or the request that it came with.
        index: its place there.
    """
    kind = item.WhichOneof("kind") or ""
    made = item_id(prefix_of(kind), owner, index)
    if kind == "unknown":
        told = json.loads(item.unknown).get("id")
        return told if isinstance(told, str) and is_id(told) else made
    body: Any = getattr(item, kind)
    if "id" not in body.DESCRIPTOR.fields_by_name:
        return made
    if not body.id:
        body.id = made
    if "status" in body.DESCRIPTOR.fields_by_name and not body.status:
        _complete(body)
    found: str = body.id
    return found


def _complete(body: Any) -> None:
    """Says of an item that was sent without a status that it is finished."""
    if body.DESCRIPTOR.fields_by_name["status"].enum_type is ItemStatus.DESCRIPTOR:
        body.status = ItemStatus.ITEM_STATUS_COMPLETED


def stored_items(items: Sequence[Item], owner: str, response_id: str = "") -> list[StoredItem]:
    """Returns items as a conversation keeps them, each with its id.

    Args:
        items: the items, which are changed.
        owner: the id of the response or the request that they came with.
        response_id: the response that they are of, or "".
    """
    return [
        StoredItem(
            identified(item, owner, index), item.SerializeToString(), response_id, is_call(item)
        )
        for index, item in enumerate(items)
    ]
