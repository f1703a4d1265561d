"""Limits: how many requests a project may make in a minute."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import NamedTuple

from antiphon.core.errors import ApiError, ErrorKind

__all__ = ["RateLimiter", "RateState"]


class RateState(NamedTuple):
    """What is left of a project's requests.

    Args:
        limit: the requests of a minute.
        remaining: the requests that may be made at once.
        reset_seconds: the time after which all of them may be made again.
    """

    limit: int
    remaining: int
    reset_seconds: float

    @property
    def headers(self) -> dict[str, str]:
        """The `x-ratelimit-*` headers of a reply."""
        return {
            "x-ratelimit-limit-requests": str(self.limit),
            "x-ratelimit-remaining-requests": str(self.remaining),
            "x-ratelimit-reset-requests": f"{self.reset_seconds:.3f}s",
        }


class RateLimiter:
    """Lets each project make so many requests a minute: a bucket that fills steadily.

    Args:
        requests_per_minute: the size of the bucket, which fills once a minute.
        clock: tells the time, in seconds.
    """

    def __init__(
        self, requests_per_minute: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limit = requests_per_minute
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, project: str) -> RateState:
        """Counts a request.

        Args:
            project: whose it is.

        Raises:
            ApiError: there is none left.
        """
        now = self._clock()
        per_second = self._limit / 60
        level, since = self._buckets.get(project, (float(self._limit), now))
        level = min(self._limit, level + (now - since) * per_second)
        if level < 1:
            wait = max(1, math.ceil((1 - level) / per_second))
            message = f"The limit of {self._limit} requests a minute is reached."
            error = ApiError(ErrorKind.RATE_LIMIT, message, retry_after=wait)
            error.headers = self._state(level).headers
            raise error
        self._buckets[project] = (level - 1, now)
        return self._state(level - 1)

    def _state(self, level: float) -> RateState:
        return RateState(self._limit, int(level), (self._limit - level) * 60 / self._limit)
