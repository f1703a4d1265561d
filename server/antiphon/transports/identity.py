"""Identity: from the headers of a call to the scope that it works in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from antiphon.core.errors import ApiError, ErrorKind
from antiphon.core.keys import hash_key
from antiphon.core.limits import RateLimiter, RateState
from antiphon.core.scope import Scope

__all__ = ["Gate", "Pass"]

_LONGEST: Final = 128


class Pass(NamedTuple):
    """What a call may do.

    Args:
        scope: the scope that it works in.
        rate: what is left of its project's requests, where they are limited.
    """

    scope: Scope
    rate: RateState | None = None


class Gate:
    """Lets calls in.

    Args:
        keys: by the hash of each API key, its project. Without keys, every call is let in.
        user_headers: the headers of the user isolation key; the first that is sent counts.
        chat_header: the header of the chat isolation key.
        limiter: counts the requests of each project, or None.
    """

    def __init__(
        self,
        keys: Mapping[str, str] | None = None,
        *,
        user_headers: Sequence[str] = ("x-agent-user-isolation-key", "x-agent-user-id"),
        chat_header: str = "x-agent-chat-isolation-key",
        limiter: RateLimiter | None = None,
    ) -> None:
        self._keys = dict(keys or {})
        self._user_headers = tuple(name.lower() for name in user_headers)
        self._chat_header = chat_header.lower()
        self._limiter = limiter

    def enter(self, headers: Mapping[str, str]) -> Pass:
        """Returns what a call may do.

        Args:
            headers: the call's headers or metadata, with names in lower case.

        Raises:
            ApiError: its key is missing or wrong, or its project has no requests left.
        """
        project = self._project(headers) if self._keys else ""
        rate = self._limiter.take(project) if self._limiter is not None else None
        user = ""
        for name in self._user_headers:
            user = headers.get(name, "")
            if user:
                break
        chat = headers.get(self._chat_header, "")
        return Pass(Scope(project, _short(user), _short(chat)), rate)

    def _project(self, headers: Mapping[str, str]) -> str:
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        key = bearer.strip() if scheme.lower() == "bearer" else headers.get("api-key", "")
        if not key:
            raise ApiError(ErrorKind.INVALID_API_KEY, "An API key is needed.")
        project = self._keys.get(hash_key(key))
        if project is None:
            raise ApiError(ErrorKind.INVALID_API_KEY, "The API key is not valid.")
        return project


def _short(value: str) -> str:
    """Returns an isolation key, or its hash where it is too long to be kept with every id."""
    return value if len(value) <= _LONGEST else hash_key(value)
