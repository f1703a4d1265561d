"""Encoding: each message's plan, compiled once into a function that prints it as JSON."""

from __future__ import annotations

from json.encoder import encode_basestring
from typing import Final

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message as ProtoMessage

from antiphon.json.plan import Field, Message, Oneof, descriptor_of, plan
from antiphon.json.source import Function, Scope, Source, lazy

__all__ = ["encode", "quote"]

_LINE_SEPARATORS: Final = (("\u2028", "\\u2028"), ("\u2029", "\\u2029"), ("\x85", "\\u0085"))


class _Strings(dict[int, str]):
    """The printed strings of an enum."""

    def __missing__(self, number: int) -> str:
        raise ValueError("an enum has no value")


def _number(value: float) -> str:
    if value.is_integer() and -1e15 < value < 1e15:
        return str(int(value))
    if value - value != 0:
        raise ValueError("a number is not finite")
    return repr(value)


_scope: Scope = {"q": encode_basestring, "number": _number, "boolean": ("false", "true")}
_documents: dict[type[ProtoMessage], Function] = {}


def encode(message: ProtoMessage) -> str:
    """Prints a message as JSON on one line.

    Args:
        message: a message whose raw fields have been checked at an edge.

    Raises:
        ValueError: a number is not finite or an enum has no value, which the edges refuse.
    """
    document = _documents.get(type(message))
    if document is None:
        name = _document(descriptor_of(message))
        # The first call replaces the name's value; asking the scope again finds the real one.
        text: str = _scope[name](message)
        _documents[type(message)] = _scope[name]
    else:
        text = document(message)
    return text if text.isascii() else _one_line(text)


def quote(text: str) -> str:
    """Prints a string as JSON, without any character that ends a line of an event stream."""
    text = encode_basestring(text)
    return text if text.isascii() else _one_line(text)


def _one_line(text: str) -> str:
    # These characters stand only inside strings, so that a whole document can be escaped at once.
    for character, escape in _LINE_SEPARATORS:
        text = text.replace(character, escape)
    return text


def _document(descriptor: Descriptor) -> str:
    """Returns the name of the function that prints a message as a whole JSON value."""
    name = "document_" + descriptor.full_name.replace(".", "_")
    lazy(_scope, name, lambda: _make_document(name, plan(descriptor)))
    return name


def _make_document(name: str, message: Message) -> Function:
    source = Source(_scope)
    with source.block(f"def {name}(m):"):
        member = message.members[0] if message.bare else None
        if member is None:
            source.add(f"return '{{' + {_members(message.type)}(m)[1:] + '}}'")
        elif isinstance(member, Oneof):
            source.add(f"k = m.WhichOneof({member.name!r})")
            source.add(f"return {source.bind(_arms(member))}[k](getattr(m, k)) if k else 'null'")
        else:
            source.add(f"return {_value(member, f'm.{member.name}')}")
    return source.define(name, f"encode {message.name}")


def _members(descriptor: Descriptor) -> str:
    """Returns the name of the function that prints a message's members, a comma before each.

    The leading commas let a union, an object and the unknown members be put together without
    asking which member comes first.
    """
    name = "members_" + descriptor.full_name.replace(".", "_")
    lazy(_scope, name, lambda: _make_members(name, plan(descriptor)))
    return name


def _make_members(name: str, message: Message) -> Function:
    source = Source(_scope)
    literal = ""
    parts: list[str] = []

    def always(text: str, value: str = "") -> None:
        nonlocal literal
        literal += text
        if value:
            parts.extend((repr(literal), value))
            literal = ""

    def flush() -> None:
        nonlocal literal
        if literal:
            parts.append(repr(literal))
            literal = ""
        if parts:
            source.add("r += " + " + ".join(parts))
            parts.clear()

    def print_member(member: Field | Oneof) -> None:
        if isinstance(member, Oneof):
            flush()
            _make_by_type(source, member)
            return
        if member.secret:
            return
        head = f",{_key(member.key)}:"
        value = _value(member, f"m.{member.name}")
        if member.presence and member.emit_null:
            always(head, f"({value} if has({member.name!r}) else 'null')")
        elif member.presence or member.omit_empty:
            flush()
            test = f"has({member.name!r})" if member.presence else f"m.{member.name}"
            with source.block(f"if {test}:"):
                source.add(f"r += {head!r} + {value}")
        else:
            always(head, value)

    with source.block(f"def {name}(m):"):
        source.add("r = ''")
        if any(isinstance(member, Field) and member.presence for member in message.members):
            source.add("has = m.HasField")
        # The order is the API's: a discriminator or an id first, then the constants.
        union = message.union
        if union is not None:
            source.add(f"k = m.WhichOneof({union.name!r})")
            source.add(f"r = {source.bind(_tags(union))}[k]")
        members = [member for member in message.members if member is not union]
        leading = 1 if members and members[0].key == "id" else 0
        for member in members[:leading]:
            print_member(member)
        for key, text in message.constants:
            always(f",{_key(key)}:{_key(text)}")
        for member in members[leading:]:
            print_member(member)
        flush()
        if union is not None:
            source.add(f"r += {source.bind(_arms(union))}[k](getattr(m, k))")
        if message.additional:
            source.add(f"u = m.{message.additional}")
            with source.block("if u and u != '{}':"):
                source.add("r += ',' + u[1:-1]")
        source.add("return r")
    return source.define(name, f"encode {message.name}")


def _make_by_type(source: Source, oneof: Oneof) -> None:
    source.add(f"k = m.WhichOneof({oneof.name!r})")
    head = f",{_key(oneof.key)}:"
    with source.block("if k:"):
        source.add(f"r += {head!r} + {source.bind(_arms(oneof))}[k](getattr(m, k))")
    if oneof.emit_null:
        with source.block("else:"):
            source.add(f"r += {head + 'null'!r}")


def _tags(union: Oneof) -> dict[str | None, str]:
    """Returns, by the arm's name, the printed discriminator; a raw arm holds its own."""
    tags: dict[str | None, str] = {
        arm.name: f",{_key(union.tag)}:{_key(arm.tag)}" if arm.type is not None else ""
        for arm in union.arms
    }
    return tags


def _arms(oneof: Oneof) -> dict[str, Function]:
    """Returns, by the arm's name, the functions that print an arm's value."""
    table: dict[str, Function] = {}
    for arm in oneof.arms:
        lazy(table, arm.name, lambda arm=arm: _make_arm(oneof, arm))  # type: ignore[misc]
    return table


def _make_arm(oneof: Oneof, arm: Field) -> Function:
    source = Source(_scope)
    name = f"arm_{len(_scope)}"
    with source.block(f"def {name}(v):"):
        if oneof.tag and arm.type is not None:
            source.add(f"return {_members(arm.type)}(v)")
        elif oneof.tag:
            source.add("return ',' + v[1:-1]")
        else:
            source.add(f"return {_value(arm, 'v')}")
    return source.define(name, f"encode {oneof.name}.{arm.name}")


def _value(member: Field, expression: str) -> str:
    """Returns the Python expression that prints a member's value."""
    if member.repeated:
        # A slice is read in one go; a repeated field itself ends its iteration by an exception.
        return f"'[' + ','.join([{_one(member, 'x')} for x in {expression}[:]]) + ']'"
    if member.value is not None:
        pairs = f"[q(k) + ':' + {_one(member.value, 'd[k]')} for k in sorted(d)]"
        return f"('{{' + ','.join({pairs}) + '}}' if (d := {expression}) else '{{}}')"
    return _one(member, expression)


def _one(member: Field, expression: str) -> str:
    if member.kind == "string":
        return f"q({expression})"
    if member.kind == "raw":
        return expression
    if member.kind == "bool":
        return f"boolean[{expression}]"
    if member.kind == "int":
        return f"str({expression})"
    if member.kind == "double":
        return f"number({expression})"
    if member.enum is not None:
        name = "enum_" + member.enum.name.replace(".", "_")
        strings = {number: _key(text) for number, text in member.enum.strings.items()}
        _scope.setdefault(name, _Strings(strings))
        return f"{name}[{expression}]"
    assert member.type is not None
    return f"{_document(member.type)}({expression})"


def _key(text: str) -> str:
    """Prints a name of the schema as JSON."""
    return encode_basestring(text)
