"""Secrets: fields that are passed on to the model and never told or stored."""

from __future__ import annotations

import functools
from typing import Any

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message as ProtoMessage

from antiphon.json.plan import Field, Message, Oneof, descriptor_of, plan

__all__ = ["redact"]


def redact(message: ProtoMessage) -> None:
    """Clears every secret field of a message and of the messages in it.

    Args:
        message: the message.
    """
    _redact(message, descriptor_of(message))


def _redact(message: Any, descriptor: Descriptor) -> None:
    secrets, ways = _reach(descriptor)
    for name in secrets:
        message.ClearField(name)
    for field in ways:
        assert field.type is not None
        if field.repeated:
            for each in getattr(message, field.name):
                _redact(each, field.type)
        elif message.HasField(field.name):
            _redact(getattr(message, field.name), field.type)


@functools.cache
def _reach(descriptor: Descriptor) -> tuple[tuple[str, ...], tuple[Field, ...]]:
    """Returns a message's secret fields, and those that lead to messages with secrets."""
    fields = _fields(plan(descriptor))
    secrets = tuple(field.name for field in fields if field.secret)
    ways = tuple(field for field in fields if field.type is not None and _holds(field.type))
    return secrets, ways


@functools.cache
def _holds(descriptor: Descriptor) -> bool:
    """Whether a secret can stand anywhere in a message."""
    seen: set[str] = set()
    waiting = [descriptor]
    while waiting:
        fields = _fields(plan(waiting.pop()))
        if any(field.secret for field in fields):
            return True
        for field in fields:
            if field.type is not None and field.type.full_name not in seen:
                seen.add(field.type.full_name)
                waiting.append(field.type)
    return False


def _fields(message: Message) -> list[Field]:
    fields: list[Field] = []
    for member in message.members:
        fields.extend(member.arms if isinstance(member, Oneof) else (member,))
    return fields
