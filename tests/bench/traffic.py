"""How the server does under load, through its gateway."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from tests.bench import servers
from tests.bench.child import Server, serving, worker
from tests.bench.load import Job, Result, Watch, run, watch
from tests.bench.table import Figure

__all__ = ["background", "create", "fanout", "stream"]

_CONNECTIONS: Final = 16
_FRAMING_EVENTS: Final = 8
"""The events of a streamed answer of one message besides its deltas."""


def create(quick: bool) -> Iterator[Figure]:
    """Yields the rate of creating responses over that of an empty method behind a like gateway.

    Args:
        quick: whether to measure just enough to see that it works.
    """
    rounds, seconds, requests = (1, 5.0, 100) if quick else (5, 1.5, 100_000)
    body = _body(model="echo", input="How does a request find its method?")
    with (
        serving(servers.empty) as empty,
        serving(servers.antiphon) as antiphon,
        worker() as generator,
    ):

        def load(server: Server) -> _Load:
            job = Job(
                port=server.port,
                body=body,
                connections=_CONNECTIONS,
                requests=requests,
                seconds=seconds,
            )
            before = server.processor_seconds
            result = generator.submit(run, job).result()
            taken = server.processor_seconds - before
            return _Load(result.requests / result.seconds, taken / result.requests)

        load(empty), load(antiphon)
        loads = [(load(empty), load(antiphon)) for _ in range(rounds)]
    ceiling, ours = (max(each.rate for each in side) for side in zip(*loads, strict=True))
    theirs_took, ours_took = (
        min(each.processor_seconds for each in side) * 1e6 for side in zip(*loads, strict=True)
    )
    yield Figure(
        name="create: rate over that of an empty method",
        # Of each round by itself: what else the machine does changes from one to the next.
        value=statistics.median(mine.rate / bare.rate for bare, mine in loads),
        unit="x",
        least=0.6,
        aim=0.75,
        detail=f"{ours:,.0f}/s, empty {ceiling:,.0f}/s, {_CONNECTIONS} at once; "
        f"the server's own processor time {ours_took:,.0f} µs, empty {theirs_took:,.0f} µs",
    )


class _Load(NamedTuple):
    """How a server did under load."""

    rate: float
    """Requests a second."""
    processor_seconds: float
    """The processor's time that the server took for each, without the gateway's."""


def stream(quick: bool) -> Iterator[Figure]:
    """Yields how many events a second reach the clients, and how soon the first of a stream.

    Args:
        quick: whether to measure just enough to see that it works.
    """
    rounds, seconds, requests = (1, 5.0, 32) if quick else (4, 2.5, 100_000)
    # Five characters a delta, as a token has.
    body = _body(model="echo-deltas", input="word " * servers.DELTAS, stream=True)
    job_events = servers.DELTAS + _FRAMING_EVENTS
    with serving(servers.antiphon) as server, worker() as generator:

        def streams() -> Result:
            job = Job(
                port=server.port,
                body=body,
                connections=_CONNECTIONS,
                requests=requests,
                seconds=seconds,
                events=job_events,
            )
            return generator.submit(run, job).result()

        streams()
        best = max((streams() for _ in range(rounds)), key=lambda r: r.events / r.seconds)
    yield Figure(
        name="stream: events",
        value=best.events / best.seconds,
        unit="/s",
        least=200_000,
        aim=300_000,
        detail=f"{best.requests / best.seconds:,.0f} streams/s of {servers.DELTAS} deltas, "
        f"{_CONNECTIONS} at once",
    )
    yield Figure(
        name="stream: first event, median",
        value=statistics.median(best.first_events) * 1e3,
        unit="ms",
        least=10,
        aim=3,
        better="less",
        detail=f"p99 {_percentile(best.first_events, 99) * 1e3:.1f} ms, in the same run",
    )


def fanout(quick: bool) -> Iterator[Figure]:
    """Yields how late events are when many slow streams are open.

    Args:
        quick: whether to measure just enough to see that it works.
    """
    yield from _fan(quick, background=False)


def background(quick: bool) -> Iterator[Figure]:
    """Yields the same for background runs with a reader each, and the memory that each takes.

    Args:
        quick: whether to measure just enough to see that it works.
    """
    yield from _fan(quick, background=True)


def _fan(quick: bool, *, background: bool) -> Iterator[Figure]:
    streams, ramp, seconds = (50, 0.5, 1.5) if quick else (2000, 3.0, 6.0)
    name = "background" if background else "fan-out"
    with serving(servers.antiphon) as server, worker() as generator:
        job = Watch(
            port=server.port,
            body=_body(model="ticks", input="Begin.", stream=True, background=background),
            streams=streams,
            ramp_seconds=ramp,
            open_seconds=20.0,
            seconds=seconds,
        )
        before = server.resident_bytes
        delays = generator.submit(watch, job).result()
        # The runs of the background are still there when their readers have left.
        grown = server.resident_bytes - before
    events = delays.events
    median, own = statistics.median(events) * 1e3, _percentile(delays.timers, 99) * 1e3
    yield Figure(
        name=f"{name}: event delay, p99, {streams:,} streams",
        value=_percentile(events, 99) * 1e3,
        unit="ms",
        least=100,
        aim=50,
        better="less",
        detail=f"median {median:.1f} ms, {len(events) / seconds:,.0f} events/s; "
        f"a timer of the generator's own: p99 {own:.1f} ms",
    )
    if background:
        yield Figure(
            name=f"background: memory of each of {streams:,} streams",
            value=max(grown, 0) / streams / 1024,
            unit="KB",
            better="less",
            detail="of the server's process, its run, its reader and its connection's share",
        )


def _body(**members: Any) -> bytes:
    return json.dumps(members).encode()


def _percentile(values: list[float], percent: int) -> float:
    return statistics.quantiles(values, n=100)[percent - 1]
