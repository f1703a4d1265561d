"""Samples: JSON values made from the types of the SDK."""

from functools import cache
from typing import Any

from tests.schema import sdk

__all__ = ["samples"]

_VALUES: dict[str, Any] = {
    "string": "words",
    "int": 3,
    "float": 0.5,
    "bool": True,
    "any": {"type": "free", "b": [1.5, None], "a": {"é": 9007199254740993}},
}


def samples(annotation: Any, *, whole: int = 2) -> list[Any]:
    """Returns values of a type: together they have every key and every alternative of it.

    Args:
        annotation: a type of the SDK.
        whole: down to how many objects deep a list has an element for every alternative; further
            in it has one element.
    """
    found: list[Any] = []
    for alternative in sdk.alternatives(annotation):
        match alternative:
            case sdk.Literals(values):
                found.extend(values)
            case sdk.Primitive(name):
                found.append(_VALUES[name])
            case sdk.ListOf(element):
                elements = samples(element, whole=whole)
                found.append(elements if whole >= 0 else elements[:1])
            case sdk.MapOf(value) if sdk.alternatives(value) == [sdk.Primitive("any")]:
                found.append(_VALUES["any"])
            case sdk.MapOf(value):
                named = enumerate(samples(value, whole=whole))
                found.append({f"key-{at}": each for at, each in named})
            case sdk.Class(cls):
                found.extend(_objects(cls, whole - 1))
    return found


@cache
def _objects(cls: type, whole: int) -> list[dict[str, Any]]:
    values = {
        key: samples(member.annotation, whole=whole) for key, member in sdk.members(cls).items()
    }
    count = max(map(len, values.values()), default=0)
    return [{key: each[at % len(each)] for key, each in values.items()} for at in range(count)]
