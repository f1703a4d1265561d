"""Holding the schema against the SDK: what the SDK declares and the schema does not have."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from antiphon.json.plan import Field, Message, Oneof
from tests.schema import sdk
from tests.schema.shape import Shapes, as_field

__all__ = ["Coverage", "Problem"]


@dataclass(frozen=True)
class Problem:
    """One thing that the SDK declares and the schema does not have.

    Args:
        place: the message and the key, `Response.output`.
        rule: what is not held: `member`, `arm`, `type`, `value`, `printed` or `required`.
        text: what is wrong, beginning with the path from the root.
    """

    place: str
    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.text} ({self.place} {self.rule})"


@dataclass(frozen=True)
class _Use:
    """One class of the SDK that says something of a member of the schema."""

    cls: type
    presence: sdk.Presence
    path: str


class Coverage:
    """A walk over types of the SDK beside the messages that stand for them.

    Args:
        shapes: the schema.
    """

    def __init__(self, shapes: Shapes) -> None:
        self._shapes = shapes
        self._problems: dict[tuple[str, str, str], Problem] = {}
        self._uses: dict[tuple[str, str], list[_Use]] = defaultdict(list)
        self._seen: set[tuple[type, str]] = set()
        self._members: dict[tuple[str, str], Field | Oneof] = {}
        self.classes: set[type] = set()
        """The classes of the SDK that the walk has come through."""

    def cover(self, annotation: Any, *names: str, root: str = "") -> None:
        """Walks over one type.

        Args:
            annotation: the SDK's type: a class or a union.
            names: the messages that stand for it. Of several, the first one that has the
                discriminator is taken.
            root: what the paths of problems begin with; the first message's name by default.
        """
        fields = [as_field(self._shapes.message(name)) for name in names]
        self._value(annotation, fields, root or names[0], place=names[0], param=False)

    def problems(self) -> list[Problem]:
        """Lists what the schema does not have, after all types have been walked over."""
        for (owner, key), uses in self._uses.items():
            self._judge(owner, key, self._members[owner, key], uses)
        return list(self._problems.values())

    def _report(self, place: str, rule: str, path: str, text: str) -> None:
        self._problems.setdefault((place, rule, text), Problem(place, rule, f"{path}: {text}"))

    def _value(
        self, annotation: Any, fields: list[Field], path: str, *, place: str, param: bool
    ) -> None:
        """Holds what a value may be against what a member may hold."""
        found = sdk.alternatives(annotation)
        is_open = sdk.Primitive("string") in found
        for alternative in found:
            match alternative:
                case sdk.Literals(values):
                    for value in values if not is_open else ():
                        if not any(_accepts(field, value, param=param) for field in fields):
                            self._report(place, "value", path, f"{value!r} is not accepted")
                case sdk.Primitive(name):
                    if not any(self._holds(field, name) for field in fields):
                        self._report(place, "type", path, f"holds no {name} as it comes")
                case sdk.ListOf(element):
                    lists = [field for field in fields if field.repeated]
                    if not lists:
                        self._report(place, "type", path, "holds no list")
                    for field in lists:
                        elements = self._shapes.elements(field)
                        self._value(element, elements, f"{path}[]", place=place, param=param)
                case sdk.MapOf(value):
                    self._map(value, fields, path, place=place, param=param)
                case sdk.Class(cls):
                    self._object(cls, fields, path, place=place)

    def _holds(self, field: Field, name: str) -> bool:
        """Says whether a field holds any value of a kind, without a change."""
        if name == "any":
            return self._holds_any(field)
        kinds = {"string": "string", "int": "int", "float": "double", "bool": "bool"}
        closed = name == "string" and field.rules is not None and bool(field.rules.values)
        return field.kind == kinds[name] and not field.repeated and not closed

    def _holds_any(self, field: Field) -> bool:
        """Says whether a field holds every JSON object, known or not."""
        if field.repeated or field.kind != "message":
            return field.kind == "raw" and not field.repeated
        shape = self._shapes.of(field)
        return bool(shape.additional) or _raw_arm(shape)

    def _map(self, value: Any, fields: list[Field], path: str, *, place: str, param: bool) -> None:
        maps = [field for field in fields if field.kind == "map" and field.value is not None]
        free = sdk.alternatives(value) == [sdk.Primitive("any")]
        if not maps and not (free and any(self._holds_any(field) for field in fields)):
            self._report(place, "type", path, "holds no map")
        for field in maps:
            assert field.value is not None
            values = self._shapes.values(field.value)
            self._value(value, values, f"{path}{{}}", place=place, param=param)

    def _object(self, cls: type, fields: list[Field], path: str, *, place: str) -> None:
        self.classes.add(cls)
        messages = [
            self._shapes.of(field)
            for field in fields
            if field.kind == "message" and not field.repeated
        ]
        if not messages:
            self._report(place, "type", path, f"holds no object like {cls.__name__}")
            return
        first = messages[0]
        if first.union is None:
            self._keys(cls, first, None, path)
            return
        tag = sdk.members(cls).get(first.union.tag)
        tags = [
            value
            for each in (sdk.alternatives(tag.annotation) if tag is not None else ())
            if isinstance(each, sdk.Literals)
            for value in each.values
        ]
        assert tags, f"{cls.__name__} has no discriminator"
        for value in tags:
            at = f"{path}<{value}>"
            for message in messages:
                if (arm := _arm(message, value)) is not None:
                    if tag is not None and tag.presence == "optional" and not arm.implied_by:
                        self._report(f"{_name(message)}.{value}", "arm", at, "is not implied")
                    self._keys(cls, self._shapes.of(arm), message, at)
                    break
            else:
                self._report(f"{_name(first)}.{value}", "arm", at, "there is no such arm")

    def _keys(self, cls: type, message: Message, around: Message | None, path: str) -> None:
        """Holds the keys of an object against the members of a message.

        Args:
            cls: the SDK's class.
            message: the message that stands for it.
            around: the message whose tagged union has the message as an arm; its members stand
                in the same object.
            path: where the object is.
        """
        mark = (cls, message.name + (around.name if around is not None else ""))
        if mark in self._seen:
            return
        self._seen.add(mark)
        tag = around.union.tag if around is not None and around.union is not None else ""
        constants = dict(message.constants)
        declared = sdk.members(cls)
        for key, member in declared.items():
            if key == tag:
                continue
            at, place = f"{path}.{key}", f"{_name(message)}.{key}"
            if key in constants:
                if sdk.alternatives(member.annotation) != [sdk.Literals((constants[key],))]:
                    self._report(place, "value", at, f"is always {constants[key]!r}")
                continue
            owner, ours = message, _member(message, key)
            if ours is None and around is not None:
                owner, ours = around, _member(around, key)
            if ours is None:
                self._report(place, "member", at, "there is no such member")
                continue
            self._members[_name(owner), key] = ours
            self._uses[_name(owner), key].append(_Use(cls, member.presence, at))
            values = self._shapes.values(ours)
            param = sdk.is_param(cls)
            self._value(member.annotation, values, at, place=place, param=param)
        # Members that this class does not have are not required of its senders.
        for ours in message.members:
            key = ours.key if isinstance(ours, Field) or ours.by_type else ""
            if key and key not in declared:
                self._members[_name(message), key] = ours
                self._uses[_name(message), key].append(_Use(cls, "optional", f"{path}.{key}"))

    def _judge(self, owner: str, key: str, ours: Field | Oneof, uses: list[_Use]) -> None:
        """Holds what is printed and what is required against all classes that say it."""
        place, path = f"{owner}.{key}", uses[0].path
        sent = [use.presence for use in uses if sdk.is_param(use.cls)]
        got = [use.presence for use in uses if not sdk.is_param(use.cls)]
        if got and "optional" not in {*got, *sent} and not _is_printed(ours, "nullable" in got):
            self._report(place, "printed", path, "is not always printed")
        if sent and set(sent) == {"required"} and not ours.required:
            self._report(place, "required", path, "is not required")
        if sent and set(sent) != {"required"} and ours.required:
            self._report(place, "required", path, "is required, and the SDK may leave it out")


def _name(message: Message) -> str:
    return message.type.name


def _member(message: Message, key: str) -> Field | Oneof | None:
    for member in message.members:
        if member.key == key and (isinstance(member, Field) or member.by_type):
            return member
    return None


def _arm(message: Message, tag: str) -> Field | None:
    arms = message.union.arms if message.union is not None else ()
    return next((arm for arm in arms if arm.tag == tag and arm.kind != "raw"), None)


def _raw_arm(message: Message) -> bool:
    arms = message.union.arms if message.union is not None else ()
    return any(arm.kind == "raw" for arm in arms)


def _accepts(field: Field, value: str, *, param: bool) -> bool:
    """Says whether a field holds a string, and accepts it from clients if they send it."""
    if field.repeated or field.kind not in {"string", "enum"}:
        return False
    accepted = set(field.rules.values) if field.rules is not None else set()
    if field.enum is not None:
        # A rule of an enum binds clients; the server may print every value.
        return value in field.enum.strings.values() and (
            not (param and accepted) or value in accepted
        )
    return not accepted or value in accepted


def _is_printed(member: Field | Oneof, nullable: bool) -> bool:
    """Says whether the key is there whatever the message holds.

    A message or a union has no default to print: where it must be there, the server sets it, and
    where it may be null, null stands for it.
    """
    if isinstance(member, Oneof) or (member.kind == "message" and not member.repeated):
        return member.emit_null or not nullable
    if member.secret:
        return False
    return member.emit_null or not (member.presence or member.omit_empty)
