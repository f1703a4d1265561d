import pytest

from antiphon.json import InvalidValue
from antiphon.json.errors import type_name


def test_a_path_is_built_from_the_inside() -> None:
    error = InvalidValue("must be a string", "invalid_type", "text").at(3).at("content").at("input")
    assert error.param == "input.content[3].text"
    assert error.message == str(error) == "'input.content[3].text' must be a string."


def test_an_error_of_the_whole_document_has_no_path() -> None:
    error = InvalidValue("is not valid JSON", "invalid_json")
    assert error.param is None
    assert error.message == "The request body is not valid JSON."


def test_a_path_may_begin_with_an_index() -> None:
    assert InvalidValue("x", "invalid_value", "a", 0).param == "[0].a"


def test_a_value_is_invalid_unless_it_is_said_otherwise() -> None:
    assert InvalidValue("must be smaller").code == "invalid_value"


@pytest.mark.parametrize(
    "key",
    ["", " ", "a b", "a\nb", "é", "a'b", 'a"b', "<script>", "a" * 65, "\ud800", "a\x00"],
    ids=ascii,
)
def test_a_path_ends_before_a_key_that_is_no_name(key: str) -> None:
    error = InvalidValue("must be a string", "invalid_type", "inside", key, "metadata")
    assert error.param == "metadata"
    assert InvalidValue("must be a string", "invalid_type", key).param is None


@pytest.mark.parametrize("key", ["a", "A1_b", "x-y", "a.b", "$defs", "a:b", "a" * 64])
def test_a_path_goes_on_with_a_key_that_is_a_name(key: str) -> None:
    assert InvalidValue("must be a string", "invalid_type", key, "metadata").param == (
        f"metadata.{key}"
    )


def test_a_path_has_a_greatest_length() -> None:
    error = InvalidValue("must be a string", "invalid_type", *["a" * 64] * 100)
    assert error.param is not None
    assert len(error.param) == 256
    assert len(error.message) < 300


def test_a_missing_member_is_named() -> None:
    error = InvalidValue("is missing", "missing_required_parameter", "role", 1, "input")
    assert error.message == "Missing required parameter: 'input[1].role'."


def test_an_unknown_member_is_named_if_its_key_is_a_name() -> None:
    error = InvalidValue("is unknown", "unknown_parameter", "odd", "input")
    assert error.message == "Unknown parameter: 'input.odd'."
    error = InvalidValue("is unknown", "unknown_parameter", "odd key", "input")
    assert error.message == "Unknown parameter in 'input'."
    assert InvalidValue("is unknown", "unknown_parameter", "odd key").message == (
        "Unknown parameter."
    )


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (None, "null"),
        (True, "a boolean"),
        (False, "a boolean"),
        (0, "an integer"),
        (1.0, "a decimal number"),
        ("", "a string"),
        ([], "an array"),
        ({}, "an object"),
    ],
)
def test_a_value_is_named_by_its_json_type(value: object, name: str) -> None:
    assert type_name(value) == name
