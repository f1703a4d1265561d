"""The garbage collector of a process that serves for long."""

from __future__ import annotations

import gc
from typing import Final

__all__ = ["relax_collector"]

_THRESHOLDS: Final = (20_000, 20, 50)
"""For the collector's three generations."""


def relax_collector() -> None:
    """Has the collector pass over everything that is there, and look less often at the rest.

    What is there at the start lives as long as the server. Every stream feels the collector's
    pauses.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
