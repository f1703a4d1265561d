"""What keeping responses costs: memory, and time as more of them are kept.

All of this is done with an engine alone, in processes of their own.
"""

from __future__ import annotations

import asyncio
import gc
import random
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import Final, TypeVar

import psutil
import uvloop

from antiphon.backends.echo import EchoBackend
from antiphon.backends.models import ModelTable
from antiphon.backends.protocol import Call
from antiphon.core.output import Finished, Step, TextDelta
from antiphon.core.scope import Scope
from antiphon.engine.engine import Engine
from antiphon.stores.memory import Bounds, MemoryStore
from antiphon.v1.responses_service_pb2 import CreateResponseRequest
from tests.bench.child import worker
from tests.bench.table import Figure

__all__ = ["chain", "memory", "store"]

_SCOPE: Final = Scope()
_TURNS: Final = 500

T = TypeVar("T")


class HistoryBackend:
    """Answers with the number of items that came before."""

    async def respond(self, call: Call) -> AsyncIterator[Sequence[Step]]:
        yield [TextDelta(str(len(await call.history()))), Finished()]


class Kept:
    """An engine and the ids of what it keeps."""

    def __init__(self) -> None:
        models = ModelTable({"echo": EchoBackend(), "history": HistoryBackend()})
        self._engine = Engine(MemoryStore(Bounds(max_turns=1_000_000, max_bytes=1 << 40)), models)
        self.ids: list[str] = []

    async def create(self, parent: str | None = None, model: str = "echo") -> tuple[str, str]:
        """Creates a response, and returns its id and its text."""
        request = CreateResponseRequest(model=model, input_text="How are you?", store=True)
        if parent is not None:
            request.previous_response_id = parent
        run = await self._engine.create(_SCOPE, request)
        response = (await run.result()).response
        return response.id, response.output[0].message.content_list.parts[0].output_text.text

    async def fill(self, count: int) -> None:
        self.ids.extend([(await self.create())[0] for _ in range(count)])

    async def fork(self, count: int) -> tuple[float, list[str]]:
        """Continues responses that are drawn by lot; returns the seconds that took, and the ids."""
        parents = random.choices(self.ids, k=count)
        begun = time.perf_counter()
        made = [(await self.create(parent))[0] for parent in parents]
        return time.perf_counter() - begun, made

    async def get(self, count: int) -> float:
        asked = random.choices(self.ids, k=count)
        begun = time.perf_counter()
        for response_id in asked:
            await self._engine.get(_SCOPE, response_id)
        return time.perf_counter() - begun

    async def delete(self, ids: Sequence[str]) -> float:
        begun = time.perf_counter()
        for response_id in ids:
            await self._engine.delete(_SCOPE, response_id)
        return time.perf_counter() - begun


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
        await kept.fill(500)
        before = _resident()
        await kept.fill(count)
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
                begun = time.perf_counter()
                for parent in asked:
                    await kept.create(parent)
                taken.append((time.perf_counter() - begun) / chains)
        return statistics.median(times[0]), statistics.median(times[1])

    return uvloop.run(measure())


def store(quick: bool) -> Iterator[Figure]:
    """Yields the time of operations with many responses stored over that with few.

    Args:
        quick: whether to measure just enough to see that it works.
    """
    few, many, rounds, count = (10, 200, 2, 10) if quick else (100, 100_000, 60, 50)
    # One process each: what the many cost the interpreter is to be paid by them alone.
    with worker() as small, worker() as large:
        for process, stored in ((small, few), (large, many)):
            process.submit(_prepare, stored).result()
        times = [
            (small.submit(_operate, count).result(), large.submit(_operate, count).result())
            for _ in range(rounds)
        ]
    for index, name in enumerate(("fork", "get", "delete")):
        small_time = statistics.median(pair[0][index] for pair in times)
        large_time = statistics.median(pair[1][index] for pair in times)
        yield Figure(
            name=f"store: {name}, {many:,} stored over {few:,}",
            value=large_time / small_time,
            unit="x",
            least=1.2,
            better="less",
            detail=f"{large_time * 1e6:.1f} µs, {few:,} stored {small_time * 1e6:.1f} µs",
        )


_Operations = tuple[float, float, float]
_kept: tuple[asyncio.Runner, Kept] | None = None
"""What a worker keeps from one call to the next."""


def _prepare(count: int) -> None:
    global _kept
    _kept = asyncio.Runner(loop_factory=uvloop.new_event_loop), Kept()
    _with_kept(lambda kept: kept.fill(count))


def _operate(count: int) -> _Operations:
    """Returns the seconds of a fork, a look-up and a deletion; as many are stored afterwards."""

    async def measure(kept: Kept) -> _Operations:
        forking, made = await kept.fork(count)
        getting = await kept.get(count)
        deleting = await kept.delete(made)
        return forking / count, getting / count, deleting / count

    return _with_kept(measure)


def _with_kept(action: Callable[[Kept], Awaitable[T]]) -> T:
    assert _kept is not None
    runner, kept = _kept

    async def act() -> T:
        return await action(kept)

    return runner.run(act())
