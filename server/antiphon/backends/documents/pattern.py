"""Patterns: texts that a regular expression of a JSON Schema is likely to match.

The dialect is ECMAScript's, as JSON Schema has it. Look-arounds, boundaries and back references are
not solved: a text is made from the rest of the pattern, and whoever asked sees whether it matches.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, TypeAlias

__all__ = ["Pattern", "PatternError"]

MAX_TEXT: Final = 20_000
"""The longest text that is made of a pattern, in characters."""
_MAX_NESTING: Final = 60
_MORE: Final = 1 << 30
"""How often a part without an upper bound may be repeated."""
_LOWER: Final = string.ascii_lowercase
_UPPER: Final = string.ascii_uppercase
_LETTERS: Final = _LOWER + _UPPER
_DIGITS: Final = string.digits
_WORD: Final = _LETTERS + _DIGITS + "_"
_SPACE: Final = " \t\n"
_VISIBLE: Final = _LETTERS + _DIGITS + "-_.,:;!?+*/=()[]{}<>@#$%&'\"|~^`\\ "
_CONTROLS: Final = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "0": "\0", "a": "\a"}
_SHORTHANDS: Final = {"d": _DIGITS, "w": _WORD, "s": _SPACE}
_PROPERTIES: Final = {
    "L": _LETTERS,
    "Letter": _LETTERS,
    "Alphabetic": _LETTERS,
    "Lu": _UPPER,
    "Uppercase_Letter": _UPPER,
    "Ll": _LOWER,
    "Lowercase_Letter": _LOWER,
    "N": _DIGITS,
    "Nd": _DIGITS,
    "Number": _DIGITS,
    "P": "-.,:;!?",
    "Punctuation": "-.,:;!?",
    "Z": " ",
    "Zs": " ",
    "S": "+<=>",
    "Script=Greek": "αβγδ",
    "Script=Cyrillic": "абвг",
    "Script=Han": "中文字",
    "Emoji": "😀",
}


class PatternError(Exception):
    """A pattern is not understood, or nothing as short as it must be can match it."""


@dataclass(slots=True)
class _Chars:
    """One character out of several."""

    chars: str
    negated: bool = False


@dataclass(slots=True)
class _Repeat:
    part: _Node
    least: int
    most: int


@dataclass(slots=True)
class _Sequence:
    parts: list[_Node]


@dataclass(slots=True)
class _Choice:
    branches: list[_Sequence]


@dataclass(slots=True)
class _Group:
    number: int
    body: _Choice


@dataclass(slots=True)
class _Back:
    number: int


@dataclass(slots=True)
class _Nothing:
    """What takes no character: an anchor, a boundary or a look-around."""

    anchor: str = ""


_Node: TypeAlias = _Chars | _Repeat | _Sequence | _Choice | _Group | _Back | _Nothing


class Pattern:
    """A pattern, parsed.

    Args:
        source: the regular expression.

    Raises:
        PatternError: it is not understood.
    """

    def __init__(self, source: str) -> None:
        parser = _Parser(source)
        self._tree = parser.choice(0)
        if parser.at < len(source):
            raise PatternError("a bracket is closed that is not open")

    def text(self, random: Random, least: int, most: int | None) -> str:
        """Returns a text that is likely to match.

        Args:
            random: what its choices come from.
            least: how long it should be at least, in characters.
            most: how long it should be at most, or None.

        Raises:
            PatternError: the shortest text is longer than `MAX_TEXT`.
        """
        maker = _Maker(random)
        want = max(least, maker.width(self._tree))
        spare = (
            random.randrange(4)
            if most is None
            else random.randint(0, min(3, most - want, 3))
            if most > want
            else 0
        )
        maker.slack = max(0, want + spare - maker.width(self._tree))
        made = maker.choice(self._tree)
        missing = least - len(made)
        if 0 < missing <= MAX_TEXT:
            filler = "".join(random.choice(_LOWER) for _ in range(missing))
            made = filler + made if maker.ended else made + filler
        return made


class _Parser:
    """Reads the source of a pattern."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._groups = 0
        self._names: dict[str, int] = {}
        self.at = 0

    def choice(self, nesting: int) -> _Choice:
        if nesting > _MAX_NESTING:
            raise PatternError("it is nested too deeply")
        branches = [self._sequence(nesting)]
        while self._take("|"):
            branches.append(self._sequence(nesting))
        return _Choice(branches)

    def _sequence(self, nesting: int) -> _Sequence:
        parts: list[_Node] = []
        while self.at < len(self._source) and self._source[self.at] not in "|)":
            part = self._atom(nesting)
            parts.append(self._repeated(part))
        return _Sequence(parts)

    def _repeated(self, part: _Node) -> _Node:
        if self._take("*"):
            least, most = 0, _MORE
        elif self._take("+"):
            least, most = 1, _MORE
        elif self._take("?"):
            least, most = 0, 1
        else:
            bounds = self._bounds()
            if bounds is None:
                return part
            least, most = bounds
        if not self._take("?"):
            self._take("+")
        return _Repeat(part, least, most)

    def _bounds(self) -> tuple[int, int] | None:
        end = self._source.find("}", self.at)
        if not self._source.startswith("{", self.at) or end < 0:
            return None
        least, comma, most = self._source[self.at + 1 : end].partition(",")
        if not _number(least) or not (not most or _number(most)):
            return None
        self.at = end + 1
        lower = int(least)
        upper = int(most) if most else _MORE if comma else lower
        if upper < lower:
            raise PatternError("the bounds of a repetition are the wrong way round")
        return lower, upper

    def _atom(self, nesting: int) -> _Node:
        char = self._next()
        if char == "(":
            return self._group(nesting)
        if char == "[":
            return self._class()
        if char == ".":
            return _Chars(_VISIBLE)
        if char in "^$":
            return _Nothing(char)
        if char == "\\":
            return self._escape()
        if char in "*+?":
            raise PatternError("there is nothing to repeat")
        return _Chars(char)

    def _group(self, nesting: int) -> _Node:
        number = 0
        looks = False
        if self._take("?"):
            if self._take("<"):
                if self._take("=") or self._take("!"):
                    looks = True
                else:
                    number = self._named()
            elif self._take("P<"):
                number = self._named()
            elif self._take("=") or self._take("!"):
                looks = True
            else:
                # Flags, if any, end in a colon; flags of their own are rare and taken as nothing.
                while self.at < len(self._source) and self._source[self.at] not in ":)":
                    self.at += 1
                if not self._take(":"):
                    self._take(")")
                    return _Nothing()
        else:
            self._groups += 1
            number = self._groups
        body = self.choice(nesting + 1)
        if not self._take(")"):
            raise PatternError("a bracket is not closed")
        return _Nothing() if looks else _Group(number, body)

    def _named(self) -> int:
        end = self._source.find(">", self.at)
        if end < 0:
            raise PatternError("the name of a group does not end")
        self._groups += 1
        self._names[self._source[self.at : end]] = self._groups
        self.at = end + 1
        return self._groups

    def _escape(self) -> _Node:
        char = self._next()
        if char in "123456789":
            while self.at < len(self._source) and _number(self._source[self.at]) and len(char) < 3:
                char += self._next()
            return _Back(int(char))
        if char == "k" and self._take("<"):
            name, _, _ = self._source[self.at :].partition(">")
            self.at += len(name) + 1
            return _Back(self._names.get(name, 0))
        if char in "bB":
            return _Nothing()
        if char in "AZz":
            return _Nothing("^" if char == "A" else "$")
        return self._escaped(char)

    def _escaped(self, char: str) -> _Chars:
        """Returns what an escape stands for, inside and outside of brackets."""
        if char in "dws":
            return _Chars(_SHORTHANDS[char])
        if char in "DWS":
            return _Chars(_SHORTHANDS[char.lower()], negated=True)
        if char in "pP":
            name = char
            if self._take("{"):
                name, _, _ = self._source[self.at :].partition("}")
                self.at += len(name) + 1
            elif self.at < len(self._source):
                name = self._next()
            name = name.removeprefix("General_Category=").removeprefix("gc=")
            return _Chars(_PROPERTIES.get(name, _LETTERS), negated=char == "P")
        if char == "x":
            return _Chars(self._hex(2))
        if char == "u":
            if self._take("{"):
                digits, _, _ = self._source[self.at :].partition("}")
                self.at += len(digits) + 1
                return _Chars(_char(digits))
            return _Chars(self._hex(4))
        if char == "c":
            return _Chars(chr(ord(self._next()) % 32))
        return _Chars(_CONTROLS.get(char, char))

    def _hex(self, digits: int) -> str:
        text = self._source[self.at : self.at + digits]
        self.at += digits
        return _char(text)

    def _class(self) -> _Chars:
        negated = self._take("^")
        chars: list[str] = []
        first = True
        while first or not self._take("]"):
            first = False
            if self._take("]"):
                break
            low = self._member()
            if self._source.startswith("-", self.at) and not self._source.startswith("-]", self.at):
                self.at += 1
                high = self._member()
                if len(low) == 1 and len(high) == 1:
                    if high < low:
                        raise PatternError("a range is the wrong way round")
                    chars.append(_between(low, high))
                    continue
                chars.append(f"-{high}")
            chars.append(low)
        return _Chars("".join(chars), negated)

    def _member(self) -> str:
        char = self._next()
        if char != "\\":
            return char
        char = self._next()
        if char == "b":
            return "\b"
        found = self._escaped(char)
        return _complement(found.chars) if found.negated else found.chars

    def _next(self) -> str:
        if self.at >= len(self._source):
            raise PatternError("it ends too early")
        self.at += 1
        return self._source[self.at - 1]

    def _take(self, text: str) -> bool:
        if self._source.startswith(text, self.at):
            self.at += len(text)
            return True
        return False


class _Maker:
    """Makes one text."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._said: dict[int, str] = {}
        self._length = 0
        self._widths: dict[int, int] = {}
        self.slack = 0
        """How many characters may still be added to the shortest text."""
        self.ended = False
        """Whether the pattern has an end, so that nothing may be added after it."""

    def width(self, node: _Node) -> int:
        """Returns the length of the shortest text of a node."""
        found = self._widths.get(id(node))
        if found is None:
            found = self._widths[id(node)] = min(self._width(node), _MORE)
        return found

    def _width(self, node: _Node) -> int:
        if isinstance(node, _Chars):
            return 1
        if isinstance(node, _Repeat):
            return node.least * self.width(node.part)
        if isinstance(node, _Sequence):
            return sum(self.width(part) for part in node.parts)
        if isinstance(node, _Choice):
            return min(self.width(branch) for branch in node.branches)
        return self.width(node.body) if isinstance(node, _Group) else 0

    def choice(self, node: _Choice) -> str:
        branches: Sequence[_Sequence] = node.branches
        if len(branches) > 1:
            shortest = self.width(node)
            fitting = [each for each in branches if self.width(each) - shortest <= self.slack]
            chosen = self._random.choice(fitting)
            self.slack -= self.width(chosen) - shortest
            return self._make(chosen)
        return self._make(branches[0])

    def _make(self, node: _Node) -> str:
        if isinstance(node, _Chars):
            self._length += 1
            if self._length > MAX_TEXT:
                raise PatternError("its texts are too long")
            return _pick(self._random, node)
        if isinstance(node, _Repeat):
            return self._repeat(node)
        if isinstance(node, _Sequence):
            return "".join([self._make(part) for part in node.parts])
        if isinstance(node, _Choice):
            return self.choice(node)
        if isinstance(node, _Group):
            text = self.choice(node.body)
            self._said[node.number] = text
            return text
        if isinstance(node, _Back):
            return self._said.get(node.number, "")
        self.ended = self.ended or node.anchor == "$"
        return ""

    def _repeat(self, node: _Repeat) -> str:
        size = max(1, self.width(node.part))
        if node.least * size > MAX_TEXT:
            raise PatternError("its texts are too long")
        more = min(node.most - node.least, self.slack // size)
        self.slack -= more * size
        parts = []
        for _ in range(node.least + more):
            parts.append(self._make(node.part))
            if not parts[-1] and len(parts) > node.least:
                break
        return "".join(parts)


def _pick(random: Random, node: _Chars) -> str:
    """Returns a character, one that reads well if there is any."""
    if not node.negated and len(node.chars) == 1:
        return node.chars
    chars = _complement(node.chars) if node.negated else node.chars
    for liked in (_LOWER, _DIGITS, _UPPER):
        found = [char for char in liked if char in chars]
        if found and (liked is not _DIGITS or random.random() < 0.9):
            return random.choice(found)
    if not chars:
        raise PatternError("no character is in a class")
    return random.choice(chars)


def _complement(chars: str) -> str:
    return "".join(char for char in _VISIBLE + "\né中" if char not in chars)


def _between(low: str, high: str) -> str:
    """Returns some characters of a range: all of a short one."""
    first, last = ord(low), ord(high)
    if last - first > 512:
        liked = [char for char in _VISIBLE if low <= char <= high]
        return "".join(liked) + low + chr((first + last) // 2) + high
    return "".join(map(chr, range(first, last + 1)))


def _char(digits: str) -> str:
    try:
        return chr(int(digits, 16))
    except (ValueError, OverflowError):
        raise PatternError("an escape is not understood") from None


def _number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10
