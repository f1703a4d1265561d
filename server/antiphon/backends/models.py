"""Which backend answers which model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from antiphon.backends.protocol import Backend

__all__ = ["ModelTable"]


class ModelTable:
    """Knows models by their names.

    Args:
        backends: the backend of each name.
        fallback: who answers every other name, or None to refuse them.
    """

    def __init__(self, backends: Mapping[str, Backend], fallback: Backend | None = None) -> None:
        self._backends = dict(backends)
        self._fallback = fallback

    def resolve(self, model: str) -> Backend | None:
        """Returns the backend of a model, or None if there is no such model."""
        return self._backends.get(model, self._fallback)

    def names(self) -> Sequence[str]:
        """Returns the names of the models that are listed."""
        return tuple(self._backends)
