"""The REST surface has the paths of the API, each in its three forms."""

from typing import Any

import pytest
from google.api import annotations_pb2, http_pb2
from google.protobuf.descriptor import MethodDescriptor

from antiphon.v1 import rest_service_pb2

METHODS = list(rest_service_pb2.DESCRIPTOR.services_by_name["RestService"].methods)

OPERATIONS = {
    "post /responses",
    "get /responses/{response_id}",
    "delete /responses/{response_id}",
    "post /responses/{response_id}/cancel",
    "get /responses/{response_id}/input_items",
    "post /responses/compact",
    "post /responses/input_tokens",
    "post /conversations",
    "get /conversations/{conversation_id}",
    "post /conversations/{conversation_id}",
    "delete /conversations/{conversation_id}",
    "post /conversations/{conversation_id}/items",
    "get /conversations/{conversation_id}/items",
    "get /conversations/{conversation_id}/items/{item_id}",
    "delete /conversations/{conversation_id}/items/{item_id}",
    "get /models",
    "get /models/{model=**}",
}

ELSEWHERE = {
    "GetHealth": ["get /healthz"],
    "GetOpenApi": ["get /openapi.json", "get /responses/docs/openapi.json"],
}
"""Methods that are not operations of the API."""


def rules(method: MethodDescriptor) -> list[http_pb2.HttpRule]:
    # The package's stubs do not know the extension's type.
    extensions: Any = method.GetOptions().Extensions
    rule: http_pb2.HttpRule = extensions[annotations_pb2.http]
    return [rule, *rule.additional_bindings]


def shown(rule: http_pb2.HttpRule) -> str:
    verb = rule.WhichOneof("pattern")
    assert verb is not None
    return f"{verb} {getattr(rule, verb)}"


def test_every_operation_has_a_method() -> None:
    bare = {shown(rules(method)[1]) for method in METHODS if method.name not in ELSEWHERE}
    assert bare == OPERATIONS


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_every_rule_has_its_three_forms(method: MethodDescriptor) -> None:
    paths = [shown(rule) for rule in rules(method)]
    if method.name in ELSEWHERE:
        assert paths == ELSEWHERE[method.name]
        return
    verb, bare = paths[1].split(" ", 1)
    assert paths == [f"{verb} /v1{bare}", f"{verb} {bare}", f"{verb} /api/v1{bare}"]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_the_body_is_taken_as_it_is(method: MethodDescriptor) -> None:
    fields = {field.name: field for field in method.input_type.fields}
    posts = shown(rules(method)[0]).startswith("post")
    assert {rule.body for rule in rules(method)} == {"body" if posts else ""}
    assert ("body" in fields) == posts
    for name, field in fields.items():
        if name == "body":
            assert field.message_type is not None
            assert field.message_type.full_name == "google.api.HttpBody"
        else:
            # A parameter is bound as text, so that a bad value gets an error of the API.
            assert field.type == field.TYPE_STRING
