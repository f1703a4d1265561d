"""Reasoning: what the simulator thinks before it answers."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from antiphon.backends.sim.phrases import Phrases
from antiphon.core.errors import ApiError, ErrorKind
from antiphon.v1.item_pb2 import Item
from antiphon.v1.reasoning_pb2 import ReasoningItem
from antiphon.v1.responses_service_pb2 import CreateResponseRequest

__all__ = ["Thought", "check_reasoning", "sealed", "thought_of", "thoughts_in"]

_MARK: Final = "sim1"
_CHECKSUM: Final = 8
_LONGEST_QUOTE: Final = 200
_TOKENS: Final = {
    "minimal": 16,
    "low": 64,
    "": 128,
    "medium": 256,
    "high": 1024,
    "xhigh": 4096,
    "max": 16384,
}
"""What each effort costs."""


@dataclass(frozen=True, slots=True)
class Thought:
    """A reasoning.

    Args:
        text: what is thought.
        summary: the parts of its summary.
        tokens: what it costs.
        aloud: whether the text itself is told.
        encrypted: whether it is told in a form that only the server reads.
    """

    text: str
    summary: Sequence[str]
    tokens: int
    aloud: bool
    encrypted: bool


def thought_of(request: CreateResponseRequest, phrases: Phrases, asked: str) -> Thought | None:
    """Returns what is thought before a request is answered, or None.

    Args:
        request: the request.
        phrases: what the message asks for.
        asked: the message.
    """
    if not request.HasField("reasoning") and not phrases.think:
        return None
    reasoning = request.reasoning
    kind = reasoning.summary or reasoning.generate_summary
    effort = reasoning.effort
    if effort == "none" or not (effort or kind):
        if not phrases.think:
            return None
        effort = ""
    quote = asked[:_LONGEST_QUOTE]
    text = (
        f'The user says: "{quote}". I look for what I am asked to do, and then I do it.'
        if quote
        else "The user says nothing. I see what is there, and then I go on."
    )
    summary: list[str] = []
    if kind:
        summary.append(f'**Reading the message**\n\nThe user says: "{quote}".')
    if kind == "detailed":
        summary.append("**Choosing an answer**\n\nI look for what I am asked to do and do it.")
    encrypted = "reasoning.encrypted_content" in request.include
    tokens = _TOKENS.get(effort, _TOKENS["medium"])
    return Thought(text, summary, tokens, phrases.think_aloud, encrypted)


def sealed(text: str) -> str:
    """Returns a text in a form that does not read as one. It is not a secret.

    Args:
        text: the text.
    """
    data = text.encode()
    check = hashlib.blake2b(data, digest_size=_CHECKSUM).digest()
    return f"{_MARK}.{base64.urlsafe_b64encode(check + data).decode()}"


def _unsealed(content: str) -> str | None:
    """Returns the text of what `sealed` returned, or None if it did not."""
    mark, _, body = content.partition(".")
    if mark != _MARK:
        return None
    try:
        data = base64.b64decode(body, altchars=b"-_", validate=True)
        text = data[_CHECKSUM:].decode()
    except ValueError:
        return None
    return text if sealed(text) == content else None


def check_reasoning(items: Sequence[Item]) -> None:
    """Refuses encrypted reasoning that is not the simulator's.

    Args:
        items: the input of a request.

    Raises:
        ApiError: one of them has some.
    """
    for index, item in enumerate(items):
        content = item.reasoning.encrypted_content if item.HasField("reasoning") else ""
        if content and _unsealed(content) is None:
            param = f"input[{index}].encrypted_content"
            message = f"'{param}' could not be read: it must be as this model returned it."
            raise ApiError(ErrorKind.INVALID_VALUE, message, param, "invalid_encrypted_content")


def thoughts_in(items: Iterable[Item]) -> list[str]:
    """Returns what was thought, as far as the items tell it.

    Args:
        items: the items of a context.
    """
    told = (_told(item.reasoning) for item in items if item.HasField("reasoning"))
    return [text for text in told if text]


def _told(reasoning: ReasoningItem) -> str:
    content = "\n".join(part.reasoning_text.text for part in reasoning.content)
    if content:
        return content
    unsealed = _unsealed(reasoning.encrypted_content)
    if unsealed:
        return unsealed
    return "\n".join(part.summary_text.text for part in reasoning.summary)
