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


def test_whatever_is_made_is_valid() -> None:
    tried: list[Any] = []
    found: list[Any] = []

    @settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(satisfiable())
    def draw(pair: Any) -> None:
        schema, value = pair
        if not valid(value, schema):
            return
        tried.append(schema)
        try:
            document = made(schema)
        except SchemaProblem as error:
            # The search is not complete. It is wrong to call the schema wrong.
            assert error.problem in (Problem.NOT_FOUND, Problem.TOO_COMPLEX)  # noqa: PT017
        else:
            assert valid(document, schema)
            found.append(schema)

    draw()
    assert len(found) > 0.95 * len(tried) > 50


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
    "given values of which one was mentioned": {
        "type": "array",
        "items": {"enum": ["Paris", "Rome", "Oslo"]},
        "minItems": 2,
        "uniqueItems": True,
    },
    "short texts": {
        "type": "array",
        "items": {"type": "string", "minLength": 1, "maxLength": 1},
        "minItems": 60,
        "uniqueItems": True,
    },
    "arrays that differ": {
        "type": "array",
        "items": {"type": "array", "items": {"const": 1}},
        "minItems": 5,
        "uniqueItems": True,
    },
    "objects that differ": {
        "type": "array",
        "items": {"type": "object"},
        "minItems": 3,
        "uniqueItems": True,
    },
    "types that differ": {
        "type": "array",
        "items": {"type": ["boolean", "null"]},
        "minItems": 3,
        "uniqueItems": True,
    },
    "contains none": {
        "type": "array",
        "contains": {"type": "string"},
        "minContains": 0,
        "maxContains": 0,
        "minItems": 2,
    },
    "contains one": {
        "type": "array",
        "items": {"type": "integer"},
        "contains": {"minimum": 5},
        "maxContains": 1,
        "minItems": 3,
    },
    "contains two of a reference": {
        "type": "array",
        "items": {"enum": ["a", "b"]},
        "contains": {"$ref": "#/$defs/a"},
        "minContains": 2,
        "maxContains": 2,
        "minItems": 5,
        "$defs": {"a": {"const": "a"}},
    },
    "no letters": {"type": "string", "not": {"pattern": "[a-zA-Z]"}, "minLength": 3},
    "no spaces": {"type": "string", "not": {"pattern": r"\s"}, "minLength": 12},
    "two things that are not": {
        "type": "string",
        "allOf": [{"not": {"pattern": "[aeiou]"}}, {"not": {"pattern": "^[b-z]"}}],
        "minLength": 2,
    },
    "password": {"type": "string", "pattern": r"^(?=.*\d)(?=.*[a-z])(?=.*[A-Z]).{8,}$"},
    "names that look ahead": {
        "type": "object",
        "propertyNames": {"pattern": r"^(?=.*\d)[a-z\d]{4}$"},
        "minProperties": 2,
    },
    "multiple of a third": {"type": "number", "multipleOf": 1 / 3},
    "names of keywords": {
        "type": "object",
        "properties": {
            "$ref": {"type": "string"},
            "allOf": {"type": "integer"},
            "properties": {"type": "object"},
            "$defs": {"type": "null"},
            "const": {},
        },
        "required": ["$ref", "allOf", "properties", "$defs", "const", "anyOf"],
    },
    "values that look like schemas": {
        "type": "object",
        "properties": {"a": {"enum": [{"$ref": "#/nothing", "anyOf": 3, "properties": 1}]}},
        "required": ["a"],
    },
    "the metaschema": {"$ref": "https://json-schema.org/draft/2020-12/schema"},
    "one of the root": {
        "type": "object",
        "properties": {"first": {"oneOf": [{"$ref": "#"}, {"type": "null"}]}},
        "required": ["first"],
    },
    "not the root": {
        "type": "object",
        "properties": {"first": {"type": ["integer", "object"], "not": {"$ref": "#"}}},
        "required": ["first"],
    },
    "one of a part": {
        "type": "object",
        "properties": {
            "count": {"type": "integer", "minimum": 700},
            "same": {"oneOf": [{"$ref": "#/properties/count"}, {"type": "null"}]},
        },
        "required": ["same"],
    },
    "one of an anchor": {
        "type": "object",
        "properties": {"a": {"oneOf": [{"$ref": "#count"}, {"type": "null"}]}},
        "required": ["a"],
        "$defs": {"a": {"$anchor": "count", "type": "integer", "minimum": 700}},
    },
    "one of another document": {
        "$id": "https://example.com/one",
        "type": "object",
        "properties": {"a": {"oneOf": [{"$ref": "other"}, {"type": "null"}]}},
        "required": ["a"],
        "$defs": {"a": {"$id": "other", "type": "integer", "minimum": 700}},
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


LONG = "pneumonoultramicroscopicsilicovolcanoconiosis" * 2


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
@pytest.mark.parametrize("seed", range(5))
def test_a_document_is_valid(schema: Any, seed: int) -> None:
    word = ("Paris", LONG, "12")[seed % 3]
    assert valid(made(schema, word, seed=seed, mentioned=(word.lower(),)), schema)


FORMATS: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "date": ("2024-05-06", [{"pattern": "^2020-"}, {"pattern": r"^19\d\d-02-"}]),
    "date-time": (
        "2024-05-06T07:08:09Z",
        [{"pattern": r"\.\d{3}Z$"}, {"pattern": r"\+02:00$"}, {"minLength": 30}],
    ),
    "time": ("07:08:09Z", [{"pattern": "^12:"}, {"minLength": 12}]),
    "duration": ("P1D", [{"pattern": r"^P\d+W$"}, {"minLength": 10}]),
    "email": (
        "a@example.com",
        [
            {"pattern": r"@example\.org$"},
            {"pattern": "^admin@"},
            {"maxLength": 10},
            {"minLength": 20, "maxLength": 20},
            {"minLength": 60},
        ],
    ),
    "idn-email": ("a@example.com", [{"maxLength": 10}]),
    "hostname": ("a.example.com", [{"pattern": r"\.org$"}, {"maxLength": 4}, {"minLength": 100}]),
    "idn-hostname": ("a.example.com", [{"maxLength": 4}, {"minLength": 30}]),
    "ipv4": ("192.0.2.1", [{"pattern": r"^10\."}, {"maxLength": 7}, {"minLength": 15}]),
    "ipv6": ("2001:db8::1", [{"pattern": "^fe80:"}, {"maxLength": 4}, {"minLength": 30}]),
    "uri": (
        "https://example.com/a",
        [
            {"pattern": "^http://"},
            {"pattern": r"\.png$"},
            {"pattern": "^data:image/png;base64,"},
            {"maxLength": 12},
            {"minLength": 60},
        ],
    ),
    "uri-reference": ("/a", [{"maxLength": 1}, {"minLength": 50}, {"pattern": "^/api/"}]),
    "uri-template": ("/{a}", [{"pattern": r"\{id\}"}, {"minLength": 40}]),
    "iri": ("https://example.com/a", [{"maxLength": 12}, {"minLength": 60}]),
    "iri-reference": ("/a", [{"maxLength": 1}, {"minLength": 50}]),
    "uuid": (
        "00000000-0000-4000-8000-000000000000",
        [{"pattern": "^[^-]{8}-[^-]{4}-7"}, {"pattern": "^[0-9A-F-]+$"}],
    ),
    "json-pointer": ("/a/0", [{"maxLength": 2}, {"minLength": 30}]),
    "relative-json-pointer": ("0/a", [{"maxLength": 1}, {"minLength": 30}]),
    "regex": ("^a$", [{"maxLength": 2}, {"minLength": 30}]),
}


@pytest.mark.parametrize("word", ["Paris", LONG, "é"])
@pytest.mark.parametrize("name", FORMATS)
def test_formats_are_kept_to(name: str, word: str) -> None:
    import jsonschema_rs

    example, bounds = FORMATS[name]
    for bound in ({}, *bounds):
        schema = {"type": "string", "format": name, **bound}
        check = jsonschema_rs.validator_for(schema, validate_formats=True)
        assert bound or check.is_valid(example)
        assert not check.is_valid("\n(")
        for seed in range(3):
            assert check.is_valid(made(schema, word, seed=seed))


def test_an_address_has_a_host() -> None:
    schema = {"type": "string", "format": "uri", "pattern": "^http://"}
    assert len(made(schema)) > len("http://")


def test_a_word_that_does_not_fit_is_left_to_others() -> None:
    schema = {
        "type": "object",
        "properties": {"code": {"type": "string", "maxLength": 4, "pattern": "^[A-Z]"}, "to": {}},
        "required": ["code", "to"],
    }
    assert made(schema, "Stockholm", "Oslo") == {"code": "Oslo", "to": "Stockholm"}


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
    "broken pattern": ({"type": "string", "pattern": "("}, Problem.PATTERN),
    "huge pattern": ({"type": "string", "pattern": "(a{1000}){1000}"}, Problem.PATTERN),
    "named reference": ({"type": "string", "pattern": r"^(?<a>.)\k<a>$"}, Problem.PATTERN),
    "broken pattern of names": ({"patternProperties": {"(": {}}}, Problem.PATTERN),
    "look ahead that fails": ({"type": "string", "pattern": "^(?!a)a"}, Problem.NOT_FOUND),
    "format and pattern": (
        {"type": "string", "format": "date", "pattern": "[a-z]"},
        Problem.NOT_FOUND,
    ),
    "reference to nothing": ({"$ref": "#/$defs/x"}, Problem.INVALID),
    "reference to a host": ({"$ref": "http://127.0.0.1:9/schema"}, Problem.INVALID),
    "reference to a file": ({"$ref": "file:///etc/hostname"}, Problem.INVALID),
    "20,000 elements": (
        {"type": "array", "items": {"type": "integer"}, "minItems": 20_000},
        Problem.TOO_COMPLEX,
    ),
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
    for seed, word in ((1, "Paris"), (2, "12")):
        with pytest.raises(SchemaProblem) as caught:
            made(schema, word, seed=seed)
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


@pytest.mark.parametrize(
    ("keyword", "wanted", "depth"),
    [("items", {"type": "array", "minItems": 1}, 120), ("additionalProperties", {}, 60)],
)
def test_a_deep_schema_has_a_document(keyword: str, wanted: dict[str, Any], depth: int) -> None:
    schema: Any = {"type": "integer"}
    for _ in range(depth):
        schema = {"type": "object", "required": ["a"], **wanted, keyword: schema}
    assert valid(made(schema), schema)


@pytest.mark.parametrize("least", [9_990, 9_999, 10_000])
def test_many_elements_are_made_whatever_the_seed(least: int) -> None:
    schema = {"type": "array", "items": {"type": "integer"}, "minItems": least}
    assert all(len(made(schema, seed=seed)) >= least for seed in range(3))


def test_a_pattern_of_names_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    import jsonschema_rs

    compiled: list[Any] = []
    compile_ = jsonschema_rs.validator_for

    def counted(schema: Any, **options: Any) -> Any:
        compiled.append(schema)
        return compile_(schema, **options)

    monkeypatch.setattr(jsonschema_rs, "validator_for", counted)
    names = [f"{letter}{number}" for letter in "abc" for number in range(30)]
    member = {
        "type": "object",
        "patternProperties": {"^a": {"type": "integer"}, "^b": {"oneOf": [{"const": 1}, False]}},
        "properties": dict.fromkeys(names, True),
        "required": names,
    }
    made({"type": "array", "items": member, "minItems": 9, "uniqueItems": True})
    assert len(compiled) < 20


@pytest.mark.parametrize("schema", ["{}", '{"type":"integer"}', "false"])
def test_a_check_makes_nothing(schema: str) -> None:
    assert document(Job(schema, check=True)) == ""


def test_a_check_sees_what_is_wrong_with_a_schema() -> None:
    with pytest.raises(SchemaProblem) as caught:
        document(Job('{"type":"nope"}', check=True))
    assert caught.value.problem is Problem.INVALID
