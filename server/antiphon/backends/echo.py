"""The echo backend: answers with the last text of the user's, for tests and benchmarks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final

from antiphon.backends.protocol import Call
from antiphon.backends.text import last_user_text
from antiphon.core.output import Finished, Step, TextDeltas
from antiphon.core.tokens import count, usage

__all__ = ["EchoBackend"]

_AT_ONCE: Final = 256
"""Texts of one step."""


class EchoBackend:
    """Answers with the last text of the user's.

    Args:
        deltas: how many pieces the text is cut into.
    """

    def __init__(self, deltas: int = 1) -> None:
        self._deltas = deltas

    async def respond(self, call: Call) -> AsyncIterator[Sequence[Step]]:
        """Yields the last text of the new input, or nothing but the end if there is none."""
        text = last_user_text(call.input)
        size = max(1, -(-len(text) // self._deltas))
        texts = [text[at : at + size] for at in range(0, len(text), size)]
        told = [TextDeltas(texts[at : at + _AT_ONCE]) for at in range(0, len(texts), _AT_ONCE)]
        yield [*told, Finished(usage(call.context_tokens, count(text)))]
