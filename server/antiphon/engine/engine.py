"""The engine: makes, finds, follows, cancels and deletes responses."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from antiphon.backends.protocol import Backend, Call, CheckingBackend, Models
from antiphon.core.calls import check_calls, open_calls
from antiphon.core.errors import ApiError, ErrorKind
from antiphon.core.event import Entry, Snapshot
from antiphon.core.ids import check_id, new_id, owner_of
from antiphon.core.output import Failed
from antiphon.core.page import PageRequest, take_page
from antiphon.core.parameters import ParametersTable
from antiphon.core.request import check_request, conversation_of, input_items, new_response
from antiphon.core.scope import Scope
from antiphon.core.tokens import count_bytes, count_items
from antiphon.engine.context import (
    context_items,
    history_items,
    identified,
    named_items,
    stored_items,
)
from antiphon.engine.conversations import conversation_not_found, item_page
from antiphon.engine.queue import RunQueue
from antiphon.engine.reader import EventReader, Replay
from antiphon.engine.run import Keeping, Run
from antiphon.stores.protocol import (
    Appended,
    ConversationState,
    HistoryTooLong,
    Store,
    Turn,
    TurnContent,
    TurnEnd,
)
from antiphon.v1 import response_pb2
from antiphon.v1.item_pb2 import Item, ItemList, ItemPage
from antiphon.v1.response_pb2 import Response
from antiphon.v1.responses_service_pb2 import CreateResponseRequest

__all__ = ["Engine", "EngineOptions"]

_STOPPING = Failed("server_error", "The server is stopping.")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """How an engine works.

    Args:
        store_by_default: whether a request that does not say so is stored.
        replay_all: whether the events of every stored stream are kept, and not only those of
            background streams.
        accept_seconds: how long an answer waits for its backend to accept before it begins.
        max_run_seconds: how long a run may take.
        max_event_bytes: the greatest size of a piece of a backend's output, in UTF-8 bytes.
        response_prefix: what the ids of responses begin with.
        concurrent_runs: the greatest number of runs of one project at once, or None.
    """

    store_by_default: bool = True
    replay_all: bool = False
    accept_seconds: float = 10.0
    max_run_seconds: float = 3600.0
    max_event_bytes: int = 16 * 1024 * 1024
    response_prefix: str = "resp"
    concurrent_runs: int | None = None


@dataclass(slots=True)
class _Job:
    """A request on its way to a run."""

    scope: Scope
    request: CreateResponseRequest
    begin: Snapshot
    input: ItemList
    items: Sequence[Item]
    """The items of `input`, to be read in one go."""
    parent: Turn | None
    conversation_id: str
    replayable: bool
    incarnation: int
    """Which conversation of that id."""
    context_tokens: int = 0
    position: int = 0
    """The place in the conversation that came next when the run had its turn."""


class Engine:
    """Makes, finds, follows, cancels and deletes responses.

    Args:
        store: where they are kept.
        models: who answers.
        options: how it works.
        clock: tells the time, in seconds since 1970.
    """

    def __init__(
        self,
        store: Store,
        models: Models,
        options: EngineOptions | None = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._models = models
        self._options = options if options is not None else EngineOptions()
        self._clock = clock
        self._queue = RunQueue()
        self._parameters = ParametersTable()
        self._runs: dict[tuple[Scope, str], Run] = {}
        self._running: Counter[str] = Counter()
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
        check_request(request, store_by_default=self._options.store_by_default)
        backend = self._models.resolve(request.model)
        if backend is None:
            message = "The model does not exist, or this server does not serve it."
            raise ApiError(ErrorKind.MODEL_NOT_FOUND, message, "model")
        parent = await self._parent(scope, request)
        conversation_id = conversation_of(request)
        incarnation = 0
        if conversation_id:
            incarnation = await self._store.conversation_incarnation(scope, conversation_id)
            if not incarnation:
                raise _no_conversation(request, conversation_id)
        job = self._job(scope, request, parent, conversation_id, incarnation)
        await self._resolve(job)
        if request.background and isinstance(backend, CheckingBackend):
            await backend.check(request, job.items)
        # Asked after the last wait: what starts from here on, `close` sees.
        if self._draining:
            raise ApiError(ErrorKind.UNAVAILABLE, "The server is stopping.", retry_after=1)
        if not conversation_id:
            check_calls(job.items, parent.open_calls if parent is not None else frozenset())
        run = self._run(job, backend)
        self._take_place(scope.project)
        key = (scope, job.begin.response.id)
        self._runs[key] = run
        if request.stream:
            run.client = run.reader(owner=True)
        await run.start(self._options.accept_seconds, lambda: self._over(key))
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
        run = self._runs.get((scope, response_id))
        if run is not None and not turn.ended:
            return Snapshot(run.current())
        content = await turn.read()
        return Snapshot(Response.FromString(content.response))

    async def follow(self, scope: Scope, response_id: str, after: int = -1) -> EventReader:
        """Returns a reader of the events of a response: those there are, and those that come.

        Args:
            scope: whose it is.
            response_id: the response's id.
            after: the number of the last event that is not wanted.

        Raises:
            ApiError: the id is malformed, there is no such response, or its events are not kept.
        """
        turn = await self._find(scope, response_id)
        if not turn.replayable:
            message = (
                "The events of this response are not kept: it was not created with both "
                "'background' and 'stream'."
            )
            raise ApiError(ErrorKind.NOT_NOW, message, "stream")
        run = self._runs.get((scope, response_id))
        if run is not None:
            # Until it is forgotten, the run knows of events that are still being stored.
            reader = run.reader(after + 1)
            await reader.fetch_trimmed()
            return reader
        events = await self._store.read_events(scope, response_id, after + 1)
        if events is None:
            message = "The events of this response are no longer kept."
            raise ApiError(ErrorKind.NOT_NOW, message, "stream")
        return Replay(events)

    async def cancel(self, scope: Scope, response_id: str) -> Snapshot:
        """Cancels a background response, and returns it; one that has ended stays as it is.

        Args:
            scope: whose it is.
            response_id: the response's id.

        Raises:
            ApiError: the id is malformed, there is no such response, or it is not in the
                background.
        """
        turn = await self._find(scope, response_id)
        run = self._runs.get((scope, response_id))
        if run is not None and run.background and not turn.ended:
            run.cancel()
            return await run.ended()
        snapshot = await self.get(scope, response_id)
        if not snapshot.response.background:
            message = "Only a response created with 'background' can be cancelled."
            raise ApiError(ErrorKind.NOT_NOW, message, "response_id")
        return snapshot

    async def delete(self, scope: Scope, response_id: str) -> None:
        """Deletes a stored response; one that is running is cancelled.

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

    async def list_input_items(
        self, scope: Scope, response_id: str, asked: PageRequest
    ) -> ItemPage:
        """Returns a page of the items that a response was made from.

        They are its ancestors' input and output or its conversation's items, then its own input.

        Args:
            scope: whose it is.
            response_id: the response's id.
            asked: which page.

        Raises:
            ApiError: the id is malformed, there is no such response, or a cursor is unknown.
        """
        turn = await self._find(scope, response_id)
        items = await self._context(scope, turn)
        # A client may repeat items of its history; an id is listed once, so that it is a cursor.
        named: dict[str, Item] = {}
        for index, item in enumerate(items):
            named.setdefault(identified(item, response_id, index), item)
        ids = list(named)
        page = take_page(ids, asked)
        chosen = [ids[place] for place in page.places]
        return item_page([named[each] for each in chosen], chosen, has_more=page.has_more)

    async def close(self, grace_seconds: float = 0.0) -> None:
        """Refuses new work, lets runs finish for a while, then ends them as failed.

        Args:
            grace_seconds: how long runs may go on.
        """
        self._draining = True
        runs = list(self._runs.values())
        closing = [asyncio.ensure_future(run.wait_closed()) for run in runs]
        if not closing:
            return
        if grace_seconds > 0:
            await asyncio.wait(closing, timeout=grace_seconds)
        for run in runs:
            run.stop(_STOPPING)
        await asyncio.wait(closing)

    # From a request to its run.

    def _job(
        self,
        scope: Scope,
        request: CreateResponseRequest,
        parent: Turn | None,
        conversation_id: str,
        incarnation: int,
    ) -> _Job:
        options = self._options
        store = request.store if request.HasField("store") else options.store_by_default
        begin = new_response(
            request,
            self._parameters,
            response_id=new_id(options.response_prefix),
            created_at=int(self._clock()),
            store=store,
        )
        given = input_items(request)
        items = given.items[:]
        replayable = store and request.stream and (request.background or options.replay_all)
        before = parent.tokens if parent is not None else 0
        return _Job(
            scope,
            request,
            begin,
            given,
            items,
            parent,
            conversation_id,
            replayable,
            incarnation,
            before + count_items(items),
        )

    def _run(self, job: _Job, backend: Backend) -> Run:
        turn = None
        prepare = self._prepare_chain
        if job.conversation_id:
            turn = self._store.lock_conversation(job.scope, job.conversation_id, job.incarnation)
            prepare = self._prepare_conversation
        return Run(
            job.begin,
            backend,
            self._queue,
            lambda: prepare(job),
            keeping=self._keeping(job) if job.begin.response.store else None,
            turn=turn,
            max_seconds=self._options.max_run_seconds,
            max_event_bytes=self._options.max_event_bytes,
            told=job.request.stream,
            clock=self._clock,
        )

    async def _prepare_chain(self, job: _Job) -> Call:
        async def history() -> Sequence[Item]:
            return await history_items(job.parent)

        return Call(job.request, job.begin.response.id, job.items, history, job.context_tokens)

    async def _prepare_conversation(self, job: _Job) -> Call:
        """Reads the conversation when it is the run's turn: what ran before is in it."""
        state = await self._store.find_conversation(job.scope, job.conversation_id)
        if state is None or state.incarnation != job.incarnation:
            raise _no_conversation(job.request, job.conversation_id)
        _check_ids(job, state)
        calls = [Item.FromString(item.data) for item in state.items if item.calls]
        check_calls(job.items, open_calls(calls))
        job.context_tokens += sum(count_bytes(len(item.data)) for item in state.items)
        job.position = state.position

        async def history() -> Sequence[Item]:
            return [Item.FromString(item.data) for item in state.items]

        return Call(job.request, job.begin.response.id, job.items, history, job.context_tokens)

    def _keeping(self, job: _Job) -> Keeping:
        store, scope, response_id = self._store, job.scope, job.begin.response.id

        async def begin() -> None:
            content = TurnContent(
                job.input.SerializeToString(), job.begin.response.SerializeToString()
            )
            try:
                await store.begin(
                    scope,
                    response_id,
                    job.parent,
                    content,
                    conversation_id=job.conversation_id,
                    replayable=job.replayable,
                )
            except HistoryTooLong:
                message = "The history of this response is as long as the server keeps any."
                raise ApiError(ErrorKind.NOT_NOW, message, "previous_response_id") from None

        async def finish(final: Response) -> None:
            end = TurnEnd(
                final.SerializeToString(),
                job.context_tokens + final.usage.output_tokens,
                open_calls([*job.items, *final.output[:]]),
                _appended(job, final),
                job.position,
            )
            await store.finish(scope, response_id, end)

        if not job.replayable:
            return Keeping(begin, finish)

        async def append(entries: Sequence[Entry], last: bool) -> None:
            data = [each.SerializeToString() for entry in entries for each in entry.messages]
            await store.append_events(scope, response_id, data, last=last)

        async def read(start: int) -> Sequence[bytes] | None:
            return await store.read_events(scope, response_id, start)

        return Keeping(begin, finish, append, read)

    def _take_place(self, project: str) -> None:
        """Counts a run of a project, or refuses it."""
        most = self._options.concurrent_runs
        if most is not None and self._running[project] >= most:
            message = f"Too many responses are running at once; at most {most} may."
            headers = {
                "x-ratelimit-limit-runs": str(most),
                "x-ratelimit-remaining-runs": "0",
            }
            raise ApiError(ErrorKind.RATE_LIMIT, message, retry_after=1, headers=headers)
        self._running[project] += 1

    def _over(self, key: tuple[Scope, str]) -> None:
        self._runs.pop(key, None)
        self._running[key[0].project] -= 1

    async def _resolve(self, job: _Job) -> None:
        """Puts the items in the place of the references to them."""
        known: dict[str, dict[str, Item]] = {}
        for index, item in enumerate(job.items):
            if not item.HasField("item_reference"):
                continue
            item_id = item.item_reference.id
            check_id(item_id, f"input[{index}].id")
            found = None
            # The id tells the response that the item is of, unless its client chose it: then it
            # is looked for in the history. Each of those is read once.
            for owner in (owner_of(item_id, self._options.response_prefix), ""):
                if owner not in known:
                    known[owner] = await self._items_of(job, owner)
                    await asyncio.sleep(0)
                found = known[owner].get(item_id)
                if found is not None:
                    break
            if found is None:
                message = f"'input[{index}]' refers to an item that was not found."
                raise ApiError(ErrorKind.NOT_FOUND, message, f"input[{index}].id")
            item.CopyFrom(found)

    async def _items_of(self, job: _Job, owner: str) -> dict[str, Item]:
        """Reads the items of a response by their ids, or those of the history if it is ""."""
        if not owner and job.conversation_id:
            state = await self._store.find_conversation(job.scope, job.conversation_id)
            if state is None:
                raise _no_conversation(job.request, job.conversation_id)
            return {item.id: Item.FromString(item.data) for item in state.items}
        turn = await self._store.find(job.scope, owner) if owner else job.parent
        if turn is None:
            return {}
        content = await turn.read()
        output = Response.FromString(content.response).output
        if owner:
            own = named_items(ItemList.FromString(content.input).items, turn.response_id)
        else:
            own = await context_items(turn)
        return {identified(item, "", 0): item for item in [*own, *output]}

    # What is there already.

    async def _find(self, scope: Scope, response_id: str) -> Turn:
        check_id(response_id, "response_id")
        turn = await self._store.find(scope, response_id)
        if turn is None:
            raise _not_found(response_id)
        return turn

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

    async def _context(self, scope: Scope, turn: Turn) -> Sequence[Item]:
        """Reads the items that a response was made from, each with its id."""
        if not turn.conversation_id:
            return await context_items(turn)
        content = await turn.read()
        own = named_items(ItemList.FromString(content.input).items, turn.response_id)
        state = await self._store.find_conversation(scope, turn.conversation_id)
        if state is None or state.incarnation != turn.incarnation:
            return own
        # What came in later is no context of this turn, which may have added nothing itself.
        position = turn.position if turn.ended else state.position
        before = (each for each in state.items if each.position < position)
        return [*(Item.FromString(each.data) for each in before), *own]


def _appended(job: _Job, final: Response) -> Appended | None:
    """Returns what a response adds to its conversation: nothing, if it has failed."""
    finished = final.status in (
        response_pb2.RESPONSE_STATUS_COMPLETED,
        response_pb2.RESPONSE_STATUS_INCOMPLETE,
    )
    if not job.conversation_id or not finished:
        return None
    items = [*job.items, *final.output]
    return Appended(job.conversation_id, stored_items(items, final.id, final.id))


def _check_ids(job: _Job, state: ConversationState) -> None:
    """Refuses input whose ids are taken: an id of a conversation names one item."""
    known = {item.id: item.data for item in state.items}
    for index, item in enumerate(stored_items(job.items, job.begin.response.id)):
        # An item that is repeated as it is, or was referred to, stays where it is.
        if known.setdefault(item.id, item.data) != item.data:
            message = f"'input[{index}].id' is the id of another item of the conversation."
            raise ApiError(ErrorKind.ALREADY_EXISTS, message, f"input[{index}].id")


def _no_conversation(request: CreateResponseRequest, conversation_id: str) -> ApiError:
    """Returns the error of a request that names a conversation which is not there."""
    named = "conversation_id" if request.HasField("conversation_id") else "conversation"
    return conversation_not_found(conversation_id, named)


def _not_found(response_id: str) -> ApiError:
    # The id has passed the check of its form, so that it is safe to repeat.
    message = f"Response with id '{response_id}' not found."
    return ApiError(ErrorKind.NOT_FOUND, message, "response_id")
