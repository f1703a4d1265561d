"""Jobs: what a worker is asked and what it answers."""

from __future__ import annotations

from typing import Final

import msgspec

__all__ = ["MAX_SCHEMA", "Answer", "Job"]

MAX_SCHEMA: Final = 256 * 1024
"""The largest schema that is worked on, in characters."""


class Job(msgspec.Struct, frozen=True, array_like=True):
    """A document to be made.

    Args:
        schema: the JSON Schema, as text.
        seed: what all choices come from: the same job gives the same document.
        words: words that texts are made of, the most wanted first.
        mentioned: all words that were said, in lower case, to choose among given values by.
        object: whether it has to be an object.
        check: whether the schema alone is looked at, and no document made.
        given: a text that is the document if it fits; another one is made if it does not.
    """

    schema: str
    seed: int = 0
    words: tuple[str, ...] = ()
    mentioned: tuple[str, ...] = ()
    object: bool = False
    check: bool = False
    given: str = ""


class Answer(msgspec.Struct, array_like=True):
    """What came of a job.

    Args:
        text: the document, as compact JSON.
        problem: the name of the problem, or "".
    """

    text: str = ""
    problem: str = ""
