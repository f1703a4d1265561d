"""Encoding: each message's plan, compiled once into a function that prints it as JSON."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from json.encoder import encode_basestring as quote_word
from typing import Final, TypeVar

import msgspec
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message as ProtoMessage

from antiphon.json.plan import Field, Message, Oneof, descriptor_of, plan
from antiphon.json.source import Function, Scope, Source, lazy

__all__ = ["encode", "one_line", "quote", "quote_all", "sections"]

M = TypeVar("M", bound=ProtoMessage)

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


class _Numbers(dict[float, str]):
    """Printed numbers, made when they are asked for, but for those that everybody sends."""

    def __missing__(self, value: float) -> str:
        return _number(value)


_print = msgspec.json.Encoder().encode


def quote(text: str) -> str:
    """Prints a string as JSON.

    Args:
        text: the string.
    """
    return quote_word(text) if len(text) < _LONG else _print(text).decode()


def quote_all(texts: Sequence[str]) -> Sequence[str]:
    """Prints strings as JSON, without the quotation marks around them.

    Args:
        texts: the strings, at least one.
    """
    # As one string, which takes a fraction of the time if they are short. No other character is
    # printed as the separator is; if a text has one, or looks like a printed one, there are more.
    printed = _print("\0".join(texts)).decode()[1:-1].split("\\u0000")
    if len(printed) == len(texts):
        return printed
    return [quote(text)[1:-1] for text in texts]


_scope: Scope = {
    "numbers": _Numbers({0.0: "0", 1.0: "1"}),
    "q": quote,
    "number": _number,
    "boolean": ("false", "true"),
}
_documents: dict[type[ProtoMessage], Function] = {}

_LONG: Final = 64
"""Characters from which on msgspec prints a string faster than the standard library."""
_FEW: Final = 4
"""Arms that are asked for by name, one after the other."""
_COMMONEST: Final = 2
"""First arms of a union that are asked for by name."""
_SPARSE: Final = 12
"""Members that may all be missing, from which on only those that are set are asked for."""


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
    return one_line(text)


def sections(message: type[M], fields: Sequence[str]) -> Sequence[Callable[[M], str]]:
    """Returns functions that print a message between them, so that a section of it can be kept.

    Args:
        message: the message's class.
        fields: the first field of each section but the first. Fields stand in the order of their
            declaration, and the first one of all is printed always.
    """
    whole = plan(descriptor_of(message))
    names = [member.name for member in whole.members]
    cuts = [0, *map(names.index, fields), len(names)]
    return [_make_section(whole, start, end) for start, end in pairwise(cuts)]


def _make_section(whole: Message, start: int, end: int) -> Function:
    source = Source(_scope)
    name = f"section_{len(_scope)}"
    with source.block(f"def {name}(m):"):
        constants = whole.constants if not start else ()
        members = whole.members[start:end]
        parts = _emit_parts(source, replace(whole, members=members, constants=constants))
        if not start:
            parts[0] = parts[0].replace("',", "'{", 1)
        if end == len(whole.members):
            parts.append("'}'")
        source.add(f"return one_line({_joined(parts)})")
    return source.define(name, f"encode part of {whole.name}")


def one_line(text: str) -> str:
    """Escapes whatever a reader may take for the end of a line.

    Args:
        text: printed JSON, and what has no such characters itself.
    """
    if text.isascii():
        return text
    # These characters stand only inside strings, so that a whole document can be escaped at once.
    for character, escape in _LINE_SEPARATORS:
        text = text.replace(character, escape)
    return text


_scope["one_line"] = one_line


def _document(descriptor: Descriptor, tag: str = "") -> str:
    """Returns the name of the function that prints a message as a whole JSON value.

    Args:
        descriptor: the message.
        tag: the printed discriminator that stands first in it, when it is the arm of a union.
    """
    name = "document_" + descriptor.full_name.replace(".", "_")
    if tag:
        name += f"_{zlib.crc32(tag.encode()):08x}"
    lazy(_scope, name, lambda: _make_document(name, plan(descriptor), tag))
    return name


def _make_document(name: str, message: Message, tag: str = "") -> Function:
    source = Source(_scope)
    with source.block(f"def {name}(m):"):
        member = message.members[0] if message.bare else None
        union = message.union
        if isinstance(member, Oneof):
            source.add(f"k = m.WhichOneof({member.name!r})")
            source.add(f"return {source.bind(_arms(member))}[k](getattr(m, k)) if k else 'null'")
        elif member is not None:
            source.add(f"return {_value(member, f'm.{member.name}')}")
        elif message.members == (union,) and not message.constants and not message.additional:
            assert union is not None
            # The schema names the commonest arms first.
            for arm in union.arms[:_COMMONEST]:
                if arm.type is not None:
                    with source.block(f"if m.HasField({arm.name!r}):"):
                        tag = f",{_key(union.tag)}:{_key(arm.tag)}"
                        source.add(f"return {_document(arm.type, tag)}(m.{arm.name})")
            source.add(f"k = m.WhichOneof({union.name!r})")
            source.add(f"return {source.bind(_whole_arms(union))}[k](getattr(m, k))")
        else:
            parts = _emit_parts(source, message, tag)
            if not parts:
                source.add("return '{}'")
            elif parts[0].startswith("',"):
                parts[0] = "'{" + parts[0][2:]
                if parts[-1].startswith("',") or parts[-1].startswith("'}"):
                    parts[-1] = parts[-1][:-1] + "}'"
                else:
                    parts.append("'}'")
                source.add(f"return {_joined(parts)}")
            else:
                source.add(f"return '{{' + {_joined(parts)}[1:] + '}}'")
    return source.define(name, f"encode {message.name}")


def _joined(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"''.join(({', '.join(parts)}))"


def _members(descriptor: Descriptor) -> str:
    """Returns the name of the function that prints a message's members, a comma before each."""
    name = "members_" + descriptor.full_name.replace(".", "_")
    lazy(_scope, name, lambda: _make_members(name, plan(descriptor)))
    return name


def _make_members(name: str, message: Message) -> Function:
    source = Source(_scope)
    with source.block(f"def {name}(m):"):
        parts = _emit_parts(source, message)
        source.add(f"return {_joined(parts)}" if parts else "return ''")
    return source.define(name, f"encode {message.name}")


def _emit_parts(source: Source, message: Message, tag: str = "") -> list[str]:
    """Emits what a message's members need, and returns the expressions that print them.

    The leading commas let a union, an object and the unknown members be put together without
    asking which member comes first.
    """
    literal = tag
    parts: list[str] = []

    def always(text: str, value: str = "") -> None:
        nonlocal literal
        literal += text
        if value:
            flush()
            parts.append(value)

    def flush() -> None:
        nonlocal literal
        if literal:
            parts.append(repr(literal))
            literal = ""

    def print_member(member: Field | Oneof) -> None:
        if isinstance(member, Oneof):
            flush()
            head = f",{_key(member.key)}:"
            other = repr(head + "null") if member.emit_null else "''"
            if len(member.arms) <= _FEW:
                # Asking for a few arms by name is cheaper than asking which one it is.
                tests = [
                    f"{head!r} + {_value(arm, f'm.{arm.name}')} if has({arm.name!r}) else "
                    for arm in member.arms
                ]
                parts.append(f"({''.join(tests)}{other})")
                return
            parts.append(
                f"({head!r} + {source.bind(_arms(member))}[k](getattr(m, k)) "
                f"if (k := m.WhichOneof({member.name!r})) else {other})"
            )
            return
        if member.secret:
            return
        head = f",{_key(member.key)}:"
        value = _value(member, f"m.{member.name}")
        if member.presence and member.emit_null:
            always(head, f"({value} if has({member.name!r}) else 'null')")
        elif member.presence:
            flush()
            parts.append(f"({head!r} + {value} if has({member.name!r}) else '')")
        elif member.omit_empty:
            flush()
            if member.repeated:
                parts.append(f"({head!r} + {_list(member, 'l')} if (l := m.{member.name}) else '')")
            else:
                parts.append(f"({head!r} + {value} if m.{member.name} else '')")
        else:
            always(head, value)

    if any(isinstance(member, Oneof) or member.presence for member in message.members):
        source.add("has = m.HasField")
    # The order is the API's: a discriminator or an id first, then the constants.
    union = message.union
    if union is not None:
        source.add(f"u = m.WhichOneof({union.name!r})")
        flush()
        parts.append(f"{source.bind(_tags(union))}[u]")
    members = [member for member in message.members if member is not union]
    leading = 1 if members and members[0].key == "id" else 0
    sparse = [member for member in members[leading:] if _left_out(member)]
    printers = ""
    if len(sparse) >= _SPARSE and len(sparse) == len(members):
        # So many members that most are unset: asking for those that are set is cheaper.
        members = [*members[:leading], *(m for m in members[leading:] if not _left_out(m))]
        printers = source.bind(_printers(message.type, sparse))
    for member in members[:leading]:
        print_member(member)
    for key, text in message.constants:
        always(f",{_key(key)}:{_key(text)}")
    for member in members[leading:]:
        print_member(member)
    flush()
    if printers:
        parts.append(
            f"''.join([p(v) for f, v in m.ListFields() if (p := {printers}.get(f.number))])"
        )
    if union is not None:
        parts.append(f"{source.bind(_arms(union))}[u](getattr(m, u))")
    if message.additional:
        parts.append(f"(',' + a[1:-1] if (a := m.{message.additional}) and a != '{{}}' else '')")
    return parts


def _left_out(member: Field | Oneof) -> bool:
    """Whether nothing is printed of a member that is not set."""
    if isinstance(member, Oneof):
        return not member.emit_null
    return not member.secret and (member.omit_empty or (member.presence and not member.emit_null))


def _printers(descriptor: Descriptor, members: list[Field | Oneof]) -> dict[int, Function]:
    """Returns, by the field's number, the functions that print a member with its key."""
    printers: dict[int, Function] = {}
    for member in members:
        for arm in member.arms if isinstance(member, Oneof) else (member,):
            source = Source(_scope)
            name = f"member_{len(_scope)}"
            with source.block(f"def {name}(v):"):
                source.add(f"return {f',{_key(member.key)}:'!r} + {_value(arm, 'v')}")
            number = descriptor.fields_by_name[arm.name].number
            printers[number] = source.define(name, f"encode {arm.name}")
    return printers


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
        if oneof.tag and arm.type is not None:
            _link(table, arm.name, _members(arm.type))
        elif oneof.tag:
            table[arm.name] = _inner
        elif arm.type is not None and not arm.repeated:
            _link(table, arm.name, _document(arm.type))
        elif arm.kind == "string" and not arm.repeated:
            table[arm.name] = quote
        else:
            lazy(table, arm.name, lambda arm=arm: _make_arm(oneof, arm))  # type: ignore[misc]
    return table


def _inner(text: str) -> str:
    return "," + text[1:-1]


def _itself(text: str) -> str:
    return text


def _whole_arms(union: Oneof) -> dict[str, Function]:
    """Returns, by the arm's name, the functions that print an arm as the whole object."""
    table: dict[str, Function] = {}
    for arm in union.arms:
        if arm.type is not None:
            tag = f",{_key(union.tag)}:{_key(arm.tag)}"
            _link(table, arm.name, _document(arm.type, tag))
        else:
            table[arm.name] = _itself
    return table


def _link(table: dict[str, Function], key: str, name: str) -> None:
    """Puts a function of the scope into a table, and its real self when that is there."""

    def first_call(value: ProtoMessage) -> str:
        text: str = _scope[name](value)
        table[key] = _scope[name]
        return text

    table[key] = first_call


def _make_arm(oneof: Oneof, arm: Field) -> Function:
    source = Source(_scope)
    name = f"arm_{len(_scope)}"
    with source.block(f"def {name}(v):"):
        source.add(f"return {_value(arm, 'v')}")
    return source.define(name, f"encode {oneof.name}.{arm.name}")


def _value(member: Field, expression: str) -> str:
    """Returns the Python expression that prints a member's value."""
    if member.repeated:
        return f"({_list(member, 'l')} if (l := {expression}) else '[]')"
    if member.value is not None:
        pairs = f"[q(k) + ':' + {_one(member.value, 'd[k]')} for k in sorted(d)]"
        return f"('{{' + ','.join({pairs}) + '}}' if (d := {expression}) else '{{}}')"
    return _one(member, expression)


def _list(member: Field, expression: str) -> str:
    # A slice is read in one go; a repeated field itself ends its iteration by an exception.
    return f"'[' + ','.join([{_one(member, 'x')} for x in {expression}[:]]) + ']'"


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
        return f"numbers[{expression}]"
    if member.enum is not None:
        name = "enum_" + member.enum.name.replace(".", "_")
        strings = {number: _key(text) for number, text in member.enum.strings.items()}
        _scope.setdefault(name, _Strings(strings))
        return f"{name}[{expression}]"
    assert member.type is not None
    return f"{_document(member.type)}({expression})"


def _key(text: str) -> str:
    """Prints a name of the schema as JSON."""
    return quote(text)
