"""A run: one response being made, and the log of its events that any reader may follow."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final

import structlog

from antiphon.backends.protocol import Backend, Call
from antiphon.core.errors import ApiError, ErrorKind
from antiphon.core.event import Event, Snapshot
from antiphon.core.output import Failed, Finished, Step
from antiphon.core.sequencer import Sequencer
from antiphon.v1 import response_pb2
from antiphon.v1.response_pb2 import Response

__all__ = ["Reader", "Run"]

_TURN_EVENTS: Final = 32
"""Steps after which a run gives the loop a turn."""
_TURN_SECONDS: Final = 0.001
"""Time after which a run gives the loop a turn."""
_BATCH_EVENTS: Final = 128
"""The greatest number of events that a reader is given at once."""
_TRIM_EVENTS: Final = 256
"""Events that all readers have read before they are taken out of the log."""

_BROKEN: Final = Failed("server_error", "The model failed.")
"""How an answer ends whose backend broke; what broke is for the log alone."""

_log = structlog.get_logger(__name__)


class Run:
    """One response being made by a task of its own; transports only read.

    Args:
        response: the response as it begins.
        backend: who answers.
        call: what it is asked.
        begin: stores the turn when the request is accepted, or None if it is not to be stored.
        finish: stores the final response, or None.
        clock: tells the time, in seconds since 1970.
    """

    def __init__(
        self,
        response: Response,
        backend: Backend,
        call: Call,
        *,
        begin: Callable[[], Awaitable[None]] | None,
        finish: Callable[[Response], Awaitable[None]] | None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        loop = asyncio.get_running_loop()
        self._backend = backend
        self._call = call
        self._store_begin = begin
        self._store_finish = finish
        self._clock = clock
        self._sequencer = Sequencer(response)
        self._log = self._sequencer.events
        self._trimmed = 0
        self._readers: list[Reader] = []
        self._waiters: list[asyncio.Future[bool]] = []
        self._beginning: asyncio.Task[None] | None = None
        self._begun = False
        self._accepted: asyncio.Future[None] = loop.create_future()
        # Nobody asks for the error of a run whose client left before it was accepted.
        self._accepted.add_done_callback(lambda done: done.exception())
        self._result: asyncio.Future[Snapshot] = loop.create_future()
        self._task: asyncio.Task[None] | None = None
        self._ending = False
        self.client: Reader | None = None
        """The reader of the client that asked, if it asked for a stream."""

    @property
    def response_id(self) -> str:
        """The id of the response."""
        return self._call.response_id

    def reader(self) -> Reader:
        """Returns a reader of all events that are still in the log."""
        reader = Reader(self, self._trimmed)
        self._readers.append(reader)
        return reader

    async def start(self, accept_seconds: float, when_over: Callable[[], object]) -> None:
        """Starts the run and waits until the answer begins.

        Args:
            accept_seconds: how long to wait for the backend to accept; then the answer begins
                without that.
            when_over: what to call, once, when the run has ended or was refused.

        Raises:
            ApiError: the backend refused; nothing was stored.
        """
        loop = asyncio.get_running_loop()
        self._task = loop.create_task(self._drive())
        self._task.add_done_callback(lambda _: when_over())
        timer = loop.call_later(accept_seconds, self._begin_unaccepted)
        try:
            await asyncio.shield(self._accepted)
        except asyncio.CancelledError:
            self.cancel()
            raise
        finally:
            timer.cancel()

    async def result(self) -> Snapshot:
        """Waits for the final response; a client that stops waiting stops the run."""
        try:
            return await asyncio.shield(self._result)
        except asyncio.CancelledError:
            self.cancel()
            raise

    def current(self) -> Response:
        """Returns the response as it is now."""
        return self._sequencer.current()

    def cancel(self) -> None:
        """Stops the backend; the run ends as cancelled with the output so far."""
        # An answer that is being stored is finished: its client may hear of it any moment.
        if self._task is not None and not self._ending:
            self._task.cancel()

    async def wait_closed(self) -> None:
        """Waits until the run's task is over."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _drive(self) -> None:
        """Drives the backend to its end; every way out of it gives the run its one end."""
        refusal: BaseException | None = None
        try:
            end = await self._consume()
        except asyncio.CancelledError:
            end = None
        except ApiError as error:
            refusal, end = error, Failed(error.code or "server_error", error.message)
        except Exception as error:  # noqa: BLE001 - a backend may raise anything
            _log.exception("backend failed", response_id=self.response_id)
            refusal, end = error, _BROKEN
        self._ending = True
        if self._beginning is not None:
            # The turn may be on its way into the store: what is begun has to be ended too.
            await asyncio.wait([self._beginning])
            refusal = refusal or self._beginning.exception()
        if self._begun:
            await self._end(end)
        else:
            stopped = ApiError(ErrorKind.UNAVAILABLE, "The request was stopped.")
            self._accepted.set_exception(refusal or stopped)

    async def _consume(self) -> Finished | Failed:
        steps = self._backend.respond(self._call)
        try:
            return await self._read(steps)
        finally:
            close = getattr(steps, "aclose", None)
            if close is not None:
                await close()

    async def _read(self, steps: AsyncIterator[Sequence[Step]]) -> Finished | Failed:
        apply = self._sequencer.apply
        taken = 0
        since = time.perf_counter()
        async for batch in steps:
            if not self._begun:
                await self._begin()
            for step in batch:
                end = apply(step)
                if end is not None:
                    return end
                taken += 1
                if taken >= _TURN_EVENTS:
                    self._publish()
                    await asyncio.sleep(0)
                    taken = 0
                    since = time.perf_counter()
            self._publish()
            if time.perf_counter() - since > _TURN_SECONDS:
                await asyncio.sleep(0)
                taken = 0
                since = time.perf_counter()
        _log.error("backend ended without finishing", response_id=self.response_id)
        if not self._begun:
            await self._begin()
        return Failed("server_error", "The model ended without finishing its answer.")

    def _begin_unaccepted(self) -> None:
        """Begins the answer although the backend has not accepted yet."""
        self._open().add_done_callback(self._stop_unopened)

    def _stop_unopened(self, opening: asyncio.Task[None]) -> None:
        """Stops a run whose answer could not begin: its backend may be silent for long."""
        if opening.exception() is not None:
            self.cancel()

    async def _begin(self) -> None:
        await asyncio.shield(self._open())

    def _open(self) -> asyncio.Task[None]:
        """Begins the answer, once however often it is asked for."""
        if self._beginning is None:
            self._beginning = asyncio.ensure_future(self._store_and_open())
        return self._beginning

    async def _store_and_open(self) -> None:
        if self._store_begin is not None:
            await self._store_begin()
        self._begun = True
        self._sequencer.begin()
        self._publish()
        if not self._accepted.done():
            self._accepted.set_result(None)

    async def _end(self, end: Finished | Failed | None) -> None:
        """Stores the final response, then tells of it."""
        sequencer = self._sequencer
        try:
            response = self._final(end)
        except Exception:  # noqa: BLE001 - what a backend says of its end may be of no use
            _log.exception("backend failed at its end", response_id=self.response_id)
            response = sequencer.fail(_BROKEN)
        try:
            if self._store_finish is not None:
                await self._store_finish(response)
        except Exception:  # noqa: BLE001 - and a store too
            # What is not stored must not be told as if it were.
            _log.exception("response not stored", response_id=self.response_id)
            response.status = response_pb2.RESPONSE_STATUS_FAILED
            response.ClearField("completed_at")
            response.error.code = "server_error"
            response.error.message = "The response could not be stored."
        sequencer.end(response)
        self._result.set_result(sequencer.snapshot)
        self._publish()

    def _final(self, end: Finished | Failed | None) -> Response:
        if isinstance(end, Finished):
            return self._sequencer.complete(end, int(self._clock()))
        return self._sequencer.cancel() if end is None else self._sequencer.fail(end)

    def _publish(self) -> None:
        """Wakes the readers, and drops what nobody is going to read."""
        waiters = self._waiters
        if waiters:
            self._waiters = []
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(True)
        readable = len(self._log)
        if readable >= _TRIM_EVENTS:
            slowest = min((r.position for r in self._readers), default=self._trimmed + readable)
            if slowest - self._trimmed >= _TRIM_EVENTS:
                del self._log[: slowest - self._trimmed]
                self._trimmed = slowest

    # What follows is for the run's readers.

    def events_from(self, position: int) -> Sequence[Event]:
        """Returns the next events from a position in the log, at most a batch of them."""
        start = position - self._trimmed
        return self._log[start : start + _BATCH_EVENTS]

    @property
    def length(self) -> int:
        """The number of events so far."""
        return self._trimmed + len(self._log)

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
        if seconds is None:
            return bool(await waiter)
        timer = loop.call_later(seconds, _time_up, waiter)
        try:
            return bool(await waiter)
        finally:
            timer.cancel()

    def leave(self, reader: Reader) -> None:
        """Forgets a reader."""
        if reader in self._readers:
            self._readers.remove(reader)


def _time_up(waiter: asyncio.Future[bool]) -> None:
    if not waiter.done():
        waiter.set_result(False)


class Reader:
    """A cursor over a run's log.

    Args:
        run: the run.
        position: the number of the first event to read.
    """

    __slots__ = ("_run", "position")

    def __init__(self, run: Run, position: int) -> None:
        self._run = run
        self.position = position

    async def read(self, seconds: float | None = None) -> Sequence[Event] | None:
        """Waits for the next events.

        Args:
            seconds: how long to wait, or None for as long as it takes.

        Returns:
            As many events as are there, none after the end, or None when the time was up.
        """
        run = self._run
        while True:
            events = run.events_from(self.position)
            if events:
                self.position += len(events)
                return events
            if run.over:
                return events
            if not await run.wait(seconds):
                return None

    def close(self) -> None:
        """Ends the reading."""
        self._run.leave(self)
