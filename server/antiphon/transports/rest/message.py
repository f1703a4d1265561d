"""Requests and replies of the REST surface, whatever front carries them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from antiphon.core.errors import ApiError, ErrorKind
from antiphon.json import encode

__all__ = ["JSON", "RestReply", "RestRequest", "error_reply"]

JSON: Final = "application/json"


@dataclass(slots=True)
class RestRequest:
    """A request, routed already.

    Args:
        operation: the name of the operation: a method of `RestService`.
        path: the variables of the path.
        query: the query parameters, each with all its values.
        headers: the headers, with names in lower case.
        body: the body.
    """

    operation: str
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, Sequence[str]] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(slots=True)
class RestReply:
    """A reply.

    Args:
        status: the HTTP status.
        content_type: the type of the body.
        body: the body: whole, or in pieces that are sent one by one.
        headers: further headers.
    """

    status: int
    content_type: str
    body: bytes | AsyncIterator[bytes]
    headers: Mapping[str, str] = field(default_factory=dict)


def error_reply(error: ApiError) -> RestReply:
    """Returns the reply of a request that is refused."""
    headers = dict(error.headers)
    if error.retry_after is not None:
        headers["retry-after"] = str(error.retry_after)
    if error.kind is ErrorKind.NOT_BUILT:
        # The official SDKs ask again after any 5xx that does not say this.
        headers["x-should-retry"] = "false"
    return RestReply(error.kind.value.http, JSON, encode(error.body).encode(), headers)
