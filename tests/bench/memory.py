"""What keeping responses costs: memory, and time as more of them are kept.

All of this is done without a gateway, in processes of their own.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import random
import statistics
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, Final
from unittest import mock

import grpc
import psutil
import uvloop

from antiphon import app
from antiphon.backends.echo import EchoBackend
from antiphon.backends.models import ModelTable
from antiphon.backends.protocol import Call
from antiphon.core.ids import new_id
from antiphon.core.output import Finished, Step, TextDelta
from antiphon.core.scope import Scope
from antiphon.engine.engine import Engine
from antiphon.settings import Settings
from antiphon.stores.memory import Bounds, MemoryStore
from antiphon.stores.protocol import TurnEnd
from antiphon.v1.response_pb2 import Response
from antiphon.v1.responses_service_pb2 import (
    CreateResponseRequest,
    DeleteResponseRequest,
    GetResponseRequest,
)
from antiphon.v1.responses_service_pb2_grpc import ResponsesServiceStub
from tests.bench.child import worker
from tests.bench.table import Figure

__all__ = ["chain", "memory", "store"]

_SCOPE: Final = Scope()
_TURNS: Final = 500


class HistoryBackend:
    """Answers with the number of items that came before."""

    async def respond(self, call: Call) -> AsyncIterator[Sequence[Step]]:
        yield [TextDelta(str(len(await call.history()))), Finished()]


class Kept:
    """An engine, and the ids of what it was filled with."""

    def __init__(self) -> None:
        models = ModelTable({"echo": EchoBackend(), "history": HistoryBackend()})
        self._store = MemoryStore(Bounds(max_turns=1_000_000, max_bytes=1 << 40))
        self.engine = Engine(self._store, models)
        self.ids: list[str] = []

    async def create(self, parent: str | None = None, model: str = "echo") -> tuple[str, str]:
        """Creates a response, and returns its id and its text."""
        request = CreateResponseRequest(model=model, input_text="How are you?", store=True)
        if parent is not None:
            request.previous_response_id = parent
        run = await self.engine.create(_SCOPE, request)
        response = (await run.result()).response
        return response.id, response.output[0].message.content_list.parts[0].output_text.text

    async def fill(self, count: int) -> None:
        """Stores many responses without making each."""
        first, _ = await self.create()
        turn = await self._store.find(_SCOPE, first)
        assert turn is not None
        content = await turn.read()
        response = Response.FromString(content.response)
        for _ in range(count):
            response.id = new_id("resp")
            end = TurnEnd(response.SerializeToString(), turn.tokens, frozenset())
            await self._store.begin(_SCOPE, response.id, None, content)
            await self._store.finish(_SCOPE, response.id, end)
            self.ids.append(response.id)


def memory(quick: bool) -> Iterator[Figure]:
    """Yields by how much the server's memory grows with each short response.

    Args:
        quick: whether to measure just enough to see that it works.
    """
    count = 1_000 if quick else 20_000
    with worker() as process:
        grown = process.submit(_grown, count).result()
    yield Figure(
        name="memory: a stored short response",
        value=grown / count / 1024,
        unit="KB",
        least=4,
        aim=3,
        better="less",
        detail=f"{grown / 1024 / 1024:.1f} MB for {count:,}",
    )


def _grown(count: int) -> int:
    async def fill() -> int:
        kept = Kept()
        for _ in range(500):
            await kept.create()
        before = _resident()
        for _ in range(count):
            await kept.create()
        return _resident() - before

    return uvloop.run(fill())


def _resident() -> int:
    gc.collect()
    return int(psutil.Process().memory_info().rss)


def chain(quick: bool) -> Iterator[Figure]:
    """Yields the time of turn 500 over that of turn 1, the whole history being kept.

    Args:
        quick: whether to measure just enough to see that it works.
    """
    chains, rounds = (1, 3) if quick else (20, 150)
    with worker() as process:
        first, last = process.submit(_turns, chains, rounds).result()
    yield Figure(
        name=f"chain: turn {_TURNS} over turn 1",
        value=last / first,
        unit="x",
        least=1.1,
        better="less",
        detail=f"{last * 1e6:.0f} µs, turn 1 {first * 1e6:.0f} µs",
    )


def _turns(chains: int, rounds: int) -> tuple[float, float]:
    """Returns the seconds of a first turn and of a last one."""

    async def measure() -> tuple[float, float]:
        kept = Kept()
        leaves: list[str] = []
        for _ in range(chains):
            parent = None
            for _ in range(_TURNS - 1):
                parent, _ = await kept.create(parent)
            assert parent is not None
            leaves.append(parent)
        _, told = await kept.create(leaves[0], "history")
        if told != str(2 * (_TURNS - 1)):
            raise AssertionError(f"the history of turn {_TURNS} has {told} items")
        parents: tuple[Sequence[str | None], ...] = ([None] * chains, leaves)
        times: tuple[list[float], ...] = ([], [])
        for _ in range(rounds):
            for taken, asked in zip(times, parents, strict=True):
                # The processor's time: other processes' turns on it are nobody's cost here.
                begun = time.process_time()
                for parent in asked:
                    await kept.create(parent)
                taken.append((time.process_time() - begun) / chains)
        return statistics.median(times[0]), statistics.median(times[1])

    return uvloop.run(measure())


def store(quick: bool) -> Iterator[Figure]:
    """Yields the time of calls with many responses stored over that with few.

    Args:
        quick: whether to measure just enough to see that it works.
    """
    few, many, rounds, count = (10, 200, 2, 5) if quick else (100, 100_000, 60, 20)
    # One process each: what the many cost the interpreter is to be paid by them alone.
    with worker() as small, worker() as large:
        filled = [small.submit(_start, few), large.submit(_start, many)]
        for filling in filled:
            filling.result()
        times = [
            (small.submit(_call, count).result(), large.submit(_call, count).result())
            for _ in range(rounds)
        ]
        small.submit(_stop).result()
        large.submit(_stop).result()
    for index, name in enumerate(("fork", "get", "delete")):
        small_time = statistics.median(pair[0][index] for pair in times)
        large_time = statistics.median(pair[1][index] for pair in times)
        yield Figure(
            name=f"store: {name}, {many:,} stored over {few:,}",
            value=large_time / small_time,
            unit="x",
            least=1.2,
            better="less",
            detail=f"{large_time * 1e6:.0f} µs, {few:,} stored {small_time * 1e6:.0f} µs, by gRPC",
        )


_Times = tuple[float, float, float]


class Service:
    """A server without a gateway, and a client of its typed service, in one process.

    What is measured is a call as a client sees it. An engine alone answers a look-up within a few
    microseconds, of which most is the processor's waiting for memory that was not used lately.
    """

    def __init__(self, kept: Kept, server: app.App, channel: grpc.aio.Channel) -> None:
        self._kept = kept
        self._server = server
        self._channel = channel
        self._stub: Any = ResponsesServiceStub(channel)

    @classmethod
    async def started(cls, count: int) -> Service:
        kept = Kept()
        await kept.fill(count)
        with mock.patch.object(app, "build_engine", return_value=kept.engine):
            server = app.App(Settings(gateway=False, grpc_port=0))
        addresses = await server.start()
        return cls(kept, server, grpc.aio.insecure_channel(addresses.grpc))

    async def call(self, count: int) -> _Times:
        """Forks, looks up and deletes; as many are stored afterwards as were before.

        Returns:
            The processor's time that each took, in seconds, the client's share included.
        """
        parents = random.choices(self._kept.ids, k=count)
        asked = random.choices(self._kept.ids, k=count)
        made: list[str] = []
        moments = [time.process_time()]
        for parent in parents:
            request = CreateResponseRequest(
                model="echo", input_text="How are you?", previous_response_id=parent
            )
            made.append((await self._stub.CreateResponse(request)).id)
        moments.append(time.process_time())
        for response_id in asked:
            await self._stub.GetResponse(GetResponseRequest(response_id=response_id))
        moments.append(time.process_time())
        for response_id in made:
            await self._stub.DeleteResponse(DeleteResponseRequest(response_id=response_id))
        moments.append(time.process_time())
        forking, getting, deleting = (
            (end - begin) / count for begin, end in itertools.pairwise(moments)
        )
        return forking, getting, deleting

    async def stop(self) -> None:
        await self._channel.close()
        await self._server.stop()


_service: tuple[asyncio.Runner, Service] | None = None
"""What a worker keeps from one call to the next."""


def _start(count: int) -> None:
    global _service
    runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
    _service = runner, runner.run(Service.started(count))


def _call(count: int) -> _Times:
    assert _service is not None
    runner, service = _service
    return runner.run(service.call(count))


def _stop() -> None:
    assert _service is not None
    runner, service = _service
    runner.run(service.stop())
    runner.close()
