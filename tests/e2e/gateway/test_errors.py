import json

import httpx
import pytest

from tests.e2e.gateway.answers import check_error, check_headers
from tests.e2e.gateway.upstream import SECRET
from tests.e2e.gateway.wire import http1, http2

pytestmark = pytest.mark.asyncio(loop_scope="session")

# A method that streams, and one that does not.
METHODS = pytest.mark.parametrize("method", ["GET", "DELETE"])

URL = "/v1/responses/resp_1"


@METHODS
@pytest.mark.parametrize("status", [200, 201, 400, 401, 404, 409, 413, 429, 500, 502, 503])
async def test_the_server_decides_on_the_status(
    client: httpx.AsyncClient, method: str, status: int
) -> None:
    response = await client.request(method, URL, headers={"x-test-status": str(status)})
    assert response.status_code == status
    check_headers(response.headers)
    assert response.headers["content-type"] == "application/json"
    assert response.json()["request"] == {"response_id": "resp_1"}


@METHODS
@pytest.mark.parametrize("status", ["99", "600", "abc", "20", "2000", "200, 404", "100"])
async def test_what_is_no_status_is_an_error_of_the_server(
    client: httpx.AsyncClient, method: str, status: str
) -> None:
    response = await client.request(method, URL, headers={"x-test-status": status})
    check_error(response, 500, "server_error")


@METHODS
async def test_other_headers_of_the_server_pass(client: httpx.AsyncClient, method: str) -> None:
    response = await client.request(method, URL, headers={"x-test-header": "retry-after: 7"})
    assert response.status_code == 200
    assert response.headers["retry-after"] == "7"


@METHODS
@pytest.mark.parametrize(
    ("grpc_status", "status", "kind", "code"),
    [
        ("CANCELLED", 503, "server_error", None),
        ("UNKNOWN", 500, "server_error", None),
        ("INVALID_ARGUMENT", 400, "invalid_request_error", None),
        ("DEADLINE_EXCEEDED", 504, "server_error", None),
        ("NOT_FOUND", 404, "invalid_request_error", None),
        ("ALREADY_EXISTS", 409, "invalid_request_error", None),
        ("PERMISSION_DENIED", 403, "invalid_request_error", None),
        ("RESOURCE_EXHAUSTED", 429, "rate_limit_exceeded", "rate_limit_exceeded"),
        ("FAILED_PRECONDITION", 400, "invalid_request_error", None),
        ("ABORTED", 409, "invalid_request_error", None),
        ("OUT_OF_RANGE", 400, "invalid_request_error", None),
        ("UNIMPLEMENTED", 501, "server_error", None),
        ("INTERNAL", 500, "server_error", None),
        ("UNAVAILABLE", 503, "server_error", None),
        ("DATA_LOSS", 500, "server_error", None),
        ("UNAUTHENTICATED", 401, "invalid_request_error", "invalid_api_key"),
    ],
)
async def test_a_grpc_error_of_a_rest_method_has_a_fixed_body(
    client: httpx.AsyncClient,
    method: str,
    grpc_status: str,
    status: int,
    kind: str,
    code: str | None,
) -> None:
    response = await client.request(method, URL, headers={"x-test-abort": grpc_status})
    check_error(response, status, kind, code)
    # What is not built is not built a moment later either.
    assert response.headers.get("x-should-retry") == ("false" if status == 501 else None)


@METHODS
async def test_an_exception_of_the_server_stays_there(
    client: httpx.AsyncClient, method: str
) -> None:
    response = await client.request(method, URL, headers={"x-test-raise": "yes"})
    check_error(response, 500, "server_error")


async def test_a_call_that_fails_after_its_metadata_tells_nothing(
    client: httpx.AsyncClient,
) -> None:
    response = await client.delete(
        URL,
        headers={
            "x-test-status": "404",
            "x-test-abort": "INTERNAL",
            "x-test-abort-after": "metadata",
        },
    )
    assert response.status_code == 500
    assert response.content == b""
    check_headers(response.headers)


async def test_a_stream_that_fails_after_a_message_tells_nothing_in_its_trailers(
    port: int,
) -> None:
    async with http2(port) as h2:
        headers = [("x-test-abort", "INTERNAL"), ("x-test-abort-after", "message")]
        reply = await h2.until_end(h2.send("GET", URL, headers))
    assert reply.status == 200
    assert json.loads(reply.body)["method"] == "GetResponse"
    assert not reply.trailers
    assert SECRET.encode() not in reply.body


async def test_a_server_that_is_down_is_503(port_without_upstream: int) -> None:
    async with http2(port_without_upstream) as h2:
        for method, url in [("GET", URL), ("DELETE", URL), ("POST", "/v1/responses")]:
            reply = await h2.until_end(h2.send(method, url))
            check_error(reply, 503, "server_error")
    async with http1(port_without_upstream) as h1:
        h1.send("GET", URL)
        check_error(await h1.reply(), 503, "server_error")


@pytest.mark.parametrize(
    ("method", "url", "abort"), [("GET", "/nothing", "NOT_FOUND"), ("GET", URL, "UNAVAILABLE")]
)
async def test_envoy_and_the_script_say_the_same(
    port: int, port_without_upstream: int, method: str, url: str, abort: str
) -> None:
    async with http2(port_without_upstream) as h2:
        own = await h2.until_end(h2.send(method, url))
    async with http2(port) as h2:
        scripted = await h2.until_end(h2.send(method, URL, [("x-test-abort", abort)]))
    assert own.body == scripted.body
    assert own.status == scripted.status
