"""Whatever the official Python SDK declares comes back from the schema as it went in."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.message import Message
from openai.types import conversations, responses

from antiphon.json import decode, encode
from antiphon.v1 import (
    compacted_response_pb2,
    conversation_pb2,
    conversations_service_pb2,
    event_pb2,
    item_pb2,
    response_pb2,
    responses_service_pb2,
    tool_pb2,
    websocket_pb2,
)
from tests.schema import sdk
from tests.schema.samples import samples

CASES: tuple[tuple[Any, type[Message], int], ...] = (
    (responses.ResponseInputItem, item_pb2.Item, 2),
    (responses.ResponseInputItemParam, item_pb2.Item, 2),
    (responses.ResponseItem, item_pb2.Item, 2),
    (responses.ResponseOutputItem, item_pb2.Item, 2),
    (conversations.ConversationItem, item_pb2.Item, 2),
    (responses.Tool, tool_pb2.Tool, 3),
    (responses.ToolParam, tool_pb2.Tool, 3),
    # Their items and tools are whole above.
    (responses.Response, response_pb2.Response, 0),
    (responses.ResponseStreamEvent, event_pb2.ResponseStreamEvent, 0),
    (responses.ResponseCreateParams, responses_service_pb2.CreateResponseRequest, 0),
    (responses.ResponsesClientEventParam, websocket_pb2.ResponsesClientEvent, 0),
    (responses.ResponseCompactParams, responses_service_pb2.CompactResponseRequest, 0),
    (responses.CompactedResponse, compacted_response_pb2.CompactedResponse, 0),
    (responses.InputTokenCountParams, responses_service_pb2.CountInputTokensRequest, 0),
    (conversations.Conversation, conversation_pb2.Conversation, 0),
    (
        conversations.ConversationCreateParams,
        conversations_service_pb2.CreateConversationRequest,
        0,
    ),
)

SECRETS = {
    "<mcp>.authorization",
    "<mcp>.headers",
    "<code_interpreter>.container<auto>.network_policy<allowlist>.domain_secrets",
    "<shell>.environment<container_auto>.network_policy<allowlist>.domain_secrets",
}
"""What is accepted and never printed."""


def fitted(value: Any, key: str = "") -> Any:
    """Returns a sample with the few values that no type of the SDK tells.

    Times are whole seconds, labels are strings, an answer may be 16 tokens long, a message that
    steers has a status like others, and the roles are those that a client can send.
    """
    if key in {"created_at", "completed_at"}:
        return 1_700_000_000
    if key == "max_output_tokens" and isinstance(value, int):
        return 16
    if key == "role":
        return value if value in {"user", "assistant", "system", "developer"} else "assistant"
    if key == "metadata":
        return {"label": "value"}
    if key == "status" and value == samples(str)[0]:
        return "completed"
    if isinstance(value, dict) and value.get("type") == "additional_tools":
        value = {**value, "role": "developer"}
        return {
            name: each if name == "role" else fitted(each, name) for name, each in value.items()
        }
    if isinstance(value, dict):
        return {name: fitted(each, name) for name, each in value.items()}
    if isinstance(value, list):
        return [fitted(each) for each in value]
    return value


def lost(before: Any, after: Any, path: str) -> Iterator[str]:
    """Yields the paths of what did not come back as it was."""
    if isinstance(before, dict) and isinstance(after, dict):
        if isinstance(before.get("type"), str):
            path = path.removesuffix("[]") + f"<{before['type']}>"
        for key, value in before.items():
            if key in after:
                yield from lost(value, after[key], f"{path}.{key}")
            else:
                yield f"{path}.{key}"
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for each, other in zip(before, after, strict=True):
            yield from lost(each, other, f"{path}[]")
    elif before != after or type(before) is not type(after):
        yield f"{path} ({before!r} became {after!r})"


@pytest.mark.parametrize(("annotation", "message", "whole"), CASES)
def test_what_the_sdk_declares_comes_back(
    annotation: Any, message: type[Message], whole: int
) -> None:
    found: set[str] = set()
    for sample in samples(annotation, whole=whole):
        before = fitted(sample)
        after = json.loads(encode(decode(message, json.dumps(before))))
        found.update(lost(before, after, ""))
    assert {path for path in found if not path.endswith(tuple(SECRETS))} == set()


def test_every_secret_is_accepted_and_lost() -> None:
    found: set[str] = set()
    for sample in samples(responses.ToolParam, whole=3):
        after = json.loads(encode(decode(tool_pb2.Tool, json.dumps(sample))))
        found.update(lost(sample, after, ""))
    assert found == SECRETS


def test_samples_have_every_arm_of_every_union() -> None:
    kinds = {sample["type"] for sample in samples(responses.ResponseInputItemParam)}
    arms = {arm.name for arm in item_pb2.Item.DESCRIPTOR.oneofs_by_name["kind"].fields}
    assert kinds == arms - {"unknown"}
    assert all(
        set(sdk.members(cls.type)) <= {key for each in samples(cls.type) for key in each}
        for cls in sdk.alternatives(responses.ResponseInputItemParam)
        if isinstance(cls, sdk.Class)
    )
