"""Problems: why no document fits a schema."""

from __future__ import annotations

from enum import Enum

__all__ = ["Problem", "SchemaProblem"]


class Problem(Enum):
    """What is wrong with a schema, as the end of a sentence about it."""

    INVALID = "is not a valid JSON Schema"
    PATTERN = "has a regular expression that is invalid or not supported"
    NOT_FOUND = "is a JSON Schema that no value was found for"
    TOO_COMPLEX = "is too large or too complex"


class SchemaProblem(Exception):
    """No document can be made for a schema.

    Args:
        problem: why.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.value)
        self.problem = problem
