"""Processes of their own, so that what is measured shares an interpreter with nothing else."""

from __future__ import annotations

import asyncio
import multiprocessing
import resource
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Literal

import psutil
import uvloop

from antiphon.collector import relax_collector

__all__ = ["LoopName", "Serve", "Server", "Started", "serving", "worker"]

LoopName = Literal["asyncio", "uvloop"]

Started = Callable[[int], Awaitable[None]]
"""Called with a server's port when it is ready; returns when the server is to stop."""

Serve = Callable[[Started], Coroutine[Any, Any, None]]
"""Starts a server, awaits what it is given, and stops the server."""

_SPAWN = multiprocessing.get_context("spawn")
_START_SECONDS = 30.0
_STOP_SECONDS = 15.0


@contextmanager
def worker() -> Iterator[Executor]:
    """A process that calls what it is given, one thing after the other."""
    with ProcessPoolExecutor(1, mp_context=_SPAWN, initializer=_allow_many_files) as pool:
        yield pool


def _allow_many_files() -> None:
    """Raises this process's limit of open files to the greatest that it may have."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


@dataclass(frozen=True, slots=True)
class Server:
    """A server in a process of its own.

    Args:
        port: the port of its gateway.
        process: the server's own process, without the gateway's.
    """

    port: int
    process: psutil.Process

    @property
    def processor_seconds(self) -> float:
        """The processor's time that it has taken since its start."""
        times = self.process.cpu_times()
        return float(times.user + times.system)

    @property
    def resident_bytes(self) -> int:
        """The memory that it has."""
        return int(self.process.memory_info().rss)


@contextmanager
def serving(
    serve: Serve,
    loop: LoopName = "uvloop",
) -> Iterator[Server]:
    """Runs a server in a process of its own.

    Args:
        serve: the server.
        loop: the event loop to run it on.
    """
    ours, theirs = _SPAWN.Pipe()
    process = _SPAWN.Process(target=_serve, args=(serve, theirs, loop))
    process.start()
    theirs.close()
    try:
        if not ours.poll(_START_SECONDS):
            raise TimeoutError("the server did not start")
        assert process.pid is not None
        yield Server(ours.recv(), psutil.Process(process.pid))
    finally:
        ours.close()
        process.join(_STOP_SECONDS)
        if process.is_alive():
            process.kill()
            process.join()


def _serve(serve: Serve, pipe: Connection, loop: LoopName) -> None:
    _allow_many_files()

    async def started(port: int) -> None:
        stop = asyncio.Event()
        # As `antiphon serve` does; for the servers that are compared with it too.
        relax_collector()
        # The pipe becomes readable when the other end of it is closed.
        asyncio.get_running_loop().add_reader(pipe.fileno(), stop.set)
        pipe.send(port)
        await stop.wait()
        asyncio.get_running_loop().remove_reader(pipe.fileno())

    factory = uvloop.new_event_loop if loop == "uvloop" else asyncio.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(serve(started))
