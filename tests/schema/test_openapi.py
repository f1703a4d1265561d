"""The OpenAPI document says what the server does, and no more."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from jsonschema import Draft202012Validator, validators
from jsonschema.protocols import Validator
from openai.types import responses
from openapi_spec_validator import OpenAPIV31SpecValidator
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from antiphon import resources
from antiphon.app import App
from antiphon.backends.documents.maker import DocumentMaker
from antiphon.backends.sim import SimBackend
from antiphon.core.output import Accepted, Finished, ItemAdded
from antiphon.json import decode, encode
from antiphon.settings import Settings, SettingsError
from antiphon.transports.rest.document import openapi_document
from antiphon.transports.rest.message import RestRequest
from antiphon.v1 import event_pb2, item_pb2, response_pb2, rest_service_pb2, tool_pb2
from tests.schema import sdk, test_strict
from tests.schema.samples import samples
from tests.schema.served import MODEL, Served
from tests.schema.test_faithful import DEFAULTS, output_items
from tests.schema.test_rest_rules import rules, shown
from tests.schema.test_sdk_coverage import ALWAYS_NULL
from tests.schema.test_sdk_round_trip import fitted
from tests.support.backend import Script

META = {"GetOpenApi", "GetHealth"}
"""What the server does beside the API."""

ERROR = {"ErrorResponse", "Error", "Misalignment", "MisalignmentSteer"}
"""The components of errors."""


def descriptors() -> bytes:
    return resources.descriptor_set().read_bytes()


@cache
def document() -> Any:
    """Returns the document of a server as it is."""
    return json.loads(
        openapi_document(descriptors(), Served(SimBackend(DocumentMaker())).rest.built)
    )


def schemas() -> dict[str, Any]:
    found: dict[str, Any] = document()["components"]["schemas"]
    return found


def nodes(node: Any, path: str = "#") -> Iterator[tuple[str, Any]]:
    """Yields every object of a document with its path."""
    if isinstance(node, dict):
        yield path, node
        for key, each in node.items():
            yield from nodes(each, f"{path}/{key}")
    elif isinstance(node, list):
        for at, each in enumerate(node):
            yield from nodes(each, f"{path}/{at}")


def resolve(reference: str) -> Any:
    node = document()
    for step in reference.removeprefix("#/").split("/"):
        node = node[step]
    return node


def _by_discriminator(
    validator: Any, arms: list[Any], instance: Any, schema: dict[str, Any]
) -> Iterator[jsonschema.ValidationError]:
    """Validates against the arm that the discriminator names, as OpenAPI means it."""
    told = schema.get("discriminator")
    tag = instance.get(told["propertyName"]) if told and isinstance(instance, dict) else None
    if told and tag in told["mapping"]:
        yield from validator.descend(instance, {"$ref": told["mapping"][tag]})
    else:
        key = "oneOf" if "oneOf" in schema else "anyOf"
        yield from Draft202012Validator.VALIDATORS[key](validator, arms, instance, schema)


Discriminating = validators.extend(  # type: ignore[no-untyped-call]
    Draft202012Validator, {"oneOf": _by_discriminator, "anyOf": _by_discriminator}
)


def validator(name: str, kind: Any = Discriminating) -> Validator:
    """Returns the validator of a component."""
    whole = DRAFT202012.create_resource(document())
    # The document's own references are relative to it.
    schema = {"$ref": f"urn:document#/components/schemas/{name}"}
    made: Validator = kind(schema, registry=Registry().with_resource("urn:document", whole))
    return made


def refusals(checked: Validator, instance: Any) -> list[str]:
    return [f"{error.json_path}: {error.message[:200]}" for error in checked.iter_errors(instance)]


# The document is whole.


def test_a_standard_validator_accepts_it() -> None:
    assert document()["openapi"] == "3.1.0"
    assert list(OpenAPIV31SpecValidator(document()).iter_errors()) == []


def test_every_component_is_a_schema() -> None:
    for schema in schemas().values():
        Draft202012Validator.check_schema(schema)


def test_every_reference_is_to_a_component_and_every_component_is_referred_to() -> None:
    referred = {node["$ref"] for _, node in nodes(document()) if "$ref" in node}
    for reference in referred:
        assert resolve(reference)
    assert {f"#/components/schemas/{name}" for name in schemas()} <= referred


def test_discriminators_are_mapped_to_what_has_them() -> None:
    found = 0
    for path, node in nodes(document()):
        if "discriminator" not in node:
            continue
        found += 1
        tag = node["discriminator"]["propertyName"]
        arms = node.get("oneOf") or node["anyOf"]
        references = [arm["$ref"] for arm in arms if "$ref" in arm]
        assert len(references) == len(set(references)), path
        mapping = node["discriminator"]["mapping"]
        assert set(mapping.values()) == set(references), path
        for value, reference in mapping.items():
            schema = resolve(reference)
            assert value in schema["properties"][tag]["enum"], path
        told = [value for each in references for value in resolve(each)["properties"][tag]["enum"]]
        assert sorted(told) == sorted(mapping), path
        unknown = [arm for arm in arms if "$ref" not in arm]
        for arm in unknown:
            assert arm["properties"][tag]["not"]["enum"] == sorted(mapping), path
        if "oneOf" in node:
            needed = [tag in resolve(each)["required"] for each in references]
            assert needed.count(False) <= 1, path
    assert found > 10


def test_everything_is_described() -> None:
    missing = [name for name, schema in schemas().items() if not schema.get("description")]
    missing += [
        f"{name}.{key}"
        for name, schema in schemas().items()
        for key, member in schema.get("properties", {}).items()
        if not member.get("description")
    ]
    for path, verbs in document()["paths"].items():
        for verb, operation in verbs.items():
            missing += [] if operation["summary"] else [f"{verb} {path}"]
            missing += [
                f"{path}.{each['name']}"
                for each in operation["parameters"]
                if not each["description"]
            ]
    assert document()["info"]["description"]
    assert missing == []


# It lists what is built.


METHODS = rest_service_pb2.DESCRIPTOR.services_by_name["RestService"].methods


def listed(told: Any) -> dict[str, str]:
    """Returns the operations of a document: how each is asked, by its name."""
    return {
        operation["operationId"]: f"{verb} {path}"
        for path, verbs in told["paths"].items()
        for verb, operation in verbs.items()
    }


def bound(method: MethodDescriptor) -> str:
    """Returns how a method is asked, without the patterns of its variables."""
    return re.sub(r"=[^}]*", "", shown(rules(method)[0]))


async def test_it_lists_what_is_built_and_nothing_else() -> None:
    server = Served(SimBackend(DocumentMaker()))
    ids = {"response_id": "resp_1", "conversation_id": "conv_1", "item_id": "i", "model": "m"}
    built = {}
    for method in METHODS:
        if method.name not in META:
            path: Any = {name: ids[name] for name in re.findall(r"\{(\w+)", bound(method))}
            answer = await server.ask(method.name, {}, **path)
            assert answer.status < 500 or answer.status == 501
            if answer.status != 501:
                built[method.name] = bound(method)
    assert built.keys() >= {"CreateResponse", "GetResponse", "DeleteResponse", "ListModels"}
    assert listed(document()) == built


def test_operations_are_listed_when_they_are_built() -> None:
    every = {method.name: bound(method) for method in METHODS if method.name not in META}
    assert listed(json.loads(openapi_document(descriptors(), every))) == every
    few = json.loads(openapi_document(descriptors(), ["ListModels"]))
    assert listed(few) == {"ListModels": "get /v1/models"}
    assert few["components"]["schemas"].keys() == {"ListModelsResponse", "Model", *ERROR}


def test_parameters_are_those_of_the_path_and_of_the_query() -> None:
    for path, verbs in document()["paths"].items():
        for operation in verbs.values():
            parameters = operation["parameters"]
            in_path = {each["name"] for each in parameters if each["in"] == "path"}
            assert in_path == set(re.findall(r"\{(\w+)\}", path)), path
            assert all(each["required"] == (each["in"] == "path") for each in parameters)
    create = document()["paths"]["/v1/responses"]["post"]
    assert [each["name"] for each in create["parameters"]] == ["requestContext"]
    retrieve = document()["paths"]["/v1/responses/{response_id}"]["get"]
    assert {each["name"]: each["schema"]["type"] for each in retrieve["parameters"]} == {
        "response_id": "string",
        "include": "array",
        "stream": "string",
        "starting_after": "integer",
        "include_obfuscation": "boolean",
    }


def test_answers_are_documents_streams_and_errors() -> None:
    create = document()["paths"]["/v1/responses"]["post"]
    content = create["responses"]["200"]["content"]
    reference = "#/components/schemas/"
    assert content["application/json"]["schema"] == {"$ref": f"{reference}Response"}
    stream = content["text/event-stream"]
    assert stream["x-event-schema"] == {"$ref": f"{reference}ResponseStreamEvent"}
    body = create["requestBody"]["content"]["application/json"]["schema"]
    assert body == {"$ref": f"{reference}CreateResponseRequest"}
    for path, verbs in document()["paths"].items():
        for operation in verbs.values():
            answers = operation["responses"]
            assert answers.keys() == {"200", "4XX", "5XX"}, path
            for status in ("4XX", "5XX"):
                error = resolve(answers[status]["$ref"])
                assert error["content"]["application/json"]["schema"] == {
                    "$ref": f"{reference}ErrorResponse"
                }


# It says the limits.


@pytest.mark.parametrize(
    ("place", "limits"),
    [
        ("CreateResponseRequest.temperature", {"minimum": 0, "maximum": 2}),
        ("CreateResponseRequest.top_p", {"minimum": 0, "maximum": 1}),
        ("CreateResponseRequest.top_logprobs", {"minimum": 0, "maximum": 20}),
        ("CreateResponseRequest.max_output_tokens", {"minimum": 16}),
        ("CreateResponseRequest.safety_identifier", {"maxLength": 64}),
        ("CreateResponseRequest.prompt_cache_key", {"maxLength": 64}),
        (
            "CreateResponseRequest.metadata",
            {
                "maxProperties": 16,
                "propertyNames": {"maxLength": 64},
                "additionalProperties": {"type": "string", "maxLength": 512},
            },
        ),
        ("FunctionTool.name", {"pattern": "^[a-zA-Z0-9_-]{1,64}$"}),
        ("TextFormatJsonSchema.name", {"pattern": "^[a-zA-Z0-9_-]{1,64}$"}),
        ("FunctionCall.call_id", {"maxLength": 64}),
        ("TextFormatJsonSchema.schema", {"type": "object"}),
    ],
)
def test_limits_are_told(place: str, limits: dict[str, Any]) -> None:
    name, key = place.split(".")
    told = schemas()[name]["properties"][key]
    assert {which: told[which] for which in limits} == limits


def test_what_must_be_sent_is_told() -> None:
    assert schemas()["TextFormatJsonSchema"]["required"] == ["type", "name", "schema"]
    assert schemas()["FunctionTool"]["required"] == ["type", "name"]
    assert "required" not in schemas()["CreateResponseRequest"]


def test_secrets_are_told_to_be_for_sending_alone() -> None:
    secret = {
        f"{path.rpartition('/')[2]}" for path, node in nodes(schemas()) if node.get("writeOnly")
    }
    assert secret == {"authorization", "headers", "domain_secrets", "value"}


def test_a_response_has_its_31_keys_and_11_of_them_may_be_null() -> None:
    checked = validator("Response")
    assert refusals(checked, DEFAULTS) == []
    assert sorted(schemas()["Response"]["required"]) == sorted(DEFAULTS)
    for key in DEFAULTS:
        lacking: Any = {name: value for name, value in DEFAULTS.items() if name != key}
        assert not checked.is_valid(lacking), key
        assert checked.is_valid({**lacking, key: None}) == (key in ALWAYS_NULL), key


def test_what_the_sdk_relies_on_is_told_to_be_there() -> None:
    arms = schemas()["ResponseStreamEvent"]["discriminator"]["mapping"]
    told: list[tuple[type, Any]] = [
        (responses.Response, schemas()["Response"]),
        (responses.ResponseUsage, schemas()["ResponseUsage"]),
        *(
            (cls.type, resolve(arms[tag]))
            for cls in sdk.alternatives(responses.ResponseStreamEvent)
            if isinstance(cls, sdk.Class)
            for values in sdk.alternatives(sdk.members(cls.type)["type"].annotation)
            if isinstance(values, sdk.Literals)
            for tag in values.values
        ),
    ]
    assert len(told) == 61
    for cls, schema in told:
        needed = {key for key, each in sdk.members(cls).items() if each.presence == "required"}
        assert needed <= set(schema["required"]), cls


# What the server takes and gives is what it says.

BEYOND = {
    # Whether these may be left out depends on other parameters.
    ("model", "missing_required_parameter"),
    ("input", "missing_required_parameter"),
    ("input", "empty_array"),
    # An id is any string, and is checked when it is looked up.
    ("previous_response_id", "invalid_value"),
    ("previous_response_id", "mutually_exclusive_parameters"),
    ("background", "invalid_value"),
    ("stream_options", "invalid_value"),
    # The bounds of `int64` are in its format.
    ("max_output_tokens", "invalid_value"),
}
"""Rules that a schema does not say."""


def test_it_refuses_what_the_server_refuses() -> None:
    checked = validator("CreateResponseRequest")
    accepted = {
        (case.param, case.code)
        for case in test_strict.CASES
        # Python takes the end of a line for the end of a text.
        if checked.is_valid(case.body) and "f\\n" not in json.dumps(case.body)
    }
    assert accepted == BEYOND


@pytest.mark.parametrize("members", test_strict.ACCEPTED, ids=" ".join)
def test_it_accepts_what_the_server_accepts(members: dict[str, Any]) -> None:
    checked = validator("CreateResponseRequest")
    assert refusals(checked, {**test_strict.MINIMAL, **members}) == []


@pytest.mark.parametrize(
    ("annotation", "name"),
    [
        (responses.ResponseCreateParams, "CreateResponseRequest"),
        (responses.ResponseInputItemParam, "Item"),
        (responses.ToolParam, "Tool"),
    ],
)
def test_it_accepts_what_the_sdk_sends(annotation: Any, name: str) -> None:
    checked = validator(name)
    for sample in samples(annotation, whole=0):
        assert refusals(checked, fitted(sample)) == []


@pytest.mark.parametrize(
    ("annotation", "message", "name"),
    [
        (responses.Response, response_pb2.Response, "Response"),
        (responses.ResponseOutputItem, item_pb2.Item, "Item"),
        (responses.Tool, tool_pb2.Tool, "Tool"),
        (responses.ResponseStreamEvent, event_pb2.ResponseStreamEvent, "ResponseStreamEvent"),
    ],
)
def test_it_describes_what_is_printed(annotation: Any, message: type[Message], name: str) -> None:
    checked = validator(name)
    seen: Counter[str] = Counter()
    for sample in samples(annotation, whole=0):
        # The responses in events are whole above.
        seen[sample.get("type", name)] += 1
        if name == "ResponseStreamEvent" and seen[sample["type"]] > 5:
            continue
        printed = json.loads(encode(decode(message, json.dumps(fitted(sample)))))
        assert refusals(checked, printed) == []


def test_arms_are_apart_without_their_discriminators_too() -> None:
    # Validators that do not know discriminators try every arm.
    checked = validator("Item", Draft202012Validator)
    for item in (
        {"role": "user", "content": "hi"},
        {"id": "msg_1", "role": "user", "content": "hi"},
        {"id": "msg_1"},
        {"type": "invented", "id": "x"},
        *(fitted(each) for each in samples(responses.ResponseInputItemParam, whole=0)),
    ):
        assert refusals(checked, item) == []
    for item in ({}, {"content": "hi"}, {"type": "message"}, {"type": None}, "hi"):
        assert not checked.is_valid(item)
    tools = validator("Tool", Draft202012Validator)
    for tool in samples(responses.ToolParam, whole=0):
        assert refusals(tools, fitted(tool)) == []


async def test_the_answers_of_a_server_are_as_described() -> None:
    script = Script(
        [Accepted(), *(ItemAdded(each, str(at)) for at, each in enumerate(output_items()[::7]))],
        [Finished()],
    )
    server = Served(script)
    body = {"model": MODEL, "input": "hi", "tools": [{"type": "function", "name": "f"}]}
    response = validator("Response")
    answer = await server.create(body)
    assert refusals(response, answer.json) == []
    kept = await server.get(answer.json["id"])
    assert refusals(response, kept.json) == []
    event = validator("ResponseStreamEvent")
    events = (await server.create({**body, "stream": True})).events
    assert len(events) > 10
    for each in events:
        assert refusals(event, each) == []
    deleted = await server.ask("DeleteResponse", response_id=answer.json["id"])
    assert refusals(validator("DeleteResponseResponse"), deleted.json) == []
    models = await server.ask("ListModels")
    assert refusals(validator("ListModelsResponse"), models.json) == []
    model = await server.ask("GetModel", model=MODEL)
    assert refusals(validator("Model"), model.json) == []
    error = validator("ErrorResponse")
    for refused in (
        await server.get(answer.json["id"]),
        await server.create({**body, "temperature": 3}),
        await server.create(b"{"),
        await server.ask("CancelResponse", response_id="resp_1"),
    ):
        assert refused.status >= 400
        assert refusals(error, refused.json) == []
        assert not response.is_valid(refused.json)


# An operator's own changes.


def test_the_document_is_changed_by_a_merge_patch() -> None:
    patch = {
        "info": {"title": "Ours", "license": None, "x-team": {"name": "a"}},
        "servers": [{"url": "https://api.example"}],
        "paths": {"/v1/models/{model}": None, "/v1/models": {"get": {"summary": "Ours."}}},
    }
    built = Served(SimBackend(DocumentMaker())).rest.built
    changed = json.loads(openapi_document(descriptors(), built, json.dumps(patch).encode()))
    expected = json.loads(json.dumps(document()))
    expected["info"] |= {"title": "Ours", "x-team": {"name": "a"}}
    del expected["info"]["license"]
    expected["servers"] = [{"url": "https://api.example"}]
    del expected["paths"]["/v1/models/{model}"]
    expected["paths"]["/v1/models"]["get"]["summary"] = "Ours."
    assert changed == expected


@pytest.mark.parametrize(
    "override", ["", "{", "[]", '"text"', "null", "\xff", "[" * 100_000, '{"a":NaN}']
)
async def test_an_override_that_is_none_is_a_wrong_setting(tmp_path: Path, override: str) -> None:
    path = tmp_path / "override.json"
    path.write_text(override, encoding="latin-1")
    with pytest.raises(SettingsError, match=r"^openapi_override: .*override\.json: "):
        App(Settings(openapi_override=str(path)))


async def test_an_override_that_is_not_there_is_a_wrong_setting(tmp_path: Path) -> None:
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(SettingsError, match=r"^openapi_override: "):
            App(Settings(openapi_override=str(path)))


async def test_the_document_is_made_once() -> None:
    made = []

    def make(built: Any) -> bytes:
        made.append(tuple(built))
        return b"{}"

    surface = Served(SimBackend(DocumentMaker()), document=make).rest
    for _ in range(2):
        reply = await surface.handle(RestRequest("GetOpenApi"))
        assert (reply.status, reply.content_type, reply.body) == (200, "application/json", b"{}")
    assert made == [surface.built]
    assert set(surface.built) > META
