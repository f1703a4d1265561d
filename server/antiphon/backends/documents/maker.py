"""The maker: has documents made by workers, and remembers them."""

from __future__ import annotations

import asyncio
import atexit
import selectors
import subprocess
import sys
import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

import msgspec

from antiphon.backends.documents.job import MAX_SCHEMA, Answer, Job
from antiphon.backends.documents.problem import Problem, SchemaProblem

__all__ = ["DocumentMaker"]

_WORKERS: Final = 2
_WALL_SECONDS: Final = 30.0
"""How long a worker may be silent; its processor time is bounded more tightly, by itself."""
_KEPT_ANSWERS: Final = 1024
_KEPT_CHARACTERS: Final = 8 * 1024 * 1024
_START: Final = (
    "import sys; sys.path[:] = sys.argv[1:]; "
    "from antiphon.backends.documents.worker import main; "
    "main(sys.stdin.buffer, sys.stdout.buffer)"
)


class DocumentMaker:
    """Has documents made by a few workers, which are started when they are first needed.

    Args:
        workers: how many there are at most.
        kept: how many answers are remembered.
    """

    def __init__(self, workers: int = _WORKERS, kept: int = _KEPT_ANSWERS) -> None:
        self._workers = workers
        self._most_kept = kept
        self._threads: ThreadPoolExecutor | None = None
        self._idle: list[_Worker] = []
        self._lock = threading.Lock()
        self._kept: OrderedDict[Job, Answer] = OrderedDict()
        self._size = 0

    @property
    def idle(self) -> int:
        """How many workers wait for jobs."""
        return len(self._idle)

    @property
    def kept(self) -> int:
        """How many answers are remembered."""
        return len(self._kept)

    @property
    def kept_characters(self) -> int:
        """How long the schemas, the given texts and the answers are that are remembered."""
        return self._size

    async def make(self, job: Job) -> str:
        """Returns the document that was asked for.

        Args:
            job: what is asked.

        Raises:
            SchemaProblem: no document can be made.
        """
        answer = self._kept.get(job)
        if answer is None:
            answer = await self._ask(job)
            self._keep(job, answer)
        else:
            self._kept.move_to_end(job)
        if answer.problem:
            raise SchemaProblem(Problem[answer.problem])
        return answer.text

    async def _ask(self, job: Job) -> Answer:
        if len(job.schema) > MAX_SCHEMA:
            return Answer(problem=Problem.TOO_COMPLEX.name)
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self._workers, thread_name_prefix="documents")
            # Threads are joined at the exit of the interpreter, before this is called.
            atexit.register(self.close)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._work, job)

    def _work(self, job: Job) -> Answer:
        with self._lock:
            worker = self._idle.pop() if self._idle else None
        if worker is None:
            worker = _Worker()
        answer = worker.work(job)
        if answer is None:
            worker.close()
            return Answer(problem=Problem.TOO_COMPLEX.name)
        with self._lock:
            self._idle.append(worker)
        return answer

    def _keep(self, job: Job, answer: Answer) -> None:
        if job in self._kept:
            # It was asked for several times at once.
            return
        self._kept[job] = answer
        self._size += _length(job, answer)
        while len(self._kept) > self._most_kept or self._size > _KEPT_CHARACTERS:
            old, gone = self._kept.popitem(last=False)
            self._size -= _length(old, gone)

    def close(self) -> None:
        """Ends the workers."""
        atexit.unregister(self.close)
        threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown()
        with self._lock:
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.close()


def _length(job: Job, answer: Answer) -> int:
    return len(job.schema) + len(job.given) + len(answer.text)


class _Worker:
    """A process that makes documents; it ends by itself when this one does."""

    def __init__(self) -> None:
        paths = [path for path in sys.path if path and Path(path).is_absolute()]
        self._process = subprocess.Popen(  # noqa: S603 - this interpreter
            [sys.executable, "-I", "-c", _START, *paths],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._jobs: IO[bytes] = self._process.stdin
        self._answers: IO[bytes] = self._process.stdout

    def work(self, job: Job) -> Answer | None:
        """Returns the answer to a job, or None if the worker has died or is silent."""
        data = msgspec.msgpack.encode(job)
        try:
            self._jobs.write(len(data).to_bytes(4) + data)
            self._jobs.flush()
        except OSError:
            return None
        with selectors.DefaultSelector() as selector:
            selector.register(self._answers, selectors.EVENT_READ)
            if not selector.select(_WALL_SECONDS):
                return None
        head = self._answers.read(4)
        data = self._answers.read(int.from_bytes(head))
        if len(head) < 4 or len(data) < int.from_bytes(head):
            return None
        return msgspec.msgpack.decode(data, type=Answer)

    def close(self) -> None:
        """Ends the process and waits for that."""
        self._process.kill()
        with suppress(OSError):
            self._jobs.close()
        self._answers.close()
        self._process.wait()
