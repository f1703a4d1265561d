"""A clock that goes only when it is told to."""

__all__ = ["Clock"]


class Clock:
    """Tells the time in seconds since 1970.

    Args:
        now: the time at first.
    """

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now
