"""The text in items, for backends that read it."""

from __future__ import annotations

from collections.abc import Sequence

from antiphon.v1.item_pb2 import Item
from antiphon.v1.message_pb2 import Role

__all__ = ["last_user_text", "text_of"]


def text_of(item: Item) -> str:
    """Returns the text of a message, its parts joined by line breaks; "" for other items."""
    parts = item.message.content_list.parts
    kinds = (getattr(part, part.WhichOneof("kind") or "kind", None) for part in parts)
    texts = (getattr(kind, "text", None) for kind in kinds)
    return "\n".join(text for text in texts if text is not None)


def last_user_text(items: Sequence[Item]) -> str:
    """Returns the text of the last message of the user's; "" if there is none."""
    for item in reversed(items):
        if item.HasField("message") and item.message.role == Role.ROLE_USER:
            return text_of(item)
    return ""
