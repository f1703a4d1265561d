"""The simulator: answers like a model would, deterministically and without one."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from typing import Final

from antiphon.backends.protocol import Call
from antiphon.backends.text import last_user_text, text_of
from antiphon.core.output import Accepted, Finished, Step, TextDelta
from antiphon.core.tokens import count, usage
from antiphon.v1.item_pb2 import Item
from antiphon.v1.message_pb2 import Role

__all__ = ["SimBackend"]

_REPEAT: Final = re.compile(r"\s*repeat exactly:\s?(.*)", re.IGNORECASE | re.DOTALL)
_WORD: Final = re.compile(r"\w+")
_PIECE: Final = re.compile(r"\s*\S+|\s+")
_SHORTEST_SIGNIFICANT: Final = 4
_COMMON: Final = frozenset(
    """
    about above after again along already also always another answer anything because been before
    being below between both could does doing done down during each even every everything first
    from give going good have hello here into just know like made make many might more most much
    must need never only other others over please question quite really repeat said same should
    since some something still such sure take tell than thank thanks that their them then there
    these they thing things think this those through today under until upon used using very want
    wants were what whats when where which while will with would yesterday your yours
    """.split()  # noqa: SIM905 - a hundred quoted words read worse
)
"""Words of four letters and more that say nothing about a subject."""


class SimBackend:
    """Answers deterministically by a few rules that a client can rely on in its tests.

    `Repeat exactly: X` is answered with X. A message that shares a significant word with an
    earlier message of the user's is answered by quoting that message. Any other is answered with
    a sentence about itself.
    """

    async def respond(self, call: Call) -> AsyncIterator[Sequence[Step]]:
        """Yields the answer word by word."""
        yield [Accepted()]
        answer = await _answer(call)
        steps: list[Step] = [TextDelta(piece) for piece in _PIECE.findall(answer)]
        steps.append(Finished(usage(call.context_tokens, count(answer))))
        yield steps


async def _answer(call: Call) -> str:
    asked = last_user_text(call.input)
    repeat = _REPEAT.match(asked)
    if repeat is not None:
        return repeat[1]
    words = _significant(asked)
    if words:
        earlier = [*await call.history(), *_before_last(call.input)]
        for item in reversed(earlier):
            if item.HasField("message") and item.message.role == Role.ROLE_USER:
                said = text_of(item)
                if words & _significant(said):
                    return f'Earlier you said: "{said}"'
    return f"You said: {asked}" if asked else "There is nothing to answer."


def _before_last(items: Sequence[Item]) -> Sequence[Item]:
    """Returns the items before the last message of the user's."""
    for index in range(len(items) - 1, -1, -1):
        if items[index].HasField("message") and items[index].message.role == Role.ROLE_USER:
            return items[:index]
    return []


def _significant(text: str) -> frozenset[str]:
    """Returns the words of a text that tell its subject, in lower case."""
    words = (word.lower() for word in _WORD.findall(text))
    return frozenset(
        word for word in words if len(word) >= _SHORTEST_SIGNIFICANT and word not in _COMMON
    )
