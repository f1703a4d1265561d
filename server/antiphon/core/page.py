"""Pages: a part of a list, chosen by cursors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from antiphon.core.errors import ApiError, ErrorKind

__all__ = ["DEFAULT_LIMIT", "Page", "PageRequest", "take_page"]

DEFAULT_LIMIT: Final = 20
"""Elements of a page, unless the client says otherwise."""


class PageRequest(NamedTuple):
    """Which part of a list is asked for.

    Args:
        limit: the greatest number of elements, from 1 to 100.
        ascending: whether the oldest come first.
        after: the id of the element before the first wanted one, in that order, or "".
        before: the id of the element after the last wanted one, or "".
    """

    limit: int = DEFAULT_LIMIT
    ascending: bool = False
    after: str = ""
    before: str = ""


class Page(NamedTuple):
    """A part of a list.

    Args:
        places: the places of its elements in the list, in the order asked for.
        has_more: whether there are further elements in that direction.
    """

    places: Sequence[int]
    has_more: bool


def take_page(ids: Sequence[str], asked: PageRequest) -> Page:
    """Chooses a part of a list.

    With `before` alone, it is the part that ends there.

    Args:
        ids: the ids of all elements, oldest first.
        asked: which part.

    Raises:
        ApiError: a cursor is the id of no element.
    """
    order = range(len(ids)) if asked.ascending else range(len(ids) - 1, -1, -1)
    first, last = 0, len(order)
    if asked.after:
        first = order.index(_place(ids, asked.after, "after")) + 1
    if asked.before:
        last = order.index(_place(ids, asked.before, "before"))
    chosen = order[first:last] if first < last else range(0)
    if asked.before and not asked.after:
        return Page(chosen[-asked.limit :], len(chosen) > asked.limit)
    return Page(chosen[: asked.limit], len(chosen) > asked.limit)


def _place(ids: Sequence[str], cursor: str, param: str) -> int:
    try:
        return ids.index(cursor)
    except ValueError:
        message = f"'{param}' is not the id of an item of this list."
        raise ApiError(ErrorKind.NOT_FOUND, message, param) from None
