"""Output: the steps in which a backend tells what it writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from msgspec import Struct

from antiphon.v1.content_pb2 import OutputTextLogprob
from antiphon.v1.item_pb2 import Item
from antiphon.v1.usage_pb2 import ResponseUsage

__all__ = [
    "Accepted",
    "BackendFault",
    "Failed",
    "Finished",
    "InputDelta",
    "ItemAdded",
    "ItemDone",
    "ReasoningDelta",
    "RefusalDelta",
    "Step",
    "SummaryDelta",
    "TextDelta",
    "TextDeltas",
]


class BackendFault(Exception):
    """A backend took a step that no order of events allows."""


class Accepted(Struct, gc=False):
    """The backend has taken the request; what goes wrong from now on is part of the answer."""


class ItemAdded(Struct, gc=False):
    """An item begins.

    Args:
        item: the item as far as it is known; it gets an id, and a call gets a call id, if it has
            none. The text that it has already is told as if it were written now.
        key: a name for it among the items open at once.
    """

    item: Item
    key: str = ""


class TextDelta(Struct, gc=False):
    """Text for an open message; without one, a message is opened.

    Args:
        text: the text to add.
        key: the message's name.
        logprobs: the log probabilities of its tokens, if they were asked for.
    """

    text: str
    key: str = ""
    logprobs: Sequence[OutputTextLogprob] = ()


class TextDeltas(Struct, gc=False):
    """Several pieces of text that are there at once: the same as a `TextDelta` for each.

    Args:
        texts: the texts to add, at most a few hundred: clients wait until all are taken.
        key: the message's name.
    """

    texts: Sequence[str]
    key: str = ""


class RefusalDelta(Struct, gc=False):
    """Text of a refusal for an open message; without one, a message is opened.

    Args:
        text: the text to add.
        key: the message's name.
    """

    text: str
    key: str = ""


class InputDelta(Struct, gc=False):
    """Text of what an open tool call gives to its tool.

    Args:
        text: the text to add to the `arguments` of a function call or an MCP call, or to the
            `input` of a custom tool call.
        key: the call's name.
    """

    text: str
    key: str = ""


class SummaryDelta(Struct, gc=False):
    """Text of the summary of an open reasoning item.

    Args:
        text: the text to add.
        index: which part of the summary it belongs to: the last one, or the next one.
        key: the reasoning item's name.
    """

    text: str
    index: int = 0
    key: str = ""


class ReasoningDelta(Struct, gc=False):
    """Text of the reasoning itself, for an open reasoning item.

    Args:
        text: the text to add.
        key: the reasoning item's name.
    """

    text: str
    key: str = ""


class ItemDone(Struct, gc=False):
    """An item is finished.

    Args:
        key: its name.
        item: what is known of it only now, merged into it: such as the `encrypted_content` of
            reasoning. It is of the same kind, and repeats what was told of the item or leaves it
            out.
    """

    key: str = ""
    item: Item | None = None


class Finished(Struct, gc=False):
    """The answer is finished; open items are finished with it.

    Args:
        usage: the tokens it took.
        incomplete: the reason why the answer was cut short, or "".
    """

    usage: ResponseUsage | None = None
    incomplete: str = ""


class Failed(Struct, gc=False):
    """The answer has failed.

    Args:
        code: one of the API's codes for a failed response.
        message: one sentence for the client.
        usage: the tokens it took.
    """

    code: str
    message: str
    usage: ResponseUsage | None = None


Step: TypeAlias = (
    Accepted
    | ItemAdded
    | TextDelta
    | TextDeltas
    | RefusalDelta
    | InputDelta
    | SummaryDelta
    | ReasoningDelta
    | ItemDone
    | Finished
    | Failed
)
