"""The text in items, for backends that read it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from antiphon.v1.content_pb2 import Content
from antiphon.v1.item_pb2 import Item
from antiphon.v1.message_pb2 import Role

__all__ = ["answer_text", "last_user_index", "last_user_text", "text_of"]

_USER: Final = Role.ROLE_USER


def text_of(item: Item) -> str:
    """Returns the text of a message, its parts joined by line breaks; "" for other items."""
    return _joined(item.message.content_list.parts)


def answer_text(item: Item) -> str:
    """Returns the text that a function or a custom tool answered; "" for other items."""
    if item.HasField("function_call_output"):
        answer = item.function_call_output
        if answer.HasField("output_list"):
            return _joined(answer.output_list.parts)
        return answer.output_text
    custom = item.custom_tool_call_output
    return (
        _joined(custom.output_list.parts) if custom.HasField("output_list") else custom.output_text
    )


def last_user_index(items: Sequence[Item]) -> int:
    """Returns the place of the last message of the user's; -1 if there is none."""
    for index in range(len(items) - 1, -1, -1):
        item = items[index]
        if item.HasField("message") and item.message.role == _USER:
            return index
    return -1


def last_user_text(items: Sequence[Item]) -> str:
    """Returns the text of the last message of the user's; "" if there is none."""
    index = last_user_index(items)
    return text_of(items[index]) if index >= 0 else ""


def _joined(parts: Iterable[Content]) -> str:
    texts: list[str] = []
    for part in parts:
        kind = part.WhichOneof("kind")
        if kind == "input_text":
            texts.append(part.input_text.text)
        elif kind == "output_text":
            texts.append(part.output_text.text)
        elif kind is not None:
            text = getattr(getattr(part, kind), "text", None)
            if text is not None:
                texts.append(text)
    return "\n".join(texts)
