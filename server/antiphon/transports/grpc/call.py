"""What every typed method does around its work: let the call in, check it, refuse it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from google.protobuf.message import Message

from antiphon.core.errors import ApiError, invalid
from antiphon.core.scope import Scope
from antiphon.json import InvalidValue, check
from antiphon.transports.grpc.status import Context, refuse
from antiphon.transports.identity import Gate

__all__ = ["entered"]


@asynccontextmanager
async def entered(gate: Gate, request: Message, context: Context) -> AsyncIterator[Scope]:
    """Yields the scope of a call whose request is valid; what is refused inside ends the call.

    Args:
        gate: what lets calls in.
        request: the request, which is checked.
        context: the call; nothing may have been sent yet.
    """
    try:
        metadata = context.invocation_metadata() or ()
        headers = {name: value for name, value in metadata if isinstance(value, str)}
        scope = gate.enter(headers).scope
        check(request)
        yield scope
    except InvalidValue as error:
        await refuse(context, invalid(error))
    except ApiError as error:
        await refuse(context, error)
