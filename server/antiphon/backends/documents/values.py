"""Values that fit a JSON Schema in its canonical form.

The canonical form has no conditions, and conjunctions only where they could not be resolved; what
is left of those is tried out against a validator.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from random import Random
from typing import Any, Final
from urllib.parse import unquote

from antiphon.backends.documents.conjunction import (
    LOCAL,
    Schema,
    flat,
    joined,
    same,
    unconditional,
)
from antiphon.backends.documents.formats import formatted
from antiphon.backends.documents.number import numbers
from antiphon.backends.documents.pattern import Pattern, PatternError
from antiphon.backends.documents.problem import Problem, SchemaProblem

__all__ = ["ValueMaker"]

_MAX_STEPS: Final = 20_000
"""How many values are made at most for one document, those that are thrown away included."""
_MAX_CHARACTERS: Final = 200_000
_MAX_DEPTH: Final = 60
_SHALLOW: Final = 4
"""How deep a value may be before only what has to be there is made."""
_TRIES: Final = 24

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
_CHECKED_NUMBER: Final = frozenset({"not", "allOf", "oneOf", "if"})
_CHECKED_ARRAY: Final = _CHECKED_NUMBER | {"contains", "uniqueItems", "unevaluatedItems"}
_CHECKED_OBJECT: Final = _CHECKED_NUMBER | {
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "propertyNames",
    "maxProperties",
    "unevaluatedProperties",
}


class _Dead(Exception):
    """No value was found for a schema."""


class ValueMaker:
    """Makes values for one schema.

    Args:
        root: the schema in its canonical form.
        random: what all choices come from.
        words: words that texts are made of, the most wanted first.
        spoken: all that was said, in lower case.
        ranks: in which order the names of members come.
        fits: tells whether a value fits a schema.
    """

    def __init__(
        self,
        root: Schema,
        random: Random,
        *,
        words: Sequence[str],
        spoken: Sequence[str],
        ranks: Mapping[str, int],
        fits: Callable[[Schema, Any], bool],
    ) -> None:
        self._root = root
        self._random = random
        self._words = words
        self._spoken = frozenset(spoken)
        self._counts = [int(word) for word in words if word.isdecimal() and len(word) < 10]
        self._ranks = ranks
        self._fits = fits
        self._used = 0
        self._steps = _MAX_STEPS
        self._characters = 0
        self._heights: dict[int, float] = {}
        self._patterns: dict[str, Pattern | None] = {}
        self._learn_heights()

    def make(self) -> Any:
        """Returns a value that is likely to fit.

        Raises:
            SchemaProblem: none was found, or it takes too much to find one.
        """
        self._used = 0
        self._characters = 0
        try:
            return self._value(self._root, 0, "")
        except _Dead:
            raise SchemaProblem(Problem.NOT_FOUND) from None

    # Any schema.

    def _value(self, node: Schema, depth: int, name: str, merged: int = 0) -> Any:
        self._steps -= 1
        if self._steps < 0:
            raise SchemaProblem(Problem.TOO_COMPLEX)
        if node is False or depth > _MAX_DEPTH or merged > _MAX_DEPTH:
            raise _Dead
        if not isinstance(node, Mapping):
            return self._text({}, name)
        if "allOf" in node:
            node = flat(node)
            if not isinstance(node, Mapping):
                raise _Dead
        if "const" in node:
            return self._checked(node, node["const"])
        if "enum" in node:
            return self._listed(node)
        if "$ref" in node:
            target = self._target(node["$ref"])
            return self._value(joined(target, node, "$ref"), depth, name, merged + 1)
        if "if" in node:
            return self._value(unconditional(node), depth, name, merged + 1)
        for key in ("anyOf", "oneOf"):
            if key in node:
                return self._branch(node, key, depth, name, merged)
        return self._typed(node, depth, name)

    def _typed(self, node: Mapping[str, Any], depth: int, name: str) -> Any:
        kinds = node.get("type", _implied(node))
        kinds = [kinds] if isinstance(kinds, str) else list(kinds)
        order = _ORDER if _OBJECT & node.keys() else _PLAIN_ORDER
        for kind in sorted(kinds, key=order.index):
            try:
                return self._of_type(node, kind, depth, name)
            except _Dead:
                continue
        raise _Dead

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
            return self._first(node, self._shuffled([True, False]), _CHECKED_NUMBER)
        return self._checked(node, None)

    def _branch(self, node: Mapping[str, Any], key: str, depth: int, name: str, merged: int) -> Any:
        branches = self._shuffled(node[key])
        if depth >= _SHALLOW:
            branches.sort(key=self._height)
        else:
            branches.sort(key=_rank)
        for branch in branches:
            try:
                found = self._value(joined(branch, node, key), depth, name, merged + 1)
            except _Dead:
                continue
            if key == "anyOf" or self._fits(node, found):
                return found
        raise _Dead

    def _listed(self, node: Mapping[str, Any]) -> Any:
        values = self._shuffled(node["enum"])
        # What was spoken of comes first, and nothing comes last.
        values.sort(key=lambda each: (str(each).lower() not in self._spoken, each is None))
        return self._first(node, values, node.keys() - {"enum"})

    def _first(self, node: Mapping[str, Any], values: Sequence[Any], checked: Any) -> Any:
        if values and not checked & node.keys():
            return values[0]
        for value in values:
            if self._fits(node, value):
                return value
        raise _Dead

    def _checked(self, node: Mapping[str, Any], value: Any) -> Any:
        if node.keys() - {"const", "$schema", *LOCAL} and not self._fits(node, value):
            raise _Dead
        return value

    # Texts.

    def _text(self, node: Mapping[str, Any], name: str) -> str:
        checked = _CHECKED_STRING & node.keys()
        used = self._used
        for text in self._texts(node, name):
            if not checked or self._fits(node, text):
                self._characters += len(text)
                if self._characters > _MAX_CHARACTERS:
                    raise SchemaProblem(Problem.TOO_COMPLEX)
                return text
            self._used = used
            self._step()
        raise _Dead

    def _texts(self, node: Mapping[str, Any], name: str) -> Iterator[str]:
        least, most = _count(node.get("minLength"), 0), _count(node.get("maxLength"), None)
        assert least is not None
        if least > _MAX_CHARACTERS:
            raise SchemaProblem(Problem.TOO_COMPLEX)
        if most is not None and most < least:
            return
        sources = list(_patterns(node))
        kind = node.get("format")
        if isinstance(kind, str):
            word = "".join(c for c in self._word(name).lower() if c in string.ascii_lowercase)
            yield from formatted(kind, self._random, word or "example")
        if not sources:
            yield _fitted(self._word(name), least, most)
        yield from (self._word(name) for _ in range(2))
        for _ in range(_TRIES):
            for source in sources or (None,):
                if source is None:
                    text = f"{self._random.choice(_WORDS)} {self._random.randint(1, 999)}"
                    yield _fitted(text, least, most)
                    yield _fitted(_token(self._random, 8), least, most)
                    continue
                yield self._matching(source, least, most)
            if len(sources) > 1:
                yield "".join(self._matching(source, 0, most) for source in sources)

    def _matching(self, source: str, least: int, most: int | None) -> str:
        """Returns a text that is likely to match a pattern; "" if the pattern is not understood."""
        pattern = self._pattern(source)
        try:
            return "" if pattern is None else pattern.text(self._random, least, most)
        except PatternError:
            raise SchemaProblem(Problem.TOO_COMPLEX) from None

    def _pattern(self, source: str) -> Pattern | None:
        if source not in self._patterns:
            try:
                self._patterns[source] = Pattern(source)
            except PatternError:
                self._patterns[source] = None
        return self._patterns[source]

    def _word(self, name: str) -> str:
        words = [word for word in self._words if not word.isdecimal()]
        if self._used < len(words):
            self._used += 1
            return words[self._used - 1]
        return _PLAUSIBLE.get(name.lower()) or self._random.choice(_WORDS)

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
        raise _Dead

    # Arrays.

    def _array(self, node: Mapping[str, Any], depth: int, name: str) -> list[Any]:
        prefix, rest = _places(node)
        least = _count(node.get("minItems"), 0) or 0
        most = _count(node.get("maxItems"), None)
        contains = _contained(node)
        if max(least, len(contains)) > _MAX_STEPS:
            raise SchemaProblem(Problem.TOO_COMPLEX)
        size = max(least, len(contains))
        if depth < _SHALLOW and self._height(rest) + depth < _MAX_DEPTH:
            size = max(size, len(prefix) or 1, least + self._random.randrange(2))
        if rest is False:
            size = min(size, max(len(prefix), least))
        # Where elements have to be of some kind, there may be no place for them but after others.
        sizes = [size, least, max(least, len(contains)), len(prefix) + len(contains)]
        for length in dict.fromkeys(each if most is None else min(each, most) for each in sizes):
            for attempt in range(4):
                try:
                    value = self._elements(node, length, contains, attempt, depth, name)
                except _Dead:
                    continue
                if not _CHECKED_ARRAY & node.keys() or self._fits(node, value):
                    return value
        raise _Dead

    def _elements(
        self,
        node: Mapping[str, Any],
        length: int,
        contains: Sequence[Schema],
        attempt: int,
        depth: int,
        name: str,
    ) -> list[Any]:
        prefix, rest = _places(node)
        unique = node.get("uniqueItems") is True
        places = self._contained_places(length, len(contains), attempt)
        found: list[Any] = []
        for index in range(length):
            schema = prefix[index] if index < len(prefix) else rest
            if index in places:
                schema = flat({"allOf": [contains[places.index(index)], schema]})
            # The last of a few given values is met by chance only after many others.
            for _ in range(_TRIES + 8 * length if unique else 1):
                value = self._value(schema, depth + 1, name)
                if not unique or not any(same(value, each) for each in found):
                    break
            else:
                raise _Dead
            found.append(value)
        return found

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
        raise _Dead

    def _members(self, node: Mapping[str, Any], depth: int, attempt: int) -> dict[str, Any]:
        properties: Mapping[str, Any] = node.get("properties", {})
        required = sorted(node.get("required", ()), key=self._ranked)
        least = _count(node.get("minProperties"), 0) or 0
        most = _count(node.get("maxProperties"), None)
        if max(len(required), least) > _MAX_STEPS:
            raise SchemaProblem(Problem.TOO_COMPLEX)
        made: dict[str, Any] = {}
        for name in required:
            made[name] = self._value(self._member(node, name), depth + 1, name)
        for name in self._dependent(node, made):
            made[name] = self._value(self._member(node, name), depth + 1, name)
        optional = sorted((name for name in properties if name not in made), key=self._ranked)
        if attempt % 2:
            optional = [name for name in optional if self._random.random() < 0.5]
        free = not properties and depth < _SHALLOW
        for name in optional:
            if most is not None and len(made) >= most:
                break
            if len(made) < least or (attempt < 4 and self._cheap(node, name, depth)):
                self._add(node, made, name, depth)
        wanted = max(least, 1 if free and self._open(node) and most != 0 else 0)
        for name in self._invented(node, made, wanted):
            if len(made) >= wanted:
                break
            self._add(node, made, name, depth)
        if len(made) < least:
            raise _Dead
        return made

    def _ranked(self, name: str) -> tuple[int, str]:
        return self._ranks.get(name, len(self._ranks)), name

    def _cheap(self, node: Mapping[str, Any], name: str, depth: int) -> bool:
        """Whether a member that may be left out is made: not where a document would not end."""
        if depth >= _SHALLOW or self._steps < _MAX_STEPS // 2:
            return False
        return self._height(node["properties"][name]) < _SHALLOW

    def _add(self, node: Mapping[str, Any], made: dict[str, Any], name: str, depth: int) -> None:
        try:
            made[name] = self._value(self._member(node, name), depth + 1, name)
        except _Dead:
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
            if self._fits({"pattern": source}, name):
                found.append(schema)
        if not found:
            found.append(node.get("additionalProperties", True))
        if len(found) == 1:
            return found[0]
        return {"allOf": found}

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
                pattern = self._pattern(source)
                if pattern is not None:
                    try:
                        name = pattern.text(self._random, 1 + index // 8, None)
                    except PatternError:
                        continue
                    if name not in made and self._name_fits(names, name):
                        yield name
            if node.get("additionalProperties") is False:
                continue
            if isinstance(names, Mapping):
                try:
                    name = self._text(names, "key")
                except _Dead:
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
        if not reference.startswith("#"):
            raise _Dead
        found: Any = self._root
        for step in reference[1:].split("/")[1:]:
            key = unquote(step).replace("~1", "/").replace("~0", "~")
            if isinstance(found, Mapping):
                found = found.get(key)
            elif isinstance(found, list) and key.isdecimal() and int(key) < len(found):
                found = found[int(key)]
            else:
                raise _Dead
        if not isinstance(found, Mapping | bool):
            raise _Dead
        return found

    def _height(self, node: Schema) -> float:
        """Returns how deep the smallest value of a schema is."""
        if not isinstance(node, Mapping):
            return 0 if node else float("inf")
        return self._heights.get(id(node), 0)

    def _learn_heights(self) -> None:
        """Finds how deep the smallest value of each schema is; until known, it has no end."""
        nodes = list(_nodes(self._root))
        self._heights = {id(node): float("inf") for node in nodes}
        for _ in range(_MAX_DEPTH):
            changed = False
            for node in reversed(nodes):
                height = self._measured(node)
                if height != self._heights[id(node)]:
                    self._heights[id(node)] = height
                    changed = True
            if not changed:
                break

    def _measured(self, node: Mapping[str, Any]) -> float:
        heights: list[float] = [0]
        if "$ref" in node:
            try:
                heights.append(self._height(self._target(node["$ref"])))
            except _Dead:
                heights.append(float("inf"))
        heights.extend(
            min(self._height(branch) for branch in node[key])
            for key in ("anyOf", "oneOf")
            if node.get(key)
        )
        if node.get("type") in ("object", ["object"]):
            members = node.get("properties", {})
            required = node.get("required", ())
            heights.extend(1 + self._height(members.get(name, True)) for name in required)
        if node.get("type") in ("array", ["array"]) and node.get("minItems"):
            prefix, rest = _places(node)
            heights.extend(1 + self._height(each) for each in [*prefix, rest][: node["minItems"]])
        return max(heights)


def _nodes(root: Any) -> Iterator[Mapping[str, Any]]:
    """Yields all objects within a schema, a few of which are no schemas themselves."""
    waiting = [root]
    while waiting:
        found = waiting.pop()
        if isinstance(found, Mapping):
            yield found
            waiting.extend(found.values())
        elif isinstance(found, list):
            waiting.extend(found)


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


def _patterns(node: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(node.get("pattern"), str):
        yield node["pattern"]
    for part in node.get("allOf", ()):
        if isinstance(part, Mapping) and isinstance(part.get("pattern"), str):
            yield part["pattern"]


def _contained(node: Mapping[str, Any]) -> list[Schema]:
    """Returns the schemas of the elements that an array has to have somewhere."""
    found: list[Schema] = []
    for part in (node, *node.get("allOf", ())):
        if isinstance(part, Mapping) and "contains" in part:
            count = _count(part.get("minContains"), 1) or 0
            if count > _MAX_STEPS:
                raise SchemaProblem(Problem.TOO_COMPLEX)
            found += [part["contains"]] * count
    return found


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


def _token(random: Random, length: int) -> str:
    return "".join(random.choice(string.ascii_lowercase) for _ in range(length))


def _count(value: Any, default: int | None) -> int | None:
    return default if value is None else int(value)
