"""Parameters: what a response repeats of its request, printed once for all that repeat the same."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from antiphon.json.plan import descriptor_of
from antiphon.v1.response_pb2 import Response

__all__ = ["FIRST", "OWN", "Parameters", "ParametersTable"]

FIRST: Final = "background"
"""The first of the fields that are parameters; those that are declared before it are a response's
own: its run changes them, or its request alone is likely to have them."""
_FIELDS: Final = [field.name for field in descriptor_of(Response).fields]
OWN: Final = frozenset(_FIELDS[: _FIELDS.index(FIRST)])
"""The fields that are a response's own."""

_MOST: Final = 128
"""How many parameters are kept."""
_LARGEST: Final = 32 * 1024
"""The size of those that are, as a serialised response, in bytes."""


class Parameters:
    """All fields of a response but its own; nothing changes them."""

    __slots__ = ("text",)

    def __init__(self) -> None:
        self.text: str | None = None
        """The fields as JSON members, kept by whoever encoded them first."""


class ParametersTable:
    """The parameters that were asked for last: most clients send the same ones again and again."""

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, Parameters] = OrderedDict()

    def of(self, response: Response) -> Parameters:
        """Returns the parameters of a response.

        Args:
            response: the response, without any field of its own.
        """
        key = response.SerializeToString()
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
            return found
        found = Parameters()
        if len(key) <= _LARGEST:
            self._kept[key] = found
            if len(self._kept) > _MOST:
                self._kept.popitem(last=False)
        return found
