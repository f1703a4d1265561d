"""Compressed request bodies, decoded under a cap."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import Final

import zstandard

from antiphon.core.errors import ApiError, ErrorKind

__all__ = ["decompress"]

_GZIP: Final = 16 + zlib.MAX_WBITS


def decompress(body: bytes, coding: str, max_bytes: int) -> bytes:
    """Returns a body without its content coding.

    Args:
        body: the body as it was sent.
        coding: the `content-encoding` header; "" for none.
        max_bytes: the greatest size of the decoded body.

    Raises:
        ApiError: the coding is not known, the body is damaged, or it is larger than the cap.
    """
    name = coding.strip().lower()
    if name in ("", "identity"):
        return body
    decode = _CODINGS.get(name)
    if decode is None:
        message = "The content-encoding is not supported; gzip and zstd are."
        raise ApiError(ErrorKind.UNSUPPORTED_ENCODING, message)
    try:
        decoded = decode(body, max_bytes + 1)
    except (zlib.error, zstandard.ZstdError, EOFError):
        message = f"The request body is not valid {name}."
        raise ApiError(ErrorKind.INVALID_VALUE, message, code="invalid_body") from None
    if len(decoded) > max_bytes:
        message = f"The request body is larger than {max_bytes} bytes when it is decoded."
        raise ApiError(ErrorKind.TOO_LARGE, message)
    return decoded


def _gunzip(body: bytes, most: int) -> bytes:
    """Decodes the members of a gzip body, at most so many bytes of them."""
    decoded = bytearray()
    rest = body
    while rest and len(decoded) < most:
        member = zlib.decompressobj(_GZIP)
        decoded += member.decompress(rest, most - len(decoded))
        if not member.eof and len(decoded) < most:
            raise EOFError
        rest = member.unused_data
    if not body:
        raise EOFError
    return bytes(decoded)


def _unzstd(body: bytes, most: int) -> bytes:
    """Decodes the frames of a zstd body, at most so many bytes of them."""
    decoded = bytearray()
    rest = body
    if not body:
        raise EOFError
    while rest and len(decoded) < most:
        # Small pieces, since a frame tells its size only if its writer chose to, and may lie.
        frame = zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj()
        at = 0
        while at < len(rest) and not frame.eof and len(decoded) < most:
            decoded += frame.decompress(rest[at : at + 256])
            at += 256
        if not frame.eof and len(decoded) < most:
            raise EOFError
        rest = frame.unused_data + rest[at:]
    return bytes(decoded)


_CODINGS: Final[Mapping[str, Callable[[bytes, int], bytes]]] = {
    "gzip": _gunzip,
    "x-gzip": _gunzip,
    "zstd": _unzstd,
}
