"""A run: one response being made, and the log of its events that any reader may follow."""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_right
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from operator import attrgetter
from typing import Final, NamedTuple

import structlog

from antiphon.backends.protocol import Backend, Call
from antiphon.core.errors import ApiError, ErrorKind
from antiphon.core.event import DeltaEvents, Entry, Snapshot
from antiphon.core.output import Failed, Finished, Step, TextDeltas
from antiphon.core.sequencer import ERROR_CODES, BackendFault, Sequencer
from antiphon.engine.queue import RunQueue
from antiphon.engine.reader import BATCH_EVENTS, Reader
from antiphon.v1 import response_pb2
from antiphon.v1.response_pb2 import Response

__all__ = ["CANCELLED", "Keeping", "Run"]

_TURN_EVENTS: Final = 256
"""Steps after which a run gives the loop a turn."""
_TURN_SECONDS: Final = 0.001
"""Time after which a run gives the loop a turn."""
_TRIM_EVENTS: Final = 256
"""Events that all readers have read before they are taken out of the log."""

_BROKEN: Final = Failed("server_error", "The model failed.")
"""How an answer ends whose backend broke; what broke is for the log alone."""
_SILENT: Final = Failed("server_error", "The model ended without finishing its answer.")
_TOO_LONG: Final = Failed("server_error", "The model took too long.")
CANCELLED: Final = None
"""How an answer ends that was cancelled."""

End = Finished | Failed | None

_log = structlog.get_logger(__name__)


class Keeping(NamedTuple):
    """How a run is stored.

    Args:
        begin: stores the turn when the answer begins.
        finish: stores the final response.
        append: stores the next events, if they are to be replayed; the last ones say so.
        read: reads stored events from a number on.
    """

    begin: Callable[[], Awaitable[None]]
    finish: Callable[[Response], Awaitable[None]]
    append: Callable[[Sequence[Entry], bool], Awaitable[None]] | None = None
    read: Callable[[int], Awaitable[Sequence[bytes] | None]] | None = None


class Run:
    """One response being made by a task of its own; transports only read.

    Args:
        begin: the response as it begins; a queued one runs in the background.
        backend: who answers.
        queue: where it waits when it has had its share of the loop.
        prepare: returns what the backend is asked, once it is the run's turn.
        keeping: how it is stored, or None.
        turn: held from before `prepare` to the end: what lets one run at a time have its turn.
        max_seconds: how long the run may take.
        max_event_bytes: the greatest size of a piece of the backend's output.
        told: whether there are events, for a client that follows the run or replays it.
        clock: tells the time, in seconds since 1970.
    """

    def __init__(
        self,
        begin: Snapshot,
        backend: Backend,
        queue: RunQueue,
        prepare: Callable[[], Awaitable[Call]],
        *,
        keeping: Keeping | None,
        turn: AbstractAsyncContextManager[object] | None = None,
        max_seconds: float,
        max_event_bytes: int,
        told: bool = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        loop = asyncio.get_running_loop()
        self.response_id: Final = begin.response.id
        self.background: Final = begin.response.background
        """Whether the run goes on without its client."""
        self._backend = backend
        self._queue = queue
        self._prepare = prepare
        self._keeping = keeping
        self._turn = turn if turn is not None else nullcontext()
        self._max_seconds = max_seconds
        self._clock = clock
        self._sequencer = Sequencer(begin, max_event_bytes, told=told)
        self._log = self._sequencer.entries
        self._trimmed = 0
        """The number of the first event that is in the log."""
        self._stored = 0
        """The number of the first event that is not stored."""
        self._readers: list[Reader] = []
        self._waiters: list[asyncio.Future[bool]] = []
        self._beginning: asyncio.Future[None] | None = None
        self._not_begun: Exception | None = None
        self._begun = False
        # Done when the answer begins, or with why it does not. Only `start` waits for it.
        self._accepted: asyncio.Future[Exception | None] = loop.create_future()
        self._ended: Snapshot | None = None
        self._ended_waiters: list[asyncio.Future[None]] = []
        self._over: asyncio.Future[None] = loop.create_future()
        self._when_over: Callable[[], object] | None = None
        self._limit: asyncio.TimerHandle | None = None
        self._driver: asyncio.Task[None] | None = None
        self._driver_begins = False
        self._ender: asyncio.Task[None] | None = None
        self._ending = False
        self.client: Reader | None = None
        """The reader of the client that asked, if it asked for a stream."""

    async def start(self, accept_seconds: float, when_over: Callable[[], object]) -> None:
        """Starts the run and waits until the answer begins; a background run begins at once.

        Args:
            accept_seconds: how long to wait for the backend to accept; then the answer begins
                without that.
            when_over: what to call, once, when the run has ended or was refused.

        Raises:
            ApiError: the backend refused; nothing was stored.
        """
        loop = asyncio.get_running_loop()
        self._when_over = when_over
        drive = self._begin_and_drive if self.background else self._drive
        self._driver = loop.create_task(drive())
        # After the driver's first turn: many a run needs no more.
        loop.call_soon(self._set_timers, accept_seconds)
        try:
            refusal = await self._accepted
        except asyncio.CancelledError:
            # What a client asked for in the background is done, though it leaves meanwhile.
            if not self.background:
                self.cancel()
            raise
        if refusal is not None:
            raise refusal

    def _set_timers(self, accept_seconds: float) -> None:
        if self._over.done():
            return
        loop = asyncio.get_running_loop()
        self._limit = loop.call_later(self._max_seconds, self.stop, _TOO_LONG)
        if not self.background and not self._accepted.done():
            timer = loop.call_later(accept_seconds, self._begin_unaccepted)
            self._accepted.add_done_callback(lambda _: timer.cancel())

    @property
    def ending(self) -> bool:
        """Whether nothing that the backend still says counts."""
        return self._ending

    async def _begin_and_drive(self) -> None:
        try:
            await self._begin()
        except Exception as error:  # noqa: BLE001 - a store may raise anything
            if not self._ending:
                self._ending = True
                await self._end(_BROKEN, error)
            return
        # The client that is waiting is told first, of a response that has only begun.
        await asyncio.sleep(0)
        if not self._ending:
            await self._drive()

    async def result(self) -> Snapshot:
        """Waits for the final response; a client that stops waiting stops its run."""
        try:
            return await self.ended()
        except asyncio.CancelledError:
            if not self.background:
                self.cancel()
            raise

    async def ended(self) -> Snapshot:
        """Waits for the final response, whoever stopped the run."""
        if self._ended is None:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._ended_waiters.append(waiter)
            await waiter
        assert self._ended is not None
        return self._ended

    def current(self) -> Response:
        """Returns the response as it is now."""
        return self._sequencer.current()

    def cancel(self) -> None:
        """Stops the backend; the run ends as cancelled with the output so far."""
        self.stop(CANCELLED)

    def stop(self, end: Failed | None) -> None:
        """Ends the run at once, whatever its backend does.

        An answer that is being stored is finished: its client may hear of it any moment.

        Args:
            end: how it ends: as failed, or as cancelled.
        """
        if self._ending:
            return
        self._ending = True
        # While it stores the beginning, the driver is left alone: it looks at the end afterwards.
        if self._driver is not None and not self._driver_begins:
            self._driver.cancel()
        self._ender = asyncio.get_running_loop().create_task(self._end(end, None))

    async def wait_closed(self) -> None:
        """Waits until the run has ended."""
        await asyncio.shield(self._over)

    async def _drive(self) -> None:
        """Has the run's work done when it is its turn, which it keeps to its end."""
        if isinstance(self._turn, nullcontext):
            await self._work()
            return
        try:
            async with self._turn:
                # In a task of its own: a backend that ignores its cancellation, or that takes long
                # to be closed, must not keep others from having their turn.
                work = asyncio.get_running_loop().create_task(self._work())
                try:
                    await asyncio.wait([work, self._over], return_when=asyncio.FIRST_COMPLETED)
                except asyncio.CancelledError:
                    work.cancel()
                    raise
        except asyncio.CancelledError:
            self.stop(CANCELLED)
            raise

    async def _work(self) -> None:
        """Drives the backend to its end; every way out of it gives the run its one end."""
        refusal: Exception | None = None
        end: End
        steps: AsyncIterator[Sequence[Step]] | None = None
        try:
            try:
                steps = self._backend.respond(await self._prepare())
                end = await self._read(steps)
            except ApiError as error:
                refusal, end = error, _failed(error)
            except BaseException as error:
                if self._is_stop(error):
                    self.stop(CANCELLED)
                    raise
                _log.exception("backend failed", response_id=self.response_id)
                refusal, end = _refusal(error), _BROKEN
            if not self._ending:
                self._ending = True
                await self._end(end, refusal)
        finally:
            # Afterwards: a backend that does not come to its end does not keep back its answer.
            await self._close(steps)

    def _is_stop(self, error: BaseException) -> bool:
        """Whether an exception is not the backend's, but how its task is stopped."""
        if isinstance(error, asyncio.CancelledError):
            task = asyncio.current_task()
            return task is not None and task.cancelling() > 0
        return isinstance(error, GeneratorExit) and self._ending

    async def _close(self, steps: AsyncIterator[Sequence[Step]] | None) -> None:
        """Tells a backend that nothing more is asked of it."""
        try:
            close = getattr(steps, "aclose", None)
            if close is not None:
                await close()
        except BaseException as error:
            if self._is_stop(error):
                raise
            _log.exception("backend failed when it was closed", response_id=self.response_id)

    async def _read(self, steps: AsyncIterator[Sequence[Step]]) -> Finished | Failed:
        apply = self._sequencer.apply
        taken = 0
        since = time.perf_counter()
        accepted = False
        async for batch in steps:
            if self._ending:
                # The backend ignored that it was stopped; nobody hears of what it still says.
                break
            if not accepted:
                accepted = True
                if not self._begun:
                    await self._begin()
                    if self.client is not None:
                        # The client is told first that its answer begins.
                        await self._queue.turn()
                    if self.ending:
                        break
                self._sequencer.progress()
            for step in batch:
                end = apply(step)
                if end is not None:
                    return end
                taken += len(step.texts) if isinstance(step, TextDeltas) else 1
                if taken >= _TURN_EVENTS:
                    await self._publish()
                    await self._queue.turn()
                    if self.ending:
                        break
                    taken = 0
                    since = time.perf_counter()
            await self._publish()
            if time.perf_counter() - since > _TURN_SECONDS:
                await self._queue.turn()
                taken = 0
                since = time.perf_counter()
        if not self._ending:
            _log.error("backend ended without finishing", response_id=self.response_id)
            if not self._begun:
                await self._begin()
        return _SILENT

    def _begin_unaccepted(self) -> None:
        """Begins the answer although the backend has not accepted yet."""
        if self._ending:
            return
        if self._beginning is None:
            opening = asyncio.get_running_loop().create_task(self._open())
            opening.add_done_callback(self._stop_unopened)

    def _stop_unopened(self, opening: asyncio.Task[None]) -> None:
        """Stops a run whose answer could not begin: its backend may be silent for long."""
        if opening.exception() is not None:
            self.cancel()

    async def _begin(self) -> None:
        """Begins the answer, once however often it is asked for."""
        if self._beginning is None:
            self._driver_begins = True
            try:
                await self._open()
            finally:
                self._driver_begins = False
        else:
            await asyncio.shield(self._beginning)
            if self._not_begun is not None:
                raise self._not_begun

    async def _open(self) -> None:
        """Stores the beginning and tells of it; whoever ends the run waits for that."""
        self._beginning = asyncio.get_running_loop().create_future()
        try:
            if self._keeping is not None:
                await self._keeping.begin()
            self._begun = True
            self._sequencer.begin()
            await self._publish()
            if not self._accepted.done():
                self._accepted.set_result(None)
        except Exception as error:
            self._not_begun = error
            raise
        finally:
            self._beginning.set_result(None)

    async def _end(self, end: End, refusal: Exception | None) -> None:
        """Gives the run its end: stores the final response, then tells of it."""
        try:
            if self._beginning is not None and not self._beginning.done():
                # The turn may be on its way into the store: what is begun has to be ended too.
                await asyncio.wait([self._beginning])
            if self._begun:
                await self._store_and_tell(end)
            elif not self._accepted.done():
                stopped = ApiError(ErrorKind.UNAVAILABLE, "The request was stopped.")
                self._accepted.set_result(refusal or self._not_begun or stopped)
        finally:
            self._close_run()

    def _close_run(self) -> None:
        if self._over.done():
            return
        self._over.set_result(None)
        if self._limit is not None:
            self._limit.cancel()
        if self._when_over is not None:
            self._when_over()

    async def _store_and_tell(self, end: End) -> None:
        sequencer = self._sequencer
        try:
            response = self._final(end)
        except Exception:  # noqa: BLE001 - what a backend says of its end may be of no use
            _log.exception("backend failed at its end", response_id=self.response_id)
            response = sequencer.fail(_BROKEN)
        try:
            if self._keeping is not None:
                await self._keeping.finish(response)
        except Exception:  # noqa: BLE001 - and a store too
            # What is not stored must not be told as if it were.
            _log.exception("response not stored", response_id=self.response_id)
            await self._store_failure(response)
        sequencer.end(response)
        self._ended = sequencer.snapshot
        for waiter in self._ended_waiters:
            if not waiter.done():
                waiter.set_result(None)
        await self._publish()

    async def _store_failure(self, response: Response) -> None:
        """Makes a response that could not be stored a failed one, and tries to store that."""
        response.status = response_pb2.RESPONSE_STATUS_FAILED
        response.ClearField("completed_at")
        response.ClearField("incomplete_details")
        response.error.code = "server_error"
        response.error.message = "The response could not be stored."
        try:
            if self._keeping is not None:
                await self._keeping.finish(response)
        except Exception:  # noqa: BLE001 - the store is out of order: its operator is told
            _log.exception("failure not stored", response_id=self.response_id)

    def _final(self, end: End) -> Response:
        if isinstance(end, Finished):
            return self._sequencer.complete(end, int(self._clock()))
        return self._sequencer.cancel() if end is None else self._sequencer.fail(end)

    async def _publish(self) -> None:
        """Stores what is to be replayed, wakes the readers, drops what nobody is going to read."""
        keeping = self._keeping
        if keeping is not None and keeping.append is not None and self._stored < self.length:
            entries = self._log[self._place_of(self._stored) :]
            try:
                await keeping.append(entries, self._sequencer.ended)
            except Exception:  # noqa: BLE001 - the live readers are told all the same
                _log.exception("events not stored", response_id=self.response_id)
            # Only now: if the run is cancelled meanwhile, its end stores them.
            self._stored = entries[-1].following
        waiters = self._waiters
        if waiters:
            self._waiters = []
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(True)
        if self.length - self._trimmed >= _TRIM_EVENTS:
            # A reader may be ahead of the run: it waits for events to come.
            slowest = min([self.length, *(reader.position for reader in self._readers)])
            if slowest - self._trimmed >= _TRIM_EVENTS:
                del self._log[: self._place_of(slowest)]
                self._trimmed = self._log[0].sequence_number if self._log else slowest

    # What follows is for the run's readers.

    def reader(self, position: int | None = None, *, owner: bool = False) -> Reader:
        """Returns a reader of the run's events.

        Args:
            position: the number of the first event to read, or None for all that are in the log.
            owner: whether it is the reader of the client that asked: if that leaves a run that is
                not in the background, the run is cancelled.
        """
        reader = Reader(self, self._trimmed if position is None else position, owner=owner)
        self._readers.append(reader)
        return reader

    def entries_from(self, position: int) -> Sequence[Entry]:
        """Returns the next entries of the log, of a batch of events and what goes with the last.

        Args:
            position: the number of the first event.
        """
        at = self._place_of(position)
        entries = self._log[at : self._place_of(position + BATCH_EVENTS - 1) + 1]
        first = entries[0] if entries else None
        if isinstance(first, DeltaEvents) and first.sequence_number < position:
            entries[0] = first.since(position)
        return entries

    def _place_of(self, position: int) -> int:
        """Returns the place in the log of the entry that holds an event."""
        if position >= self.length:
            return len(self._log)
        return bisect_right(self._log, position, key=_number) - 1

    async def trimmed_from(self, position: int) -> Sequence[bytes]:
        """Returns the serialised events from a position on that have left the log."""
        if position >= self._trimmed or self._keeping is None or self._keeping.read is None:
            return ()
        return (await self._keeping.read(position) or ())[: self._trimmed - position]

    @property
    def length(self) -> int:
        """The number of events so far."""
        return self._sequencer.following

    @property
    def over(self) -> bool:
        """Whether the log has its terminal event."""
        return self._sequencer.ended

    async def wait(self, seconds: float | None) -> bool:
        """Waits until something is added to the log.

        Args:
            seconds: how long to wait, or None for as long as it takes.

        Returns:
            Whether there is something; False when the time was up.
        """
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[bool] = loop.create_future()
        self._waiters.append(waiter)
        timer = loop.call_later(seconds, _time_up, waiter) if seconds is not None else None
        woken = False
        try:
            woken = await waiter
        finally:
            if timer is not None:
                timer.cancel()
            # A silent run may be waited for by any number of readers that come and go.
            if not woken and waiter in self._waiters:
                self._waiters.remove(waiter)
        return woken

    def leave(self, reader: Reader) -> None:
        """Forgets a reader."""
        if reader in self._readers:
            self._readers.remove(reader)
        if reader.owner and not self.background:
            self.cancel()


_number = attrgetter("sequence_number")


def _failed(error: ApiError) -> Failed:
    """Returns how an answer ends whose client can no longer be refused it."""
    if error.code in ERROR_CODES:
        return Failed(error.code, error.message)
    mistake = error.kind.value.http < 500
    return Failed("invalid_prompt" if mistake else "server_error", error.message)


def _refusal(error: BaseException) -> Exception:
    """Returns an exception as one that a caller can be given."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration | StopAsyncIteration):
        return error
    return BackendFault("the backend stopped")


def _time_up(waiter: asyncio.Future[bool]) -> None:
    if not waiter.done():
        waiter.set_result(False)
