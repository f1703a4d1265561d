"""Compressed bodies are decoded, under a cap, before anything else looks at them."""

import gzip
import json
import tracemalloc
import zlib
from collections.abc import Callable

import pytest
import zstandard

from antiphon.core.errors import ApiError, ErrorKind
from antiphon.core.output import Accepted, Finished
from antiphon.transports.rest.compression import decompress
from tests.schema.served import MODEL, Answer, Served
from tests.support.backend import Script

CAP = 1 << 20
BODY = json.dumps({"model": MODEL, "input": "hello " * 1_000}).encode()


def zstd(body: bytes, level: int = 3) -> bytes:
    return zstandard.ZstdCompressor(level=level).compress(body)


def zstd_stream(body: bytes) -> bytes:
    """Compresses as a stream does: the frame does not tell its size."""
    frame = zstandard.ZstdCompressor().compressobj()
    return frame.compress(body) + frame.flush()


Compress = Callable[[bytes], bytes]
CODINGS: dict[str, Compress] = {"gzip": gzip.compress, "zstd": zstd}
each_coding = pytest.mark.parametrize(("coding", "compress"), CODINGS.items(), ids=CODINGS)


async def ask(body: bytes, coding: str | None, *, cap: int = CAP) -> Answer:
    server = Served(Script([Accepted(), Finished()]), max_body_bytes=cap)
    headers = {} if coding is None else {"content-encoding": coding}
    return await server.ask("CreateResponse", body, headers=headers)


def refused(body: bytes, coding: str) -> ApiError:
    with pytest.raises(ApiError) as caught:
        decompress(body, coding, CAP)
    return caught.value


# What is taken.


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        (None, BODY),
        ("", BODY),
        ("identity", BODY),
        ("gzip", gzip.compress(BODY)),
        ("x-gzip", gzip.compress(BODY)),
        (" GZip ", gzip.compress(BODY, 0)),
        ("zstd", zstd(BODY)),
        ("zstd", zstd(BODY, 19)),
        ("zstd", zstd_stream(BODY)),
    ],
)
async def test_a_body_is_decoded(coding: str | None, body: bytes) -> None:
    script = Script([Accepted(), Finished()])
    server = Served(script, max_body_bytes=CAP)
    headers = {} if coding is None else {"content-encoding": coding}
    answer = await server.ask("CreateResponse", body, headers=headers)
    assert answer.status == 200
    assert script.calls[0].request.input_text == "hello " * 1_000


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", gzip.compress(BODY[:100]) + gzip.compress(b"") + gzip.compress(BODY[100:])),
        ("zstd", zstd(BODY[:100]) + zstd(b"") + zstd_stream(BODY[100:])),
        # A frame to skip, as some writers put in front.
        ("zstd", b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc" + zstd(BODY)),
    ],
)
def test_a_body_may_have_several_members(coding: str, body: bytes) -> None:
    assert decompress(body, coding, CAP) == BODY


@each_coding
def test_a_body_may_be_as_large_as_the_cap(coding: str, compress: Compress) -> None:
    for body in (bytes(CAP), bytes(range(256)) * (CAP // 256)):
        assert decompress(compress(body), coding, CAP) == body


@each_coding
async def test_an_error_in_a_decoded_body_is_told_as_ever(coding: str, compress: Compress) -> None:
    body = compress(json.dumps({"model": MODEL, "input": "hi", "temperature": 3}).encode())
    told = (await ask(body, coding)).refusal
    assert (told.status, told.param) == ("400", "temperature")


# What is not.


@pytest.mark.parametrize(
    "coding", ["br", "deflate", "compress", "gzip, zstd", "gzip;q=1", "*", "x" * 10_000]
)
async def test_an_unknown_coding_is_415(coding: str) -> None:
    answer = await ask(BODY, coding)
    told = answer.refusal
    assert (told.status, told.param, told.code) == ("415", None, "unsupported_media_type")
    assert answer.json["error"]["type"] == "invalid_request_error"
    assert len(answer.body) < 1024


@each_coding
@pytest.mark.parametrize("more", [1, CAP, 100 * CAP])
async def test_what_grows_beyond_the_cap_is_413(coding: str, compress: Compress, more: int) -> None:
    body = compress(bytes(CAP + more))
    assert len(body) < CAP
    answer = await ask(body, coding)
    told = answer.refusal
    assert (told.status, told.code) == ("413", "request_too_large")
    assert str(CAP) in told.message


@each_coding
def test_a_bomb_takes_no_more_memory_than_the_cap(coding: str, compress: Compress) -> None:
    bomb = compress(bytes(100 * CAP))
    tracemalloc.start()
    try:
        refused(bomb, coding)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20 * CAP


@pytest.mark.parametrize(("coding", "compress"), [("gzip", gzip.compress), ("zstd", zstd)])
def test_members_share_one_cap(coding: str, compress: Compress) -> None:
    assert refused(compress(bytes(CAP)) * 2, coding).kind is ErrorKind.TOO_LARGE
    assert refused(compress(bytes(CAP)) + compress(b"x"), coding).kind is ErrorKind.TOO_LARGE


def test_a_frame_that_lies_about_its_size_is_refused() -> None:
    header = zstandard.frame_header_size(zstd(BODY))
    lying = bytearray(zstd(BODY))
    lying[5:header] = b"\xff" * (header - 5)
    assert refused(bytes(lying), "zstd").kind is ErrorKind.INVALID_VALUE


def test_a_window_that_takes_gigabytes_is_refused() -> None:
    # A frame without its size, with the largest window that a header can ask for.
    assert refused(b"\x28\xb5\x2f\xfd\x00\xff" + bytes(64), "zstd").code == "invalid_body"


@each_coding
async def test_a_body_that_is_too_large_as_it_is_sent_is_413(
    coding: str, compress: Compress
) -> None:
    body = compress(b"hi") + bytes(CAP)
    assert (await ask(body, coding)).refusal.status == "413"


@each_coding
async def test_a_damaged_body_is_400(coding: str, compress: Compress) -> None:
    whole = compress(BODY)
    damaged = [
        b"",
        BODY,
        whole[:-1],
        whole[: len(whole) // 2],
        whole[1:],
        whole + b"x",
        whole + whole[:-1],
        whole + BODY,
        whole[:10],
        CODINGS["zstd" if coding == "gzip" else "gzip"](BODY),
    ]
    for body in damaged:
        answer = await ask(body, coding)
        told = answer.refusal
        assert (told.status, told.param, told.code) == ("400", None, "invalid_body"), body
        assert len(answer.body) < 1024


def test_a_checksum_is_held() -> None:
    body = bytearray(gzip.compress(BODY))
    body[-6] ^= 1
    assert refused(bytes(body), "gzip").code == "invalid_body"
    checked = zstandard.ZstdCompressor(write_checksum=True).compress(BODY)
    assert decompress(checked, "zstd", CAP) == BODY
    assert refused(checked[:-1] + bytes([checked[-1] ^ 1]), "zstd").code == "invalid_body"


def test_raw_deflate_is_not_gzip() -> None:
    assert refused(zlib.compress(BODY), "gzip").code == "invalid_body"


@each_coding
def test_a_body_has_no_more_than_so_many_members(coding: str, compress: Compress) -> None:
    # Empty members never reach the cap, however many there are.
    assert decompress(compress(b"") * 10_000, coding, CAP) == b""
    assert refused(compress(b"") * 10_001, coding).code == "invalid_body"
    assert refused(compress(b"") * 3_000_000, coding).code == "invalid_body"
