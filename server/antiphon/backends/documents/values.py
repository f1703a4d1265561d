"""Values that fit a JSON Schema.

They are made best of its canonical form, which has no conditions, and conjunctions only where they
could not be resolved. What a schema says beyond what is followed here is tried out against a
validator.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from random import Random
from typing import Any, Final, cast

from antiphon.backends.documents.conjunction import (
    LOCAL,
    Schema,
    merged,
    merged_with,
    same,
    unconditional,
)
from antiphon.backends.documents.formats import WORD, sources
from antiphon.backends.documents.language import VISIBLE, Language
from antiphon.backends.documents.number import numbers
from antiphon.backends.documents.pattern import PatternError
from antiphon.backends.documents.problem import Problem, SchemaProblem
from antiphon.backends.documents.tree import pointed, schemas

__all__ = ["ValueMaker"]

_MAX_STEPS: Final = 20_000
"""How many values are made at most for one document, those that are thrown away included."""
_MAX_CHARACTERS: Final = 200_000
_MAX_ELEMENTS: Final = 10_000
"""How many elements or members a value may be asked to have."""
_MAX_DEPTH: Final = 130
"""How deep a value may be, which is a little deeper than the API takes values."""
_SHALLOW: Final = 4
"""How deep a value may be before only what has to be there is made."""
_TRIES: Final = 24
_MAX_WORDS: Final = 3
"""How many words are tried for a text."""
_MAX_LETTERS: Final = 20
"""How much of a word is used within a text of a format, in characters."""
_SHORT: Final = 3
"""How long a text is at most that is made of other characters too where it has to be new."""

_ORDER: Final = ("object", "string", "integer", "number", "boolean", "array", "null")
"""Which type is made where several fit, the best first."""
_PLAIN_ORDER: Final = ("string", "integer", "number", "boolean", "object", "array", "null")
"""The same, where nothing is said of what an object would hold."""
_PLAUSIBLE: Final = {
    "city": "Paris",
    "country": "France",
    "currency": "EUR",
    "language": "English",
    "location": "Paris",
    "name": "Ada",
    "street": "Main Street",
    "timezone": "UTC",
    "unit": "metric",
}
_WORDS: Final = ("alpha", "bravo", "delta", "echo", "lima", "november", "sierra", "tango")
_OBJECT: Final = frozenset(
    {"properties", "required", "patternProperties", "additionalProperties", "minProperties"}
)
_CHECKED_STRING: Final = frozenset(
    {"pattern", "format", "not", "allOf", "oneOf", "if", "maxLength", "minLength"}
)
_CHECKED: Final = frozenset({"not", "allOf", "oneOf", "if"})
_CHECKED_NUMBER: Final = _CHECKED | {"multipleOf"}
_CHECKED_ARRAY: Final = _CHECKED | {"contains", "uniqueItems", "unevaluatedItems"}
_CHECKED_OBJECT: Final = _CHECKED | {
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "propertyNames",
    "maxProperties",
    "unevaluatedProperties",
}


class _Unsatisfiable(Exception):
    """No value was found for a schema."""


class ValueMaker:
    """Makes values for one schema.

    Args:
        root: the schema in its canonical form.
        random: what all choices come from.
        words: words that texts are made of, the most wanted first.
        mentioned: all words that were said, in lower case.
        ranks: in which order the names of members come.
        fits: tells whether a value fits a schema.
        without: returns a schema of what fits one schema and does not fit another.
    """

    def __init__(
        self,
        root: Schema,
        random: Random,
        *,
        words: Sequence[str],
        mentioned: Sequence[str],
        ranks: Mapping[str, int],
        fits: Callable[[Schema, Any], bool],
        without: Callable[[Schema, Schema], Schema],
    ) -> None:
        self._root = root
        self._random = random
        self._given = words
        self._mentioned = frozenset(mentioned)
        self._ranks = ranks
        self._fits = fits
        self._without = without
        self._once: dict[tuple[Any, ...], tuple[Any, tuple[Any, ...]]] = {}
        self._languages: dict[tuple[tuple[str, ...], tuple[str, ...]], Language | None] = {}
        self._depths: dict[int, float] = {}
        self._learn_depths()
        self._restart()
        self._steps = _MAX_STEPS
        self._thrifty = False

    def _restart(self) -> None:
        self._words = [word for word in self._given if not word.isdecimal()]
        self._counts = [int(word) for word in self._given if word.isdecimal() and len(word) < 10]
        self._characters = 0
        self._repeated = 0
        """How often the last value was one that its array has already, and was thrown away."""

    def make(self, *, thrifty: bool = False) -> Any:
        """Returns a value that is likely to fit.

        Args:
            thrifty: whether it has only what it has to have.

        Raises:
            SchemaProblem: none was found, or it takes too much to find one.
        """
        if thrifty and not self._thrifty:
            self._steps = _MAX_STEPS
        self._thrifty = thrifty
        self._restart()
        try:
            return self._value(self._root, 0, "")
        except _Unsatisfiable:
            raise SchemaProblem(Problem.NOT_FOUND) from None

    def _remembered(self, make: Callable[..., Any], *parts: Any) -> Any:
        """Returns what is made of schemas, the same one each time."""
        key = (make, *(part if isinstance(part, str) else id(part) for part in parts))
        if key not in self._once:
            # The parts are kept, so that their identities stay their own.
            self._once[key] = make(*parts), parts
        return self._once[key][0]

    # Any schema.

    def _value(self, node: Schema, depth: int, name: str, chain: int = 0) -> Any:
        self._step()
        if node is False or depth > _MAX_DEPTH or chain > _MAX_DEPTH:
            raise _Unsatisfiable
        if not isinstance(node, Mapping):
            return self._typed({}, depth, name)
        if "allOf" in node:
            node = self._remembered(merged, node)
            if not isinstance(node, Mapping):
                raise _Unsatisfiable
        if "const" in node:
            return self._checked(node, node["const"])
        if "enum" in node:
            return self._listed(node)
        if "$ref" in node:
            target = self._remembered(merged_with, self._target(node["$ref"]), node, "$ref")
            return self._value(target, depth, name, chain + 1)
        if "if" in node:
            return self._value(self._remembered(unconditional, node), depth, name, chain + 1)
        for key in ("anyOf", "oneOf"):
            if key in node:
                return self._branch(node, key, depth, name, chain)
        return self._typed(node, depth, name)

    def _typed(self, node: Mapping[str, Any], depth: int, name: str) -> Any:
        kinds = node.get("type", _implied(node))
        kinds = [kinds] if isinstance(kinds, str) else list(kinds)
        order = _ORDER if _OBJECT & node.keys() else _PLAIN_ORDER
        kinds.sort(key=order.index)
        for kind in self._shuffled(kinds) if self._repeated else kinds:
            try:
                return self._of_type(node, kind, depth, name)
            except _Unsatisfiable:
                continue
        raise _Unsatisfiable

    def _of_type(self, node: Mapping[str, Any], kind: str, depth: int, name: str) -> Any:
        if kind == "string":
            return self._text(node, name)
        if kind in ("integer", "number"):
            return self._number(node, whole=kind == "integer")
        if kind == "object":
            return self._object(node, depth)
        if kind == "array":
            return self._array(node, depth, name)
        if kind == "boolean":
            return self._first(node, self._shuffled([True, False]), _CHECKED)
        return self._checked(node, None)

    def _branch(self, node: Mapping[str, Any], key: str, depth: int, name: str, chain: int) -> Any:
        branches = self._shuffled(node[key])
        if depth >= _SHALLOW:
            branches.sort(key=self._min_depth)
        elif not self._repeated:
            branches.sort(key=_rank)
        for branch in branches:
            try:
                both = self._remembered(merged_with, branch, node, key)
                found = self._value(both, depth, name, chain + 1)
            except _Unsatisfiable:
                continue
            if key == "anyOf" or self._fits(node, found):
                return found
        raise _Unsatisfiable

    def _listed(self, node: Mapping[str, Any]) -> Any:
        values = self._shuffled(node["enum"])
        if not self._repeated:
            # What was mentioned comes first, and nothing comes last.
            values.sort(key=lambda each: (str(each).lower() not in self._mentioned, each is None))
        return self._first(node, values, node.keys() - {"enum"})

    def _first(self, node: Mapping[str, Any], values: Sequence[Any], checked: Any) -> Any:
        if values and not checked & node.keys():
            return values[0]
        for value in values:
            if self._fits(node, value):
                return value
        raise _Unsatisfiable

    def _checked(self, node: Mapping[str, Any], value: Any) -> Any:
        if node.keys() - {"const", "$schema", *LOCAL} and not self._fits(node, value):
            raise _Unsatisfiable
        return value

    # Texts.

    def _text(self, node: Mapping[str, Any], name: str) -> str:
        checked = _CHECKED_STRING & node.keys()
        for text in self._texts(node, name):
            if not checked or self._fits(node, text):
                self._characters += len(text)
                if self._characters > _MAX_CHARACTERS:
                    raise SchemaProblem(Problem.TOO_COMPLEX)
                return text
            self._step()
        raise _Unsatisfiable

    def _texts(self, node: Mapping[str, Any], name: str) -> Iterator[str]:
        least, most = _count(node.get("minLength"), 0) or 0, _count(node.get("maxLength"), None)
        if least > _MAX_CHARACTERS:
            raise SchemaProblem(Problem.TOO_COMPLEX)
        if most is not None and most < least:
            return
        patterns, excluded = _patterns(node)
        for source in sources(str(node.get("format"))):
            for word in self._wanted(name) if WORD in source else [""] * 4:
                letters = "".join(char for char in word.lower() if char in string.ascii_lowercase)
                own = source.replace(WORD, letters[:_MAX_LETTERS] or "example")
                yield from self._matching((own, *patterns), excluded, least, most)
        for word in self._wanted(name):
            yield word if patterns else _fitted(word, least, most)
        for _ in range(_TRIES):
            if patterns or excluded:
                yield from self._matching(tuple(patterns), excluded, least, most)
            elif self._repeated <= 1:
                text = f"{self._random.choice(_WORDS)} {self._random.randint(1, 999)}"
                yield _fitted(text, least, most)
            yield _fitted(self._token(most), least, most)

    def _wanted(self, name: str) -> Iterator[str]:
        """Yields words to make a text of; one that is not asked for the next is used up."""
        if self._repeated > 1:
            return
        for word in self._words[:_MAX_WORDS]:
            place = self._words.index(word)
            del self._words[place]
            yield word
            self._words.insert(place, word)
        yield _PLAUSIBLE.get(name.lower()) or self._random.choice(_WORDS)

    def _matching(
        self, patterns: Sequence[str], excluded: Sequence[str], least: int, most: int | None
    ) -> Iterator[str]:
        """Yields a text that is likely to match, unless there is none or it is not found."""
        key = tuple(patterns), tuple(excluded)
        try:
            if key not in self._languages:
                self._languages[key] = None
                self._languages[key] = Language(*key)
            language = self._languages[key]
            text = None if language is None else language.text(self._random, least, most)
        except PatternError:
            # It would take as much the next time.
            self._languages[key] = None
            return
        if text is not None:
            yield text

    def _token(self, most: int | None) -> str:
        # Where there is little place, there are not many texts of letters alone.
        chars = string.ascii_lowercase if most is None or most > _SHORT else VISIBLE
        return "".join(self._random.choice(chars) for _ in range(8))

    # Numbers.

    def _number(self, node: Mapping[str, Any], *, whole: bool) -> int | Decimal:
        for count in self._counts:
            if self._fits(node, count):
                self._counts.remove(count)
                return count
        for found in numbers(node, self._random, whole=whole):
            if not _CHECKED_NUMBER & node.keys() or self._fits(node, found):
                return found
            self._step()
        raise _Unsatisfiable

    # Arrays.

    def _array(self, node: Mapping[str, Any], depth: int, name: str) -> list[Any]:
        prefix, rest = _places(node)
        contains, limited = _contained(node)
        asked = _count(node.get("minItems"), 0) or 0
        least = max(asked, len(contains))
        most = _count(node.get("maxItems"), None)
        if least > _MAX_ELEMENTS:
            raise SchemaProblem(Problem.TOO_COMPLEX)
        size = least
        if self._free(depth) and self._min_depth(rest) + depth < _MAX_DEPTH:
            size = max(size, len(prefix) or 1, asked + self._random.randrange(2))
        if self._repeated:
            size = least + self._random.randrange(2 + self._repeated)
        if rest is False:
            size = min(size, max(len(prefix), asked))
        # Where elements have to be of some kind, there may be no place for them but after others.
        sizes = [size, asked, least, len(prefix) + len(contains)]
        for length in dict.fromkeys(each if most is None else min(each, most) for each in sizes):
            for attempt in range(4):
                try:
                    value = self._elements(node, length, (contains, limited), attempt, depth, name)
                except _Unsatisfiable:
                    continue
                if not _CHECKED_ARRAY & node.keys() or self._fits(node, value):
                    return value
        raise _Unsatisfiable

    def _elements(
        self,
        node: Mapping[str, Any],
        length: int,
        contained: tuple[Sequence[Schema], Sequence[Schema]],
        attempt: int,
        depth: int,
        name: str,
    ) -> list[Any]:
        prefix, rest = _places(node)
        contains, limited = contained
        unique = node.get("uniqueItems") is True
        places = self._contained_places(length, len(contains), attempt)
        found: list[Any] = []
        for index in range(length):
            schema = prefix[index] if index < len(prefix) else rest
            own = contains[places.index(index)] if index in places else None
            for other in limited:
                if other is not own:
                    schema = self._remembered(self._without, schema, other)
            if own is not None:
                schema = self._remembered(_both, own, schema)
            found.append(self._other(schema, found if unique else (), depth + 1, name))
        return found

    def _other(self, schema: Schema, known: Sequence[Any], depth: int, name: str) -> Any:
        """Returns a value that is not among some; the more often it was, the freer the choice."""
        before = self._repeated
        try:
            # The last of a few given values is met by chance only after many others.
            for repeated in range(_TRIES + 8 * len(known)):
                self._repeated = max(before, repeated)
                value = self._value(schema, depth, name)
                if not any(same(value, each) for each in known):
                    return value
            raise _Unsatisfiable
        finally:
            self._repeated = before

    def _free(self, depth: int) -> bool:
        """Whether there is room for more than has to be there."""
        return depth < _SHALLOW and not self._thrifty

    def _contained_places(self, length: int, count: int, attempt: int) -> list[int]:
        """Returns places for elements that have to be there: the last, the first, then any."""
        count = min(count, length)
        if attempt == 0:
            return list(range(length - count, length))
        if attempt == 1:
            return list(range(count))
        return self._random.sample(range(length), count)

    # Objects.

    def _object(self, node: Mapping[str, Any], depth: int) -> dict[str, Any]:
        checked = bool(_CHECKED_OBJECT & node.keys())
        last: dict[str, Any] | None = None
        for attempt in range(6):
            last = self._members(node, depth, attempt)
            if not checked or self._fits(node, last):
                return last
        raise _Unsatisfiable

    def _members(self, node: Mapping[str, Any], depth: int, attempt: int) -> dict[str, Any]:
        properties: Mapping[str, Any] = node.get("properties", {})
        required = sorted(node.get("required", ()), key=self._ranked)
        least = _count(node.get("minProperties"), 0) or 0
        most = _count(node.get("maxProperties"), None)
        if max(len(required), least) > _MAX_ELEMENTS:
            raise SchemaProblem(Problem.TOO_COMPLEX)
        made: dict[str, Any] = {}
        for name in required:
            made[name] = self._value(self._member(node, name), depth + 1, name)
        for name in self._dependent(node, made):
            made[name] = self._value(self._member(node, name), depth + 1, name)
        optional = sorted((name for name in properties if name not in made), key=self._ranked)
        if attempt % 2 or self._repeated:
            optional = [name for name in optional if self._random.random() < 0.5]
        free = not properties and self._free(depth)
        for name in optional:
            if most is not None and len(made) >= most:
                break
            if len(made) < least or (attempt < 4 and self._cheap(node, name, depth)):
                self._add(node, made, name, depth)
        wanted = max(least, 1 if free and self._open(node) and most != 0 else 0)
        if self._repeated and node.get("additionalProperties") is not False:
            wanted = max(wanted, len(made) + self._random.randrange(1 + self._repeated // 4))
        for name in self._invented(node, made, wanted):
            if len(made) >= wanted:
                break
            self._add(node, made, name, depth)
        if len(made) < least:
            raise _Unsatisfiable
        return made

    def _ranked(self, name: str) -> tuple[int, str]:
        return self._ranks.get(name, len(self._ranks)), name

    def _cheap(self, node: Mapping[str, Any], name: str, depth: int) -> bool:
        """Whether a member that may be left out is made: not where a document would not end."""
        if not self._free(depth) or self._steps < _MAX_STEPS // 2:
            return False
        return self._min_depth(node["properties"][name]) < _SHALLOW

    def _add(self, node: Mapping[str, Any], made: dict[str, Any], name: str, depth: int) -> None:
        try:
            made[name] = self._value(self._member(node, name), depth + 1, name)
        except _Unsatisfiable:
            return

    def _open(self, node: Mapping[str, Any]) -> bool:
        """Whether members are described that have no names of their own."""
        return isinstance(node.get("additionalProperties"), Mapping) or bool(
            node.get("patternProperties")
        )

    def _member(self, node: Mapping[str, Any], name: str) -> Schema:
        """Returns the schema of a member."""
        found: list[Schema] = []
        properties: Mapping[str, Schema] = node.get("properties", {})
        if name in properties:
            found.append(properties[name])
        for source, schema in node.get("patternProperties", {}).items():
            if self._fits(self._remembered(_of_pattern, source), name):
                found.append(schema)
        if not found:
            found.append(node.get("additionalProperties", True))
        if len(found) == 1:
            return found[0]
        return cast("Schema", self._remembered(_both, *found))

    def _dependent(self, node: Mapping[str, Any], made: Mapping[str, Any]) -> Iterator[str]:
        """Yields the names that are required by those that are there."""
        dependencies = {**node.get("dependencies", {}), **node.get("dependentRequired", {})}
        waiting = list(made)
        seen = set(waiting)
        while waiting:
            needed = dependencies.get(waiting.pop())
            for name in needed if isinstance(needed, list) else ():
                if name not in seen:
                    seen.add(name)
                    waiting.append(name)
                    yield name

    def _invented(
        self, node: Mapping[str, Any], made: Mapping[str, Any], wanted: int
    ) -> Iterator[str]:
        """Yields names for members that have none yet."""
        if len(made) >= wanted:
            return
        names = node.get("propertyNames", True)
        if isinstance(names, Mapping):
            listed = names.get("enum", [names["const"]] if "const" in names else [])
            yield from (name for name in listed if name not in made)
        sources = list(node.get("patternProperties", {}))
        for index in range(wanted * 4 + _TRIES):
            self._step()
            for source in sources:
                for name in self._matching((source,), (), 1 + index // 8, None):
                    if name not in made and self._name_fits(names, name):
                        yield name
            if node.get("additionalProperties") is False:
                continue
            if isinstance(names, Mapping):
                try:
                    name = self._text(names, "key")
                except _Unsatisfiable:
                    return
            else:
                name = _WORDS[index] if index < len(_WORDS) else f"{_WORDS[0]}{index}"
            if name not in made:
                yield name

    def _name_fits(self, names: Schema, name: str) -> bool:
        return names is True or self._fits(names, name)

    # What is known of the schema.

    def _step(self) -> None:
        self._steps -= 1
        if self._steps < 0:
            raise SchemaProblem(Problem.TOO_COMPLEX)

    def _shuffled(self, values: Sequence[Any]) -> list[Any]:
        return self._random.sample(values, len(values))

    def _target(self, reference: str) -> Schema:
        found = pointed(reference, self._root)
        if not isinstance(found, Mapping | bool):
            raise _Unsatisfiable
        return found

    def _min_depth(self, node: Schema) -> float:
        """Returns how deep the smallest value of a schema is."""
        if not isinstance(node, Mapping):
            return 0 if node else float("inf")
        return self._depths.get(id(node), 0)

    def _learn_depths(self) -> None:
        """Finds how deep the smallest value of each schema is; until known, it has no end."""
        nodes = list(schemas(self._root))
        self._depths = {id(node): float("inf") for node in nodes}
        for _ in range(_MAX_DEPTH):
            changed = False
            for node in reversed(nodes):
                depth = self._measured(node)
                if depth != self._depths[id(node)]:
                    self._depths[id(node)] = depth
                    changed = True
            if not changed:
                break

    def _measured(self, node: Mapping[str, Any]) -> float:
        depths: list[float] = [0]
        if "$ref" in node:
            try:
                depths.append(self._min_depth(self._target(node["$ref"])))
            except _Unsatisfiable:
                depths.append(float("inf"))
        depths.extend(
            min(self._min_depth(branch) for branch in node[key])
            for key in ("anyOf", "oneOf")
            if node.get(key)
        )
        if node.get("type") in ("object", ["object"]):
            members = node.get("properties", {})
            required = node.get("required", ())
            depths.extend(1 + self._min_depth(members.get(name, True)) for name in required)
        if node.get("type") in ("array", ["array"]) and node.get("minItems"):
            prefix, rest = _places(node)
            depths.extend(1 + self._min_depth(each) for each in [*prefix, rest][: node["minItems"]])
        return max(depths)


def _implied(node: Mapping[str, Any]) -> Sequence[str]:
    """Returns the types that a schema without a type is likely to be about."""
    if _OBJECT & node.keys():
        return ("object",)
    if {"items", "prefixItems", "contains", "minItems"} & node.keys():
        return ("array",)
    if {"minimum", "maximum", "multipleOf", "exclusiveMinimum", "exclusiveMaximum"} & node.keys():
        return ("number",)
    return _PLAIN_ORDER


def _rank(branch: Any) -> int:
    """Orders alternatives: what says most comes first, nothing comes last."""
    if not isinstance(branch, Mapping):
        return 2
    if branch.get("type") == "null" or ("const" in branch and branch["const"] is None):
        return 3
    if branch.get("properties"):
        # One whose members must not be there says less than one that describes them.
        return 0 if any(branch["properties"].values()) else 1
    return 2 if isinstance(branch.get("type"), list) else 1


def _of_pattern(source: str) -> Schema:
    return {"pattern": source}


def _both(*some: Schema) -> Schema:
    return {"allOf": some}


def _patterns(node: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Returns the patterns that a text has to match, and those that it must not."""
    found: list[str] = []
    excluded: list[str] = []
    for part in (node, *node.get("allOf", ())):
        if isinstance(part, Mapping):
            if isinstance(part.get("pattern"), str):
                found.append(part["pattern"])
            other = part.get("not")
            if isinstance(other, Mapping) and other.keys() - {"type"} == {"pattern"}:
                excluded.append(other["pattern"])
    return found, excluded


def _contained(node: Mapping[str, Any]) -> tuple[list[Schema], list[Schema]]:
    """Returns the schemas of elements that have to be there, and those of which no more may be."""
    found: list[Schema] = []
    limited: list[Schema] = []
    for part in (node, *node.get("allOf", ())):
        if isinstance(part, Mapping) and "contains" in part:
            count = _count(part.get("minContains"), 1) or 0
            if count > _MAX_ELEMENTS:
                raise SchemaProblem(Problem.TOO_COMPLEX)
            found += [part["contains"]] * count
            if "maxContains" in part:
                limited.append(part["contains"])
    return found, limited


def _places(node: Mapping[str, Any]) -> tuple[Sequence[Schema], Schema]:
    """Returns the schemas of the first elements of an array, and that of the others."""
    items = node.get("items", True)
    if isinstance(items, list):
        return items, node.get("additionalItems", True)
    return node.get("prefixItems", ()), items


def _fitted(text: str, least: int, most: int | None) -> str:
    """Returns a text made as long as it has to be."""
    if len(text) < least:
        text = (f"{text} " * (least // (len(text) + 1) + 1))[:least]
        if text.endswith(" "):
            text = f"{text[:-1]}s"
    return text if most is None else text[:most]


def _count(value: Any, default: int | None) -> int | None:
    return default if value is None else int(value)
