"""Scripts: the steps of an answer, and where they are cut short."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise, zip_longest
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
    TextDeltas,
)
from antiphon.core.tokens import CHARACTERS_PER_TOKEN, count
from antiphon.v1.custom_tool_pb2 import CustomToolCall
from antiphon.v1.function_call_pb2 import FunctionCall
from antiphon.v1.item_pb2 import Item
from antiphon.v1.reasoning_pb2 import ReasoningItem

__all__ = [
    "Meter",
    "batches",
    "called",
    "counted",
    "cut_evenly",
    "deltas_in",
    "first_deltas",
    "printed",
    "produced",
    "refused",
    "singly",
    "text_in",
    "thought",
    "with_logprobs",
    "within",
    "written",
]

_WORD: Final = re.compile(r"\s{0,64}\S{1,256}|\s{1,64}")
_PIECE: Final = 16
"""The characters of a delta of a document or of a tool's input, at most; but see `_MOST_PIECES`."""
_LEAST_PIECE: Final = 4
_MOST_PIECES: Final = 1024
"""The deltas of a tool's input: those of a very long one are larger."""
_AT_ONCE: Final = 256
"""The deltas of a batch."""
_REASONING: Final = "reasoning"


def written(text: str) -> Iterator[Step]:
    """Yields the steps of a text, word by word."""
    return _texts(match[0] for match in _WORD.finditer(text))


def printed(text: str) -> Iterator[Step]:
    """Yields the steps of a document, in pieces of equal length."""
    return _texts(_pieces(text, _PIECE))


def produced(count_of_deltas: int) -> Iterator[Step]:
    """Yields the steps of a text of so many deltas."""
    return _texts(f"{number} " for number in range(1, count_of_deltas + 1))


def cut_evenly(text: str, count_of_deltas: int) -> Iterator[Step]:
    """Yields the steps of a text in so many deltas, or in one for each character.

    Args:
        text: the text.
        count_of_deltas: how many there are to be.
    """
    pieces = min(count_of_deltas, len(text))
    cuts = (len(text) * place // pieces for place in range(pieces + 1))
    return _texts(text[start:end] for start, end in pairwise(cuts))


def _texts(texts: Iterable[str]) -> Iterator[Step]:
    left = iter(texts)
    while batch := list(islice(left, _AT_ONCE)):
        yield TextDeltas(batch)


def text_in(steps: Iterable[Step]) -> str:
    """Returns the text that steps write."""
    return "".join(["".join(step.texts) for step in steps if isinstance(step, TextDeltas)])


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
        # At least two, so that others can take their turn between them, or the end come.
        half = max(_LEAST_PIECE, -(-len(given) // 2))
        size = max(min(_PIECE, half), -(-len(given) // _MOST_PIECES))
        pieces.append([InputDelta(piece, key) for piece in _pieces(given, size)])
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


def _pieces(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def _deltas(step: Step) -> Sequence[str]:
    """Returns what a step writes for the client, reasoning aside: its deltas."""
    if isinstance(step, TextDeltas):
        return step.texts
    return (step.text,) if isinstance(step, RefusalDelta | InputDelta) else ()


def _part(step: Step, deltas: Sequence[str]) -> Step:
    """Returns a step with other deltas than it has."""
    if isinstance(step, TextDeltas):
        return TextDeltas(deltas, step.key)
    assert isinstance(step, RefusalDelta | InputDelta)
    return type(step)("".join(deltas), step.key)


def deltas_in(steps: Iterable[Step]) -> int:
    """Returns how many deltas of text, of refusals and of calls there are."""
    return sum(len(_deltas(step)) for step in steps)


def first_deltas(steps: Iterable[Step], most: int) -> Iterator[Step]:
    """Yields the steps up to a number of deltas; what is open stays open.

    Args:
        steps: the steps.
        most: the number of deltas.
    """
    left = most
    for step in steps:
        if left <= 0:
            break
        deltas = _deltas(step)
        yield step if len(deltas) <= left else _part(step, deltas[:left])
        left -= len(deltas)


@dataclass(slots=True)
class Meter:
    """What is known of steps when they have passed.

    Args:
        tokens: the tokens of what they write; each delta begins a new one.
        cut: whether they were cut short.
    """

    tokens: int = 0
    cut: bool = False


def counted(steps: Iterable[Step], meter: Meter) -> Iterator[Step]:
    """Yields the steps, and counts their tokens, reasoning aside."""
    for step in steps:
        meter.tokens += _tokens(_deltas(step))
        yield step


def _tokens(deltas: Iterable[str]) -> int:
    return sum(map(count, deltas))


def within(steps: Iterable[Step], tokens: int, meter: Meter) -> Iterator[Step]:
    """Yields the steps that a number of tokens is enough for.

    Args:
        steps: the steps.
        tokens: the number, without what the reasoning among the steps costs; it may be below 0.
        meter: is told whether that is not all.
    """
    left = tokens
    for step in steps:
        deltas = _deltas(step)
        spent = _tokens(deltas)
        if isinstance(step, ItemDone) and step.key == _REASONING:
            meter.cut = left < 0
        elif isinstance(step, ItemAdded) and step.key != _REASONING:
            meter.cut = left <= 0
        elif spent > left:
            meter.cut = bool(deltas)
            deltas = _within(deltas, left)
            if deltas:
                yield _part(step, deltas)
        if meter.cut:
            return
        left -= spent
        yield step


def _within(deltas: Sequence[str], tokens: int) -> Sequence[str]:
    """Returns the deltas that a number of tokens is enough for, the last one cut."""
    kept = []
    for delta in deltas:
        if tokens <= 0:
            break
        kept.append(delta[: tokens * CHARACTERS_PER_TOKEN])
        tokens -= count(delta)
    return kept


def with_logprobs(steps: Iterable[Step], top: int, seed: int) -> Iterator[Step]:
    """Yields the steps with the log probabilities of their texts.

    Args:
        steps: the steps.
        top: how many likely tokens are told for each place.
        seed: what they come from.
    """
    random = Random(seed)  # noqa: S311 - the same request has the same answer
    for step in steps:
        if isinstance(step, TextDeltas):
            for text in step.texts:
                yield TextDelta(text, step.key, logprobs(text, top, random))
        else:
            yield step


def singly(steps: Iterable[Step]) -> Iterator[tuple[Step, bool]]:
    """Yields the steps, each delta by itself, and whether it is one.

    Args:
        steps: the steps.
    """
    for step in steps:
        if isinstance(step, TextDeltas):
            for text in step.texts:
                yield TextDelta(text, step.key), True
        else:
            yield step, isinstance(step, TextDelta | RefusalDelta | InputDelta)


def batches(steps: Iterable[Step]) -> Iterator[list[Step]]:
    """Yields the steps in batches of a bounded size, so that whoever takes them can take a rest.

    Args:
        steps: the steps, made as they are taken.
    """
    batch: list[Step] = []
    size = 0
    for step in steps:
        batch.append(step)
        size += len(step.texts) if isinstance(step, TextDeltas) else 1
        if size >= _AT_ONCE:
            yield batch
            batch = []
            size = 0
    if batch:
        yield batch
