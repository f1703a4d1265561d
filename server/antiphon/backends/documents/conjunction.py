"""Conjunctions of JSON Schemas, put together into one as far as that is simple."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

__all__ = ["LOCAL", "Schema", "merged", "merged_with", "same", "unconditional"]

Schema: TypeAlias = Mapping[str, Any] | bool

LOCAL: Final = ("$defs", "definitions")
"""The keywords that hold schemas to refer to."""


def merged_with(schema: Any, node: Mapping[str, Any], left_out: str) -> Schema:
    """Returns the conjunction of a schema and what else a node says.

    Args:
        schema: the schema.
        node: the node that the schema is a part of.
        left_out: the keyword of the node that the schema stands for.
    """
    rest = {
        key: value
        for key, value in node.items()
        if key not in (left_out, "$schema", "$id", "description", "title", *LOCAL)
    }
    if not rest or schema is False:
        return schema is not False and schema
    return merged({"allOf": [schema, rest]})


def unconditional(node: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns a schema whose condition is a choice; what is chosen has to be seen to fit.

    Args:
        node: a schema with `if`.
    """
    rest = {key: value for key, value in node.items() if key not in ("if", "then", "else")}
    condition, then, otherwise = node["if"], node.get("then", True), node.get("else", True)
    choice = [{"allOf": [condition, then]}, {"allOf": [{"not": condition}, otherwise]}]
    return {**rest, "allOf": [*rest.get("allOf", ()), {"anyOf": choice}]}


def merged(node: Mapping[str, Any]) -> Schema:
    """Returns a schema whose conjunction has been put together as far as keywords allow.

    Args:
        node: a schema with `allOf`. What stays there is to be seen to fit.
    """
    made: dict[str, Any] = {key: value for key, value in node.items() if key != "allOf"}
    left: list[Any] = []
    waiting = list(node["allOf"])
    while waiting:
        part = waiting.pop(0)
        if part is False:
            return False
        if isinstance(part, Mapping):
            for key, value in part.items():
                if key == "allOf":
                    waiting[:0] = value
                elif key not in made:
                    made[key] = value
                elif made[key] != value and not _merge(made, key, value):
                    left.append({key: value})
    if left:
        made["allOf"] = left
    return made


def _merge(made: dict[str, Any], key: str, value: Any) -> bool:
    """Puts the same keyword of two schemas together, or returns that it cannot."""
    old = made[key]
    if key in ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"):
        made[key] = max(old, value)
    elif key in ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"):
        made[key] = min(old, value)
    elif key == "required":
        made[key] = [*old, *(name for name in value if name not in old)]
    elif key in ("properties", "patternProperties"):
        both = {name: {"allOf": [old[name], value[name]]} for name in old if name in value}
        made[key] = {**old, **value, **both}
    elif key in ("items", "additionalProperties", "propertyNames") and not isinstance(old, list):
        made[key] = {"allOf": [old, value]}
    elif key == "type":
        ours = [old] if isinstance(old, str) else old
        theirs = [value] if isinstance(value, str) else value
        both_types = [kind for kind in ours if kind in theirs]
        if "integer" in ours + theirs and "number" in ours + theirs and "integer" not in both_types:
            both_types.append("integer")
        if not both_types:
            made["enum"] = []
        made[key] = both_types
    elif key == "enum":
        made[key] = [each for each in old if any(same(each, other) for other in value)]
    elif key == "uniqueItems":
        made[key] = old or value
    else:
        return False
    return True


def same(one: Any, other: Any) -> bool:
    """Returns whether two values are the same in JSON, where true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return bool(one == other)
