import json
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings

from antiphon.backends.documents.job import Job
from antiphon.backends.documents.problem import Problem, SchemaProblem
from antiphon.backends.documents.worker import document
from tests.backends.documents.schemas import satisfiable

PERSON = {
    "$defs": {
        "person": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/person"}},
            },
            "required": ["name", "children"],
            "additionalProperties": False,
        }
    },
    "$ref": "#/$defs/person",
}


def made(schema: Any, *words: str, seed: int = 1, mentioned: tuple[str, ...] = ()) -> Any:
    return json.loads(document(Job(json.dumps(schema), seed, words, mentioned)))


def valid(value: Any, schema: Any) -> bool:
    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
    kind = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
    return bool(kind(schema, format_checker=checker).is_valid(value))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(satisfiable(combined=False))
def test_a_document_is_made_for_whatever_schema_some_value_fits(pair: Any) -> None:
    schema, value = pair
    if valid(value, schema):
        assert valid(made(schema), schema)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(satisfiable())
def test_whatever_is_made_is_valid(pair: Any) -> None:
    schema, value = pair
    if valid(value, schema):
        try:
            found = made(schema)
        except SchemaProblem as error:
            # The search is not complete. It is wrong to call the schema wrong.
            assert error.problem in (Problem.NOT_FOUND, Problem.TOO_COMPLEX)  # noqa: PT017
        else:
            assert valid(found, schema)


SCHEMAS: dict[str, Any] = {
    "nothing said": {},
    "all": True,
    "const": {"const": {"a": [1, None]}},
    "enum": {"enum": ["a", 1, None, {"b": 2}]},
    "types": {"type": ["null", "integer"]},
    "nullable": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    "range": {"type": "integer", "minimum": 17, "maximum": 17},
    "open range": {"type": "integer", "exclusiveMinimum": 16, "exclusiveMaximum": 18},
    "narrow range": {"type": "number", "exclusiveMinimum": 0.1, "exclusiveMaximum": 0.1001},
    "negative": {"type": "number", "maximum": -1000.5},
    "multiple": {"type": "integer", "multipleOf": 7, "minimum": 100, "maximum": 106},
    "decimal multiple": {"type": "number", "multipleOf": 0.01, "minimum": 1.001, "maximum": 1.02},
    "multiple of a number that is whole": {"type": "integer", "multipleOf": 1.5, "minimum": 4},
    "large integer": {"type": "integer", "minimum": 2**64 + 1, "maximum": 2**64 + 3},
    "short text": {"type": "string", "maxLength": 0},
    "long text": {"type": "string", "minLength": 300, "maxLength": 300},
    "pattern": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{4,9}$", "minLength": 10},
    "two patterns": {"type": "string", "allOf": [{"pattern": "^ab"}, {"pattern": "yz$"}]},
    "look ahead": {
        "type": "string",
        "format": "email",
        "pattern": "^(?!\\.)(?!.*\\.\\.)([A-Za-z0-9_'+\\-\\.]*)[A-Za-z0-9_+-]@"
        "([A-Za-z0-9][A-Za-z0-9\\-]*\\.)+[A-Za-z]{2,}$",
    },
    "array": {"type": "array", "items": {"type": "integer"}, "minItems": 3, "maxItems": 3},
    "unique": {
        "type": "array",
        "items": {"enum": [1, 2, 3]},
        "minItems": 3,
        "uniqueItems": True,
    },
    "a permutation": {
        "type": "array",
        "items": {"enum": list(range(40))},
        "minItems": 40,
        "uniqueItems": True,
    },
    "contains": {"type": "array", "contains": {"const": 7}, "minContains": 2, "maxContains": 2},
    "prefix": {
        "type": "array",
        "prefixItems": [{"const": "a"}, {"type": "integer"}],
        "items": False,
        "minItems": 2,
    },
    "contained after a prefix": {
        "type": "array",
        "prefixItems": [{"type": "null"}],
        "contains": {"type": "string"},
    },
    "required and not described": {"type": "object", "required": ["a", "b"]},
    "no more": {"type": "object", "properties": {"a": {}}, "additionalProperties": False},
    "map": {"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 3},
    "pattern properties": {
        "type": "object",
        "patternProperties": {"^x_[a-z]+$": {"type": "integer"}},
        "additionalProperties": False,
        "minProperties": 2,
    },
    "names": {"type": "object", "propertyNames": {"pattern": "^[a-c]$"}, "minProperties": 2},
    "dependent required": {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "dependentRequired": {"a": ["b"], "b": ["c"]},
    },
    "dependent schemas": {
        "type": "object",
        "required": ["a"],
        "dependentSchemas": {"a": {"properties": {"b": {"const": 2}}, "required": ["b"]}},
    },
    "any of": {"anyOf": [{"type": "string", "minLength": 5}, {"type": "integer"}]},
    "one of": {"oneOf": [{"multipleOf": 3}, {"multipleOf": 5}], "type": "integer"},
    "all of": {
        "allOf": [
            {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
            {"properties": {"a": {"minimum": 5}, "b": {"const": 1}}, "required": ["b"]},
        ]
    },
    "not": {"type": "string", "not": {"enum": ["Paris", "alpha"]}},
    "if then": {
        "type": "object",
        "properties": {"country": {"const": "US"}, "zip": {"type": "string"}},
        "required": ["country", "zip"],
        "if": {"properties": {"country": {"const": "US"}}},
        "then": {"properties": {"zip": {"pattern": "^[0-9]{5}$"}}},
        "else": False,
    },
    "recursive": PERSON,
    "recursive by the root": {
        "type": "object",
        "properties": {"next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}},
        "required": ["next"],
    },
    "draft 7": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "definitions": {"a": {"type": "integer", "minimum": 5}},
        "type": "object",
        "properties": {"a": {"$ref": "#/definitions/a"}},
        "required": ["a"],
    },
    "dynamic": {
        "$dynamicRef": "#node",
        "$defs": {"a": {"$dynamicAnchor": "node", "type": "integer"}},
    },
    "unevaluated": {
        "allOf": [{"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]}],
        "unevaluatedProperties": False,
    },
}


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
@pytest.mark.parametrize("seed", range(5))
def test_a_document_is_valid(schema: Any, seed: int) -> None:
    assert valid(made(schema, "Paris", seed=seed), schema)


@pytest.mark.parametrize(
    ("name", "example"),
    [
        ("date", "2024-05-06"),
        ("date-time", "2024-05-06T07:08:09Z"),
        ("time", "07:08:09Z"),
        ("duration", "P1D"),
        ("email", "a@example.com"),
        ("idn-email", "a@example.com"),
        ("hostname", "a.example.com"),
        ("idn-hostname", "a.example.com"),
        ("ipv4", "192.0.2.1"),
        ("ipv6", "2001:db8::1"),
        ("uri", "https://example.com/a"),
        ("uri-reference", "/a"),
        ("uri-template", "/{a}"),
        ("iri", "https://example.com/a"),
        ("iri-reference", "/a"),
        ("uuid", "00000000-0000-4000-8000-000000000000"),
        ("json-pointer", "/a/0"),
        ("relative-json-pointer", "0/a"),
        ("regex", "^a$"),
    ],
)
def test_formats_are_kept_to(name: str, example: str) -> None:
    import jsonschema_rs

    schema = {"type": "string", "format": name}
    check = jsonschema_rs.validator_for(schema, validate_formats=True)
    assert check.is_valid(example)
    assert not check.is_valid("\n(")
    assert check.is_valid(made(schema, "Paris"))
    assert made({**schema, "minLength": 1}) == made({**schema, "minLength": 1})


def test_an_unknown_format_is_no_matter() -> None:
    assert isinstance(made({"type": "string", "format": "x-invented"}), str)


def test_members_are_in_the_order_of_the_schema() -> None:
    names = ["zulu", "alpha", "mike", "bravo"]
    inner = {"type": "object", "properties": {key: {"type": "integer"} for key in reversed(names)}}
    schema = {
        "type": "object",
        "properties": {**{key: {"type": "string"} for key in names}, "in": {"$ref": "#/$defs/in"}},
        "required": ["in", "bravo", "zulu"],
        "$defs": {"in": {**inner, "required": names}},
    }
    value = made(schema)
    assert list(value) == [*names, "in"]
    assert list(value["in"]) == names[::-1]


def test_a_document_is_compact() -> None:
    schema = {"type": "object", "properties": {"a": {"const": [1, 2]}, "b": {"const": "x y"}}}
    assert document(Job(json.dumps(schema))) == '{"a":[1,2],"b":"x y"}'


def test_large_and_exact_numbers_stay_exact() -> None:
    assert document(Job('{"const":18446744073709551617}')) == "18446744073709551617"
    assert document(Job('{"const":0.1}')) == "0.1"


def test_texts_are_the_words_that_were_given() -> None:
    schema = {
        "type": "object",
        "properties": {"from": {"type": "string"}, "to": {"type": "string"}},
        "required": ["to", "from"],
    }
    assert made(schema, "Paris", "Rome") == {"from": "Paris", "to": "Rome"}


def test_numbers_that_were_given_are_used_where_they_fit() -> None:
    schema = {"type": "object", "properties": {"days": {"type": "integer", "maximum": 7}}}
    assert made(schema, "30", "3") == {"days": 3}


def test_what_was_mentioned_is_chosen() -> None:
    schema = {"enum": ["celsius", "Fahrenheit", "kelvin"]}
    assert {made(schema, seed=seed, mentioned=("fahrenheit",)) for seed in range(9)} == {
        "Fahrenheit"
    }
    assert len({made(schema, seed=seed) for seed in range(20)}) == 3


def test_a_member_that_may_be_null_is_not() -> None:
    schema = {"type": "object", "properties": {"a": {"anyOf": [{"type": "null"}, {"const": 1}]}}}
    assert {made(schema, seed=seed)["a"] for seed in range(9)} == {1}


def test_the_same_job_has_the_same_document() -> None:
    schema = json.dumps({"type": "array", "items": {"type": "integer"}, "minItems": 20})
    assert document(Job(schema, 1)) == document(Job(schema, 1))
    assert document(Job(schema, 1)) != document(Job(schema, 2))


def test_an_object_is_made_where_one_is_asked_for() -> None:
    for schema in ("{}", "true", '{"type":["string","object"]}', '{"properties":{"a":{}}}'):
        assert document(Job(schema, object=True)).startswith("{")
    with pytest.raises(SchemaProblem):
        document(Job('{"type":"string"}', object=True))


def bomb(keyword: str) -> Any:
    """A schema whose references double at each of thirty levels."""
    levels = {
        f"l{level}": {keyword: [{"$ref": f"#/$defs/l{level + 1}"}] * 2} for level in range(30)
    }
    return {"$ref": "#/$defs/l0", "$defs": {**levels, "l30": {"type": "integer"}}}


def tree(depth: int) -> Any:
    """A schema whose smallest value doubles at each level."""
    levels = {
        f"l{level}": {
            "type": "object",
            "properties": {key: {"$ref": f"#/$defs/l{level + 1}"} for key in "ab"},
            "required": ["a", "b"],
        }
        for level in range(depth)
    }
    return {"$ref": "#/$defs/l0", "$defs": {**levels, f"l{depth}": {"type": "integer"}}}


HOSTILE: dict[str, tuple[Any, Problem]] = {
    "false": (False, Problem.NOT_FOUND),
    "not anything": ({"not": {}}, Problem.NOT_FOUND),
    "empty range": ({"type": "integer", "minimum": 5, "maximum": 3}, Problem.NOT_FOUND),
    "two types": ({"allOf": [{"type": "string"}, {"type": "null"}]}, Problem.NOT_FOUND),
    "empty enum": ({"enum": []}, Problem.NOT_FOUND),
    "required and false": (
        {"type": "object", "properties": {"a": False}, "required": ["a"]},
        Problem.NOT_FOUND,
    ),
    "three different booleans": (
        {"type": "array", "items": {"type": "boolean"}, "minItems": 3, "uniqueItems": True},
        Problem.NOT_FOUND,
    ),
    "without an end": (
        {"$defs": {"a": {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}},
         "required": ["a"]}}, "$ref": "#/$defs/a"},
        Problem.NOT_FOUND,
    ),
    "unknown type": ({"type": "nope"}, Problem.INVALID),
    "wrong keyword": ({"type": "object", "properties": []}, Problem.INVALID),
    "broken pattern": ({"type": "string", "pattern": "("}, Problem.INVALID),
    "huge pattern": ({"type": "string", "pattern": "(a{1000}){1000}"}, Problem.INVALID),
    "reference to nothing": ({"$ref": "#/$defs/x"}, Problem.INVALID),
    "reference to a host": ({"$ref": "http://127.0.0.1:9/schema"}, Problem.INVALID),
    "reference to a file": ({"$ref": "file:///etc/hostname"}, Problem.INVALID),
    "many elements": ({"type": "array", "minItems": 10**12}, Problem.TOO_COMPLEX),
    "many times many": (
        {"type": "array", "minItems": 9000, "items": {"type": "array", "minItems": 9000}},
        Problem.TOO_COMPLEX,
    ),
    "many contained": (
        {"type": "array", "contains": {"const": 1}, "minContains": 10**9},
        Problem.TOO_COMPLEX,
    ),
    "long text": ({"type": "string", "minLength": 10**12}, Problem.TOO_COMPLEX),
    "many members": ({"type": "object", "minProperties": 10**12}, Problem.TOO_COMPLEX),
    "doubling allOf": (bomb("allOf"), Problem.TOO_COMPLEX),
    "doubling anyOf": (bomb("anyOf"), Problem.TOO_COMPLEX),
    "doubling oneOf": (bomb("oneOf"), Problem.TOO_COMPLEX),
    "doubling members": (tree(30), Problem.TOO_COMPLEX),
    "large": ({"description": "x" * 300_000}, Problem.TOO_COMPLEX),
}  # fmt: skip


@pytest.mark.parametrize(("schema", "problem"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_schema_is_refused(schema: Any, problem: Problem) -> None:
    with pytest.raises(SchemaProblem) as caught:
        made(schema)
    assert caught.value.problem is problem


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "pattern": "^(a+)+$", "minLength": 5000},
        {"type": "string", "pattern": "^(([a-z])+.)+[A-Z]([a-z])+$", "minLength": 100},
        {"type": "string", "pattern": "^(a+)+\\1(?!a)$", "minLength": 100},
        {"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        tree(8),
        {"$schema": "https://example.com/invented", "type": "integer"},
    ],
)
def test_a_schema_that_looks_hostile_may_still_have_a_document(schema: Any) -> None:
    assert made(schema) is not None


def test_a_deep_schema_has_a_document() -> None:
    schema: Any = {"type": "integer"}
    for _ in range(50):
        schema = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
    assert valid(made(schema), schema)


@pytest.mark.parametrize("schema", ["{}", '{"type":"integer"}', "false"])
def test_a_check_makes_nothing(schema: str) -> None:
    assert document(Job(schema, check=True)) == ""


def test_a_check_sees_what_is_wrong_with_a_schema() -> None:
    with pytest.raises(SchemaProblem) as caught:
        document(Job('{"type":"nope"}', check=True))
    assert caught.value.problem is Problem.INVALID
