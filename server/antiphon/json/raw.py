"""JSON documents that the schema carries as text: parsed and compacted at every edge.

Text that was not parsed could add members to our objects or line breaks to our event streams
when it is spliced into them; that is why nothing reaches a message unparsed.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from antiphon.json.errors import InvalidValue

__all__ = ["MAX_DEPTH", "compact", "parse", "recompact"]

MAX_DEPTH = 128
"""The deepest nesting of arrays and objects that a document may have."""

_STRUCTURE = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]')
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def parse(text: bytes | str) -> Any:
    """Parses a JSON document; integers of any size stay exact.

    Args:
        text: the document, as text or as UTF-8 bytes.

    Raises:
        InvalidValue: it is not JSON, or it is nested too deeply for the parser.
    """
    try:
        return _decode(text)
    except RecursionError:
        raise _too_deep() from None
    except (msgspec.DecodeError, UnicodeError, ValueError):
        # UnicodeError: lone surrogates in a str. ValueError: integers of thousands of digits.
        raise InvalidValue("is not valid JSON", "invalid_json") from None


def compact(value: Any) -> str:
    """Prints a parsed document on one line, keys in their order.

    Args:
        value: what `parse` returned, or a part of it.

    Raises:
        InvalidValue: it is nested deeper than `MAX_DEPTH`.
    """
    try:
        text = _encode(value).decode()
    except RecursionError:
        raise _too_deep() from None
    # Counting is enough for nearly every document: the exact depth is needed only for those
    # with many brackets.
    if text.count("{") + text.count("[") > MAX_DEPTH and _depth(text) > MAX_DEPTH:
        raise _too_deep()
    return text


def recompact(text: bytes | str) -> str:
    """Parses text that a typed caller wrote and prints it compactly.

    Args:
        text: the document, as text or as UTF-8 bytes.

    Raises:
        InvalidValue: it is not JSON, or it is nested deeper than `MAX_DEPTH`.
    """
    return compact(parse(text))


def _too_deep() -> InvalidValue:
    return InvalidValue(f"is nested deeper than {MAX_DEPTH} levels")


def _depth(text: str) -> int:
    deepest = depth = 0
    for match in _STRUCTURE.finditer(text):
        token = match[0]
        if token in ("{", "["):
            depth += 1
            deepest = max(deepest, depth)
        elif token in ("}", "]"):
            depth -= 1
    return deepest
