"""The load generator: bare HTTP/1.1 over sockets, so that it takes little of the shared cores.

Its functions are called in a process of their own.
"""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import dataclass, field
from typing import TypeVar, cast

import uvloop

__all__ = ["Delays", "Job", "Result", "UnexpectedAnswerError", "Watch", "run", "watch"]

_HEAD_END = b"\r\n\r\n"
_BODY_END = b"\r\n0\r\n\r\n"
_EVENT = b"event: "
_KEPT = max(len(_BODY_END), len(_EVENT)) - 1
_TIMER_SECONDS = 0.01
_MOMENT = re.compile(rb'"delta":"(\d+)"')

P = TypeVar("P", bound=asyncio.Protocol)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Requests of one kind, each connection sending its next when it has been answered.

    Args:
        port: the gateway's.
        body: the body of each request.
        connections: the number of connections.
        requests: the greatest number of requests.
        seconds: the time after which no request is sent.
        events: how many events every answer has.
    """

    port: int
    body: bytes
    connections: int
    requests: int
    seconds: float
    events: int = 0


@dataclass(slots=True)
class Result:
    """What a job came to.

    Args:
        requests: the number of requests answered.
        events: the number of events received.
        seconds: how long it took.
        first_events: the time from each request to its first event, in seconds.
    """

    requests: int = 0
    events: int = 0
    seconds: float = 0.0
    first_events: list[float] = field(default_factory=list)


class UnexpectedAnswerError(Exception):
    """An answer that is not worth measuring."""


def run(job: Job) -> Result:
    """Does a job.

    Args:
        job: what to send, and how much of it.

    Raises:
        UnexpectedAnswerError: an answer was not 200, not chunked, or had not its events.
    """
    return uvloop.run(_run(job))


async def _run(job: Job) -> Result:
    result = Result()
    over = asyncio.get_running_loop().create_future()
    state = _State(job, _request(job.port, job.body), result, over)
    state.begun = time.perf_counter()
    state.deadline = state.begun + job.seconds
    clients = [await _connect(job.port, _Client(state)) for _ in range(job.connections)]
    await over
    result.seconds = time.perf_counter() - state.begun
    for client in clients:
        client.close()
    return result


def _request(port: int, body: bytes) -> bytes:
    head = (
        f"POST /v1/responses HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def _connect(port: int, protocol: P) -> P:
    loop = asyncio.get_running_loop()
    await loop.create_connection(lambda: protocol, "127.0.0.1", port)
    return protocol


def _body(head: bytes) -> tuple[bytes, bytes] | None:
    """Splits the beginning of an answer, and refuses what is not a chunked 200.

    Returns:
        The headers and what there is of the body, or None if the headers are not complete.
    """
    headers, end, body = head.partition(_HEAD_END)
    if not end:
        return None
    if not headers.startswith(b"HTTP/1.1 200 ") or b"transfer-encoding: chunked" not in headers:
        raise UnexpectedAnswerError(head[:1000].decode("utf-8", "replace"))
    return headers, body


@dataclass(slots=True)
class _State:
    """What the connections of a job share."""

    job: Job
    request: bytes
    result: Result
    over: asyncio.Future[None]
    sent: int = 0
    begun: float = 0.0
    deadline: float = 0.0


class _Client(asyncio.Protocol):
    """One connection of a job."""

    def __init__(self, state: _State) -> None:
        self._state = state
        self._transport: asyncio.Transport | None = None
        self._head: bytes | None = b""
        self._tail = b""
        self._events = 0
        self._sent = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._send()

    def _send(self) -> None:
        state = self._state
        self._sent = time.perf_counter()
        if state.sent >= state.job.requests or self._sent >= state.deadline:
            if state.sent == state.result.requests and not state.over.done():
                state.over.set_result(None)
            return
        state.sent += 1
        self._head = b""
        self._tail = b""
        self._events = 0
        assert self._transport is not None
        self._transport.write(state.request)

    def data_received(self, data: bytes) -> None:
        if self._head is not None:
            try:
                answer = _body(self._head + data)
            except UnexpectedAnswerError as error:
                self._fail(error)
                return
            if answer is None:
                self._head += data
                return
            data = answer[1]
            self._head = None
        data = self._tail + data
        found = data.count(_EVENT)
        if found:
            if not self._events:
                self._state.result.first_events.append(time.perf_counter() - self._sent)
            self._events += found
        if data.endswith(_BODY_END):
            self._answered()
        else:
            self._tail = data[-_KEPT:]

    def _answered(self) -> None:
        state = self._state
        if self._events != state.job.events:
            wanted = f"{self._events} events instead of {state.job.events}"
            self._fail(UnexpectedAnswerError(wanted))
            return
        state.result.requests += 1
        state.result.events += self._events
        self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(exc or ConnectionError("the gateway has closed a connection"))

    def _fail(self, error: Exception) -> None:
        if not self._state.over.done():
            self._state.over.set_exception(error)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """Streams that are all open at once, and whose deltas are the moments they were due at.

    Args:
        port: the gateway's.
        body: the body of each request.
        streams: the number of streams.
        ramp_seconds: the time over which they are opened, so that they do not tick as one.
        open_seconds: how long to wait then for all of them to be open.
        seconds: how long to watch them, all being open.
    """

    port: int
    body: bytes
    streams: int
    ramp_seconds: float
    open_seconds: float
    seconds: float


@dataclass(slots=True)
class Delays:
    """What a watch has seen.

    Args:
        events: by how much each event came after its moment, in seconds.
        timers: by how much the generator's own timers were late: what the machine alone adds.
    """

    events: list[float] = field(default_factory=list)
    timers: list[float] = field(default_factory=list)


def watch(job: Watch) -> Delays:
    """Watches streams.

    Args:
        job: which streams.

    Raises:
        UnexpectedAnswerError: an answer was not 200 or not chunked, or the streams were not open
            in time.
    """
    return uvloop.run(_watch(job))


async def _watch(job: Watch) -> Delays:
    request = _request(job.port, job.body)
    watching = _Watching(asyncio.get_running_loop().create_future(), job.streams)
    pause = job.ramp_seconds / job.streams
    clients = []
    for _ in range(job.streams):
        clients.append(await _connect(job.port, _Watcher(watching, request)))
        await asyncio.sleep(pause)
    await asyncio.wait({watching.all_open}, timeout=job.open_seconds)
    if not watching.all_open.done():
        watching.fail(UnexpectedAnswerError("not all streams have begun in time"))
    watching.delays.events.clear()
    until = time.monotonic() + job.seconds
    # A failure ends the watching early.
    while not watching.failed.done() and (due := time.monotonic() + _TIMER_SECONDS) < until:
        await asyncio.wait({watching.failed}, timeout=_TIMER_SECONDS)
        watching.delays.timers.append(time.monotonic() - due)
    for client in clients:
        client.close()
    return watching.result()


class _Watching:
    """What the streams of a watch share."""

    def __init__(self, all_open: asyncio.Future[None], streams: int) -> None:
        self.all_open = all_open
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.delays = Delays()
        self._missing = streams

    def opened(self) -> None:
        self._missing -= 1
        if not self._missing and not self.all_open.done():
            self.all_open.set_result(None)

    def fail(self, error: Exception) -> None:
        if not self.failed.done():
            self.failed.set_exception(error)
        if not self.all_open.done():
            self.all_open.set_result(None)

    def result(self) -> Delays:
        if self.failed.done():
            self.failed.result()
        return self.delays


class _Watcher(asyncio.Protocol):
    """One watched stream."""

    def __init__(self, watching: _Watching, request: bytes) -> None:
        self._watching = watching
        self._request = request
        self._transport: asyncio.Transport | None = None
        self._rest = b""
        self._in_body = False
        self._ticking = False
        self._closing = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        now = time.monotonic_ns()
        data = self._rest + data
        if not self._in_body:
            try:
                answer = _body(data)
            except UnexpectedAnswerError as error:
                self._watching.fail(error)
                return
            if answer is None:
                self._rest = data
                return
            self._in_body = True
            data = answer[1]
        moments = _MOMENT.findall(data)
        if moments and not self._ticking:
            self._ticking = True
            self._watching.opened()
        self._watching.delays.events.extend((now - int(moment)) / 1e9 for moment in moments)
        self._rest = data[data.rfind(b"\n") + 1 :]

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._closing:
            self._watching.fail(exc or ConnectionError("the gateway has closed a stream"))

    def close(self) -> None:
        self._closing = True
        if self._transport is not None:
            self._transport.close()
