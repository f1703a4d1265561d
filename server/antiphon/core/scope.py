"""Scopes: whose things are whose."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Scope"]


class Scope(NamedTuple):
    """What every look-up is limited to; another scope's id is an unknown id.

    Args:
        project: the project of the API key.
        user: the user isolation key, or "".
        chat: the chat isolation key, or "".
    """

    project: str = ""
    user: str = ""
    chat: str = ""
