"""Languages: the texts that match some patterns and do not match others.

An expression has derivatives: that by a character is what may follow the character. By them all
texts of a length are looked at together, so one is found wherever there is one, however patterns,
what they look ahead for, and bounds of length go together. Not followed exactly are boundaries of
words and what a pattern looks behind for, and a reference is to one text of its group: whoever
asks has to see whether a text matches.
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, Final, TypeAlias

from antiphon.backends.documents import pattern as parsed
from antiphon.backends.documents.pattern import MORE, Pattern, PatternError

__all__ = ["VISIBLE", "Language"]

_MAX_TEXT: Final = 20_000
"""The longest text that is made, in characters."""
_MAX_EXPRESSIONS: Final = 20_000
"""How many expressions are made at most for a language."""
_MAX_VISITS: Final = 60_000
"""How many states are visited at most, each as often as texts of different lengths lead there."""
_MAX_COPIES: Final = 12
"""How often a part that looks around is repeated where there is no bound."""
_MAX_LEAST: Final = 200
"""How often a part that looks around may have to be repeated."""
_FEW: Final = 26
"""Of how many characters each is as good as the others."""
_SPARE: Final = 3
"""How much longer than the shortest a text may be, in characters."""

_LIKED: Final = (string.ascii_lowercase, string.digits, string.ascii_uppercase)
VISIBLE: Final = "".join(_LIKED) + "-_.,:;!?+*/=()[]{}<>@#$%&'\"|~^`\\ "
"""Characters that texts are made of; patterns may name others."""
_OTHERS: Final = "éαб中あ😀\t\n"

_NONE: Final = 0
"""The expression that nothing matches."""
_EMPTY: Final = 1
"""The expression that the empty text matches."""

_Layers: TypeAlias = list[dict[int, None]]


class Language:
    """The texts that match patterns.

    Args:
        patterns: regular expressions that have to match.
        excluded: regular expressions that must not.

    Raises:
        PatternError: one is not understood.
    """

    def __init__(self, patterns: Sequence[str], excluded: Sequence[str] = ()) -> None:
        self._patterns = [Pattern(source) for source in patterns]
        self._excluded = [Pattern(source) for source in excluded]
        named = "".join(each.examples for each in (*self._patterns, *self._excluded))
        self._expressions = _Expressions("".join(dict.fromkeys(VISIBLE + _OTHERS + named)))
        self._refers = any(each.groups for each in self._patterns)
        self._starts: dict[bool, int] = {}
        self._searches: dict[tuple[int, int, int | None], _Search] = {}

    def text(self, random: Random, least: int, most: int | None) -> str | None:
        """Returns a text that is likely to match, or None if there is none.

        Args:
            random: what the choices come from.
            least: how long it is at least, in characters.
            most: how long it is at most, or None.

        Raises:
            PatternError: it takes too much to find one.
        """
        try:
            if self._refers:
                self._starts.clear()
                self._searches.clear()
            for whole in (True, False):
                if whole not in self._starts:
                    self._starts[whole] = self._start(random, whole=whole)
                start = self._starts[whole]
                key = (start, least, most)
                if key not in self._searches:
                    self._searches[key] = _Search(self._expressions, start, least, most)
                text = self._searches[key].text(random)
                if text is not None:
                    return text
        except RecursionError:
            raise PatternError("it is nested too deeply") from None
        return None

    def _start(self, random: Random, *, whole: bool) -> int:
        """Returns the expression of all texts, or of those that patterns match from end to end."""
        made = self._expressions
        found = [self._matching(each, random, whole=whole) for each in self._patterns]
        found += [made.without(self._matching(each, random)) for each in self._excluded]
        return made.both(*found)

    def _matching(self, pattern: Pattern, random: Random, *, whole: bool = False) -> int:
        made = self._expressions
        reader = _Reader(made, pattern, random)
        if whole:
            return reader.read(pattern.tree, _EMPTY, start=True)
        first = reader.read(pattern.tree, made.all, start=True)
        later = reader.read(pattern.tree, made.all, start=False)
        return made.either(first, made.after(made.any, made.after(made.all, later)))


class _Expressions:
    """Regular expressions, each known by a number, over an alphabet.

    A set of characters is a number whose bits are the places of the characters in the alphabet.
    """

    def __init__(self, alphabet: str) -> None:
        self.alphabet = alphabet
        self.full = (1 << len(alphabet)) - 1
        self._nodes: list[tuple[Any, ...]] = []
        self._ids: dict[tuple[Any, ...], int] = {}
        self._empty: list[bool] = []
        self._parts: dict[int, list[int]] = {}
        self._after: dict[tuple[int, int], int] = {}
        self._edges: dict[int, list[tuple[int, int]]] = {}
        self._sets: dict[int, tuple[int, parsed.Chars]] = {}
        self._intern(("none",), empty=False)
        self._intern(("empty",), empty=True)
        self.any = self.chars(self.full)
        self.all = self._intern(("repeat", self.any, 0, MORE), empty=True)

    def _intern(self, node: tuple[Any, ...], *, empty: bool) -> int:
        found = self._ids.get(node)
        if found is None:
            found = self._ids[node] = len(self._nodes)
            if found > _MAX_EXPRESSIONS:
                raise PatternError("it has too many states")
            self._nodes.append(node)
            self._empty.append(empty)
        return found

    def ends(self, number: int) -> bool:
        """Whether the empty text matches."""
        return self._empty[number]

    def places(self, node: parsed.Chars) -> int:
        """Returns the set of the characters that a part of a pattern stands for."""
        if node.examples:
            return 1 << self.alphabet.index(node.examples)
        if id(node) not in self._sets:
            places = sum(1 << at for at, char in enumerate(self.alphabet) if node.holds(char))
            self._sets[id(node)] = places, node
        return self._sets[id(node)][0]

    def chars(self, chars: int) -> int:
        """Returns the expression of one of some characters."""
        return self._intern(("chars", chars), empty=False) if chars else _NONE

    def after(self, first: int, then: int) -> int:
        """Returns the expression of one thing after another."""
        if _NONE in (first, then):
            return _NONE
        if first == _EMPTY:
            return then
        if then == _EMPTY:
            return first
        node = self._nodes[first]
        if node[0] == "after":
            return self.after(node[1], self.after(node[2], then))
        if first == then == self.all:
            return first
        return self._intern(("after", first, then), empty=self._empty[first] and self._empty[then])

    def repeat(self, part: int, least: int, most: int) -> int:
        """Returns the expression of a thing so many times in a row."""
        if most <= 0 or part in (_NONE, _EMPTY):
            return _EMPTY if least <= 0 or part == _EMPTY else _NONE
        if least == most == 1 or part == self.all:
            return part
        node = self._nodes[part]
        if node[0] == "repeat" and node[3] == most == MORE and node[2] <= 1:
            least = min(least, 1) * node[2]
            part = node[1]
        return self._intern(
            ("repeat", part, max(least, 0), most), empty=least <= 0 or self._empty[part]
        )

    def either(self, *some: int) -> int:
        """Returns the expression of what matches one of some."""
        found = self._flat("either", some)
        if self.all in found:
            return self.all
        found.discard(_NONE)
        chars = 0
        for each in [each for each in found if self._nodes[each][0] == "chars"]:
            found.discard(each)
            chars |= self._nodes[each][1]
        if chars:
            found.add(self.chars(chars))
        if len(found) <= 1:
            return found.pop() if found else _NONE
        return self._intern(
            ("either", *sorted(found)), empty=any(self._empty[each] for each in found)
        )

    def both(self, *some: int) -> int:
        """Returns the expression of what matches all of some."""
        found = self._flat("both", some)
        if _NONE in found:
            return _NONE
        found.discard(self.all)
        if _EMPTY in found:
            return _EMPTY if all(self._empty[each] for each in found) else _NONE
        if len(found) <= 1:
            return found.pop() if found else self.all
        return self._intern(
            ("both", *sorted(found)), empty=all(self._empty[each] for each in found)
        )

    def _flat(self, kind: str, some: Sequence[int]) -> set[int]:
        found: set[int] = set()
        for each in some:
            node = self._nodes[each]
            found.update(node[1:] if node[0] == kind else (each,))
        return found

    def without(self, number: int) -> int:
        """Returns the expression of what does not match."""
        if number == _NONE:
            return self.all
        if number == self.all:
            return _NONE
        node = self._nodes[number]
        if node[0] == "not":
            inner: int = node[1]
            return inner
        return self._intern(("not", number), empty=not self._empty[number])

    def edges(self, number: int) -> list[tuple[int, int]]:
        """Returns sets of characters, and the expressions of what may follow each."""
        found = self._edges.get(number)
        if found is None:
            to: dict[int, int] = {}
            for chars in self._partition(number):
                then = self._derivative(number, (chars & -chars).bit_length() - 1)
                if then != _NONE:
                    to[then] = to.get(then, 0) | chars
            found = self._edges[number] = [(chars, then) for then, chars in to.items()]
        return found

    def _partition(self, number: int) -> list[int]:
        """Returns sets of characters within which all have the same derivative."""
        found = self._parts.get(number)
        if found is None:
            kind, *inner = self._nodes[number]
            found = [self.full]
            if kind == "chars":
                found = [inner[0], self.full & ~inner[0]]
            elif kind not in ("none", "empty"):
                if kind in ("repeat", "not") or (kind == "after" and not self._empty[inner[0]]):
                    del inner[1:]
                for each in inner:
                    others = self._partition(each)
                    found = [both for one in found for other in others if (both := one & other)]
            found = self._parts[number] = [chars for chars in found if chars]
        return found

    def _derivative(self, number: int, char: int) -> int:
        key = (number, char)
        found = self._after.get(key)
        if found is None:
            found = self._after[key] = self._derived(self._nodes[number], char)
        return found

    def _derived(self, node: tuple[Any, ...], char: int) -> int:
        kind = node[0]
        if kind == "chars":
            return _EMPTY if node[1] >> char & 1 else _NONE
        if kind == "after":
            first = self.after(self._derivative(node[1], char), node[2])
            if self._empty[node[1]]:
                return self.either(first, self._derivative(node[2], char))
            return first
        if kind == "repeat":
            _, part, least, most = node
            rest = self.repeat(part, least - 1, most if most == MORE else most - 1)
            return self.after(self._derivative(part, char), rest)
        if kind == "either":
            return self.either(*(self._derivative(each, char) for each in node[1:]))
        if kind == "both":
            return self.both(*(self._derivative(each, char) for each in node[1:]))
        return self.without(self._derivative(node[1], char)) if kind == "not" else _NONE


class _Reader:
    """Makes expressions of a pattern: each part's is that of the part and what comes after it."""

    def __init__(self, made: _Expressions, pattern: Pattern, random: Random) -> None:
        self._made = made
        self._groups = pattern.groups
        self._random = random
        self._said: dict[int, int] = {}

    def read(self, node: parsed.Node, rest: int, *, start: bool) -> int:
        """Returns the expression of a part and what comes after it.

        Args:
            node: the part.
            rest: the expression of what comes after it.
            start: whether nothing comes before it.
        """
        made = self._made
        if isinstance(node, parsed.Chars):
            return made.after(made.chars(made.places(node)), rest)
        if isinstance(node, parsed.Sequence):
            starts = []
            for part in node.parts:
                starts.append(start)
                start = start and _may_be_empty(part)
            for part, at_start in zip(reversed(node.parts), reversed(starts), strict=True):
                rest = self.read(part, rest, start=at_start)
            return rest
        if isinstance(node, parsed.Choice):
            return made.either(*(self.read(each, rest, start=start) for each in node.branches))
        if isinstance(node, parsed.Repeat):
            return self._repeat(node, rest, start=start and node.most == 1)
        if isinstance(node, parsed.Group):
            if node.number in self._groups:
                return made.after(self._chosen(node.number), rest)
            return self.read(node.body, rest, start=start)
        if isinstance(node, parsed.Back):
            return made.after(self._chosen(node.number), rest)
        if isinstance(node, parsed.Look):
            return self._look(node, rest, start=start)
        if node.place == "^":
            return rest if start else _NONE
        return made.both(_EMPTY, rest) if node.place == "$" else rest

    def _repeat(self, node: parsed.Repeat, rest: int, *, start: bool) -> int:
        made = self._made
        if not _looks(node.part):
            part = self.read(node.part, _EMPTY, start=False)
            return made.after(made.repeat(part, node.least, node.most), rest)
        if node.least > _MAX_LEAST:
            raise PatternError("it is repeated too often")
        found = rest
        for _ in range(min(node.most - node.least, _MAX_COPIES)):
            found = made.either(rest, self.read(node.part, found, start=start))
        for _ in range(node.least):
            found = self.read(node.part, found, start=start)
        return found

    def _look(self, node: parsed.Look, rest: int, *, start: bool) -> int:
        made = self._made
        if node.behind:
            if node.negated:
                return rest
            # It is put there; where something comes before, it may be there already.
            put = self.read(node.body, rest, start=start)
            return put if start else made.either(rest, put)
        ahead = self.read(node.body, made.all, start=start)
        return made.both(made.without(ahead) if node.negated else ahead, rest)

    def _chosen(self, number: int) -> int:
        """Returns the expression of the one text that a group has, wherever it is referred to."""
        if number not in self._said:
            self._said[number] = _EMPTY
            if number in self._groups:
                body = self.read(self._groups[number], _EMPTY, start=False)
                text = _Search(self._made, body, 0, None).text(self._random) or ""
                found = _EMPTY
                for char in reversed(text):
                    place = 1 << self._made.alphabet.index(char)
                    found = self._made.after(self._made.chars(place), found)
                self._said[number] = found
        return self._said[number]


class _Search:
    """Finds texts that match an expression, of the shortest length or a little more."""

    def __init__(self, made: _Expressions, start: int, least: int, most: int | None) -> None:
        self._made = made
        self._liked = [
            sum(1 << made.alphabet.index(char) for char in group) for group in (*_LIKED, VISIBLE)
        ]
        self._layers: _Layers = [{start: None}]
        self._lengths: list[int] = []
        self._alive: dict[int, _Layers] = {}
        self._learn(least, most)

    def _learn(self, least: int, most: int | None) -> None:
        """Finds the expressions of what may follow after each number of characters."""
        made = self._made
        seen: set[int] = set()
        visits = 0
        last = _MAX_TEXT if most is None else most
        while True:
            depth, layer = len(self._layers) - 1, self._layers[-1]
            if depth >= least and any(made.ends(each) for each in layer):
                self._lengths.append(depth)
                last = min(last, self._lengths[0] + _SPARE)
            visits += len(layer)
            if visits > _MAX_VISITS or depth >= _MAX_TEXT:
                raise PatternError("its texts are too long")
            known = len(seen)
            seen.update(layer)
            closed = len(seen) == known and not any(made.ends(each) for each in seen)
            if depth >= last or not layer or closed:
                return
            self._layers.append(
                dict.fromkeys(then for each in layer for _, then in made.edges(each))
            )

    def text(self, random: Random) -> str | None:
        """Returns a text, or None if there is none."""
        if not self._lengths:
            return None
        length = random.choice(self._lengths)
        alive = self._living(length)
        (state,) = self._layers[0]
        chars = []
        for depth in range(1, length + 1):
            edges = [edge for edge in self._made.edges(state) if edge[1] in alive[depth]]
            choice = 0
            if len(edges) > 1:
                weights = [self._weight(chars) for chars, _ in edges]
                (choice,) = random.choices(range(len(edges)), weights)
            several, state = edges[choice]
            chars.append(self._pick(random, several))
        return "".join(chars)

    def _living(self, length: int) -> _Layers:
        """Returns the expressions from which a text of a length is still to be completed."""
        if length not in self._alive:
            made = self._made
            alive = [dict.fromkeys(each for each in self._layers[length] if made.ends(each))]
            for layer in reversed(self._layers[:length]):
                after = alive[-1]
                alive.append(
                    dict.fromkeys(
                        each for each in layer if any(to in after for _, to in made.edges(each))
                    )
                )
            self._alive[length] = alive[::-1]
        return self._alive[length]

    def _weight(self, chars: int) -> int:
        lower, digits, upper, visible = (bool(chars & group) for group in self._liked)
        return 100 if lower else 50 if digits or upper else 10 if visible else 1

    def _pick(self, random: Random, chars: int) -> str:
        """Returns a character, most often one that reads well if there is any."""
        for group in self._liked if chars.bit_count() > _FEW else ():
            if chars & group and (chars == chars & group or random.random() < 0.9):
                chars &= group
                break
        return self._made.alphabet[random.choice(list(_places(chars)))]


def _places(chars: int) -> Iterator[int]:
    while chars:
        yield (chars & -chars).bit_length() - 1
        chars &= chars - 1


def _may_be_empty(node: parsed.Node) -> bool:
    if isinstance(node, parsed.Chars):
        return False
    if isinstance(node, parsed.Repeat):
        return node.least == 0 or _may_be_empty(node.part)
    if isinstance(node, parsed.Sequence):
        return all(map(_may_be_empty, node.parts))
    if isinstance(node, parsed.Choice):
        return any(map(_may_be_empty, node.branches))
    return not isinstance(node, parsed.Group) or _may_be_empty(node.body)


def _looks(node: parsed.Node) -> bool:
    """Whether it depends on what is around a part what matches it."""
    if isinstance(node, parsed.Repeat):
        return _looks(node.part)
    if isinstance(node, parsed.Sequence):
        return any(map(_looks, node.parts))
    if isinstance(node, parsed.Choice):
        return any(map(_looks, node.branches))
    if isinstance(node, parsed.Group):
        return _looks(node.body)
    return isinstance(node, parsed.Look) or (isinstance(node, parsed.Anchor) and bool(node.place))
