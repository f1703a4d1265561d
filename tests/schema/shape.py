"""The JSON shape of the schema's messages, as the coverage of the SDK looks at it."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from google.protobuf import descriptor_pool

from antiphon.json.plan import Field, Message, Oneof, plan
from antiphon.v1 import conversations_service_pb2, websocket_pb2

__all__ = ["Shapes", "as_field"]

# The two files that import every other one: the pool then knows the whole schema.
PACKAGE = conversations_service_pb2.DESCRIPTOR.package
assert websocket_pb2.DESCRIPTOR.package == PACKAGE


class Shapes:
    """The shapes of messages: their compiled plans, with the changes that a test makes to them.

    Args:
        changes: what to do with the plan of a message, by its name.
    """

    def __init__(self, changes: Mapping[str, Callable[[Message], Message]] | None = None) -> None:
        self._changes = dict(changes or {})

    def message(self, name: str) -> Message:
        """Returns the shape of a message.

        Args:
            name: its name, without the package.

        Raises:
            KeyError: the schema has no such message.
        """
        descriptor = descriptor_pool.Default().FindMessageTypeByName(f"{PACKAGE}.{name}")
        shape = plan(descriptor)
        return self._changes[name](shape) if name in self._changes else shape

    def of(self, field: Field) -> Message:
        """Returns the shape of the message that a field holds."""
        assert field.type is not None
        return self.message(field.type.name)

    def values(self, member: Field | Oneof) -> list[Field]:
        """Lists what the value of a member may be: the arms of a union by type, without wrappers.

        Args:
            member: a field, or a union by JSON type.
        """
        if isinstance(member, Oneof):
            return [each for arm in member.arms for each in self.values(arm)]
        if member.kind == "message" and not member.repeated and (of := self.of(member)).bare:
            return self.values(of.members[0])
        return [member]

    def elements(self, field: Field) -> list[Field]:
        """Lists what an element of a repeated field may be."""
        return self.values(replace(field, repeated=False))


def as_field(message: Message) -> Field:
    """Returns a field that holds a message, where a walk begins with one."""
    return Field(name=message.type.name, key="", kind="message", type=message.type)
