"""The JSON mapping once more, in the plainest way: what the compiled one is held against."""

import json
from typing import Any

from google.protobuf.message import Message as ProtoMessage

from antiphon.json.plan import Field, Message, Oneof, descriptor_of, plan

__all__ = ["value_of"]


def value_of(message: ProtoMessage) -> Any:
    """Returns the JSON value of a message, as the options of its schema say."""
    shape = plan(descriptor_of(message))
    if not shape.bare:
        return _object(shape, message)
    member = shape.members[0]
    if isinstance(member, Oneof):
        arm = _arm(member, message)
        return None if arm is None else _value(arm, getattr(message, arm.name))
    return _value(member, getattr(message, member.name))


def _object(shape: Message, message: ProtoMessage) -> dict[str, Any]:
    found: dict[str, Any] = dict(shape.constants)
    for member in shape.members:
        if isinstance(member, Field):
            _put(found, member, message)
            continue
        arm = _arm(member, message)
        if arm is None:
            if member.emit_null:
                found[member.key] = None
            continue
        value = getattr(message, arm.name)
        if member.by_type:
            found[member.key] = _value(arm, value)
        elif arm.kind == "raw":
            found |= json.loads(value)
        else:
            found |= {member.tag: arm.tag, **_object(plan(descriptor_of(value)), value)}
    if shape.additional and getattr(message, shape.additional):
        found |= json.loads(getattr(message, shape.additional))
    return found


def _put(found: dict[str, Any], member: Field, message: ProtoMessage) -> None:
    if member.secret:
        return
    value = getattr(message, member.name)
    if member.presence and not message.HasField(member.name):
        if member.emit_null:
            found[member.key] = None
    elif value or not member.omit_empty:
        found[member.key] = _value(member, value)


def _arm(oneof: Oneof, message: ProtoMessage) -> Field | None:
    name = message.WhichOneof(oneof.name)
    return next((arm for arm in oneof.arms if arm.name == name), None)


def _value(member: Field, value: Any) -> Any:
    if member.repeated:
        return [_one(member, each) for each in value]
    if member.value is not None:
        return {key: _one(member.value, value[key]) for key in value}
    return _one(member, value)


def _one(member: Field, value: Any) -> Any:
    if member.type is not None:
        return value_of(value)
    if member.enum is not None:
        return member.enum.strings[value]
    return json.loads(value) if member.kind == "raw" else value
