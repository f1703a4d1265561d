"""What the simulator is asked, as a client writes it."""

import json
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from typing import Any

from antiphon.backends.documents.maker import DocumentMaker
from antiphon.backends.protocol import Call
from antiphon.backends.sim import SimBackend
from antiphon.backends.sim.script import singly
from antiphon.core.output import (
    Failed,
    Finished,
    InputDelta,
    ItemAdded,
    RefusalDelta,
    Step,
    TextDelta,
)
from antiphon.core.request import input_items
from antiphon.json import decode
from antiphon.v1.item_pb2 import Item
from antiphon.v1.responses_service_pb2 import CreateResponseRequest
from tests.support.call import steps_of

__all__ = [
    "WEATHER",
    "Answer",
    "ask",
    "call_of",
    "documents",
    "function",
    "singly_of",
    "text_config",
]


def function(name: str, parameters: Any = None) -> dict[str, Any]:
    """Returns a function tool."""
    schema = {"type": "object", "properties": {}} if parameters is None else parameters
    return {"type": "function", "name": name, "parameters": schema}


WEATHER = function(
    "get_weather",
    {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "unit": {"enum": ["celsius", "fahrenheit"]},
            "days": {"type": "integer", "minimum": 1},
        },
        "required": ["city", "unit"],
        "additionalProperties": False,
    },
)


def text_config(schema: Any) -> dict[str, Any]:
    """Returns the setting that asks for a document of a schema."""
    return {"format": {"type": "json_schema", "name": "answer", "schema": schema}}


class Answer:
    """The steps of an answer, and what they come to.

    Args:
        steps: the steps.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = steps

    @property
    def text(self) -> str:
        return "".join(step.text for step in self.steps if isinstance(step, TextDelta))

    @property
    def refusal(self) -> str:
        return "".join(step.text for step in self.steps if isinstance(step, RefusalDelta))

    @property
    def deltas(self) -> list[str]:
        kinds = TextDelta | RefusalDelta | InputDelta
        return [step.text for step in self.steps if isinstance(step, kinds)]

    @property
    def end(self) -> Finished | Failed:
        last = self.steps[-1]
        assert isinstance(last, Finished | Failed)
        return last

    @property
    def items(self) -> list[Item]:
        """The items that were added, each with the text given to its tool."""
        found: dict[str, Item] = {}
        for step in self.steps:
            if isinstance(step, ItemAdded):
                found[step.key] = Item()
                found[step.key].CopyFrom(step.item)
            elif isinstance(step, InputDelta):
                item = found[step.key]
                if item.HasField("function_call"):
                    item.function_call.arguments += step.text
                else:
                    item.custom_tool_call.input += step.text
        return list(found.values())

    @property
    def calls(self) -> list[tuple[str, str]]:
        """The names of the tools that are called, each with its arguments or input."""
        found = []
        for item in self.items:
            if item.HasField("function_call"):
                found.append((item.function_call.name, item.function_call.arguments))
            elif item.HasField("custom_tool_call"):
                found.append((item.custom_tool_call.name, item.custom_tool_call.input))
        return found

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.calls]


def call_of(
    content: Any, *, before: Sequence[Item] = (), reads: list[int] | None = None, **settings: Any
) -> Call:
    """Returns a call.

    Args:
        content: the input, as JSON has it.
        before: the history.
        reads: gets a number for each time that the history is read.
        settings: the other members of the request.
    """
    body = {"model": "m", "input": content, **settings}
    request = decode(CreateResponseRequest, json.dumps(body))

    async def history() -> Sequence[Item]:
        if reads is not None:
            reads.append(1)
        return before

    return Call(request, "resp_1", list(input_items(request).items), history, context_tokens=100)


async def ask(
    content: Any,
    *,
    before: Sequence[Item] = (),
    reads: list[int] | None = None,
    sleep: Callable[[float], Awaitable[object]] | None = None,
    **settings: Any,
) -> Answer:
    """Asks the simulator."""
    call = call_of(content, before=before, reads=reads, **settings)
    return Answer(await singly_of(call, sleep))


async def singly_of(
    call: Call, sleep: Callable[[float], Awaitable[object]] | None = None
) -> list[Step]:
    """Returns the steps of an answer of the simulator's, each text by itself."""
    backend = SimBackend(documents()) if sleep is None else SimBackend(documents(), sleep)
    return [step for step, _ in singly(await steps_of(backend, call))]


@cache
def documents() -> DocumentMaker:
    """Returns the maker of documents of all tests: its workers take a while to start."""
    return DocumentMaker()
