"""Output: the steps in which a backend tells what it writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from antiphon.v1.item_pb2 import Item
from antiphon.v1.usage_pb2 import ResponseUsage

__all__ = ["Accepted", "Failed", "Finished", "ItemAdded", "ItemDone", "Step", "TextDelta"]


@dataclass(slots=True)
class Accepted:
    """The backend has taken the request; what goes wrong from now on is part of the answer."""


@dataclass(slots=True)
class ItemAdded:
    """An item begins.

    Args:
        item: the item as far as it is known; it gets an id if it has none.
        key: a name for it among the items open at once.
    """

    item: Item
    key: str = ""


@dataclass(slots=True)
class TextDelta:
    """Text for an open message; without one, a message is opened.

    Args:
        text: the text to add.
        key: the message's name.
    """

    text: str
    key: str = ""


@dataclass(slots=True)
class ItemDone:
    """An item is finished.

    Args:
        key: its name.
    """

    key: str = ""


@dataclass(slots=True)
class Finished:
    """The answer is finished; open items are finished with it.

    Args:
        usage: the tokens it took.
        incomplete: the reason why the answer was cut short, or "".
    """

    usage: ResponseUsage | None = None
    incomplete: str = ""


@dataclass(slots=True)
class Failed:
    """The answer has failed.

    Args:
        code: one of the API's codes for a failed response.
        message: one sentence for the client.
        usage: the tokens it took.
    """

    code: str
    message: str
    usage: ResponseUsage | None = None


Step: TypeAlias = Accepted | ItemAdded | TextDelta | ItemDone | Finished | Failed
