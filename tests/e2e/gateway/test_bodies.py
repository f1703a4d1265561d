import hashlib
from collections.abc import AsyncIterator

import httpx
import pytest

from antiphon.gateway import BODY_LIMIT
from tests.e2e.gateway.answers import check_error, check_headers
from tests.e2e.gateway.wire import http1, http2

pytestmark = pytest.mark.asyncio(loop_scope="session")

MB = 1000 * 1000
MIB = 1024 * 1024


@pytest.mark.parametrize("method", ["GET", "DELETE"])
@pytest.mark.parametrize("size", [0, 1, *range(65_440, 65_601, 16), MIB, 5 * MIB // 2, 8 * MIB])
async def test_answers_arrive_whole(client: httpx.AsyncClient, method: str, size: int) -> None:
    response = await client.request(
        method, "/v1/responses/resp_1", headers={"x-test-size": str(size)}
    )
    assert response.status_code == 200
    check_headers(response.headers)
    assert response.content == bytes(size)


async def _send(client: httpx.AsyncClient, body: bytes) -> httpx.Response:
    response = await client.post(
        "/v1/responses", content=body, headers={"content-type": "application/json"}
    )
    if response.status_code == 200:
        assert response.json()["request"]["body"] == {
            "content_type": "application/json",
            "length": len(body),
            "hash": hashlib.blake2b(body).hexdigest(),
        }
    return response


@pytest.mark.parametrize("size", [1, 1000, 65_535, 65_536, 3 * MB])
async def test_bodies_arrive_whole(client: httpx.AsyncClient, size: int) -> None:
    response = await _send(client, b"x" * size)
    assert response.status_code == 200


@pytest.mark.parametrize("size", [20 * MB, 40 * MB, BODY_LIMIT, BODY_LIMIT + 1])
@pytest.mark.parametrize("version", [1, 2])
async def test_large_bodies_arrive_whole_or_not_at_all(port: int, version: int, size: int) -> None:
    body = b"x" * size
    if version == 1:
        async with http1(port) as h1:
            h1.send("POST", "/v1/responses", [("content-length", str(size))])
            h1.writer.write(body)
            reply = await h1.head()
            if reply.status == 200:
                reply.body = await h1.chunk()
            else:
                reply.body = await h1.reader.readexactly(int(reply.headers["content-length"]))
    else:
        async with http2(port) as h2:
            reply = h2.send("POST", "/v1/responses", end=False)
            await h2.upload(reply, body)
            await h2.until_end(reply)
    if size > BODY_LIMIT:
        check_error(reply, 413, code="request_too_large")
    else:
        assert reply.status == 200
        assert reply.json()["request"]["body"] == {
            "content_type": "",
            "length": size,
            "hash": hashlib.blake2b(body).hexdigest(),
        }


async def test_no_body_arrives_as_none(client: httpx.AsyncClient) -> None:
    response = await client.post("/v1/responses")
    assert response.status_code == 200
    assert response.json()["request"]["body"]["length"] == 0


async def test_a_body_in_pieces_arrives_whole(client: httpx.AsyncClient) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for piece in (b"{", b'"a"', b":1}"):
            yield piece

    response = await client.post("/v1/responses", content=pieces())
    body = response.json()["request"]["body"]
    assert body["length"] == 7
    assert body["hash"] == hashlib.blake2b(b'{"a":1}').hexdigest()


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_a_body_where_none_belongs_is_ignored(client: httpx.AsyncClient, method: str) -> None:
    response = await client.request(
        method,
        "/v1/conversations/conv_1/items/item_1?include[]=a",
        content=b'{"item_id": "evil", "include": ["b"]}',
        headers={"content-type": "application/json"},
    )
    assert response.status_code == 200
    request = response.json()["request"]
    # A deletion has no such parameter.
    assert request.pop("include", ["a"]) == ["a"]
    assert request == {"conversation_id": "conv_1", "item_id": "item_1"}


async def test_a_client_that_waits_to_be_told_to_send_is_told(port: int) -> None:
    async with http1(port) as h1:
        headers = [("expect", "100-continue"), ("content-length", "2")]
        h1.send("POST", "/v1/responses", headers)
        assert (await h1.head()).status == 100
        h1.writer.write(b"{}")
        assert (await h1.head()).status == 200


@pytest.mark.parametrize(("size", "status"), [(1000, 200), (1001, 413), (2 * MB, 413)])
async def test_the_limit_is_the_one_that_was_set(small_port: int, size: int, status: int) -> None:
    async with httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{small_port}", trust_env=False
    ) as client:
        response = await _send(client, b"x" * size)
    assert response.status_code == status
    if status == 413:
        check_error(response, 413, code="request_too_large")
