"""Errors of the API: one table from the kind of error to its gRPC, HTTP and JSON forms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from antiphon.json import InvalidValue
from antiphon.v1 import error_pb2

__all__ = ["MAX_MESSAGE", "ApiError", "ErrorKind", "ErrorRow", "clamped", "invalid"]


class ErrorRow(NamedTuple):
    """One row of the table: how a kind of error looks on each surface."""

    grpc: str
    """The name of the gRPC status code."""
    http: int
    """The HTTP status."""
    type: str
    """`error.type` of the JSON body."""
    code: str | None = None
    """`error.code` of the JSON body, where the error itself gives none."""


MAX_MESSAGE: Final = 512
"""The longest message of an error, in bytes: gRPC refuses large metadata, which holds it thrice."""
_MAX_NAME: Final = 256
"""The longest `param` and `code` of an error, in bytes."""

_REQUEST: Final = "invalid_request_error"
_SERVER: Final = "server_error"


class ErrorKind(Enum):
    """What can be wrong with a request or its answer."""

    INVALID_VALUE = ErrorRow("INVALID_ARGUMENT", 400, _REQUEST)
    """Malformed JSON, a wrong type, a bad value or a malformed id."""
    MODEL_NOT_FOUND = ErrorRow("NOT_FOUND", 404, _REQUEST, "model_not_found")
    """No backend answers this model or agent."""
    NOT_FOUND = ErrorRow("NOT_FOUND", 404, _REQUEST)
    """Unknown, foreign, deleted or unstored: the four cannot be told apart."""
    PREVIOUS_RESPONSE_NOT_FOUND = ErrorRow(
        "INVALID_ARGUMENT", 400, _REQUEST, "previous_response_not_found"
    )
    """The same, for the response to continue."""
    NOT_NOW = ErrorRow("FAILED_PRECONDITION", 400, _REQUEST)
    """The state does not allow it: a parent that is running, for example."""
    ALREADY_EXISTS = ErrorRow("ALREADY_EXISTS", 409, _REQUEST)
    """The id is taken in this scope."""
    INVALID_API_KEY = ErrorRow("UNAUTHENTICATED", 401, _REQUEST, "invalid_api_key")
    """A key is missing or wrong."""
    METHOD_NOT_ALLOWED = ErrorRow("UNIMPLEMENTED", 405, _REQUEST, "method_not_allowed")
    """The path exists and has no such method."""
    RATE_LIMIT = ErrorRow("RESOURCE_EXHAUSTED", 429, "rate_limit_exceeded", "rate_limit_exceeded")
    """A quota is used up."""
    TOO_LARGE = ErrorRow("RESOURCE_EXHAUSTED", 413, _REQUEST, "request_too_large")
    """The body is too large."""
    UNSUPPORTED_ENCODING = ErrorRow("INVALID_ARGUMENT", 415, _REQUEST, "unsupported_media_type")
    """The body is compressed in a way that is not known here."""
    BAD_BACKEND = ErrorRow("UNAVAILABLE", 502, _SERVER)
    """The backend answered badly."""
    UNAVAILABLE = ErrorRow("UNAVAILABLE", 503, _SERVER)
    """The backend cannot be reached, or the server is stopping."""
    NOT_BUILT = ErrorRow("UNIMPLEMENTED", 501, _SERVER)
    """The operation is part of the API and not built yet."""
    INTERNAL = ErrorRow("INTERNAL", 500, _SERVER)
    """Anything else."""


@dataclass(eq=False)
class ApiError(Exception):
    """A request that is refused.

    Args:
        kind: the row of the table.
        message: one sentence for the client; nothing internal, and nothing of the payload.
        param: the JSON path of what is wrong (`input[1].content`), if it is one place.
        code: the code for programs, where it is not the row's.
        retry_after: seconds after which the request may be tried again.
        headers: further headers of the reply.
    """

    kind: ErrorKind
    message: str
    param: str | None = None
    code: str | None = None
    retry_after: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.message = clamped(self.message, MAX_MESSAGE)
        super().__init__(self.message)
        code = self.kind.value.code if self.code is None else self.code
        self.code = None if code is None else clamped(code, _MAX_NAME)
        self.param = None if self.param is None else clamped(self.param, _MAX_NAME)

    @property
    def body(self) -> error_pb2.ErrorResponse:
        """The body of the HTTP answer."""
        return error_pb2.ErrorResponse(
            error=error_pb2.Error(
                message=self.message, type=self.kind.value.type, param=self.param, code=self.code
            )
        )


def clamped(text: str, most: int) -> str:
    """Returns a text that takes no more than so many bytes of UTF-8.

    Args:
        text: the text; what is too much of it is left out, and lone surrogates are replaced.
        most: the number of bytes.
    """
    encoded = text.encode(errors="replace")
    if len(encoded) > most:
        encoded = encoded[: most - 3] + b"..."
    return encoded.decode(errors="ignore")


def invalid(error: InvalidValue) -> ApiError:
    """Returns the error of a value that the schema does not accept."""
    return ApiError(ErrorKind.INVALID_VALUE, error.message, error.param, error.code)
