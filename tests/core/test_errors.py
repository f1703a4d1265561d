import grpc
import pytest

from antiphon.core.errors import ApiError, ErrorKind, invalid
from antiphon.json import InvalidValue

# The rows that the API's clients rely on: gRPC status, HTTP status, `error.type`, `error.code`.
ROWS = {
    "INVALID_VALUE": ("INVALID_ARGUMENT", 400, "invalid_request_error", None),
    "MODEL_NOT_FOUND": ("NOT_FOUND", 404, "invalid_request_error", "model_not_found"),
    "NOT_FOUND": ("NOT_FOUND", 404, "invalid_request_error", None),
    "PREVIOUS_RESPONSE_NOT_FOUND": (
        "INVALID_ARGUMENT",
        400,
        "invalid_request_error",
        "previous_response_not_found",
    ),
    "NOT_NOW": ("FAILED_PRECONDITION", 400, "invalid_request_error", None),
    "ALREADY_EXISTS": ("ALREADY_EXISTS", 409, "invalid_request_error", None),
    "INVALID_API_KEY": ("UNAUTHENTICATED", 401, "invalid_request_error", "invalid_api_key"),
    "METHOD_NOT_ALLOWED": ("UNIMPLEMENTED", 405, "invalid_request_error", "method_not_allowed"),
    "RATE_LIMIT": ("RESOURCE_EXHAUSTED", 429, "rate_limit_exceeded", "rate_limit_exceeded"),
    "TOO_LARGE": ("RESOURCE_EXHAUSTED", 413, "invalid_request_error", "request_too_large"),
    "BAD_BACKEND": ("UNAVAILABLE", 502, "server_error", None),
    "UNAVAILABLE": ("UNAVAILABLE", 503, "server_error", None),
    "NOT_BUILT": ("UNIMPLEMENTED", 501, "server_error", None),
    "INTERNAL": ("INTERNAL", 500, "server_error", None),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_row_is_what_clients_rely_on(name: str) -> None:
    assert tuple(ErrorKind[name].value) == ROWS[name]


def test_no_kind_is_hidden_behind_one_with_the_same_row() -> None:
    # Members of an enum with equal values are one member under two names.
    assert all(ErrorKind[name].name == name for name in ErrorKind.__members__)


@pytest.mark.parametrize("kind", ErrorKind)
def test_every_row_is_complete(kind: ErrorKind) -> None:
    row = kind.value
    assert row.grpc in grpc.StatusCode.__members__
    assert row.grpc != "OK"
    assert 400 <= row.http <= 599
    assert (row.type == "server_error") == (row.http >= 500)


def test_an_error_without_a_code_has_its_rows() -> None:
    assert ApiError(ErrorKind.RATE_LIMIT, "Too many.").code == "rate_limit_exceeded"
    assert ApiError(ErrorKind.NOT_NOW, "Not yet.").code is None


def test_an_errors_own_code_stands_above_its_rows() -> None:
    assert ApiError(ErrorKind.RATE_LIMIT, "Too many.", code="slow_down").code == "slow_down"


def test_the_body_tells_all_but_the_kind() -> None:
    body = ApiError(ErrorKind.INVALID_VALUE, "It is wrong.", "input[0]", "invalid_type").body
    assert body.error.message == "It is wrong."
    assert body.error.type == "invalid_request_error"
    assert body.error.param == "input[0]"
    assert body.error.code == "invalid_type"


def test_the_body_of_an_error_without_param_and_code_has_neither() -> None:
    error = ApiError(ErrorKind.INTERNAL, "The server had an error.").body.error
    assert not error.HasField("param")
    assert not error.HasField("code")


@pytest.mark.parametrize("letter", ["a", "é", "😀"])
def test_what_an_error_tells_has_a_greatest_size(letter: str) -> None:
    error = ApiError(ErrorKind.INVALID_VALUE, letter * 2_000, letter * 2_000, letter * 2_000)
    assert error.param is not None
    assert error.code is not None
    assert 500 < len(error.message.encode()) <= 512
    assert len(error.param.encode()) <= 256
    assert len(error.code.encode()) <= 256
    assert error.message.endswith("...")
    assert str(error) == error.message


def test_what_fits_is_told_whole() -> None:
    error = ApiError(ErrorKind.INVALID_VALUE, "é" * 256, "a" * 256, "b" * 256)
    assert (error.message, error.param, error.code) == ("é" * 256, "a" * 256, "b" * 256)


def test_what_is_no_text_on_the_wire_is_told_without_it() -> None:
    error = ApiError(ErrorKind.INVALID_VALUE, "a\ud800b", "c\udfff")
    error.body.SerializeToString()
    assert (error.message, error.param) == ("a?b", "c?")


def test_an_invalid_value_keeps_its_place_and_code() -> None:
    error = invalid(InvalidValue("must be a string", "invalid_type", "text", 1).at("input"))
    assert error.kind is ErrorKind.INVALID_VALUE
    assert error.param == "input[1].text"
    assert error.code == "invalid_type"
    assert error.message == "'input[1].text' must be a string."
    assert str(error) == error.message
