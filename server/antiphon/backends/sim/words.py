"""Words: what a text is about, as far as its words tell."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

__all__ = ["name_words", "significant", "spoken", "subjects"]

_WORD: Final = re.compile(r"\w+")
_NAME_PART: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_a-zA-Z]+")
_QUOTED: Final = re.compile(r'"([^"\n]{1,80})"')
_PROPER: Final = re.compile(r"[^\W\d_a-z]\w*(?:[ -][^\W\d_a-z]\w*)*")
_NUMBER: Final = re.compile(r"(?<![\w.])\d{1,9}(?![\w.]\w|\w)")
_SENTENCE_END: Final = ".!?:;\n\"'("
_SHORTEST_SIGNIFICANT: Final = 4
_SHORTEST_OF_NAME: Final = 3
_MOST: Final = 64
"""How many words of a text are taken at most, wherever they go into a document."""
_LONGEST: Final = 4000
"""How many characters of a text are looked at for that."""
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
_COMMON_OF_NAMES: Final = frozenset(
    """
    add all and any api are call can create current delete did do execute fetch find for function
    get has her him his how into invoke list load look lookup not now off one our out put query
    read run save search send set she show that the this tool tools two update use was what who
    why with write you
    """.split()  # noqa: SIM905 - they read better in a row
)
"""Words that say nothing of what a tool is about."""


def significant(text: str) -> frozenset[str]:
    """Returns the words that tell the subject of a text, in lower case: of its beginning."""
    words = (word.lower() for word in _WORD.findall(text[:_LONGEST]))
    return frozenset(
        word for word in words if len(word) >= _SHORTEST_SIGNIFICANT and word not in _COMMON
    )


def spoken(text: str) -> Sequence[str]:
    """Returns the first words of a text, in lower case and in their order."""
    return [word.lower() for word in _WORD.findall(text[:_LONGEST])][:_MOST]


def name_words(name: str) -> frozenset[str]:
    """Returns the words that tell what a tool is about, in lower case.

    Args:
        name: the tool's name, as in `get_weather`, `get-weather` or `getWeather`.
    """
    words = [word.lower() for word in _NAME_PART.findall(name)]
    long = {word for word in words if len(word) >= _SHORTEST_OF_NAME}
    return frozenset(long - _COMMON_OF_NAMES - _COMMON)


def subjects(text: str, left_out: frozenset[str] = frozenset()) -> Sequence[str]:
    """Returns what a text names: what it quotes, then proper nouns, then numbers.

    Args:
        text: the text.
        left_out: words that are not wanted, in lower case. Where there is nothing else, the
            other words that tell the text's subject are returned.
    """
    text = text[:_LONGEST]
    found = dict.fromkeys(_QUOTED.findall(text))
    first: list[str] = []
    for match in _PROPER.finditer(_QUOTED.sub(" ", text)):
        before = match.string[: match.start()].rstrip(" ")
        begins = not before or before[-1] in _SENTENCE_END
        noun = match[0]
        if begins and noun.lower() in _COMMON | _COMMON_OF_NAMES | left_out:
            continue
        if len(noun) > 1 and noun.lower() not in left_out:
            # What begins a sentence has its capital for that alone, perhaps.
            (first.append(noun) if begins else found.setdefault(noun))
    found.update(dict.fromkeys(first))
    if not found:
        rest = _WORD.findall(text)
        told = significant(text) - left_out
        found.update(dict.fromkeys(word for word in rest if word.lower() in told))
    found.update(dict.fromkeys(_NUMBER.findall(text)))
    return list(found)[:_MOST]
