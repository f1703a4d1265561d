from typing import Any

import pytest

from antiphon.backends.documents.tree import moved, pointed, schemas

ROOT: Any = {
    "properties": {"a/b": {"type": "integer"}, "c~d": {"const": 1}, "$ref": {"type": "null"}},
    "allOf": [{"$ref": "#/elsewhere/x"}, {"items": {"$ref": "#"}}, True],
    "enum": [{"properties": {"no": {"title": "no schema"}}}],
    "elsewhere": {"x": {"minimum": 1}, "y": {"title": "not referred to"}},
    "$defs": {"1": {"$anchor": "anchor"}},
}


@pytest.mark.parametrize(
    ("reference", "target"),
    [
        ("#", ROOT),
        ("#/properties/a~1b", {"type": "integer"}),
        ("#/properties/c~0d", {"const": 1}),
        ("#/properties/c%7E0d", {"const": 1}),
        ("#%2F$defs%2F1", {"$anchor": "anchor"}),
        ("#/allOf/0", {"$ref": "#/elsewhere/x"}),
        ("#/allOf/9", None),
        ("#/allOf/x", None),
        ("#/enum/0/nothing/more", None),
        ("#anchor", None),
        ("#properties", None),
        ("other#/properties", None),
    ],
)
def test_a_pointer_is_followed(reference: str, target: Any) -> None:
    assert pointed(reference, ROOT) == target


def test_all_schemas_are_seen_once_and_what_only_looks_like_one_is_not() -> None:
    found = list(schemas(ROOT))
    assert found[0] is ROOT
    assert {"minimum": 1} in found
    assert {"type": "null"} in found
    assert not any("title" in each for each in found)
    assert len(found) == len({id(each) for each in found}) == 9


def test_references_are_the_same_where_a_schema_is_moved() -> None:
    base = "urn:x"
    schema = {
        "$ref": "#/a",
        "not": {"$ref": "#"},
        "anyOf": [{"$ref": "other#/a"}, True],
        "properties": {"$ref": {"$ref": "#b"}},
        "const": {"$ref": "#"},
    }
    assert moved(schema, base) == {
        "$ref": "urn:x#/a",
        "not": {"$ref": "urn:x#"},
        "anyOf": [{"$ref": "other#/a"}, True],
        "properties": {"$ref": {"$ref": "urn:x#b"}},
        "const": {"$ref": "#"},
    }
    assert moved(False, base) is False
