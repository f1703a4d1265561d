"""Scripts: the steps of an answer, and where they are cut short."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from random import Random
from typing import Final

from antiphon.backends.sim.logprobs import logprobs
from antiphon.backends.sim.reasoning import Thought, sealed
from antiphon.backends.sim.tools import PlannedCall
from antiphon.core.ids import item_id
from antiphon.core.output import (
    InputDelta,
    ItemAdded,
    ItemDone,
    ReasoningDelta,
    RefusalDelta,
    Step,
    SummaryDelta,
    TextDelta,
)
from antiphon.v1.custom_tool_pb2 import CustomToolCall
from antiphon.v1.function_call_pb2 import FunctionCall
from antiphon.v1.item_pb2 import Item
from antiphon.v1.reasoning_pb2 import ReasoningItem

__all__ = [
    "DELTAS",
    "called",
    "deltas_in",
    "first_deltas",
    "output_tokens",
    "printed",
    "produced",
    "refused",
    "thought",
    "with_logprobs",
    "within",
    "written",
]

_WORD: Final = re.compile(r"\s*\S+|\s+")
_PIECE: Final = 16
"""The characters of a delta of a document or of a tool's input."""
_TOKEN: Final = 4
_REASONING: Final = "reasoning"

DELTAS: Final = (TextDelta, RefusalDelta, InputDelta)
"""The steps that count as deltas: what is written for the client, reasoning aside."""


def written(text: str) -> list[Step]:
    """Returns the steps of a text, word by word."""
    return [TextDelta(piece) for piece in _WORD.findall(text)]


def printed(text: str) -> list[Step]:
    """Returns the steps of a document, in pieces of equal length."""
    return [TextDelta(piece) for piece in _pieces(text)]


def produced(count_of_deltas: int) -> list[Step]:
    """Returns the steps of a text of so many deltas."""
    return [TextDelta(f"{number} ") for number in range(1, count_of_deltas + 1)]


def refused(text: str) -> list[Step]:
    """Returns the steps of a refusal, word by word."""
    return [RefusalDelta(piece) for piece in _WORD.findall(text)]


def thought(reasoning: Thought) -> list[Step]:
    """Returns the steps of a reasoning."""
    steps: list[Step] = [ItemAdded(Item(reasoning=ReasoningItem()), _REASONING)]
    if reasoning.aloud:
        steps += [ReasoningDelta(piece, _REASONING) for piece in _WORD.findall(reasoning.text)]
    for index, part in enumerate(reasoning.summary):
        steps += [SummaryDelta(piece, index, _REASONING) for piece in _WORD.findall(part)]
    known = None
    if reasoning.encrypted:
        known = Item(reasoning=ReasoningItem(encrypted_content=sealed(reasoning.text)))
    steps.append(ItemDone(_REASONING, known))
    return steps


def called(
    calls: Sequence[tuple[PlannedCall, str]], response_id: str, *, interleaved: bool
) -> list[Step]:
    """Returns the steps of calls.

    Args:
        calls: the calls, each with its arguments or input.
        response_id: the response that they are of: the ids of the calls follow from it.
        interleaved: whether they are written at once.
    """
    added: list[Step] = []
    pieces: list[list[Step]] = []
    done: list[Step] = []
    for index, (call, given) in enumerate(calls):
        key = f"call{index}"
        added.append(ItemAdded(_call_item(call, item_id("call", response_id, index)), key))
        pieces.append([InputDelta(piece, key) for piece in _pieces(given)])
        done.append(ItemDone(key))
    if interleaved:
        turns = zip_longest(*pieces)
        return [*added, *(step for turn in turns for step in turn if step is not None), *done]
    steps: list[Step] = []
    for first, middle, last in zip(added, pieces, done, strict=True):
        steps += [first, *middle, last]
    return steps


def _call_item(call: PlannedCall, call_id: str) -> Item:
    tool = call.tool
    namespace = tool.namespace or None
    if tool.custom:
        custom = CustomToolCall(name=tool.name, call_id=call_id, namespace=namespace)
        return Item(custom_tool_call=custom)
    return Item(function_call=FunctionCall(name=tool.name, call_id=call_id, namespace=namespace))


def _pieces(text: str) -> list[str]:
    return [text[at : at + _PIECE] for at in range(0, len(text), _PIECE)]


def deltas_in(steps: Sequence[Step]) -> int:
    """Returns how many deltas of text, of refusals and of calls there are."""
    return sum(isinstance(step, DELTAS) for step in steps)


def first_deltas(steps: Sequence[Step], most: int) -> list[Step]:
    """Returns the steps up to a number of deltas; what is open stays open.

    Args:
        steps: the steps.
        most: the number of deltas.
    """
    kept: list[Step] = []
    left = most
    for step in steps:
        if left <= 0:
            break
        left -= isinstance(step, DELTAS)
        kept.append(step)
    return kept


def output_tokens(steps: Sequence[Step]) -> int:
    """Returns the tokens of what is written, reasoning aside."""
    lengths: dict[str, int] = {}
    for step in steps:
        if isinstance(step, DELTAS):
            lengths[step.key] = lengths.get(step.key, 0) + len(step.text)
    return _tokens(lengths)


def _tokens(lengths: Mapping[str, int]) -> int:
    return sum(-(-length // _TOKEN) for length in lengths.values())


def within(steps: Sequence[Step], reasoning_tokens: int, most: int) -> tuple[list[Step], bool]:
    """Returns the steps that a number of tokens is enough for, and whether that is not all.

    Args:
        steps: the steps.
        reasoning_tokens: what the reasoning among them costs.
        most: the number of tokens.
    """
    kept: list[Step] = []
    left = most - reasoning_tokens
    lengths: dict[str, int] = {}
    for step in steps:
        if isinstance(step, ItemDone) and step.key == _REASONING:
            if left < 0:
                return kept, True
        elif isinstance(step, ItemAdded) and step.key != _REASONING:
            if left <= _tokens(lengths):
                return kept, True
        elif isinstance(step, DELTAS):
            length = lengths.pop(step.key, 0)
            room = max(0, (left - _tokens(lengths)) * _TOKEN - length)
            if len(step.text) > room:
                return [*kept, *([_cut(step, room)] if room else [])], True
            lengths[step.key] = length + len(step.text)
        kept.append(step)
    return kept, False


def _cut(step: TextDelta | RefusalDelta | InputDelta, length: int) -> Step:
    return type(step)(step.text[:length], step.key)


def with_logprobs(steps: Sequence[Step], top: int, seed: int) -> list[Step]:
    """Returns the steps with the log probabilities of their texts.

    Args:
        steps: the steps.
        top: how many likely tokens are told for each place.
        seed: what they come from.
    """
    random = Random(seed)  # noqa: S311 - the same request has the same answer
    return [
        TextDelta(step.text, step.key, logprobs(step.text, top, random))
        if isinstance(step, TextDelta)
        else step
        for step in steps
    ]
