"""Messages and documents at random: any that the schema accepts, made from its plans alone."""

import dataclasses
import functools
import json
import math
from collections.abc import Callable, Collection
from typing import Any

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message as ProtoMessage
from google.protobuf.message_factory import GetMessageClass
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from antiphon.json.plan import Field, Message, Oneof, plan

__all__ = ["documents", "messages"]

# Characters that need care somewhere: in JSON, in event streams, in UTF-8.
_AWKWARD = '"\\/\n\r\t\x00\x1f\x7f\x85\u2028\u2029é😀\ufeff{}[],: '
_CHARACTERS = st.sampled_from("aZ0_" + _AWKWARD) | st.characters(codec="utf-8")
_TEXTS = st.text(_CHARACTERS, max_size=6)
_KEYS = st.text(st.sampled_from('abxyz_-.$ "é\u2028'), min_size=1, max_size=4)
_DOUBLES = st.floats(allow_nan=False, allow_infinity=False).map(lambda number: number + 0.0)
_EXACT = st.sampled_from([2**53 + 1, 2**64 + 1, -(2**70), 1, 0]) | st.integers(-100, 100)
_DECIMALS = st.sampled_from([1.0, 0.1, -2.5, 12345.678])

documents: SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | _EXACT | _DECIMALS | _TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_KEYS, inner, max_size=2),
    max_leaves=4,
)
"""Any JSON value, with numbers that lose digits in careless hands."""

_objects = st.dictionaries(_KEYS, documents, max_size=2)


def messages(
    descriptor: Descriptor, *, depth: int = 3, secrets: bool = False
) -> SearchStrategy[ProtoMessage]:
    """Returns messages of a kind that the schema accepts.

    Args:
        descriptor: the kind.
        depth: how many levels of messages may hold what they need not.
        secrets: whether secret fields may be set: they do not come back from JSON.
    """
    make = GetMessageClass(descriptor)
    return _fields(descriptor, depth, secrets, ()).map(lambda fields: make(**fields))


@functools.cache
def _fields(
    descriptor: Descriptor, depth: int, secrets: bool, reserved: tuple[str, ...]
) -> SearchStrategy[dict[str, Any]]:
    """Returns the fields of a message as nested dicts.

    Args:
        descriptor: the message.
        depth: as for `messages`.
        secrets: as for `messages`.
        reserved: keys that unknown members may not have, besides the message's own.
    """
    return _draw_fields(plan(descriptor), depth, secrets, reserved)


@st.composite
def _draw_fields(
    draw: DrawFn, shape: Message, depth: int, secrets: bool, reserved: tuple[str, ...]
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for member in shape.members:
        if isinstance(member, Oneof):
            needed = member.required or bool(member.tag) or shape.bare
            if needed or (depth > 0 and draw(st.booleans())):
                arm = draw(st.sampled_from(_arms(member, deep=depth > 0)))
                found[arm.name] = draw(_arm(shape, member, arm, depth, secrets))
        elif member.secret and not (secrets or member.required):
            continue
        elif member.required or not _may_be_unset(member) or (depth > 0 and draw(st.booleans())):
            found[member.name] = draw(_values(member, depth, secrets))
    if shape.additional and draw(st.integers(0, 3)) == 3:
        known = {*shape.keys, *reserved}
        unknown = {key: value for key, value in draw(_objects).items() if key not in known}
        if unknown:
            found[shape.additional] = _compact(unknown)
    return found


@functools.cache
def _arms(oneof: Oneof, *, deep: bool) -> list[Field]:
    """Returns the arms to choose from: when it should not go deeper, those that are not deep."""
    least = min(map(_least, oneof.arms))
    return [arm for arm in oneof.arms if deep or _least(arm) == least]


def _arm(
    shape: Message, oneof: Oneof, arm: Field, depth: int, secrets: bool
) -> SearchStrategy[Any]:
    if arm.kind == "raw":
        return _raw_arm(oneof, arm, shape)
    if oneof.tag and arm.type is not None:
        return _fields(arm.type, max(depth - 1, 0), secrets, (oneof.tag, *shape.keys))
    return _values(arm, depth, secrets)


def _may_be_unset(member: Field) -> bool:
    """Whether what is printed for a field that is not set could be read again."""
    if member.presence or member.repeated or member.value is not None:
        return True
    rules = member.rules
    if member.kind in ("enum", "raw") or rules is None:
        return rules is None and member.kind not in ("enum", "raw")
    if member.kind == "string":
        return not (rules.values or rules.pattern or rules.min_length)
    return (rules.min or 0) <= 0 <= (rules.max or 0)


@functools.cache
def _raw_arm(oneof: Oneof, arm: Field, shape: Message) -> SearchStrategy[str]:
    """Returns what no other arm takes."""
    if oneof.tag:
        tags = {each.tag for each in oneof.arms if each.type is not None}
        kinds = _TEXTS.filter(lambda kind: kind not in tags)
        taken = {oneof.tag, *shape.keys}
        rest = _objects.map(lambda found: {k: v for k, v in found.items() if k not in taken})
        return st.builds(lambda kind, rest: _compact({oneof.tag: kind, **rest}), kinds, rest)
    # A null is a missing member, unless the document is an element of something.
    classes = (type(None), *(each for other in oneof.arms for each in _classes(other)))
    values = st.one_of(
        *(
            strategy
            for kind, strategy in _BY_CLASS.items()
            if not any(issubclass(kind, taken) for taken in classes)
        )
    )
    return (_objects if arm.rules is not None and arm.rules.object else values).map(_compact)


_BY_CLASS: dict[type, SearchStrategy[Any]] = {
    str: _TEXTS,
    bool: st.booleans(),
    int: _EXACT,
    float: _DECIMALS,
    list: st.lists(documents, max_size=2),
    dict: _objects,
}


def _classes(arm: Field) -> tuple[type, ...]:
    """Returns the classes of the parsed values that an arm of a union by type takes."""
    if arm.type is not None:
        member = plan(arm.type).members[0] if plan(arm.type).bare else None
        return (list,) if isinstance(member, Field) and member.repeated else (dict,)
    by_kind = {"string": (str,), "bool": (bool,), "int": (int,), "double": (int, float)}
    return by_kind.get(arm.kind, ())


def _is_told(value: Any) -> bool:
    return bool(value)


@functools.cache
def _values(member: Field, depth: int, secrets: bool) -> SearchStrategy[Any]:
    """Returns the values of a field, all elements of a list or map together."""
    if member.secret:
        # Without presence, an empty secret is none.
        return _values(dataclasses.replace(member, secret=False), depth, secrets).filter(_is_told)
    rules = member.rules
    low = (rules.min_length if rules is not None else None) or 0
    high = rules.max_length if rules is not None else None
    high = min(high if high is not None else 2, max(low, 2))
    if member.value is not None:
        keys, values = _TEXTS, _one(member.value, depth, secrets)
        if rules is not None and rules.max_key_length is not None:
            keys = st.text(_CHARACTERS, max_size=min(rules.max_key_length, 6))
        if rules is not None and rules.max_value_length is not None:
            values = st.text(_CHARACTERS, max_size=min(rules.max_value_length, 6))
        return st.dictionaries(keys, values, min_size=low, max_size=high)
    if member.repeated:
        return st.lists(_one(member, depth, secrets), min_size=low, max_size=high)
    if member.kind == "raw" and not _only_object(member):
        # A null of its own is a missing member.
        return documents.filter(lambda value: value is not None).map(_compact)
    return _one(member, depth, secrets)


def _one(member: Field, depth: int, secrets: bool) -> SearchStrategy[Any]:
    """Returns the values of a field, or of one element of a list or map."""
    if member.type is not None:
        return _fields(member.type, max(depth - 1, 0), secrets, ())
    if member.enum is not None:
        return st.sampled_from(sorted(member.strings))
    return _SCALARS[member.kind](member)


def _string(member: Field) -> SearchStrategy[str]:
    rules = member.rules
    if rules is None:
        return _TEXTS
    if rules.values:
        return st.sampled_from(rules.values)
    if rules.pattern:
        return st.from_regex(rules.pattern, fullmatch=True)
    if member.repeated:
        return _TEXTS
    low = rules.min_length or 0
    high = rules.max_length if rules.max_length is not None else low + 6
    return st.text(_CHARACTERS, min_size=low, max_size=min(high, low + 6))


def _integer(member: Field) -> SearchStrategy[int]:
    assert member.bounds is not None
    low, high = member.bounds
    if member.rules is not None and member.rules.min is not None:
        low = max(low, math.ceil(member.rules.min))
    if member.rules is not None and member.rules.max is not None:
        high = min(high, math.floor(member.rules.max))
    return st.sampled_from([low, high]) | st.integers(low, high)


def _double(member: Field) -> SearchStrategy[float]:
    low = member.rules.min if member.rules is not None else None
    high = member.rules.max if member.rules is not None else None
    return _DOUBLES if low is None and high is None else st.floats(low, high).map(lambda x: x + 0.0)


def _raw(member: Field) -> SearchStrategy[str]:
    return (_objects if _only_object(member) else documents).map(_compact)


_SCALARS: dict[str, Callable[[Field], SearchStrategy[Any]]] = {
    "bool": lambda _: st.booleans(),
    "double": _double,
    "int": _integer,
    "raw": _raw,
    "string": _string,
}


def _only_object(member: Field) -> bool:
    return member.rules is not None and member.rules.object


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@functools.cache
def _least(arm: Field) -> int:
    """Returns how many levels of messages a value of an arm has at least."""
    return 0 if arm.type is None else _levels(arm.type, ())


def _levels(descriptor: Descriptor, above: Collection[str]) -> int:
    if descriptor.full_name in above:
        return 1_000
    inside = (*above, descriptor.full_name)
    found = [0]
    shape = plan(descriptor)
    for member in shape.members:
        if isinstance(member, Oneof):
            if member.required or member.tag or shape.bare:
                found.append(
                    min(0 if arm.type is None else _levels(arm.type, inside) for arm in member.arms)
                )
        elif member.type is not None and member.required and not member.repeated:
            found.append(_levels(member.type, inside))
    return 1 + max(found)
