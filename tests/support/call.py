"""What backends are asked, without an engine."""

from collections.abc import Sequence

from antiphon.backends.protocol import Backend, Call
from antiphon.core.output import Step
from antiphon.v1.item_pb2 import Item
from antiphon.v1.message_pb2 import Role
from antiphon.v1.responses_service_pb2 import CreateResponseRequest

__all__ = ["a_call", "said", "steps_of"]


def said(role: "Role.ValueType", *texts: str) -> Item:
    """Returns a message of one part for each text."""
    item = Item()
    item.message.role = role
    item.message.content_list.SetInParent()
    for text in texts:
        part = item.message.content_list.parts.add()
        if role == Role.ROLE_ASSISTANT:
            part.output_text.text = text
        else:
            part.input_text.text = text
    return item


def a_call(*texts: str, before: Sequence[Item] = (), items: Sequence[Item] = ()) -> Call:
    """Returns a call whose input is one message of the user's for each text.

    Args:
        texts: what the user says.
        before: the history.
        items: the whole input, where it is not the user's texts alone.
    """

    async def history() -> Sequence[Item]:
        return before

    given = [*items] or [said(Role.ROLE_USER, text) for text in texts]
    return Call(CreateResponseRequest(model="m"), "resp_1", given, history, context_tokens=7)


async def steps_of(backend: Backend, call: Call) -> list[Step]:
    """Returns all steps of an answer, their batches joined."""
    return [step async for batch in backend.respond(call) for step in batch]
