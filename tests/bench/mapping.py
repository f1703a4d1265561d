"""How fast the JSON mapping is, beside that of `google.protobuf.json_format`."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from google.protobuf import json_format
from google.protobuf.message import Message as ProtoMessage

from antiphon.json import decode, encode
from antiphon.v1.event_pb2 import ResponseStreamEvent
from antiphon.v1.response_pb2 import Response
from antiphon.v1.responses_service_pb2 import CreateResponseRequest
from tests.bench.table import Figure

__all__ = ["mapping"]

_PARAGRAPH: Final = (
    "A transcoding gateway takes an HTTP request, finds the method whose rule fits it, and calls "
    'that with a message. What comes back is printed again: "one document", or a stream.\n\n'
)

_RESPONSE: Final[dict[str, Any]] = {
    "id": "resp_0f1e2d3c4b5a69788796a5b4c3d2e1f0",
    "object": "response",
    "created_at": 1_760_000_000,
    "completed_at": 1_760_000_004,
    "status": "completed",
    "model": "sim",
    "instructions": "Answer briefly.",
    "metadata": {"ticket": "4711", "team": "gateway"},
    "output": [
        {
            "type": "message",
            "id": "msg_00112233445566778899aabbccddeeff",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": _PARAGRAPH * 3, "annotations": []}],
        }
    ],
    "parallel_tool_calls": True,
    "service_tier": "default",
    "store": True,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [
        {
            "type": "function",
            "name": "get_weather",
            "description": "Tells the weather of a city.",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
            "strict": True,
        }
    ],
    "top_p": 1.0,
    "truncation": "disabled",
    "usage": {
        "input_tokens": 420,
        "input_tokens_details": {"cached_tokens": 64},
        "output_tokens": 130,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 550,
    },
}

_REQUEST: Final[dict[str, Any]] = {
    "model": "sim",
    "stream": True,
    "temperature": 0.5,
    "input": [
        {
            "type": "message",
            "role": "assistant" if number % 2 else "user",
            "content": f"Message {number}: how does a request find its method?",
        }
        for number in range(10)
    ],
}

_DELTA: Final[dict[str, Any]] = {
    "type": "response.output_text.delta",
    "sequence_number": 42,
    "item_id": "msg_00112233445566778899aabbccddeeff",
    "output_index": 0,
    "content_index": 0,
    "delta": " gateway",
    "logprobs": [],
}

_DOCUMENTS: Final[dict[str, tuple[type[ProtoMessage], dict[str, Any], bool]]] = {
    "a response": (Response, _RESPONSE, True),
    "a request of ten items": (CreateResponseRequest, _REQUEST, False),
    "a text delta": (ResponseStreamEvent, _DELTA, True),
}
"""Each with whether its JSON has members that are zero or empty, as clients of the API expect it
of what a server sends. `json_format` is asked for the same, and for one line."""

_ENCODING: Final = (4, 5)
_DECODING: Final = (8, 12)
"""How many times as fast as `json_format`: what must be, and what is aimed for."""


def mapping(quick: bool) -> Iterator[Figure]:
    """Yields how many times as fast as `json_format` each message is encoded and decoded.

    Args:
        quick: whether to measure just enough to see that it works.
    """
    races = list(_races())
    repeats, seconds = (3, 0.001) if quick else (40, 0.004)
    for race in races:
        race.warm(seconds)
    # Every race in every round: noise that lasts hits them all, and the best is taken of each.
    for _ in range(repeats):
        for race in races:
            race.run()
    for race in races:
        yield race.figure()


def _races() -> Iterator[_Race]:
    for name, (kind, document, defaults) in _DOCUMENTS.items():
        message = decode(kind, json.dumps(document))
        text = encode(message)
        print_message = partial(
            json_format.MessageToJson,
            message,
            indent=None,
            preserving_proto_field_name=True,
            always_print_fields_with_no_presence=defaults,
        )
        printed = print_message()
        if decode(kind, text) != message or json_format.Parse(printed, kind()) != message:
            raise AssertionError(f"{name} is not what it was after the way there and back")
        body = text.encode()
        yield _Race(
            f"mapping: encode {name}",
            partial(encode, message),
            print_message,
            _ENCODING,
        )
        yield _Race(
            f"mapping: decode {name}",
            partial(decode, kind, body),
            partial(_parse, printed.encode(), kind),
            _DECODING,
        )


def _parse(body: bytes, kind: type[ProtoMessage]) -> ProtoMessage:
    return json_format.Parse(body, kind())


@dataclass(slots=True)
class _Race:
    """Two ways to do the same, timed in turn."""

    name: str
    ours: Callable[[], object]
    theirs: Callable[[], object]
    goals: tuple[float, float]
    _counts: tuple[int, int] = (1, 1)
    _ours: float = float("inf")
    _theirs: float = float("inf")

    def warm(self, seconds: float) -> None:
        """Finds how often each is to be called, so that one timing takes so many seconds."""
        _timed(self.ours, 10), _timed(self.theirs, 10)
        ours, theirs = _timed(self.ours, 10), _timed(self.theirs, 10)
        self._counts = (max(1, int(seconds / ours)), max(1, int(seconds / theirs)))

    def run(self) -> None:
        self._ours = min(self._ours, _timed(self.ours, self._counts[0]))
        self._theirs = min(self._theirs, _timed(self.theirs, self._counts[1]))

    def figure(self) -> Figure:
        least, aim = self.goals
        return Figure(
            name=self.name,
            value=self._theirs / self._ours,
            unit="x",
            least=least,
            aim=aim,
            detail=f"{self._ours * 1e6:.1f} µs, json_format {self._theirs * 1e6:.1f} µs",
        )


def _timed(function: Callable[[], object], count: int) -> float:
    """Returns how long one call takes, in seconds of the processor's time."""
    begun = time.process_time()
    for _ in range(count):
        function()
    return (time.process_time() - begun) / count
