"""Compressed request bodies, decoded under a cap."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import Final

import zstandard

from antiphon.core.errors import ApiError, ErrorKind

__all__ = ["decompress"]

_GZIP: Final = 16 + zlib.MAX_WBITS
_PIECE: Final = 256
"""Bytes that are decoded at once: few, since a zstd frame need not tell what it grows to, and
since what follows a member is copied when it ends, however many members there are."""
_MAX_MEMBERS: Final = 10_000
"""Members or frames of one body: those that are empty take time and do not count against a cap."""


def decompress(body: bytes, coding: str, max_bytes: int) -> bytes:
    """Returns a body without its content coding.

    Args:
        body: the body as it was sent.
        coding: the `content-encoding` header; "" for none.
        max_bytes: the greatest size of the decoded body.

    Raises:
        ApiError: the coding is not known, the body is damaged or in too many parts, or it is
            larger than the cap.
    """
    name = coding.strip().lower()
    if name in ("", "identity"):
        return body
    decode = _CODINGS.get(name)
    if decode is None:
        message = "The content-encoding is not supported; gzip and zstd are."
        raise ApiError(ErrorKind.UNSUPPORTED_ENCODING, message)
    try:
        if not body:
            raise EOFError
        decoded = decode(body, max_bytes + 1)
    except (zlib.error, zstandard.ZstdError, EOFError):
        message = f"The request body is not valid {name}, or has too many members."
        raise ApiError(ErrorKind.INVALID_VALUE, message, code="invalid_body") from None
    if len(decoded) > max_bytes:
        message = f"The request body is larger than {max_bytes} bytes when it is decoded."
        raise ApiError(ErrorKind.TOO_LARGE, message)
    return decoded


def _gunzip(body: bytes, most: int) -> bytes:
    """Decodes the members of a gzip body, at most so many bytes of them."""
    decoded = bytearray()
    at = members = 0
    while at < len(body) and len(decoded) < most:
        members += 1
        member = zlib.decompressobj(_GZIP)
        while at < len(body) and not member.eof and len(decoded) < most:
            piece = body[at : at + _PIECE]
            decoded += member.decompress(piece, most - len(decoded))
            at += len(piece)
        at -= len(member.unused_data)
        if members > _MAX_MEMBERS or (not member.eof and len(decoded) < most):
            raise EOFError
    return bytes(decoded)


def _unzstd(body: bytes, most: int) -> bytes:
    """Decodes the frames of a zstd body, at most so many bytes of them."""
    decoded = bytearray()
    at = frames = 0
    decoder = zstandard.ZstdDecompressor(max_window_size=1 << 27)
    while at < len(body) and len(decoded) < most:
        frames += 1
        frame = decoder.decompressobj()
        while at < len(body) and not frame.eof and len(decoded) < most:
            piece = body[at : at + _PIECE]
            decoded += frame.decompress(piece)
            at += len(piece)
        at -= len(frame.unused_data)
        if frames > _MAX_MEMBERS or (not frame.eof and len(decoded) < most):
            raise EOFError
    return bytes(decoded)


_CODINGS: Final[Mapping[str, Callable[[bytes, int], bytes]]] = {
    "gzip": _gunzip,
    "x-gzip": _gunzip,
    "zstd": _unzstd,
}
