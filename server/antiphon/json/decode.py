"""Decoding: each message's plan, compiled once into a function that reads it from JSON.

The functions turn a parsed document into the nested dicts that a message's constructor takes, so
that one call builds the whole tree; and they check every value by the schema's rules on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message as ProtoMessage

from antiphon.json import raw, rules
from antiphon.json.errors import InvalidValue, type_name
from antiphon.json.plan import Field, Message, Oneof, descriptor_of, plan
from antiphon.json.rules import emit_element_rules, emit_rules
from antiphon.json.source import Function, Scope, Source, lazy

__all__ = ["decode"]

M = TypeVar("M", bound=ProtoMessage)

_lenient: dict[type[ProtoMessage], Function] = {}

_FEW: Final = 8
"""Members after which a reader looks whether all that were sent have been found."""
_EXPECTED: Final = {
    "string": "a string",
    "bool": "a boolean",
    "int": "an integer",
    "double": "a number",
    "message": "an object",
}

_TESTS: Final = {
    "string": "{0}.__class__ is not str",
    "bool": "{0}.__class__ is not bool",
    "int": "{0}.__class__ is not int",
    "double": "{0}.__class__ is not float and {0}.__class__ is not int",
}


def _wrong(value: object, expected: str, *path: str | int) -> InvalidValue:
    return InvalidValue(f"must be {expected}, not {type_name(value)}", "invalid_type", *path)


def _missing(*path: str | int) -> InvalidValue:
    return InvalidValue("is missing", "missing_required_parameter", *path)


def _unknown(obj: dict[str, Any], known: frozenset[str]) -> dict[str, Any]:
    return {key: value for key, value in obj.items() if key not in known}


def _refuse(obj: dict[str, Any], known: frozenset[str]) -> None:
    """Refuses an object with a member that the schema does not know."""
    for key in obj:
        if key not in known:
            raise InvalidValue("is unknown", "unknown_parameter", key)


def _compact_object(value: Any) -> str:
    if not isinstance(value, dict):
        raise _wrong(value, "an object")
    return raw.compact(value)


def _double(value: float, *path: str) -> float:
    try:
        return float(value)
    except OverflowError:
        raise InvalidValue("is out of range", "invalid_value", *path) from None


_scope: Scope = {
    **rules.SCOPE,
    "InvalidValue": InvalidValue,
    "compact": raw.compact,
    "compact_object": _compact_object,
    "double": _double,
    "missing": _missing,
    "refuse": _refuse,
    "unknown": _unknown,
    "wrong": _wrong,
}


def decode(message: type[M], body: bytes | str, *, strict: bool = False) -> M:
    """Reads a message from a JSON document.

    Args:
        message: the message's class.
        body: the document, as UTF-8 bytes or as text.
        strict: whether members of the outermost object that the schema does not know are refused;
            otherwise they are ignored. Further in they are kept where the schema has a place for
            them, and refused where it has none.

    Raises:
        InvalidValue: the document is not JSON, or a value is not what the schema accepts.
    """
    value = raw.parse(body)
    read = _lenient.get(message) if not strict else None
    if read is not None:
        return message(**read(value))
    name = _outermost(descriptor_of(message), value, strict=strict)
    fields: dict[str, Any] = _scope[name](value)
    if not strict:
        # The first call has put the real function in the place of the one that makes it.
        _lenient[message] = _scope[name]
    return message(**fields)


def _outermost(descriptor: Descriptor, value: Any, *, strict: bool) -> str:
    """Returns the name of the function that reads a whole document."""
    shape = plan(descriptor)
    if strict and shape.union is None and isinstance(value, dict):
        _refuse(value, frozenset(shape.keys))
    # What a union's members are, only its arms know: they refuse the others themselves.
    return _reader(descriptor, outermost=not strict or shape.union is None)


def _reader(descriptor: Descriptor, *, outermost: bool = False) -> str:
    """Returns the name of the function that turns a parsed value into a message's fields."""
    name = ("body_" if outermost else "read_") + descriptor.full_name.replace(".", "_")
    message = plan(descriptor)
    lazy(_scope, name, lambda: _make_reader(name, message, outermost=outermost))
    return name


def _make_reader(
    name: str, message: Message, *, outermost: bool = False, tag: str = ""
) -> Function:
    """Makes a message's reader.

    Args:
        name: the function's name in the scope.
        message: the message's plan.
        outermost: whether unknown members are ignored.
        tag: the discriminator that stands among the members, when the message is an arm.
    """
    source = Source(_scope)
    with source.block(f"def {name}(o):"):
        if not message.bare:
            with source.block("if o.__class__ is not dict:"):
                source.add("raise wrong(o, 'an object')")
        source.add("r = {}")
        if message.bare:
            _read_value(source, message.members[0], "o", "")
        else:
            source.add(f"n = {1 if tag else 0}")
            members = [member for member in message.members if member is not message.union]
            for place, member in enumerate(members):
                if place and place % _FEW == 0 and not _needed(message, members[place:]):
                    with source.block("if n == len(o):"):
                        source.add("return r")
                _read_member(source, member)
            for key, _ in message.constants:
                with source.block(f"if {key!r} in o:"):
                    source.add("n += 1")
            if message.union is not None:
                _read_union(source, message, message.union, outermost=outermost)
            else:
                _read_rest(source, message, tag, outermost=outermost)
        source.add("return r")
    return source.define(name, f"decode {message.name}")


def _needed(message: Message, members: Sequence[Field | Oneof]) -> bool:
    """Whether a message has to be looked through to its end, all whose members were found."""
    return message.union is not None or any(member.required for member in members)


def _read_rest(source: Source, message: Message, tag: str, *, outermost: bool) -> None:
    """Keeps, ignores or refuses the members that were not read."""
    known = source.bind(frozenset((*message.keys, tag)))
    # Members that are null were not counted: only when the counts differ are the keys compared.
    with source.block("if n != len(o):"):
        if message.additional:
            source.add(f"u = unknown(o, {known})")
            with source.block("if u:"):
                source.add(f"r[{message.additional!r}] = compact(u)")
        elif outermost:
            # Ignored, but not without a look at how deep they are.
            source.add(f"compact(unknown(o, {known}))")
        else:
            source.add(f"refuse(o, {known})")


def _read_union(source: Source, message: Message, union: Oneof, *, outermost: bool) -> None:
    """Chooses an arm by the discriminator and reads the object into it."""
    readers: dict[str, Function] = {}
    names: dict[str, str] = {}
    rest = ""
    for arm in union.arms:
        if arm.type is None:
            rest = arm.name
        else:
            names[arm.tag] = arm.name
            first = "body" if outermost else "read"
            name = f"{first}_{message.name}_{arm.name}".replace(".", "_")
            shape = plan(arm.type)
            lazy(readers, arm.tag, _arm_maker(name, shape, union.tag, outermost=outermost))
    common = frozenset(message.keys) - {union.tag}
    source.add(f"t = o.get({union.tag!r})")
    with source.block("if t is None:"):
        for arm in union.arms:
            if arm.implied_by:
                with source.block(f"if t is None and o.get({arm.implied_by!r}) is not None:"):
                    source.add(f"t = {arm.tag!r}")
                    source.add(f"o = {{**o, {union.tag!r}: t}}")
        with source.block("if t is None:"):
            source.add(f"raise missing({union.tag!r})")
    with source.block("if t.__class__ is not str:"):
        source.add(f"raise wrong(t, 'a string', {union.tag!r})")
    source.add(f"f = {source.bind(readers)}.get(t)")
    if common:
        source.add(f"o = unknown(o, {source.bind(common)})")
    with source.block("if f is not None:"):
        source.add(f"r[{source.bind(names)}[t]] = f(o)")
    with source.block("else:"):
        if rest:
            source.add(f"r[{rest!r}] = compact(o)")
        else:
            listed = ", ".join(f"'{tag}'" for tag in names)
            reason = f"must be one of {listed}" if len(names) > 1 else f"must be {listed}"
            source.add(f"raise InvalidValue({reason!r}, 'invalid_value', {union.tag!r})")


def _arm_maker(name: str, message: Message, tag: str, *, outermost: bool) -> Callable[[], Function]:
    return lambda: _make_reader(name, message, tag=tag, outermost=outermost)


def _read_member(source: Source, member: Field | Oneof) -> None:
    source.add(f"v = o.get({member.key!r})")
    with source.block("if v is not None:"):
        source.add("n += 1")
        _read_value(source, member, "v", member.key)
    if member.required:
        with source.block("else:"):
            source.add(f"raise missing({member.key!r})")


def _read_value(source: Source, member: Field | Oneof, value: str, key: str) -> None:
    """Adds the statements that check a value and put it into `r`."""
    if isinstance(member, Oneof):
        _read_by_type(source, member, value, key)
    elif member.repeated:
        _read_list(source, member, value, key)
    elif member.value is not None:
        _read_map(source, member, member.value, value, key)
    else:
        _read_one(source, member, value, (key,) if key else ())


def _read_by_type(source: Source, oneof: Oneof, value: str, key: str) -> None:
    rest: Field | None = None
    expected = []
    keyword = "if"
    for arm in oneof.arms:
        if arm.kind == "raw":
            rest = arm
            continue
        classes = _classes(arm)
        expected.append("an array" if classes == ("list",) else _EXPECTED[arm.kind])
        test = " or ".join(f"{value}.__class__ is {each}" for each in classes)
        with source.block(f"{keyword} {test}:"):
            _read_value(source, arm, value, key)
        keyword = "elif"
    with source.block("else:" if expected else "if True:"):
        if rest is not None:
            _read_value(source, rest, value, key)
        else:
            path = f", {key!r}" if key else ""
            source.add(f"raise wrong({value}, {' or '.join(expected)!r}{path})")


def _classes(arm: Field) -> tuple[str, ...]:
    """Returns the classes of the parsed values that an arm of a union by type takes."""
    if arm.type is not None:
        shape = plan(arm.type)
        member = shape.members[0] if shape.bare else None
        return ("list",) if isinstance(member, Field) and member.repeated else ("dict",)
    return {"string": ("str",), "bool": ("bool",), "int": ("int",), "double": ("float", "int")}[
        arm.kind
    ]


def _read_list(source: Source, member: Field, value: str, key: str) -> None:
    path = f", {key!r}" if key else ""
    with source.block(f"if {value}.__class__ is not list:"):
        source.add(f"raise wrong({value}, 'an array'{path})")
    emit_rules(source, member, value, f"raise InvalidValue({{}}{path})")
    source.add("l = []")
    with source.block("try:"), source.block(f"for x in {value}:"):
        source.add(f"l.append({_convert(source, member, 'x')})")
    with source.block("except InvalidValue as e:"):
        source.add("e.at(len(l))")
        if key:
            source.add(f"e.at({key!r})")
        source.add("raise")
    source.add(f"r[{member.name!r}] = l")


def _read_map(source: Source, member: Field, of: Field, value: str, key: str) -> None:
    path = f", {key!r}" if key else ""
    with source.block(f"if {value}.__class__ is not dict:"):
        source.add(f"raise wrong({value}, 'an object'{path})")
    source.add("d = {}")
    with source.block("try:"), source.block(f"for k, x in {value}.items():"):
        source.add(f"d[k] = {_convert(source, of, 'x')}")
    with source.block("except InvalidValue as e:"):
        source.add("e.at(k)")
        if key:
            source.add(f"e.at({key!r})")
        source.add("raise")
    emit_rules(source, member, value, f"raise InvalidValue({{}}{path})")
    source.add(f"r[{member.name!r}] = d")


def _read_one(source: Source, member: Field, value: str, path: tuple[str, ...]) -> None:
    told = "".join(f", {step!r}" for step in path)
    target = f"r[{member.name!r}]"
    test = _TESTS.get(member.kind)
    if test is not None:
        with source.block(f"if {test.format(value)}:"):
            source.add(f"raise wrong({value}, {_EXPECTED[member.kind]!r}{told})")
        if member.kind == "double":
            source.add(f"{value} = double({value}{told})")
        emit_rules(source, member, value, f"raise InvalidValue({{}}{told})")
        source.add(f"{target} = {value}")
    elif path:
        with source.block("try:"):
            source.add(f"{target} = {_convert(source, member, value)}")
        with source.block("except InvalidValue as e:"):
            source.add(f"raise e.at({path[0]!r})")
    else:
        source.add(f"{target} = {_convert(source, member, value)}")


def _convert(source: Source, member: Field, value: str) -> str:
    """Returns the expression that checks and converts one value, raising without a path."""
    if member.type is not None:
        return f"{_reader(member.type)}({value})"
    if member.kind == "raw":
        only_object = member.rules is not None and member.rules.object
        return f"compact_object({value})" if only_object else f"compact({value})"
    if member.enum is not None:
        return f"{source.bind(_enum_reader(member))}({value})"
    name = f"scalar_{len(_scope)}"
    scalar = Source(_scope)
    with scalar.block(f"def {name}(x):"):
        with scalar.block(f"if {_TESTS[member.kind].format('x')}:"):
            scalar.add(f"raise wrong(x, {_EXPECTED[member.kind]!r})")
        if member.kind == "double":
            scalar.add("x = double(x)")
        emit_element_rules(scalar, member, "x", "raise InvalidValue({})")
        scalar.add("return x")
    scalar.define(name, f"decode {member.name}")
    return f"{name}({value})"


def _enum_reader(member: Field) -> Callable[[object], int]:
    numbers = {string: number for number, string in member.strings.items()}
    listed = ", ".join(f"'{string}'" for string in numbers)

    def read(value: object) -> int:
        if not isinstance(value, str):
            raise _wrong(value, "a string")
        number = numbers.get(value)
        if number is None:
            raise InvalidValue(f"must be one of {listed}")
        return number

    return read
