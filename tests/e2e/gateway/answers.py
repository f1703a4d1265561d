"""What the answers of the gateway have in common."""

import json
from collections.abc import Mapping

import httpx

from tests.e2e.gateway.upstream import SECRET
from tests.e2e.gateway.wire import Reply

__all__ = ["check_error", "check_headers"]

INVALID = "invalid_request_error"


def check_headers(headers: Mapping[str, str]) -> None:
    """Check that there is an id, and nothing that is nobody's business."""
    assert len(headers["x-request-id"]) == 36
    assert headers["server"] == "antiphon"
    names = {name.lower() for name in headers}
    assert not {n for n in names if n.startswith(("grpc-", "x-envoy-")) or n == "x-http-status"}
    text = str(dict(headers))
    assert SECRET not in text
    assert "envoy" not in text.lower()


def check_error(
    reply: httpx.Response | Reply, status: int, kind: str = INVALID, code: str | None = None
) -> str:
    """Check that this is an error as the API has them, and return its message."""
    if isinstance(reply, Reply):
        actual, body = reply.status, reply.body
    else:
        actual, body = reply.status_code, reply.content
    assert actual == status
    check_headers(reply.headers)
    assert reply.headers["content-type"] == "application/json"
    assert reply.headers["content-length"] == str(len(body))
    assert SECRET.encode() not in body
    error = json.loads(body)["error"]
    message = error.pop("message")
    assert error == {"type": kind, "param": None, "code": code}
    assert isinstance(message, str)
    assert message.endswith(".")
    return message
