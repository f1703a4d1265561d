"""Tokens: an estimate, for backends that have no tokenizer of their own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from antiphon.v1.item_pb2 import Item
from antiphon.v1.responses_service_pb2 import CreateResponseRequest
from antiphon.v1.usage_pb2 import ResponseUsage

__all__ = [
    "CHARACTERS_PER_TOKEN",
    "count",
    "count_bytes",
    "count_instructions",
    "count_items",
    "usage",
]

CHARACTERS_PER_TOKEN: Final = 4


def count(text: str) -> int:
    """Estimates the tokens of a text: one for each four characters, rounded up."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def count_bytes(size: int) -> int:
    """Estimates the tokens of an item by the size of what it says, in bytes."""
    return -(-size // CHARACTERS_PER_TOKEN)


def count_items(items: Iterable[Item]) -> int:
    """Estimates the tokens of items by the size of what they say."""
    return sum(count_bytes(item.ByteSize()) for item in items)


def count_instructions(request: CreateResponseRequest) -> int:
    """Estimates the tokens of what a request says beside its input: each turn says it anew.

    Args:
        request: the request: its instructions, its tools and the format of its text.
    """
    sizes = [len(request.instructions.encode()), *(tool.ByteSize() for tool in request.tools)]
    if request.text.HasField("format"):
        sizes.append(request.text.format.ByteSize())
    return sum(map(count_bytes, sizes))


def usage(
    input_tokens: int, output_tokens: int, *, cached_tokens: int = 0, reasoning_tokens: int = 0
) -> ResponseUsage:
    """Returns the usage of a response.

    Args:
        input_tokens: the tokens of the whole context.
        output_tokens: the tokens of the output, reasoning included.
        cached_tokens: how many of the input tokens had been read before.
        reasoning_tokens: how many of the output tokens are reasoning.
    """
    made = ResponseUsage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        total_tokens=input_tokens + output_tokens,
    )
    # Written even when 0, so that both parts are there.
    made.input_tokens_details.cached_tokens = cached_tokens
    made.output_tokens_details.reasoning_tokens = reasoning_tokens
    return made
