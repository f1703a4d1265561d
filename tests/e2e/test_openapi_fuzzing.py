"""The live gateway keeps what its own OpenAPI document promises, whatever is sent to it."""

import json
from collections import Counter
from typing import Any

import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.e2e.server import Server
from tests.schema.served import parse_frames
from tests.schema.test_openapi import refusals, validator

CHECKS = [
    not_a_server_error,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
]
SCHEMA = response_schema_conformance
NOT_BUILT = 501
CREATE = "POST /v1/responses"
STREAM = "POST /v1/responses, streamed"
ELSEWHERE = {
    "agent_id",
    "background_options",
    "context_management",
    "conversation",
    "conversation_id",
    "moderation",
    "previous_response_id",
    "prompt",
    "stream_options",
    "text",
    "tool_choice",
}
"""Parameters that need something to be there, or that are not built."""


def known(value: Any) -> bool:
    """Whether every object's kind is one that the schema names.

    Objects of other kinds are kept as they are, and the discriminators of the document do not name
    them.
    """
    if isinstance(value, dict):
        kind = value.get("type", "message")
        named = isinstance(kind, str) and kind.replace("_", "").isalnum() and kind.islower()
        return named and all(known(each) for each in value.values())
    return all(known(each) for each in value) if isinstance(value, list) else True


def answerable(body: dict[str, Any]) -> dict[str, Any]:
    """Returns a request that can be answered more often: without what has to be there already."""
    kept = {key: value for key, value in body.items() if key not in ELSEWHERE}
    return {**kept, "model": "sim", "input": body.get("input") or "Hello"}


def test_what_is_promised_is_kept(server: Server) -> None:
    document = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    operations: list[Any] = [result.ok() for result in document.get_all_operations()]  # type: ignore[union-attr]
    assert len(operations) > 10
    event = validator("ResponseStreamEvent")
    statuses: Counter[tuple[str, int]] = Counter()
    for operation in operations:

        @settings(
            max_examples=12,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        )
        @given(operation.as_strategy())
        def keep(case: Any) -> None:
            if not known(case.body):
                return
            hold(case)
            if case.operation.label == CREATE and isinstance(case.body, dict):
                # Once more as it can be answered, whole and as a stream.
                for stream in (False, True):
                    case.body = {**answerable(case.body), "stream": stream}
                    hold(case)

        def hold(case: Any) -> None:
            response = case.call(timeout=60)
            statuses[case.operation.label, response.status_code] += 1
            if response.status_code == NOT_BUILT:
                # Part of the API, and refused by its name.
                error = response.json()["error"]
                assert error["param"] is not None
                assert "not built" in error["message"]
                return
            # OpenAPI 3.1 says of a stream that it is a text, and `x-event-schema` of its events.
            streamed = response.headers["content-type"][0].startswith("text/event-stream")
            checks = [each for each in CHECKS if not (streamed and each is SCHEMA)]
            case.validate_response(response, checks=checks)
            if streamed:
                told = [json.loads(data) for data in parse_frames(response.content)]
                assert told
                assert [refusals(event, each) for each in told] == [[]] * len(told)
                statuses[STREAM, response.status_code] += 1

        keep()
    # Not everything was refused: the document says enough to be answered by.
    for label in ("POST /v1/conversations", "GET /v1/models", CREATE, STREAM):
        assert statuses[label, 200] > 0, label
