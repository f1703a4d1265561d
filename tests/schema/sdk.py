"""The types of the official Python SDK, read by reflection into a small model.

The SDK declares a request as a `TypedDict` and an answer as a pydantic model. Both are read into
the same model, so that one schema can be held against both.
"""

import collections.abc
import importlib
import inspect
import pkgutil
import types
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, Required, TypeGuard, Union, get_args, get_origin

import pydantic
from typing_extensions import get_type_hints, is_typeddict

__all__ = [
    "Alternative",
    "Class",
    "ListOf",
    "Literals",
    "MapOf",
    "Member",
    "Presence",
    "Primitive",
    "alternatives",
    "classes",
    "is_param",
    "members",
]

Presence = Literal["required", "nullable", "optional"]
"""Whether a key is always there, there but perhaps null, or perhaps not there."""


@dataclass(frozen=True)
class Literals:
    """A closed set of strings."""

    values: tuple[str, ...]


@dataclass(frozen=True)
class Primitive:
    """Any string, integer, number or boolean; or anything at all."""

    name: Literal["string", "int", "float", "bool", "any"]


@dataclass(frozen=True)
class ListOf:
    """A list; the annotation is that of an element."""

    element: Any


@dataclass(frozen=True)
class MapOf:
    """An object whose keys are free; the annotation is that of a value."""

    value: Any


@dataclass(frozen=True)
class Class:
    """An object with the keys of a class."""

    type: type


Alternative = Literals | Primitive | ListOf | MapOf | Class


@dataclass(frozen=True)
class Member:
    """One key of an object."""

    annotation: Any
    presence: Presence


_PRIMITIVES: dict[Any, Primitive] = {
    str: Primitive("string"),
    int: Primitive("int"),
    float: Primitive("float"),
    bool: Primitive("bool"),
    object: Primitive("any"),
    Any: Primitive("any"),
}


def alternatives(annotation: Any) -> list[Alternative]:
    """Lists what a value may be, apart from null.

    Args:
        annotation: a type as the SDK writes it, with its unions, aliases and metadata.

    Raises:
        TypeError: the SDK uses a kind of type that is not known here.
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation is None or annotation is types.NoneType:
        return []
    if annotation in _PRIMITIVES:
        return [_PRIMITIVES[annotation]]
    if origin is Annotated or origin is Required:
        return alternatives(arguments[0])
    if origin is Union or origin is types.UnionType:
        return [each for argument in arguments for each in alternatives(argument)]
    if origin is Literal:
        if all(isinstance(argument, bool) for argument in arguments):
            return [Primitive("bool")]
        return [Literals(tuple(arguments))]
    if origin is dict:
        return [MapOf(arguments[1])]
    if origin in {list, collections.abc.Iterable, collections.abc.Sequence}:
        return [ListOf(arguments[0])]
    if _is_class(annotation):
        return [Class(annotation)]
    raise TypeError(f"a type of the SDK is not understood: {annotation!r}")


def is_param(cls: type) -> bool:
    """Says whether a class is what a client sends, and not what it gets."""
    return is_typeddict(cls)


def members(cls: type) -> dict[str, Member]:
    """Returns the keys of an object, as they stand in JSON.

    Args:
        cls: a `TypedDict` or a pydantic model of the SDK.
    """
    return _param_members(cls) if is_typeddict(cls) else _model_members(cls)


def classes(package: str) -> Iterator[type]:
    """Yields every class that the modules of a package define.

    Args:
        package: the package's name.
    """
    path = importlib.import_module(package).__path__
    for module in pkgutil.iter_modules(path, f"{package}."):
        for name, value in vars(importlib.import_module(module.name)).items():
            if _is_class(value) and value.__module__ == module.name and name[0] != "_":
                yield value


def _is_class(value: Any) -> TypeGuard[type]:
    return is_typeddict(value) or (inspect.isclass(value) and issubclass(value, pydantic.BaseModel))


@cache
def _param_members(cls: type) -> dict[str, Member]:
    found: dict[str, Member] = {}
    for key, hint in get_type_hints(cls, include_extras=True).items():
        # Every one of the SDK's is `total=False`, or says of each key that it is required.
        presence: Presence = "optional"
        origin: Any = get_origin(hint)
        if origin is Required:
            presence = "nullable" if _is_nullable(hint) else "required"
        found[key] = Member(hint, presence)
    return found


def _is_nullable(annotation: Any) -> bool:
    """Says whether null is among the alternatives; of free JSON it is."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated or origin is Required:
        return _is_nullable(arguments[0])
    if origin is Union or origin is types.UnionType:
        return any(_is_nullable(argument) for argument in arguments)
    return annotation in {types.NoneType, object, Any}


@cache
def _model_members(cls: type) -> dict[str, Member]:
    found: dict[str, Member] = {}
    for base in reversed(cls.__mro__):
        if not issubclass(base, pydantic.BaseModel):
            continue
        own = [name for name in vars(base).get("__annotations__", ()) if name in base.model_fields]
        needed = [at for at, name in enumerate(own) if base.model_fields[name].is_required()]
        for at, name in enumerate(own):
            info = base.model_fields[name]
            # The SDK declares the required keys first, each kind in alphabetical order. A key with
            # a default that stands among them is one that is always there, and may be null.
            among_required = bool(needed) and at < needed[-1]
            presence: Presence = "nullable" if among_required else "optional"
            if info.is_required():
                presence = "nullable" if _is_nullable(info.annotation) else "required"
            found[info.alias or name] = Member(info.annotation, presence)
    return found
