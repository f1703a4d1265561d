"""How the server does under load, through its gateway."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from typing import Any, Final

from tests.bench import servers
from tests.bench.child import serving, worker
from tests.bench.load import Job, Result, Watch, run, watch
from tests.bench.table import Figure

__all__ = ["create", "fanout", "stream"]

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

        def rate(port: int) -> float:
            job = Job(
                port=port, body=body, connections=_CONNECTIONS, requests=requests, seconds=seconds
            )
            result = generator.submit(run, job).result()
            return result.requests / result.seconds

        rate(empty), rate(antiphon)
        rates = [(rate(empty), rate(antiphon)) for _ in range(rounds)]
    ceiling = max(pair[0] for pair in rates)
    ours = max(pair[1] for pair in rates)
    yield Figure(
        name="create: rate over that of an empty method",
        value=ours / ceiling,
        unit="x",
        least=0.6,
        aim=0.75,
        detail=f"{ours:,.0f}/s, empty {ceiling:,.0f}/s, {_CONNECTIONS} at once",
    )


def stream(quick: bool) -> Iterator[Figure]:
    """Yields how many events a second reach the clients, and how soon the first of a stream.

    Args:
        quick: whether to measure just enough to see that it works.
    """
    rounds, seconds, requests = (1, 5.0, 32) if quick else (4, 2.5, 100_000)
    # Five characters a delta, as a token has.
    body = _body(model="echo-deltas", input="word " * servers.DELTAS, stream=True)
    job_events = servers.DELTAS + _FRAMING_EVENTS
    with serving(servers.antiphon) as port, worker() as generator:

        def streams() -> Result:
            job = Job(
                port=port,
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
    streams, ramp, seconds = (50, 0.5, 1.5) if quick else (2000, 3.0, 6.0)
    with serving(servers.antiphon) as port, worker() as generator:
        job = Watch(
            port=port,
            body=_body(model="ticks", input="Begin.", stream=True),
            streams=streams,
            ramp_seconds=ramp,
            seconds=seconds,
        )
        delays = generator.submit(watch, job).result()
    median, worst = statistics.median(delays) * 1e3, max(delays) * 1e3
    yield Figure(
        name=f"fan-out: event delay, p99, {streams:,} streams",
        value=_percentile(delays, 99) * 1e3,
        unit="ms",
        least=100,
        aim=50,
        better="less",
        detail=f"median {median:.1f} ms, worst {worst:.1f} ms, {len(delays) / seconds:,.0f}/s",
    )


def _body(**members: Any) -> bytes:
    return json.dumps(members).encode()


def _percentile(values: list[float], percent: int) -> float:
    return statistics.quantiles(values, n=100)[percent - 1]
