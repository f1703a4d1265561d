"""Tokens: an estimate, for backends that have no tokenizer of their own."""

from __future__ import annotations

from collections.abc import Iterable

from antiphon.v1.item_pb2 import Item
from antiphon.v1.usage_pb2 import ResponseUsage

__all__ = ["count", "count_bytes", "count_items", "usage"]

_CHARACTERS_PER_TOKEN = 4


def count(text: str) -> int:
    """Estimates the tokens of a text: one for each four characters, rounded up."""
    return -(-len(text) // _CHARACTERS_PER_TOKEN)


def count_bytes(size: int) -> int:
    """Estimates the tokens of an item by the size of what it says, in bytes."""
    return -(-size // _CHARACTERS_PER_TOKEN)


def count_items(items: Iterable[Item]) -> int:
    """Estimates the tokens of items by the size of what they say."""
    return sum(count_bytes(item.ByteSize()) for item in items)


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
