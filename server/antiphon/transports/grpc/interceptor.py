"""The outermost interceptor: no exception of ours reaches a client as it is."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import grpc
import structlog

from antiphon.core.errors import ApiError, ErrorKind
from antiphon.transports.grpc.status import refuse

__all__ = ["ErrorInterceptor"]

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Behaviour: TypeAlias = "Callable[[Any, Any], Awaitable[Any]]"
Reader: TypeAlias = "Callable[[bytes], Any]"

_log = structlog.get_logger(__name__)


class ErrorInterceptor(grpc.aio.ServerInterceptor):
    """Turns every unexpected exception into INTERNAL with a fixed text, and logs it."""

    def __init__(self) -> None:
        self._guarded: dict[str, Handler] = {}

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        method = handler_call_details.method
        if method not in self._guarded:
            handler = await continuation(handler_call_details)
            if handler is None:
                # Not kept: clients may ask for any number of methods that do not exist.
                return None
            self._guarded[method] = _guarded(handler, method)
        return self._guarded[method]


def _guarded(handler: Handler, method: str) -> Handler:
    if handler.unary_unary is not None:
        behaviour, make = handler.unary_unary, grpc.unary_unary_rpc_method_handler
    elif handler.unary_stream is not None:
        behaviour, make = handler.unary_stream, grpc.unary_stream_rpc_method_handler
    else:
        return handler
    if not inspect.iscoroutinefunction(behaviour):
        return handler
    # Messages are read in the guard: grpc.aio would tell the client the exception of its reader.
    return make(
        _guard(behaviour, method, handler.request_deserializer),
        response_serializer=handler.response_serializer,
    )


def _guard(behaviour: Behaviour, method: str, read: Reader | None) -> Behaviour:
    async def guarded(request: bytes, context: Any) -> Any:
        try:
            message = request if read is None else read(request)
        except Exception:  # noqa: BLE001 - readers may raise anything
            await refuse(context, ApiError(ErrorKind.INVALID_VALUE, "The message cannot be read."))
        try:
            return await behaviour(message, context)
        except (grpc.aio.AbortError, grpc.aio.InternalError):
            # The latter is of a write whose client left just then; grpc.aio passes over it.
            raise
        except Exception:  # noqa: BLE001 - that is what this is for
            metadata = dict(context.invocation_metadata() or ())
            request_id = metadata.get("x-request-id", "")
            _log.exception("call failed", method=method, request_id=request_id)
            await refuse(context, ApiError(ErrorKind.INTERNAL, "The server had an error."))

    return guarded
