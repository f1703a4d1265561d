"""Items being written: builders of items and steps, and runs held to every rule of a stream."""

import json
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from typing import Any

from openai.types import responses
from pydantic import TypeAdapter

from antiphon.core.event import Snapshot, event_type
from antiphon.core.output import Failed, Finished, Step
from antiphon.core.sequencer import Sequencer
from antiphon.json import decode, encode
from antiphon.v1.content_pb2 import OutputTextLogprob, OutputTextTopLogprob
from antiphon.v1.item_pb2 import Item
from antiphon.v1.response_pb2 import Response, ResponseStatus
from tests.schema import sdk
from tests.support.stream import check_stream, messages_of

__all__ = [
    "ENDINGS",
    "LARGEST",
    "Json",
    "a_call",
    "a_custom_call",
    "a_message",
    "after",
    "an_item",
    "an_mcp_call",
    "begun",
    "ended",
    "late",
    "logprob",
    "output",
    "reasoning",
    "text_part",
]

AT = 1_700_000_000
LARGEST = 1_000

Json = dict[str, Any]
Ending = Callable[[Sequencer], Response]

ENDINGS: dict[str, Ending] = {
    "completed": lambda sequencer: sequencer.complete(Finished(), AT),
    "incomplete": lambda sequencer: sequencer.complete(Finished(incomplete="content_filter"), AT),
    "failed": lambda sequencer: sequencer.fail(Failed("server_error", "It failed.")),
    "cancelled": lambda sequencer: sequencer.cancel(),
}
"""How a run ends, by the status of its response."""


def an_item(**members: Any) -> Item:
    """Returns an item from its members in JSON."""
    return decode(Item, json.dumps(members))


def begun(*, told: bool = True) -> Sequencer:
    """Returns the sequencer of a run that has begun, whose events somebody reads or nobody."""
    sequencer = Sequencer(
        Snapshot(
            Response(
                id="resp_1",
                model="m",
                status=ResponseStatus.RESPONSE_STATUS_IN_PROGRESS,
                created_at=AT,
            )
        ),
        max_event_bytes=LARGEST,
        told=told,
    )
    sequencer.begin()
    return sequencer


def after(*steps: Step) -> Sequencer:
    """Returns the sequencer of a run after some steps."""
    sequencer = begun()
    for step in steps:
        # The sequencer goes on with the items that it is given.
        sequencer.apply(deepcopy(step))
    return sequencer


def output(response: Response) -> list[Json]:
    """Returns the output of a response as JSON."""
    return [json.loads(encode(item)) for item in response.output]


def ended(sequencer: Sequencer, ending: str = "completed") -> Response:
    """Ends a run and holds all its events to the rules of a stream, and to the SDK's models."""
    sequencer.end(ENDINGS[ending](sequencer))
    events = messages_of(sequencer.entries)
    for event in events[2:-1]:
        text = encode(event)
        model = sdk_events()[event_type(event)].validate_json(text, strict=True)
        told = model.model_dump(mode="json", by_alias=True, exclude_unset=True)
        assert told == json.loads(text)
    return check_stream(events)


@cache
def sdk_events() -> dict[str, TypeAdapter[Any]]:
    """Returns the arms of the SDK's union of events by their discriminators, as the SDK does."""
    return {
        tag: TypeAdapter(arm.type)
        for arm in sdk.alternatives(responses.ResponseStreamEvent)
        if isinstance(arm, sdk.Class)
        for values in sdk.alternatives(sdk.members(arm.type)["type"].annotation)
        if isinstance(values, sdk.Literals)
        for tag in values.values
    }


def a_call(**members: Any) -> Item:
    return an_item(
        **{"type": "function_call", "name": "f", "call_id": "", "arguments": "", **members}
    )


def a_custom_call(**members: Any) -> Item:
    return an_item(
        **{"type": "custom_tool_call", "name": "run", "call_id": "", "input": "", **members}
    )


def an_mcp_call(**members: Any) -> Item:
    return an_item(
        **{"type": "mcp_call", "name": "f", "server_label": "l", "arguments": "", **members}
    )


def reasoning(**members: Any) -> Item:
    return an_item(**{"type": "reasoning", "summary": [], **members})


def a_message(*content: Json, **members: Any) -> Item:
    return an_item(**{"type": "message", "role": "assistant", "content": content, **members})


def late(kind: str, **fields: Any) -> Item:
    """Returns what is known of an item only at its end."""
    item = Item()
    getattr(item, kind).SetInParent()
    for name, value in fields.items():
        setattr(getattr(item, kind), name, value)
    return item


def logprob(token: str) -> OutputTextLogprob:
    top = OutputTextTopLogprob(token=token, bytes=token.encode(), logprob=-0.5)
    return OutputTextLogprob(
        token=token, bytes=token.encode(), logprob=-0.5, top_logprobs=[top, top]
    )


def text_part(text: str, **members: Any) -> Json:
    return {"type": "output_text", "text": text, "annotations": [], **members}
