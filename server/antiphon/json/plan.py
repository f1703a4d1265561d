"""Plans: what the JSON options of the schema say about each message, read once.

A plan is the only description of a message's JSON shape. The encoder, the decoder, the checks
for typed callers and the OpenAPI document are all compiled from plans.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, cast

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor, OneofDescriptor
from google.protobuf.message import Message as ProtoMessage

from antiphon.v1 import json_pb2

__all__ = [
    "Enum",
    "Field",
    "Kind",
    "Message",
    "Oneof",
    "PlanError",
    "Rules",
    "descriptor_of",
    "dump",
    "plan",
]

Kind = Literal["string", "raw", "bool", "int", "double", "enum", "message", "map"]

_INTS: dict[int, tuple[int, int]] = {
    FieldDescriptor.TYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.TYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.TYPE_UINT64: (0, 2**64 - 1),
}


class PlanError(Exception):
    """A message of the schema has options that contradict each other."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The values a field accepts, from `FieldRules` of json.proto."""

    min: float | None = None
    max: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str = ""
    values: tuple[str, ...] = ()
    max_key_length: int | None = None
    max_value_length: int | None = None
    object: bool = False


@dataclass(frozen=True, slots=True)
class Enum:
    """The JSON strings of an enum's values; the zero value has none."""

    name: str
    strings: dict[int, str] = field(hash=False)


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message, or one arm of a oneof."""

    name: str
    key: str
    kind: Kind
    repeated: bool = False
    presence: bool = False
    emit_null: bool = False
    omit_empty: bool = False
    required: bool = False
    secret: bool = False
    always: bool = False
    tag: str = ""
    implied_by: str = ""
    bounds: tuple[int, int] | None = None
    enum: Enum | None = None
    type: Descriptor | None = None
    value: Field | None = None
    rules: Rules | None = None

    @property
    def strings(self) -> dict[int, str]:
        """The JSON strings of an enum's values that the field accepts, by their numbers."""
        assert self.enum is not None
        accepted = self.rules.values if self.rules is not None else ()
        return {
            number: string
            for number, string in self.enum.strings.items()
            if not accepted or string in accepted
        }


@dataclass(frozen=True, slots=True)
class Oneof:
    """One oneof of a message: a tagged union or a union by JSON type."""

    name: str
    tag: str
    emit_null: bool
    required: bool
    arms: tuple[Field, ...]

    @property
    def key(self) -> str:
        """The JSON key of a union by type."""
        return self.name

    @property
    def by_type(self) -> bool:
        """Whether the JSON type of the value chooses the arm."""
        return not self.tag


@dataclass(frozen=True, slots=True)
class Message:
    """The JSON shape of a message."""

    name: str
    type: Descriptor
    bare: bool
    constants: tuple[tuple[str, str], ...]
    members: tuple[Field | Oneof, ...]
    additional: str = ""

    @property
    def keys(self) -> tuple[str, ...]:
        """The JSON keys that the schema gives to this object, without those of tagged arms."""
        return tuple(key for key, _ in self.constants) + tuple(
            member.tag if isinstance(member, Oneof) and member.tag else member.key
            for member in self.members
        )

    @property
    def union(self) -> Oneof | None:
        """The tagged union of this message, if it has one."""
        for member in self.members:
            if isinstance(member, Oneof) and member.tag:
                return member
        return None


@functools.cache
def plan(descriptor: Descriptor) -> Message:
    """Reads the JSON options of one message.

    Args:
        descriptor: the message's descriptor.

    Raises:
        PlanError: the options contradict each other.
    """
    options = descriptor.GetOptions().Extensions[json_pb2.json_message]
    members: list[Field | Oneof] = []
    additional = ""
    seen: set[str] = set()
    for each in descriptor.fields:
        if _json(each).additional:
            additional = each.name
            continue
        oneof = each.containing_oneof
        if oneof is None or _synthetic(oneof):
            members.append(_field(each))
        elif oneof.name not in seen:
            seen.add(oneof.name)
            members.append(_oneof(oneof))
    result = Message(
        name=descriptor.full_name,
        type=descriptor,
        bare=options.bare,
        constants=tuple(sorted(options.constants.items())),
        members=tuple(members),
        additional=additional,
    )
    _check(result)
    return result


def descriptor_of(message: type[ProtoMessage] | ProtoMessage) -> Descriptor:
    """Returns the descriptor of a message or of its class."""
    # The type stubs of two implementations of descriptors are joined in the attribute's type.
    return cast(Descriptor, message.DESCRIPTOR)


def _json(descriptor: FieldDescriptor) -> json_pb2.JsonField:
    return descriptor.GetOptions().Extensions[json_pb2.json_field]


def _synthetic(oneof: OneofDescriptor) -> bool:
    """Whether protoc made the oneof for an `optional` field."""
    return len(oneof.fields) == 1 and oneof.name == "_" + oneof.fields[0].name


def _oneof(descriptor: OneofDescriptor) -> Oneof:
    options = descriptor.GetOptions().Extensions[json_pb2.json_oneof]
    if bool(options.tag) == options.by_type:
        raise PlanError(f"{descriptor.full_name}: a oneof has either a tag or by_type")
    return Oneof(
        name=descriptor.name,
        tag=options.tag,
        emit_null=options.emit_null,
        required=options.required,
        arms=tuple(_field(each) for each in descriptor.fields),
    )


def _field(descriptor: FieldDescriptor) -> Field:
    options = _json(descriptor)
    repeated = descriptor.is_repeated
    message = descriptor.message_type
    rules = _rules(descriptor)
    kind: Kind
    value: Field | None = None
    if message is not None and message.GetOptions().map_entry:
        if message.fields_by_name["key"].type != FieldDescriptor.TYPE_STRING:
            raise PlanError(f"{descriptor.full_name}: the keys of a map are strings")
        kind, repeated = "map", False
        value = _field(message.fields_by_name["value"])
        if options.raw:
            value = Field(name=value.name, key=value.key, kind="raw")
    else:
        kind = _kind(descriptor, raw=options.raw)
    return Field(
        name=descriptor.name,
        key=options.name or descriptor.name,
        kind=kind,
        repeated=repeated,
        presence=descriptor.has_presence,
        emit_null=options.emit_null,
        omit_empty=options.omit_empty,
        required=options.required,
        secret=options.secret,
        always=options.always,
        tag=options.tag or descriptor.name,
        implied_by=options.implied_by,
        bounds=_INTS.get(descriptor.type),
        enum=_enum(descriptor.enum_type) if descriptor.enum_type is not None else None,
        type=message if kind == "message" else None,
        value=value,
        rules=rules,
    )


def _kind(descriptor: FieldDescriptor, *, raw: bool) -> Kind:
    if raw:
        if descriptor.type != FieldDescriptor.TYPE_STRING:
            raise PlanError(f"{descriptor.full_name}: a raw field is a string")
        return "raw"
    if descriptor.type == FieldDescriptor.TYPE_STRING:
        return "string"
    if descriptor.type == FieldDescriptor.TYPE_BOOL:
        return "bool"
    if descriptor.type == FieldDescriptor.TYPE_DOUBLE:
        return "double"
    if descriptor.type == FieldDescriptor.TYPE_ENUM:
        return "enum"
    if descriptor.type == FieldDescriptor.TYPE_MESSAGE:
        return "message"
    if descriptor.type in _INTS:
        return "int"
    raise PlanError(f"{descriptor.full_name}: this type of field has no JSON shape")


def _rules(descriptor: FieldDescriptor) -> Rules | None:
    options = descriptor.GetOptions()
    if not options.HasExtension(json_pb2.rules):
        return None
    rules = options.Extensions[json_pb2.rules]

    given = {each.name: value for each, value in rules.ListFields()}

    return Rules(
        min=given.get("min"),
        max=given.get("max"),
        min_length=given.get("min_length"),
        max_length=given.get("max_length"),
        pattern=rules.pattern,
        values=tuple(rules.values),
        max_key_length=given.get("max_key_length"),
        max_value_length=given.get("max_value_length"),
        object=rules.object,
    )


@functools.cache
def _enum(descriptor: EnumDescriptor) -> Enum:
    prefix = "".join(
        "_" + letter if letter.isupper() and index else letter
        for index, letter in enumerate(descriptor.name)
    ).upper()
    strings: dict[int, str] = {}
    for value in descriptor.values:
        if value.number:
            given = value.GetOptions().Extensions[json_pb2.json_name]
            strings[value.number] = given or value.name.removeprefix(prefix + "_").lower()
    return Enum(descriptor.full_name, strings)


def _check(message: Message) -> None:
    if message.bare and (len(message.members) != 1 or message.additional or message.constants):
        raise PlanError(f"{message.name}: a bare message has one member")
    unions = [m for m in message.members if isinstance(m, Oneof) and m.tag]
    if len(unions) > 1 or (unions and message.additional):
        raise PlanError(f"{message.name}: a tagged union stands alone in its object")
    if len(set(message.keys)) != len(message.keys):
        raise PlanError(f"{message.name}: two members have the same JSON key")
    for union in unions:
        for arm in union.arms:
            if arm.kind == "raw":
                continue
            if arm.type is None:
                raise PlanError(f"{message.name}.{arm.name}: an arm is a message or raw")
            shared = {union.tag, *message.keys} & set(plan(arm.type).keys)
            if shared:
                raise PlanError(f"{message.name}.{arm.name}: {sorted(shared)} stand twice")


def dump(descriptor: Descriptor) -> Iterator[str]:
    """Yields a line for each fact of a message's plan, in an order that does not change.

    The lines of all messages are kept as a golden file, which may only grow: `buf breaking`
    does not see a change of the JSON options.
    """
    message = plan(descriptor)
    name = message.name
    if message.bare:
        yield f"{name} bare"
    for key, text in message.constants:
        yield f"{name} constant {key}={text}"
    if message.additional:
        yield f"{name} additional {message.additional}"
    for member in message.members:
        if isinstance(member, Oneof):
            how = f"tag={member.tag}" if member.tag else "by_type"
            flags = _flags(member, "emit_null", "required")
            yield f"{name} oneof {member.name} {how}{flags}"
            for arm in member.arms:
                told = f" tag={arm.tag}" if member.tag and arm.kind != "raw" else ""
                implied = f" implied_by={arm.implied_by}" if arm.implied_by else ""
                yield f"{name} arm {member.name}.{arm.name} {_type(arm)}{told}{implied}"
                yield from _values(name, arm)
        else:
            flags = _flags(member, "presence", "emit_null", "omit_empty", "required", "secret")
            yield f"{name} field {member.name} key={member.key} {_type(member)}{flags}"
            yield from _values(name, member)


def _flags(member: Field | Oneof, *names: str) -> str:
    return "".join(f" {name}" for name in names if getattr(member, name))


def _type(member: Field) -> str:
    if member.kind == "map" and member.value is not None:
        return f"map<{_type(member.value)}>"
    of = member.type.full_name if member.type is not None else ""
    of = member.enum.name if member.enum is not None else of
    return ("repeated " if member.repeated else "") + (of or member.kind)


def _values(name: str, member: Field) -> Iterator[str]:
    if member.enum is not None:
        for number, string in member.strings.items():
            yield f"{name} value {member.name} {number}={string}"
    for string in member.rules.values if member.rules and member.enum is None else ():
        yield f"{name} value {member.name} {string}"
