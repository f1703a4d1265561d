"""Order: the members of a document in the order in which its schema names them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from antiphon.backends.documents.tree import pointed, schemas

__all__ = ["ordered", "ranks"]

_MOST_SCHEMAS: Final = 200
"""How many schemas of one value are looked at; what is named beyond them comes last."""
_LISTS: Final = ("allOf", "anyOf", "oneOf")
_ONE: Final = ("if", "then", "else", "not")


def ordered(value: Any, schema: Any) -> Any:
    """Returns a document whose members are ordered as its schema orders its properties.

    Args:
        value: the document.
        schema: its schema, as its author wrote it.
    """
    return _ordered(value, [schema], schema)


def _ordered(value: Any, schemas: Sequence[Any], root: Any) -> Any:
    if isinstance(value, dict):
        return _ordered_object(value, list(_in_place(schemas, root)), root)
    if isinstance(value, list):
        places = list(_in_place(schemas, root))
        return [
            _ordered(element, list(_elements(places, index)), root)
            for index, element in enumerate(value)
        ]
    return value


def _ordered_object(value: dict[str, Any], places: Sequence[Any], root: Any) -> dict[str, Any]:
    below: dict[str, list[Any]] = {}
    rest: list[Any] = []
    for place in places:
        properties = place.get("properties")
        if isinstance(properties, dict):
            for name, schema in properties.items():
                below.setdefault(name, []).append(schema)
        patterns = place.get("patternProperties")
        if isinstance(patterns, dict):
            rest.extend(patterns.values())
        rest.append(place.get("additionalProperties"))
    names = [name for name in below if name in value]
    names += sorted(name for name in value if name not in below)
    return {name: _ordered(value[name], below.get(name, rest), root) for name in names}


def _elements(places: Sequence[Any], index: int) -> Iterator[Any]:
    for place in places:
        prefix = place.get("prefixItems", place.get("items"))
        if isinstance(prefix, list) and index < len(prefix):
            yield prefix[index]
        else:
            yield place.get("items")
            yield place.get("additionalItems")
        yield place.get("contains")


def _in_place(schemas: Sequence[Any], root: Any) -> Iterator[Mapping[str, Any]]:
    """Yields the schemas that apply to the same value, the nearest first."""
    waiting = list(reversed(schemas))
    seen: set[int] = set()
    while waiting and len(seen) < _MOST_SCHEMAS:
        schema = waiting.pop()
        if not isinstance(schema, dict) or id(schema) in seen:
            continue
        seen.add(id(schema))
        yield schema
        more: list[Any] = []
        reference = schema.get("$ref", schema.get("$dynamicRef"))
        if isinstance(reference, str):
            more.append(pointed(reference, root))
        for key in _LISTS:
            branches = schema.get(key)
            if isinstance(branches, list):
                more.extend(branches)
        more.extend(schema.get(key) for key in _ONE)
        dependent = schema.get("dependentSchemas")
        if isinstance(dependent, dict):
            more.extend(dependent.values())
        waiting.extend(reversed(more))


def ranks(schema: Any) -> Mapping[str, int]:
    """Returns the order in which a schema first names its properties, wherever they are.

    Args:
        schema: the schema, as its author wrote it.
    """
    found: dict[str, int] = {}
    for node in schemas(schema):
        for name in node.get("properties", ()):
            found.setdefault(name, len(found))
    return found
