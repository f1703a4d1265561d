"""Checks: the schema's rules applied to messages that typed callers built themselves.

What the decoder does while it reads JSON, this does for a message that came over gRPC: every
rule is held, and every raw document is parsed and compacted in place.
"""

from __future__ import annotations

import re

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message as ProtoMessage

from antiphon.json import raw, rules
from antiphon.json.errors import InvalidValue
from antiphon.json.plan import Field, Message, Oneof, descriptor_of, plan
from antiphon.json.rules import emit_element_rules, emit_rules
from antiphon.json.source import Function, Scope, Source, lazy

__all__ = ["check"]


def _missing(*path: str | int) -> InvalidValue:
    return InvalidValue("is missing", "missing_required_parameter", *path)


def _object(text: str, reserved: frozenset[str]) -> str:
    """Compacts an object of unknown members, none of which may stand for one of the schema's."""
    value = raw.parse(text)
    if not isinstance(value, dict):
        raise InvalidValue("must be an object", "invalid_type")
    for key in value:
        if key in reserved:
            raise InvalidValue("stands for a member of the schema", "invalid_value", key)
    return raw.compact(value)


def _recompact_object(text: str) -> str:
    return _object(text, frozenset())


def _variant(text: str, reserved: frozenset[str], tag: str, tags: frozenset[str]) -> str:
    """Compacts an object of a kind that the schema does not know."""
    text = _object(text, reserved)
    found = raw.parse(text).get(tag)
    if not isinstance(found, str):
        raise _missing(tag)
    if found in tags:
        raise InvalidValue("is a kind that the schema knows", "invalid_value", tag)
    return text


_scope: Scope = {
    **rules.SCOPE,
    "InvalidValue": InvalidValue,
    "missing": _missing,
    "object_": _object,
    "recompact": raw.recompact,
    "recompact_object": _recompact_object,
    "variant": _variant,
}


def check(message: ProtoMessage) -> None:
    """Holds a message to the schema's rules, and compacts its raw documents in place.

    Args:
        message: the message, from a typed caller.

    Raises:
        InvalidValue: a value is not what the schema accepts.
    """
    _scope[_checker(descriptor_of(message))](message)


def _checker(descriptor: Descriptor) -> str:
    """Returns the name of the function that checks a message."""
    name = "check_" + descriptor.full_name.replace(".", "_")
    lazy(_scope, name, lambda: _make_checker(name, plan(descriptor), frozenset()))
    return name


def _make_checker(name: str, message: Message, reserved: frozenset[str]) -> Function:
    """Makes a message's check.

    Args:
        name: the function's name in the scope.
        message: the message's plan.
        reserved: further keys that unknown members may not have: a union's discriminator.
    """
    source = Source(_scope)
    with source.block(f"def {name}(m):"):
        source.add("pass")
        for member in message.members:
            if isinstance(member, Oneof):
                _check_oneof(source, message, member)
            else:
                _check_field(source, member, "" if message.bare else member.key)
        if message.additional:
            known = source.bind(frozenset(message.keys) | reserved)
            with source.block(f"if m.{message.additional}:"):
                source.add(f"m.{message.additional} = object_(m.{message.additional}, {known})")
    return source.define(name, f"check {message.name}")


def _check_oneof(source: Source, message: Message, oneof: Oneof) -> None:
    known = frozenset(arm.tag for arm in oneof.arms if arm.type is not None)
    key = "" if message.bare or oneof.tag else oneof.key
    source.add(f"k = m.WhichOneof({oneof.name!r})")
    keyword = "if"
    for arm in oneof.arms:
        with source.block(f"{keyword} k == {arm.name!r}:"):
            if not oneof.tag:
                _check_field(source, arm, key)
            elif arm.type is not None:
                source.add(f"{_arm_checker(message, oneof, arm)}(m.{arm.name})")
            else:
                common = source.bind(frozenset(message.keys) - {oneof.tag})
                told = f"{common}, {oneof.tag!r}, {source.bind(known)}"
                source.add(f"m.{arm.name} = variant(m.{arm.name}, {told})")
        keyword = "elif"
    if oneof.tag or oneof.required or message.bare:
        with source.block("else:"):
            source.add(
                f"raise missing({oneof.tag or key!r})" if key or oneof.tag else "raise missing()"
            )


def _arm_checker(message: Message, oneof: Oneof, arm: Field) -> str:
    assert arm.type is not None
    name = f"check_{message.name}_{arm.name}".replace(".", "_")
    shape = plan(arm.type)
    lazy(_scope, name, lambda: _make_checker(name, shape, frozenset((oneof.tag, *message.keys))))
    return name


def _check_field(source: Source, member: Field, key: str) -> None:
    """Adds the checks of a field; in an arm of a union by type it is set already."""
    path = f", {key!r}" if key else ""
    value = f"m.{member.name}"
    if member.repeated:
        _check_list(source, member, value, path)
    elif member.value is not None:
        emit_rules(source, member, value, f"raise InvalidValue({{}}{path})")
        _check_map(source, member.value, value, path)
    elif member.presence:
        with source.block(f"if m.HasField({member.name!r}):"):
            _check_one(source, member, value, path)
        if member.required:
            with source.block("else:"):
                source.add(f"raise missing({key!r})")
    else:
        # Without presence, an empty value of a member that may be missing stands for its absence.
        with source.block(f"if {value}:" if _empty_is_missing(member) else "if True:"):
            _check_one(source, member, value, path)
        if member.required and _empty_is_missing(member):
            with source.block("else:"):
                source.add(f"raise missing({path.removeprefix(', ')})")


def _empty_is_missing(member: Field) -> bool:
    """Whether the empty value of a field without presence cannot be meant."""
    told = member.rules
    refused = told is not None and (
        (told.values and "" not in told.values)
        or (told.pattern and not re.fullmatch(told.pattern, ""))
    )
    return not member.required or member.kind == "raw" or bool(refused)


def _check_one(source: Source, member: Field, value: str, path: str) -> None:
    if member.type is not None:
        _nested(source, f"{_checker(member.type)}({value})", path)
    elif member.kind == "raw":
        _nested(source, f"{value} = {_recompact(member, value)}", path)
    else:
        _check_scalar(source, member, value, path)


def _recompact(member: Field, value: str) -> str:
    only_object = member.rules is not None and member.rules.object
    return f"recompact_object({value})" if only_object else f"recompact({value})"


def _check_scalar(source: Source, member: Field, value: str, path: str) -> None:
    source.add("pass")
    if member.enum is not None:
        numbers = source.bind(frozenset(member.strings))
        listed = ", ".join(f"'{string}'" for string in member.strings.values())
        with source.block(f"if {value} not in {numbers}:"):
            if member.required:
                with source.block(f"if not {value}:"):
                    source.add(f"raise missing({path.removeprefix(', ')})")
            source.add(f"raise InvalidValue({f'must be one of {listed}'!r}, 'invalid_value'{path})")
    elif member.kind == "double":
        with source.block(f"if {value} - {value} != 0:"):
            source.add(f"raise InvalidValue('must be finite', 'invalid_value'{path})")
    emit_element_rules(source, member, value, f"raise InvalidValue({{}}{path})")


def _check_list(source: Source, member: Field, value: str, path: str) -> None:
    emit_rules(source, member, value, f"raise InvalidValue({{}}{path})")
    with source.block("try:"):
        if member.kind == "raw":
            with source.block(f"for i, x in enumerate({value}):"):
                source.add(f"{value}[i] = {_recompact(member, 'x')}")
        else:
            with source.block(f"for i, x in enumerate({value}):"):
                _check_one(source, member, "x", "")
    with source.block("except InvalidValue as e:"):
        source.add(f"e.at(i){f'.at({path[2:]})' if path else ''}")
        source.add("raise")


def _check_map(source: Source, of: Field, value: str, path: str) -> None:
    with source.block("try:"):
        if of.kind == "raw":
            with source.block(f"for k, x in list({value}.items()):"):
                source.add(f"{value}[k] = {_recompact(of, 'x')}")
        else:
            with source.block(f"for k, x in {value}.items():"):
                _check_one(source, of, "x", "")
    with source.block("except InvalidValue as e:"):
        source.add(f"e.at(k){f'.at({path[2:]})' if path else ''}")
        source.add("raise")


def _nested(source: Source, statement: str, path: str) -> None:
    if not path:
        source.add(statement)
        return
    with source.block("try:"):
        source.add(statement)
    with source.block("except InvalidValue as e:"):
        source.add(f"raise e.at({path[2:]})")
