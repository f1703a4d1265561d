"""The tree of a JSON Schema: which schemas are in it, and what references point to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote

__all__ = ["moved", "pointed", "schemas", "subschemas"]

_ONE: Final = (
    "additionalItems",
    "additionalProperties",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
)
"""The keywords that hold a schema; `items` may hold several."""
_LISTS: Final = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
_MAPS: Final = (
    "$defs",
    "definitions",
    "dependencies",
    "dependentSchemas",
    "patternProperties",
    "properties",
)


def subschemas(node: Mapping[str, Any]) -> Iterator[Any]:
    """Yields the schemas right within a schema, in the order in which it names them.

    Args:
        node: the schema. What only looks like one, as within `const`, is not yielded.
    """
    for key, value in node.items():
        if isinstance(value, Mapping):
            if key in _ONE:
                yield value
            elif key in _MAPS:
                yield from value.values()
        elif isinstance(value, list) and key in _LISTS:
            yield from value


def schemas(root: Any) -> Iterator[Mapping[str, Any]]:
    """Yields all schemas of a schema that are no booleans, each once, itself the first.

    Args:
        root: the schema; what it refers to is a part of it wherever it stands.
    """
    waiting = [root]
    seen: set[int] = set()
    while waiting:
        node = waiting.pop()
        if not isinstance(node, Mapping) or id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        reference = node.get("$ref")
        if isinstance(reference, str):
            waiting.append(pointed(reference, root))
        waiting.extend(reversed(list(subschemas(node))))


def pointed(reference: str, root: Any) -> Any:
    """Returns what a pointer within a schema points to, or None.

    Args:
        reference: the reference, as `$ref` has it.
        root: the schema.
    """
    pointer = unquote(reference[1:])
    if not reference.startswith("#") or (pointer and not pointer.startswith("/")):
        return None
    found = root
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping):
            found = found.get(key)
        elif isinstance(found, list) and key.isdecimal() and int(key) < len(found):
            found = found[int(key)]
        else:
            return None
    return found


def moved(node: Any, base: str) -> Any:
    """Returns a schema whose references are the same wherever it is put.

    Args:
        node: the schema.
        base: the address of the schema that it is a part of, and that its references are within.
    """
    if not isinstance(node, Mapping):
        return node
    made: dict[str, Any] = {}
    for key, value in node.items():
        if key == "$ref" and isinstance(value, str) and value.startswith("#"):
            made[key] = base + value
        elif isinstance(value, Mapping) and key in _ONE:
            made[key] = moved(value, base)
        elif isinstance(value, Mapping) and key in _MAPS:
            made[key] = {name: moved(each, base) for name, each in value.items()}
        elif isinstance(value, list) and key in _LISTS:
            made[key] = [moved(each, base) for each in value]
        else:
            made[key] = value
    return made
