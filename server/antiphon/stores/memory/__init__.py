"""The store in memory: bounded, and gone with the process."""

from antiphon.stores.memory.store import Bounds, MemoryStore

__all__ = ["Bounds", "MemoryStore"]
