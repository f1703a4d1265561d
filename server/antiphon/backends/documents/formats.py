"""Formats: texts of the formats that JSON Schema names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Final

__all__ = ["formatted"]


def formatted(name: str, random: Random, word: str) -> Iterator[str]:
    """Yields texts of a format; none if the format is not known.

    Args:
        name: the format's name.
        random: what the choices come from.
        word: a word of lower case letters to make a name from.
    """
    make = _FORMATS.get(name)
    if make is not None:
        for _ in range(4):
            yield make(random, word)


def _date(random: Random, _word: str) -> str:
    return f"{2024 + random.randrange(3)}-{random.randint(1, 12):02}-{random.randint(1, 28):02}"


def _time(random: Random, _word: str) -> str:
    return f"{random.randrange(24):02}:{random.randrange(60):02}:{random.randrange(60):02}Z"


def _date_time(random: Random, word: str) -> str:
    return f"{_date(random, word)}T{_time(random, word)}"


def _duration(random: Random, _word: str) -> str:
    return random.choice((f"P{random.randint(1, 9)}D", f"PT{random.randint(1, 59)}M", "P1DT12H"))


def _email(_random: Random, word: str) -> str:
    return f"{word}@example.com"


def _hostname(_random: Random, word: str) -> str:
    return f"{word}.example.com"


def _ipv4(random: Random, _word: str) -> str:
    return f"192.0.2.{random.randint(1, 254)}"


def _ipv6(random: Random, _word: str) -> str:
    return f"2001:db8::{random.randint(1, 0xFFFF):x}"


def _uri(_random: Random, word: str) -> str:
    return f"https://example.com/{word}"


def _reference(_random: Random, word: str) -> str:
    return f"/{word}"


def _template(_random: Random, word: str) -> str:
    return f"https://example.com/{word}/{{id}}"


def _uuid(random: Random, _word: str) -> str:
    digits = f"{random.getrandbits(128):032x}"
    version = f"4{digits[13:16]}-{random.choice('89ab')}{digits[17:20]}"
    return f"{digits[:8]}-{digits[8:12]}-{version}-{digits[20:]}"


def _pointer(_random: Random, word: str) -> str:
    return f"/{word}/0"


def _relative_pointer(random: Random, word: str) -> str:
    return f"{random.randint(0, 2)}/{word}"


def _regex(_random: Random, word: str) -> str:
    return f"^{word}[0-9]*$"


_FORMATS: Final[Mapping[str, Callable[[Random, str], str]]] = {
    "date": _date,
    "date-time": _date_time,
    "duration": _duration,
    "email": _email,
    "hostname": _hostname,
    "idn-email": _email,
    "idn-hostname": _hostname,
    "ipv4": _ipv4,
    "ipv6": _ipv6,
    "iri": _uri,
    "iri-reference": _reference,
    "json-pointer": _pointer,
    "regex": _regex,
    "relative-json-pointer": _relative_pointer,
    "time": _time,
    "uri": _uri,
    "uri-reference": _reference,
    "uri-template": _template,
    "uuid": _uuid,
}
