"""Answers: what the simulator says where nothing else is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from antiphon.backends.protocol import Call
from antiphon.backends.sim.phrases import Phrases
from antiphon.backends.sim.reasoning import thoughts_in
from antiphon.backends.sim.view import View
from antiphon.backends.sim.words import significant
from antiphon.backends.text import text_of
from antiphon.v1.message_pb2 import Role

__all__ = ["REFUSAL", "answer_of"]

REFUSAL: Final = "I refuse to answer that."
_LONGEST_QUOTE: Final = 4000
_LOOKED_AT: Final = 200
"""The items of the history that are looked at, the latest ones."""


async def answer_of(call: Call, view: View, phrases: Phrases) -> str:
    """Returns the text of an answer.

    Args:
        call: the call; its history is read only if the answer depends on it.
        view: what the answer depends on.
        phrases: what the message asks for.
    """
    outputs = view.outputs()
    if outputs:
        return "\n".join(f'{name} said: "{said[:_LONGEST_QUOTE]}"' for name, said in outputs)
    if phrases.repeat is not None:
        return phrases.repeat
    if phrases.recall:
        thoughts = thoughts_in([*await call.history(), *call.input])
        return f'I thought: "{thoughts[-1]}"' if thoughts else "I have not thought before."
    seen = f"I see {_listed(view.media)}. " if view.media else ""
    return f"{seen}{await _said(call, view)}" if view.asked or not seen else seen.rstrip()


async def _said(call: Call, view: View) -> str:
    asked = view.asked
    words = significant(asked)
    if words:
        earlier = [*await call.history(), *view.before]
        for item in earlier[: -_LOOKED_AT - 1 : -1]:
            if item.HasField("message") and item.message.role == Role.ROLE_USER:
                said = text_of(item)
                if words & significant(said):
                    return f'Earlier you said: "{said}"'
    return f"You said: {asked}" if asked else "There is nothing to answer."


def _listed(things: Sequence[str]) -> str:
    *most, last = things
    return f"{', '.join(most)} and {last}" if most else last
