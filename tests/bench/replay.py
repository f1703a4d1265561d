"""How fast events are replayed."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Final

from antiphon.backends.echo import EchoBackend
from antiphon.backends.models import ModelTable
from antiphon.engine.conversations import Conversations
from antiphon.engine.engine import Engine
from antiphon.stores.memory import MemoryStore
from antiphon.transports.rest.message import RestReply, RestRequest
from antiphon.transports.rest.surface import RestSurface
from tests.bench.child import worker
from tests.bench.table import Figure

__all__ = ["replay"]

_DELTAS: Final = 2_000


def replay(quick: bool) -> Iterator[Figure]:
    """Yields how many events a second are replayed as frames, in the server's process alone.

    Args:
        quick: whether to measure just enough to see that it works.
    """
    rounds = 2 if quick else 20
    with worker() as process:
        rate = process.submit(_measure, rounds).result()
    yield Figure(
        name="replay: events",
        value=rate,
        unit="/s",
        detail=f"in process, {_DELTAS:,} deltas a replay",
    )


def _measure(rounds: int) -> float:
    return asyncio.run(_replay(rounds))


async def _replay(rounds: int) -> float:
    store = MemoryStore()
    engine = Engine(store, ModelTable({"echo": EchoBackend(_DELTAS)}))
    surface = RestSurface(engine, Conversations(store))
    asked = {"model": "echo", "input": "word " * _DELTAS, "stream": True, "background": True}
    body = json.dumps(asked).encode()
    live = await _bytes(await surface.handle(RestRequest("CreateResponse", body=body)))
    first = live.split(b"data: ", 1)[1].split(b"\n", 1)[0]
    path = {"response_id": json.loads(first)["response"]["id"]}
    request = RestRequest("GetResponse", path, {"stream": ("true",)})
    best = float("inf")
    for _ in range(rounds):
        begun = time.process_time()
        replayed = await _bytes(await surface.handle(request))
        best = min(best, time.process_time() - begun)
        assert replayed == live
    return live.count(b"event: ") / best


async def _bytes(reply: RestReply) -> bytes:
    assert not isinstance(reply.body, bytes)
    return b"".join([piece async for piece in reply.body])
