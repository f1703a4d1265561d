"""The one error of the JSON mapping: a value that the schema does not accept."""

from __future__ import annotations

import re
from typing import Self

__all__ = ["InvalidValue", "type_name"]

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_.$:-]{1,64}\Z")
_MAX_PATH = 256


class InvalidValue(Exception):
    """A value that the schema does not accept.

    Args:
        reason: what is wrong, as the end of a sentence that begins with the path, such as
            "must be a string". It never repeats the value.
        code: the error code of the Responses API.
        path: the keys and indexes that lead to the value, innermost first.
    """

    def __init__(self, reason: str, code: str = "invalid_value", *path: str | int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code
        self._path = list(path)

    def at(self, step: str | int) -> Self:
        """Adds the next outer key or index; returns the error itself."""
        self._path.append(step)
        return self

    @property
    def param(self) -> str | None:
        """The JSON path of the value (`input[1].content`), or None for the whole document."""
        path = ""
        for step in reversed(self._path):
            if isinstance(step, int):
                path += f"[{step}]"
            elif _PLAIN_KEY.match(step):
                path += f".{step}" if path else step
            else:
                break
            if len(path) > _MAX_PATH:
                break
        return path[:_MAX_PATH] or None

    @property
    def message(self) -> str:
        """One sentence for the client."""
        if self.code == "missing_required_parameter":
            return f"Missing required parameter: '{self.param}'."
        if self.code == "unknown_parameter":
            if self._path and isinstance(self._path[0], str) and _PLAIN_KEY.match(self._path[0]):
                return f"Unknown parameter: '{self.param}'."
            return f"Unknown parameter in '{self.param}'." if self.param else "Unknown parameter."
        subject = f"'{self.param}'" if self.param else "The request body"
        return f"{subject} {self.reason}."

    def __str__(self) -> str:
        return self.message


def type_name(value: object) -> str:
    """Returns the JSON type of a decoded value, with its article."""
    if value is None:
        return "null"
    if value is True or value is False:
        return "a boolean"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, int):
        return "an integer"
    if isinstance(value, float):
        return "a decimal number"
    return "an array" if isinstance(value, list) else "an object"
