"""The engine: makes, finds and deletes responses."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from antiphon.backends.protocol import Call, Models
from antiphon.core.calls import check_calls, open_calls
from antiphon.core.errors import ApiError, ErrorKind
from antiphon.core.event import Snapshot
from antiphon.core.ids import check_id, new_id
from antiphon.core.request import check_request, input_items, new_response
from antiphon.core.scope import Scope
from antiphon.core.tokens import count_items
from antiphon.engine.run import Run
from antiphon.stores.protocol import Store, Turn, TurnContent, TurnEnd
from antiphon.v1.item_pb2 import Item, ItemList
from antiphon.v1.response_pb2 import Response
from antiphon.v1.responses_service_pb2 import CreateResponseRequest

__all__ = ["Engine"]

_ACCEPT_SECONDS: Final = 10.0


class Engine:
    """Makes, finds and deletes responses.

    Args:
        store: where they are kept.
        models: who answers.
        store_by_default: whether a request that does not say so is stored.
        accept_seconds: how long an answer waits for its backend to accept before it begins.
        clock: tells the time, in seconds since 1970.
    """

    def __init__(
        self,
        store: Store,
        models: Models,
        *,
        store_by_default: bool = True,
        accept_seconds: float = _ACCEPT_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._models = models
        self._store_by_default = store_by_default
        self._accept_seconds = accept_seconds
        self._clock = clock
        self._runs: dict[tuple[Scope, str], Run] = {}
        self._draining = False

    @property
    def models(self) -> Sequence[str]:
        """The names of the models that are listed."""
        return self._models.names()

    @property
    def running(self) -> int:
        """The number of responses that are being made."""
        return len(self._runs)

    def serves(self, model: str) -> bool:
        """Returns whether a model can be asked.

        Args:
            model: the model's name.
        """
        return self._models.resolve(model) is not None

    async def create(self, scope: Scope, request: CreateResponseRequest) -> Run:
        """Starts a response and returns when its answer begins.

        Args:
            scope: whose it is.
            request: the request, each of whose values has been checked by itself.

        Raises:
            ApiError: the request is refused; nothing was stored.
        """
        check_request(request, store_by_default=self._store_by_default)
        backend = self._models.resolve(request.model)
        if backend is None:
            message = "The model does not exist, or this server does not serve it."
            raise ApiError(ErrorKind.MODEL_NOT_FOUND, message, "model")
        parent = await self._parent(scope, request)
        # Asked after the last wait: what starts from here on, `close` sees.
        if self._draining:
            raise ApiError(ErrorKind.UNAVAILABLE, "The server is stopping.", retry_after=1)
        response_id = new_id("resp")
        store = request.store if request.HasField("store") else self._store_by_default
        response = new_response(
            request, response_id=response_id, created_at=int(self._clock()), store=store
        )
        items = list(input_items(request))
        check_calls(items, parent.open_calls if parent is not None else frozenset())
        context_tokens = count_items(items) + (parent.tokens if parent is not None else 0)

        async def history() -> Sequence[Item]:
            return await _history(parent)

        async def begin() -> None:
            content = TurnContent(
                ItemList(items=items).SerializeToString(), response.SerializeToString()
            )
            await self._store.begin(scope, response_id, parent, content)

        async def finish(final: Response) -> None:
            tokens = context_tokens + final.usage.output_tokens
            end = TurnEnd(final.SerializeToString(), tokens, open_calls(final.output))
            await self._store.finish(scope, response_id, end)

        run = Run(
            response,
            backend,
            Call(request, response_id, items, history, context_tokens),
            begin=begin if store else None,
            finish=finish if store else None,
            clock=self._clock,
        )
        key = (scope, response_id)
        self._runs[key] = run
        if request.stream:
            run.client = run.reader()
        await run.start(self._accept_seconds, lambda: self._runs.pop(key, None))
        return run

    async def get(self, scope: Scope, response_id: str) -> Snapshot:
        """Returns a stored response, or a running one as it is now.

        Args:
            scope: whose it is.
            response_id: the response's id.

        Raises:
            ApiError: the id is malformed, or there is no such response.
        """
        turn = await self._find(scope, response_id)
        if turn is None:
            raise _not_found(response_id)
        run = self._runs.get((scope, response_id))
        if run is not None and not turn.ended:
            return Snapshot(run.current())
        content = await turn.read()
        return Snapshot(Response.FromString(content.response))

    async def delete(self, scope: Scope, response_id: str) -> None:
        """Deletes a stored response; one that is running is cancelled first.

        Args:
            scope: whose it is.
            response_id: the response's id.

        Raises:
            ApiError: the id is malformed, or there is no such response.
        """
        check_id(response_id, "response_id")
        if not await self._store.delete(scope, response_id):
            raise _not_found(response_id)
        run = self._runs.get((scope, response_id))
        if run is not None:
            run.cancel()

    async def close(self) -> None:
        """Refuses new work, cancels what is running and waits for its end."""
        self._draining = True
        runs = list(self._runs.values())
        for run in runs:
            run.cancel()
        for run in runs:
            await run.wait_closed()

    async def _find(self, scope: Scope, response_id: str) -> Turn | None:
        check_id(response_id, "response_id")
        return await self._store.find(scope, response_id)

    async def _parent(self, scope: Scope, request: CreateResponseRequest) -> Turn | None:
        if not request.HasField("previous_response_id"):
            return None
        parent = await self._store.find(scope, request.previous_response_id)
        if parent is None:
            raise ApiError(
                ErrorKind.PREVIOUS_RESPONSE_NOT_FOUND,
                "The previous response was not found.",
                "previous_response_id",
            )
        if not parent.ended:
            raise ApiError(
                ErrorKind.NOT_NOW,
                "The previous response is still in progress.",
                "previous_response_id",
            )
        return parent


async def _history(parent: Turn | None) -> Sequence[Item]:
    """Reads the items of a chain of turns, oldest first."""
    contents: list[TurnContent] = []
    turn = parent
    while turn is not None:
        contents.append(await turn.read())
        turn = await turn.parent()
    items: list[Item] = []
    for content in reversed(contents):
        items.extend(ItemList.FromString(content.input).items)
        items.extend(Response.FromString(content.response).output)
    return items


def _not_found(response_id: str) -> ApiError:
    # The id has passed the check of its form, so that it is safe to repeat.
    return ApiError(
        ErrorKind.NOT_FOUND, f"Response with id '{response_id}' not found.", "response_id"
    )
