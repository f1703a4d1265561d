"""The view: what of a call's context an answer depends on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from antiphon.backends.protocol import Call
from antiphon.backends.sim.media import described
from antiphon.backends.text import answer_text, last_user_index, text_of
from antiphon.v1.item_pb2 import Item

__all__ = ["View", "view_of"]

_OUTPUTS: Final = ("function_call_output", "custom_tool_call_output")


@dataclass(frozen=True, slots=True)
class View:
    """What an answer depends on.

    Args:
        asked: the last message of the user's.
        media: what can be seen of its images and files.
        before: the items before that message, as far as they are of the input.
        since: the items after it.
    """

    asked: str
    media: Sequence[str]
    before: Sequence[Item]
    since: Sequence[Item]

    def outputs(self) -> list[tuple[str, str]]:
        """Returns the name and the answer of every tool that answered since the message."""
        if not self.since:
            return []
        names: dict[str, str] = {}
        found = []
        for item in self.since:
            kind = item.WhichOneof("kind")
            if kind == "function_call":
                names[item.function_call.call_id] = item.function_call.name
            elif kind == "custom_tool_call":
                names[item.custom_tool_call.call_id] = item.custom_tool_call.name
            elif kind in _OUTPUTS:
                found.append((names.get(_call_id(item), "The tool"), _said(item)))
        return found


async def view_of(call: Call) -> View:
    """Returns what an answer depends on; the history is read only if the message is in it.

    Args:
        call: the call.
    """
    items = call.input
    index = last_user_index(items)
    if index < 0 and any(item.WhichOneof("kind") in _OUTPUTS for item in items):
        items = [*await call.history(), *items]
        index = last_user_index(items)
    if index < 0:
        return View("", (), (), items)
    message = items[index]
    parts = message.message.content_list.parts
    # Nearly every message is one text.
    if len(parts) == 1 and parts[0].HasField("input_text"):
        return View(parts[0].input_text.text, (), items[:index], items[index + 1 :])
    return View(text_of(message), described(parts), items[:index], items[index + 1 :])


def _call_id(item: Item) -> str:
    if item.HasField("function_call_output"):
        return item.function_call_output.call_id
    return item.custom_tool_call_output.call_id


def _said(item: Item) -> str:
    """Returns what a tool answered: its text, and what is seen of the rest."""
    if item.HasField("function_call_output"):
        parts = item.function_call_output.output_list.parts
    else:
        parts = item.custom_tool_call_output.output_list.parts
    return "\n".join(text for text in (answer_text(item), *described(parts)) if text)
