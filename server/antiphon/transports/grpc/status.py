"""Errors as gRPC statuses, with the details of `google.rpc`."""

from __future__ import annotations

from typing import Any, Final, NoReturn, TypeAlias

import grpc
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from antiphon.core.errors import ApiError

__all__ = ["DOMAIN", "Context", "refuse"]

DOMAIN: Final = "antiphon"
"""`ErrorInfo.domain` of every error."""

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"

_DETAILS: Final = "grpc-status-details-bin"


async def refuse(context: Context, error: ApiError) -> NoReturn:
    """Ends a call with an error; nothing may have been sent yet.

    Args:
        context: the call.
        error: why. Its `type`, `code` and `param` are in the `ErrorInfo`, and the `param` is a
            `BadRequest` field violation too.

    Raises:
        grpc.aio.AbortError: always.
    """
    code = grpc.StatusCode[error.kind.value.grpc]
    status = Status(code=code.value[0], message=error.message)
    told = {"type": error.kind.value.type, "code": error.code, "param": error.param}
    info = ErrorInfo(
        reason=(error.code or error.kind.name).upper(),
        domain=DOMAIN,
        metadata={name: value for name, value in told.items() if value is not None},
    )
    status.details.add().Pack(info)
    if error.param is not None:
        violation = BadRequest.FieldViolation(field=error.param, description=error.message)
        status.details.add().Pack(BadRequest(field_violations=[violation]))
    if error.retry_after is not None:
        retry = RetryInfo()
        retry.retry_delay.seconds = error.retry_after
        status.details.add().Pack(retry)
    trailing = ((_DETAILS, status.SerializeToString()),)
    await context.abort(code, error.message, trailing)
