"""The simulator: answers like a model would, deterministically and without one."""

from antiphon.backends.sim.backend import SimBackend

__all__ = ["SimBackend"]
