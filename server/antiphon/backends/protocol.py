"""The Protocol of backends."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from antiphon.core.output import Step
from antiphon.v1.item_pb2 import Item
from antiphon.v1.responses_service_pb2 import CreateResponseRequest

__all__ = ["Backend", "Call", "Models"]


@dataclass(slots=True)
class Call:
    """What a backend is asked.

    Args:
        request: the request, checked.
        response_id: the id of the response to write.
        input: the new input items.
        history: reads the items of the turns before, oldest first; a backend that does not need
            them does not pay for them.
        context_tokens: an estimate of the tokens of history and input together.
    """

    request: CreateResponseRequest
    response_id: str
    input: Sequence[Item]
    history: Callable[[], Awaitable[Sequence[Item]]]
    context_tokens: int


class Backend(Protocol):
    """Answers calls."""

    def respond(self, call: Call) -> AsyncIterator[Sequence[Step]]:
        """Yields the answer's steps, in batches of whatever is there at once.

        The first batch tells that the call was accepted; an `ApiError` raised before it is the
        answer to the request. The iterator is closed when the run is cancelled.

        Args:
            call: what is asked.
        """


class Models(Protocol):
    """Knows which backend answers which model."""

    def resolve(self, model: str) -> Backend | None:
        """Returns the backend of a model, or None if there is no such model.

        Args:
            model: the model's name, as the client sent it.
        """

    def names(self) -> Sequence[str]:
        """Returns the names of the models that are listed."""


@runtime_checkable
class CheckingBackend(Backend, Protocol):
    """Answers calls, and can tell before whether it will take them."""

    async def check(self, request: CreateResponseRequest, items: Sequence[Item]) -> None:
        """Refuses what `respond` would refuse.

        It is asked for background requests: their clients are answered before the run begins,
        and hear of their own mistakes now or in a failed response.

        Args:
            request: the request, checked.
            items: the new input items.

        Raises:
            ApiError: the answer to the request.
        """
