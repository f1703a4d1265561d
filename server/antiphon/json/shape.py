"""Shapes: the JSON of messages that differ in a few values only, printed without the messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from google.protobuf.message import Message

from antiphon.json.encode import encode, quote

__all__ = ["shape"]

# Stand in for values while the text around them is cut out: nothing else prints like them.
_NUMBER: Final = 1_234_567_890_000_000
_TEXT: Final = "\ue000{}\ue000"


def shape(message: Message, paths: Iterable[str]) -> str:
    """Returns the JSON of a message as a template for `%`, with some values left open.

    Args:
        message: the message with whatever else it holds. The values are overwritten.
        paths: the fields of the values, strings and numbers, in the order in which they are
            printed; such as `output_text_delta.item_id` or `content.0.text`.

    Raises:
        ValueError: a value is not printed, or not in this order.
    """
    printed = []
    for place, path in enumerate(paths):
        *names, name = path.split(".")
        owner: Any = message
        for each in names:
            owner = owner[int(each)] if each.isdecimal() else getattr(owner, each)
        text = isinstance(getattr(owner, name), str)
        value = _TEXT.format(place) if text else _NUMBER + place
        setattr(owner, name, value)
        printed.append(quote(value) if isinstance(value, str) else str(value))
    json = encode(message).replace("%", "%%")
    template = ""
    for value in printed:
        before, found, json = json.partition(value)
        if not found:
            raise ValueError("a value is not printed, or in another order")
        template += f"{before}%s"
    return template + json
