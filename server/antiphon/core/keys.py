"""API keys: what the settings hold of them."""

from __future__ import annotations

import hashlib
from typing import Final

__all__ = ["hash_key"]

_PREFIX: Final = "sha256:"


def hash_key(key: str) -> str:
    """Returns what the settings hold of an API key.

    Args:
        key: the key. Keys are long and random, so that one round of a hash is enough.
    """
    return _PREFIX + hashlib.sha256(key.encode()).hexdigest()
