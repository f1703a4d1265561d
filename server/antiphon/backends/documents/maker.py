"""The maker: has documents made by workers, and remembers them."""

from __future__ import annotations

import asyncio
import atexit
import signal
import subprocess
import sys
import threading
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

import msgspec
import structlog

from antiphon.backends.documents.job import MAX_SCHEMA, Answer, Job
from antiphon.backends.documents.problem import Problem, SchemaProblem
from antiphon.core.errors import ApiError, ErrorKind

__all__ = ["DocumentMaker"]

_WORKERS: Final = 2
_MAX_JOBS: Final = 64
"""How many jobs are worked on or wait at once, before more are refused."""
_WALL_SECONDS: Final = 30.0
"""How long a job may take before its worker is ended; of processor time it has far less."""
_KEPT_ANSWERS: Final = 1024
_KEPT_CHARACTERS: Final = 8 * 1024 * 1024
_JOB_ENDS: Final = (signal.SIGPROF, signal.SIGABRT, signal.SIGSEGV)
"""How a job ends its worker: by the time, the memory and the nesting that it takes."""
_START: Final = (
    "import sys; sys.path[:] = sys.argv[1:]; "
    "from antiphon.backends.documents.worker import main; "
    "main(sys.stdin.buffer, sys.stdout.buffer)"
)

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class DocumentMaker:
    """Has documents made by a few workers, which are started when they are first needed.

    Args:
        workers: how many there are at most.
        kept: how many answers are remembered.
        jobs: how many jobs are worked on or wait at once.
    """

    def __init__(
        self, workers: int = _WORKERS, kept: int = _KEPT_ANSWERS, jobs: int = _MAX_JOBS
    ) -> None:
        self._most_kept = kept
        self._most_jobs = jobs
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="documents")
        self._jobs = 0
        self._closed = False
        self._workers: set[_Worker] = set()
        self._idle: list[_Worker] = []
        self._lock = threading.Lock()
        self._kept: OrderedDict[Job, Answer] = OrderedDict()
        self._size = 0
        atexit.register(self.close)

    @property
    def workers(self) -> list[int]:
        """The process ids of the workers that are there."""
        with self._lock:
            return [worker.pid for worker in self._workers]

    @property
    def kept(self) -> int:
        """How many answers are remembered."""
        return len(self._kept)

    @property
    def kept_characters(self) -> int:
        """How long the jobs and the answers are that are remembered."""
        return self._size

    async def make(self, job: Job) -> str:
        """Returns the document that was asked for.

        Args:
            job: what is asked.

        Raises:
            SchemaProblem: no document can be made.
            ApiError: too many jobs wait, the maker is closed, or there is no worker to be had.
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
        with self._lock:
            self._check_open()
            if self._jobs >= self._most_jobs:
                raise ApiError(ErrorKind.UNAVAILABLE, "Too many schemas wait.", retry_after=1)
            self._jobs += 1
        future = self._threads.submit(self._work, job)
        # A job whose caller has gone goes on if it has begun.
        future.add_done_callback(self._done)
        return await asyncio.wrap_future(future)

    def _done(self, _future: Future[Answer]) -> None:
        with self._lock:
            self._jobs -= 1

    def _check_open(self) -> None:
        if self._closed:
            raise ApiError(ErrorKind.UNAVAILABLE, "The server is stopping.")

    def _work(self, job: Job) -> Answer:
        # A worker can be ended by others, while it is idle for example.
        for _ in range(2):
            worker = self._worker()
            answer = worker.work(job)
            if answer is not None:
                with self._lock:
                    if not self._closed:
                        self._idle.append(worker)
                return answer
            with self._lock:
                self._workers.discard(worker)
            code, errors = worker.close()
            if -code in _JOB_ENDS:
                return Answer(problem=Problem.TOO_COMPLEX.name)
            if not self._closed:
                _log.error("document_worker_lost", code=code, stderr=errors)
            if worker.late:
                break
        raise ApiError(ErrorKind.UNAVAILABLE, "The document could not be made.")

    def _worker(self) -> _Worker:
        """Returns a worker that is idle, or a new one."""
        with self._lock:
            self._check_open()
            if self._idle:
                return self._idle.pop()
            worker = _Worker()
            self._workers.add(worker)
            return worker

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
        """Ends the workers, whatever they do; jobs that wait are refused, as are all after them."""
        atexit.unregister(self.close)
        with self._lock:
            self._closed = True
            workers = [*self._workers]
            self._idle.clear()
        for worker in workers:
            worker.end()
        self._threads.shutdown()
        for worker in workers:
            worker.close()
        self._workers.clear()


def _length(job: Job, answer: Answer) -> int:
    texts = (job.schema, job.given, answer.text, *job.words, *job.mentioned)
    return sum(map(len, texts))


class _Worker:
    """A process that makes documents; it ends by itself when this one does."""

    def __init__(self) -> None:
        paths = [path for path in sys.path if path and Path(path).is_absolute()]
        self._process = subprocess.Popen(  # noqa: S603 - this interpreter
            [sys.executable, "-I", "-c", _START, *paths],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Why it cannot start is written there, and nothing after that.
            stderr=subprocess.PIPE,
            # An interrupt at a terminal is for the server, which then ends its workers.
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._jobs: IO[bytes] = self._process.stdin
        self._answers: IO[bytes] = self._process.stdout
        self._errors: IO[bytes] = self._process.stderr
        self.pid = self._process.pid
        self.late = False
        """Whether it was ended for the time that a job took."""

    def work(self, job: Job) -> Answer | None:
        """Returns the answer to a job, or None if the process has ended, or is to end, at it."""
        data = msgspec.msgpack.encode(job)
        timer = threading.Timer(_WALL_SECONDS, self._expire)
        timer.start()
        try:
            self._jobs.write(len(data).to_bytes(4) + data)
            self._jobs.flush()
            head = self._answers.read(4)
            data = self._answers.read(int.from_bytes(head))
        except OSError:
            return None
        finally:
            timer.cancel()
        if len(head) < 4 or len(data) < int.from_bytes(head):
            return None
        return msgspec.msgpack.decode(data, type=Answer)

    def _expire(self) -> None:
        self.late = True
        self.end()

    def end(self) -> None:
        """Ends the process, and does not wait for that."""
        self._process.kill()

    def close(self) -> tuple[int, str]:
        """Ends the process, waits for that, and returns its code and why it could not start."""
        self._process.kill()
        code = self._process.wait()
        errors = b"" if self._errors.closed else self._errors.read()
        with suppress(OSError):
            self._jobs.close()
        self._answers.close()
        self._errors.close()
        return code, errors.decode(errors="replace")[-2000:]
