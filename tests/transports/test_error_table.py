"""Every row of the table of errors, on every surface that tells it."""

import json

import grpc
import pytest
from google.api.httpbody_pb2 import HttpBody
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo

from antiphon.core.errors import ApiError, ErrorKind
from antiphon.transports.grpc.status import DOMAIN
from antiphon.transports.rest.message import RestRequest
from antiphon.transports.rest.servicer import STATUS_HEADER
from antiphon.v1.rest_service_pb2 import RestCreateResponseRequest
from tests.support.backend import Script
from tests.support.engine import a_request, an_engine
from tests.support.serving import Served, a_surface, failure, refusal, serving

MESSAGE = "It is refused, for a reason."
PARAM = "input[1].content"
BODY = b'{"model":"m","input":"hi"}'


def details(error: grpc.aio.AioRpcError) -> tuple[ErrorInfo, BadRequest, RetryInfo]:
    status = refusal(error)
    assert status is not None
    assert status.code == error.code().value[0]
    assert status.message == MESSAGE
    found = ErrorInfo(), BadRequest(), RetryInfo()
    for packed, expected in zip(status.details, found, strict=True):
        assert packed.Unpack(expected)
    return found


async def refused_calls(served: Served) -> list[grpc.aio.AioRpcError]:
    """Returns how a typed call and a typed stream are refused."""
    calls = [served.typed.CreateResponse(a_request()), served.typed.StreamResponse(a_request())]
    failures = [await failure(call) for call in calls]
    assert [came for came, _ in failures] == [[], []]
    return [error for _, error in failures]


@pytest.mark.parametrize("kind", ErrorKind, ids=lambda kind: kind.name)
async def test_a_row_is_the_same_error_on_every_surface(kind: ErrorKind) -> None:
    row = kind.value
    error = ApiError(kind, MESSAGE, PARAM, retry_after=7)
    engine = an_engine(Script(error))
    expected = {"error": {"message": MESSAGE, "type": row.type, "param": PARAM, "code": row.code}}
    # What is not built is not built a moment later either.
    should_retry = "false" if kind is ErrorKind.NOT_BUILT else None

    async with serving(engine) as served:
        for refused in await refused_calls(served):
            assert refused.code().name == row.grpc
            assert refused.details() == MESSAGE
            info, bad_request, retry = details(refused)
            told = {"type": row.type, "param": PARAM}
            assert info.domain == DOMAIN
            assert info.reason == (row.code or kind.name).upper()
            assert info.metadata == (told if row.code is None else {**told, "code": row.code})
            (violation,) = bad_request.field_violations
            assert (violation.field, violation.description) == (PARAM, MESSAGE)
            assert retry.retry_delay.seconds == 7

        for stream in (b"", b',"stream":true'):
            request = RestCreateResponseRequest(
                body=HttpBody(data=BODY.replace(b"}", stream + b"}"))
            )
            call = served.rest.CreateResponse(request)
            headers = dict(await call.initial_metadata())
            (reply,) = [message async for message in call]
            assert headers[STATUS_HEADER] == str(row.http)
            assert headers["retry-after"] == "7"
            assert headers.get("x-should-retry") == should_retry
            assert reply.content_type == "application/json"
            assert json.loads(reply.data) == expected

    answer = await a_surface(engine).handle(RestRequest("CreateResponse", body=BODY))
    assert (answer.status, answer.content_type) == (row.http, "application/json")
    told = {} if should_retry is None else {"x-should-retry": should_retry}
    assert answer.headers == {"retry-after": "7", **told}
    assert isinstance(answer.body, bytes)
    assert json.loads(answer.body) == expected


async def test_an_error_without_a_place_or_a_time_tells_none() -> None:
    engine = an_engine(Script(ApiError(ErrorKind.NOT_NOW, MESSAGE)))
    async with serving(engine) as served:
        for refused in await refused_calls(served):
            status = refusal(refused)
            assert status is not None
            (packed,) = status.details
            info = ErrorInfo()
            assert packed.Unpack(info)
            assert dict(info.metadata) == {"type": "invalid_request_error"}
    answer = await a_surface(engine).handle(RestRequest("CreateResponse", body=BODY))
    assert answer.headers == {}
    assert isinstance(answer.body, bytes)
    assert json.loads(answer.body)["error"] == {
        "message": MESSAGE,
        "type": "invalid_request_error",
        "param": None,
        "code": None,
    }
