"""Memory: whether work that is repeated leaves anything behind."""

import gc
from collections.abc import Sequence
from itertools import pairwise

import psutil

__all__ = ["Samples"]


class Samples:
    """What the process held after each round of the same work.

    What leaks, leaks in every round. What else moves the memory of a process, such as the heap
    that earlier tests have left in pieces, does not, so that the quietest round tells.
    """

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._resident: list[int] = []
        self._objects: list[int] = []

    def take(self) -> None:
        """Takes a sample, between two rounds."""
        gc.collect()
        self._objects.append(len(gc.get_objects()))
        self._resident.append(self._process.memory_info().rss)

    @property
    def objects(self) -> int:
        """How many more objects there are after the quietest round than before it."""
        return _least_growth(self._objects)

    @property
    def bytes(self) -> int:
        """How many more bytes are resident after the quietest round than before it."""
        return _least_growth(self._resident)


def _least_growth(samples: Sequence[int]) -> int:
    return min(after - before for before, after in pairwise(samples))
