"""Patterns: the regular expressions of a JSON Schema, parsed.

The dialect is ECMAScript's, as JSON Schema has it. Flags are not understood and have no effect.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

__all__ = [
    "MORE",
    "Anchor",
    "Back",
    "Chars",
    "Choice",
    "Group",
    "Look",
    "Node",
    "Pattern",
    "PatternError",
    "Repeat",
    "Sequence",
]

MORE: Final = 1 << 30
"""How often a part without an upper bound may be repeated."""
_MAX_NESTING: Final = 60
_Test: TypeAlias = Callable[[str], bool]
_CONTROLS: Final = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "0": "\0", "a": "\a"}
_CATEGORIES: Final = {
    "Letter": "L",
    "Alphabetic": "L",
    "Uppercase_Letter": "Lu",
    "Uppercase": "Lu",
    "Lowercase_Letter": "Ll",
    "Lowercase": "Ll",
    "Number": "N",
    "Decimal_Number": "Nd",
    "Punctuation": "P",
    "Symbol": "S",
    "Separator": "Z",
    "Space_Separator": "Zs",
    "White_Space": "Z",
    "Mark": "M",
    "Control": "Cc",
    "Other": "C",
}
"""Properties, and what the general categories of their characters begin with."""
_SCRIPTS: Final = {
    "Latin": "LATIN",
    "Greek": "GREEK",
    "Cyrillic": "CYRILLIC",
    "Han": "CJK",
    "Hiragana": "HIRAGANA",
    "Katakana": "KATAKANA",
    "Arabic": "ARABIC",
    "Hebrew": "HEBREW",
}
"""Scripts, and what the names of their characters begin with."""


class PatternError(Exception):
    """A pattern is not understood, or it takes too much to find what matches it."""


@dataclass(slots=True)
class Chars:
    """One character out of several.

    Args:
        holds: tells whether a character is one of them.
        examples: some of them.
    """

    holds: _Test
    examples: str = ""


@dataclass(slots=True)
class Repeat:
    """A part so many times in a row."""

    part: Node
    least: int
    most: int


@dataclass(slots=True)
class Sequence:
    """Parts after each other."""

    parts: list[Node]


@dataclass(slots=True)
class Choice:
    """One of several parts."""

    branches: list[Sequence]


@dataclass(slots=True)
class Group:
    """A part that can be referred to by its number, if that is not 0."""

    number: int
    body: Choice


@dataclass(slots=True)
class Back:
    """What a group has matched, again."""

    number: int


@dataclass(slots=True)
class Look:
    """What has to follow, or to come before, or must not."""

    body: Choice
    negated: bool
    behind: bool


@dataclass(slots=True)
class Anchor:
    """The start ("^"), the end ("$"), or a boundary of words ("")."""

    place: str = ""


Node: TypeAlias = Chars | Repeat | Sequence | Choice | Group | Back | Look | Anchor


class Pattern:
    """A pattern, parsed.

    Args:
        source: the regular expression.

    Raises:
        PatternError: it is not understood.
    """

    def __init__(self, source: str) -> None:
        parser = _Parser(source)
        self.tree = parser.choice(0)
        """The whole of it."""
        if parser.at < len(source):
            raise PatternError("a bracket is closed that is not open")
        self.groups = {number: parser.groups[number] for number in sorted(parser.referred)}
        """The groups that are referred to, by their numbers."""
        self.examples = "".join(parser.examples)
        """Characters that are named."""


class _Parser:
    """Reads the source of a pattern."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._count = 0
        self._names: dict[str, int] = {}
        self._chars: dict[str, Chars] = {}
        self.groups: dict[int, Choice] = {}
        self.referred: set[int] = set()
        self.examples: list[str] = []
        self.at = 0

    def choice(self, nesting: int) -> Choice:
        if nesting > _MAX_NESTING:
            raise PatternError("it is nested too deeply")
        branches = [self._sequence(nesting)]
        while self._take("|"):
            branches.append(self._sequence(nesting))
        return Choice(branches)

    def _sequence(self, nesting: int) -> Sequence:
        parts: list[Node] = []
        while self.at < len(self._source) and self._source[self.at] not in "|)":
            part = self._atom(nesting)
            parts.append(self._repeated(part))
        return Sequence(parts)

    def _repeated(self, part: Node) -> Node:
        if self._take("*"):
            least, most = 0, MORE
        elif self._take("+"):
            least, most = 1, MORE
        elif self._take("?"):
            least, most = 0, 1
        else:
            bounds = self._bounds()
            if bounds is None:
                return part
            least, most = bounds
        if not self._take("?"):
            self._take("+")
        return Repeat(part, least, most)

    def _bounds(self) -> tuple[int, int] | None:
        end = self._source.find("}", self.at)
        if not self._source.startswith("{", self.at) or end < 0:
            return None
        least, comma, most = self._source[self.at + 1 : end].partition(",")
        if not _number(least) or not (not most or _number(most)):
            return None
        self.at = end + 1
        lower = int(least)
        upper = int(most) if most else MORE if comma else lower
        if upper < lower:
            raise PatternError("the bounds of a repetition are the wrong way round")
        return lower, upper

    def _atom(self, nesting: int) -> Node:
        start = self.at
        node = self._read(nesting)
        if isinstance(node, Chars):
            # The same characters are looked up once, wherever they stand.
            node = self._chars.setdefault(self._source[start : self.at], node)
        return node

    def _read(self, nesting: int) -> Node:
        char = self._next()
        if char == "(":
            return self._group(nesting)
        if char == "[":
            return self._class()
        if char == ".":
            return Chars(partial(_none_of, [partial(_among, "\n\r\u2028\u2029")]))
        if char in "^$":
            return Anchor(char)
        if char == "\\":
            return self._escape()
        if char in "*+?":
            raise PatternError("there is nothing to repeat")
        return self._one(char)

    def _group(self, nesting: int) -> Node:
        number = 0
        look = behind = negated = False
        if self._take("?"):
            if self._take("<=") or self._take("<!"):
                look, behind, negated = True, True, self._source[self.at - 1] == "!"
            elif self._take("=") or self._take("!"):
                look, negated = True, self._source[self.at - 1] == "!"
            elif self._take("<") or self._take("P<"):
                number = self._named()
            else:
                while self.at < len(self._source) and self._source[self.at] not in ":)":
                    self.at += 1
                if not self._take(":"):
                    self._take(")")
                    return Anchor()
        else:
            self._count += 1
            number = self._count
        body = self.choice(nesting + 1)
        if not self._take(")"):
            raise PatternError("a bracket is not closed")
        if look:
            return Look(body, negated, behind)
        self.groups[number] = body
        return Group(number, body)

    def _named(self) -> int:
        end = self._source.find(">", self.at)
        if end < 0:
            raise PatternError("the name of a group does not end")
        self._count += 1
        self._names[self._source[self.at : end]] = self._count
        self.at = end + 1
        return self._count

    def _escape(self) -> Node:
        char = self._next()
        if char in "123456789":
            while self.at < len(self._source) and _number(self._source[self.at]) and len(char) < 3:
                char += self._next()
            return self._back(int(char))
        if char == "k" and self._take("<"):
            return self._back(self._names.get(self._until(">"), 0))
        if char in "bB":
            return Anchor()
        if char in "AZz":
            return Anchor("^" if char == "A" else "$")
        return self._escaped(char)

    def _back(self, number: int) -> Back:
        if number in self.groups:
            self.referred.add(number)
        return Back(number)

    def _escaped(self, char: str) -> Chars:
        """Returns what an escape stands for, inside and outside of brackets."""
        if char in "dDwWsS":
            test: _Test = {"d": _digit, "w": _word, "s": _space}[char.lower()]
            return Chars(test if char.islower() else partial(_none_of, [test]))
        if char in "pP":
            name = self._until("}") if self._take("{") else self._next()
            test = _property(name)
            return Chars(test if char == "p" else partial(_none_of, [test]))
        if char == "x":
            return self._one(self._hex(2))
        if char == "u":
            return self._one(_char(self._until("}")) if self._take("{") else self._hex(4))
        if char == "c":
            return self._one(chr(ord(self._next()) % 32))
        return self._one(_CONTROLS.get(char, char))

    def _one(self, char: str) -> Chars:
        self.examples.append(char)
        return Chars(partial(_among, char), char)

    def _hex(self, digits: int) -> str:
        text = self._source[self.at : self.at + digits]
        self.at += digits
        return _char(text)

    def _until(self, end: str) -> str:
        text, _, _ = self._source[self.at :].partition(end)
        self.at += len(text) + 1
        return text

    def _class(self) -> Chars:
        negated = self._take("^")
        tests: list[_Test] = []
        while not self._take("]"):
            low = self._member()
            if self._source.startswith("-", self.at) and not self._source.startswith("-]", self.at):
                self.at += 1
                high = self._member()
                if low.examples and high.examples:
                    tests.append(self._range(low.examples, high.examples))
                    continue
                tests += [partial(_among, "-"), high.holds]
            tests.append(low.holds)
        return Chars(partial(_none_of if negated else _any_of, tests))

    def _range(self, low: str, high: str) -> _Test:
        if high < low:
            raise PatternError("a range is the wrong way round")
        self.examples.append(chr((ord(low) + ord(high)) // 2))
        return partial(_between, low, high)

    def _member(self) -> Chars:
        char = self._next()
        if char != "\\":
            return self._one(char)
        char = self._next()
        return self._one("\b") if char == "b" else self._escaped(char)

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


def _among(chars: str, char: str) -> bool:
    return char in chars


def _between(low: str, high: str, char: str) -> bool:
    return low <= char <= high


def _none_of(tests: list[_Test], char: str) -> bool:
    return not any(test(char) for test in tests)


def _any_of(tests: list[_Test], char: str) -> bool:
    return any(test(char) for test in tests)


def _space(char: str) -> bool:
    return char.isspace() or char == "\ufeff"


def _digit(char: str) -> bool:
    return char.isascii() and char.isdigit()


def _word(char: str) -> bool:
    return char.isascii() and (char.isalnum() or char == "_")


def _of_category(start: str, char: str) -> bool:
    return unicodedata.category(char).startswith(start)


def _of_script(start: str, char: str) -> bool:
    return unicodedata.name(char, "").startswith(start)


def _emoji(char: str) -> bool:
    return "\U0001f300" <= char <= "\U0001faff"


def _property(name: str) -> _Test:
    """Returns what tells whether a character has a property; one not known is that of letters."""
    key, _, value = name.rpartition("=")
    if key in ("Script", "sc", "Script_Extensions", "scx"):
        return partial(_of_script, _SCRIPTS.get(value, value.upper()))
    if value.startswith(("Emoji", "Extended_Pictographic")):
        return _emoji
    if len(value) <= 2:
        return partial(_of_category, value)
    return partial(_of_category, _CATEGORIES.get(value, "L"))


def _char(digits: str) -> str:
    try:
        return chr(int(digits, 16))
    except (ValueError, OverflowError):
        raise PatternError("an escape is not understood") from None


def _number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10
