"""The OpenAPI document: derived from descriptors, http rules, JSON options and comments."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from google.api import annotations_pb2
from google.protobuf.descriptor import Descriptor, MethodDescriptor, ServiceDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from antiphon.json.plan import Field, Message, Oneof, Rules, plan
from antiphon.v1 import json_pb2

__all__ = ["comments", "openapi"]

Schema: TypeAlias = dict[str, Any]

_VARIABLE = re.compile(r"\{(\w+)(?:=[^}]*)?\}")
_VERBS: Final = ("get", "post", "delete", "put", "patch")
_INT64: Final = (-(2**63), 2**63 - 1)
_DONE: Final = (
    "Each event is a frame `event: TYPE`, `data: JSON`; the stream ends with `data: [DONE]`."
)


def comments(descriptors: FileDescriptorSet) -> dict[str, str]:
    """Returns the comment of every element of a schema by its full name.

    Args:
        descriptors: the descriptor set, with source info.
    """
    found: dict[str, str] = {}
    for file in descriptors.file:
        names = dict(_paths(file))
        for location in file.source_code_info.location:
            name = names.get(tuple(location.path))
            if name is not None and location.leading_comments:
                found[f"{file.package}.{name}"] = " ".join(location.leading_comments.split())
    return found


def _paths(file: Any) -> Iterator[tuple[tuple[int, ...], str]]:
    """Yields the source path and the name of each element of a file."""
    for at, service in enumerate(file.service):
        yield (6, at), service.name
        for inner, method in enumerate(service.method):
            yield (6, at, 2, inner), f"{service.name}.{method.name}"
    for at, message in enumerate(file.message_type):
        yield (4, at), message.name
        for inner, field in enumerate(message.field):
            yield (4, at, 2, inner), f"{message.name}.{field.name}"
        for inner, oneof in enumerate(message.oneof_decl):
            yield (4, at, 8, inner), f"{message.name}.{oneof.name}"


def openapi(
    service: ServiceDescriptor,
    described: Mapping[str, str],
    *,
    title: str,
    version: str,
    built: Collection[str],
    errors: Descriptor,
) -> Schema:
    """Returns the OpenAPI 3.1 document of a REST service.

    Args:
        service: the service, whose methods have http rules and `json_method` options.
        described: the comments, by full names.
        title: the title of the document.
        version: the version of the API.
        built: the names of the methods to list.
        errors: the message of every error's body.
    """
    return _Writer(service, described, errors).document(title, version, built)


class _Writer:
    """Writes one document."""

    def __init__(
        self, service: ServiceDescriptor, described: Mapping[str, str], errors: Descriptor
    ) -> None:
        self._service = service
        self._described = described
        self._errors = errors
        self._schemas: dict[str, Schema] = {}
        self._asked: set[str] = set()
        self._tags: dict[str, set[str]] = {}

    def document(self, title: str, version: str, built: Collection[str]) -> Schema:
        methods = [
            method
            for method in self._service.methods
            if method.name in built and _method(method).response
        ]
        for method in methods:
            for request in self._requests(method):
                self._mark(request)
        paths: Schema = {}
        for method in methods:
            verb, path = _route(method)
            paths.setdefault(path, {})[verb] = self._operation(method, verb)
        errors = self._reference(self._errors)
        answer = {"description": "An error.", "content": {"application/json": {"schema": errors}}}
        return {
            "openapi": "3.1.0",
            "info": {
                "title": title,
                "version": version,
                "description": self._comment(self._service.full_name),
                "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            },
            "servers": [{"url": "/"}],
            "security": [{}, {"key": []}],
            "paths": paths,
            "components": {
                "schemas": dict(sorted(self._schemas.items())),
                "responses": {"Error": answer},
                "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            },
        }

    def _mark(self, descriptor: Descriptor) -> None:
        """Notes that a message can be sent by a client: then it may lack what is always told."""
        if descriptor.full_name in self._asked:
            return
        self._asked.add(descriptor.full_name)
        for field in _fields(plan(descriptor)):
            if field.type is not None:
                self._mark(field.type)

    def _requests(self, method: MethodDescriptor) -> list[Descriptor]:
        return [self._message(name) for name in _method(method).requests]

    def _message(self, name: str) -> Descriptor:
        found: Descriptor = self._service.file.pool.FindMessageTypeByName(
            f"{self._service.file.package}.{name}"
        )
        return found

    def _comment(self, full_name: str) -> str:
        return self._described.get(full_name, "")

    def _operation(self, method: MethodDescriptor, verb: str) -> Schema:
        options = _method(method)
        pattern = _pattern(method)
        variables = _VARIABLE.findall(pattern)
        inputs = [field.name for field in method.input_type.fields if field.name != "body"]
        operation: Schema = {
            "operationId": method.name,
            "summary": self._comment(method.full_name),
            "tags": [pattern.split("/")[2]],
            "parameters": [
                self._parameter(method, name, in_path=name in variables) for name in inputs
            ],
            "responses": {
                "200": self._answer(options),
                "4XX": {"$ref": "#/components/responses/Error"},
                "5XX": {"$ref": "#/components/responses/Error"},
            },
        }
        if verb == "post" and any(self._members(method, inputs)):
            operation["requestBody"] = {
                "required": True,
                "content": {"application/json": {"schema": self._body(method, inputs)}},
            }
        return operation

    def _answer(self, options: json_pb2.JsonMethod) -> Schema:
        schema = self._reference(self._message(options.response))
        content: Schema = {"application/json": {"schema": schema}}
        description = "The answer."
        if options.event:
            description = f"The answer, or its events. {_DONE}"
            event = self._reference(self._message(options.event))
            content["text/event-stream"] = {"schema": {"type": "string"}, "x-event-schema": event}
        return {"description": description, "content": content}

    def _parameter(self, method: MethodDescriptor, name: str, *, in_path: bool) -> Schema:
        own = method.input_type.fields_by_name[name]
        owner, member = next(
            (
                (request.full_name, field)
                for request in self._requests(method)
                for field in _fields(plan(request))
                if field.name == name
            ),
            (
                method.input_type.full_name,
                next(field for field in _fields(plan(method.input_type)) if field.name == name),
            ),
        )
        schema = self._value(member)
        if in_path:
            schema = {**schema, "minLength": 1}
        parameter: Schema = {
            "name": own.json_name if member.key != own.name else own.name,
            "in": "path" if in_path else "query",
            "required": in_path,
            "description": self._comment(f"{owner}.{name}"),
            "schema": schema,
        }
        if member.kind == "raw":
            parameter["schema"] = {"type": "string"}
        return parameter

    def _members(self, method: MethodDescriptor, inputs: list[str]) -> Iterator[Field | Oneof]:
        """Yields the members of a method's body: those that the URL does not hold."""
        for request in self._requests(method):
            for member in plan(request).members:
                if member.name not in inputs or member.name == "request_context":
                    yield member

    def _body(self, method: MethodDescriptor, inputs: list[str]) -> Schema:
        requests = self._requests(method)
        whole = list(self._members(method, inputs))
        if len(requests) == 1 and len(whole) == len(plan(requests[0]).members):
            return self._reference(requests[0])
        schema = self._object(requests[0], whole, asked=True, open_ended=True)
        name = requests[0].name
        self._schemas[name] = schema
        return {"$ref": f"#/components/schemas/{name}"}

    def _reference(self, descriptor: Descriptor) -> Schema:
        name = descriptor.name
        if name not in self._schemas:
            # Put in first: a message may contain itself.
            self._schemas[name] = {}
            self._schemas[name].update(self._schema(descriptor))
        return {"$ref": f"#/components/schemas/{name}"}

    def _schema(self, descriptor: Descriptor) -> Schema:
        message = plan(descriptor)
        if message.bare:
            value = self._member(message, message.members[0], asked=True)
            return {**value, "description": self._comment(message.name)}
        union = message.union
        if union is not None:
            return self._union(message, union)
        asked = descriptor.full_name in self._asked
        outermost = asked and descriptor.name.endswith("Request")
        return self._object(
            descriptor,
            message.members,
            asked=asked,
            open_ended=outermost or not asked or bool(message.additional),
        )

    def _object(
        self,
        descriptor: Descriptor,
        members: Iterable[Field | Oneof],
        *,
        asked: bool,
        open_ended: bool,
        around: str = "",
    ) -> Schema:
        message = plan(descriptor)
        properties: Schema = {}
        required = []
        for key, text in message.constants:
            told = f"{key} is always `{text}`."
            properties[key] = {"type": "string", "const": text, "description": told}
            if not asked:
                required.append(key)
        for member in members:
            if isinstance(member, Field) and member.secret and not asked:
                continue
            schema = self._member(message, member, asked=asked)
            if isinstance(member, Field) and member.secret:
                schema = {**schema, "writeOnly": True}
            # A member that stands around a union is one of every arm's object.
            comment = self._comment(f"{message.name}.{member.name}")
            comment = comment or self._comment(f"{around}.{member.name}")
            properties[member.key] = {**schema, "description": comment}
            if member.required or (not asked and _always(member)):
                required.append(member.key)
        schema = {
            "type": "object",
            "description": self._comment(message.name),
            "properties": properties,
        }
        if required:
            schema["required"] = required
        if not open_ended:
            schema["additionalProperties"] = False
        return schema

    def _union(self, message: Message, union: Oneof) -> Schema:
        """Returns the schema of a tagged union: its arms by their discriminators."""
        arms: list[Schema] = []
        mapping: dict[str, str] = {}
        common = [member for member in message.members if member is not union]
        for arm in union.arms:
            if arm.type is None:
                known = sorted(each.tag for each in union.arms if each.type is not None)
                tag = {"type": "string", "not": {"enum": known}}
                other: Schema = {"type": "object", "required": [union.tag]}
                arms.append({**other, "properties": {union.tag: tag}})
                continue
            reference = self._arm(message, union, arm, common)
            if reference not in arms:
                arms.append(reference)
            mapping[arm.tag] = reference["$ref"]
        # An object without a discriminator can be what several arms imply; the first one counts.
        implied = [arm for arm in union.arms if arm.implied_by]
        return {
            "description": self._comment(message.name),
            "anyOf" if len(implied) > 1 else "oneOf": arms,
            "discriminator": {"propertyName": union.tag, "mapping": mapping},
        }

    def _arm(self, message: Message, union: Oneof, arm: Field, common: list[Any]) -> Schema:
        assert arm.type is not None
        same = [each for each in union.arms if each.type is arm.type]
        tags = [each.tag for each in same]
        name = arm.type.name
        # One component for each message and its discriminators; another union may have others.
        known = self._tags.setdefault(name, set(tags))
        if known != set(tags):
            name = f"{message.type.name}{name}"
        if name not in self._schemas:
            self._schemas[name] = {}
            asked = message.name in self._asked
            shape = plan(arm.type)
            members = [*common, *shape.members]
            schema = self._object(
                arm.type,
                members,
                asked=asked,
                open_ended=not asked or bool(shape.additional),
                around=message.name,
            )
            told = " ".join(self._comment(f"{message.name}.{each.name}") for each in same)
            tag: Schema = {"type": "string", "enum": tags, "description": told}
            schema["properties"] = {union.tag: tag, **schema["properties"]}
            # A discriminator that other members imply may be missing from what a client sends.
            needed = [] if arm.implied_by and asked else [union.tag]
            schema["required"] = [*needed, *schema.get("required", [])]
            self._schemas[name].update(schema)
        return {"$ref": f"#/components/schemas/{name}"}

    def _member(self, message: Message, member: Field | Oneof, *, asked: bool) -> Schema:
        if isinstance(member, Oneof):
            kinds = [self._value(arm) for arm in member.arms]
            schema: Schema = kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
            null = member.emit_null or (asked and not member.required)
        else:
            schema = self._value(member)
            null = member.emit_null or (asked and not member.required)
        return _nullable(schema) if null and not message.bare else schema

    def _value(self, member: Field) -> Schema:
        if member.repeated:
            schema: Schema = {"type": "array", "items": self._one(member)}
            return {**schema, **_sizes(member.rules, "Items")}
        if member.value is not None:
            values = self._one(member.value)
            rules = member.rules
            schema = {"type": "object", "additionalProperties": values}
            if rules is not None and rules.max_value_length is not None:
                schema["additionalProperties"] = {**values, "maxLength": rules.max_value_length}
            if rules is not None and rules.max_key_length is not None:
                schema["propertyNames"] = {"maxLength": rules.max_key_length}
            return {**schema, **_sizes(rules, "Properties")}
        return {**self._one(member), **_sizes(member.rules, "Length")}

    def _one(self, member: Field) -> Schema:
        rules = member.rules
        if member.type is not None:
            return self._reference(member.type)
        if member.enum is not None:
            return {"type": "string", "enum": list(member.strings.values())}
        if member.kind == "raw":
            return {"type": "object"} if rules is not None and rules.object else {}
        if member.kind == "bool":
            return {"type": "boolean"}
        if member.kind == "string":
            schema: Schema = {"type": "string"}
            if rules is not None and rules.pattern:
                schema["pattern"] = f"^{rules.pattern}$"
            if rules is not None and rules.values:
                schema["enum"] = list(rules.values)
            return schema
        schema = {"type": "integer" if member.kind == "int" else "number"}
        if member.bounds is not None:
            schema["format"] = "int64" if member.bounds == _INT64 else "int32"
        if rules is not None and rules.min is not None:
            schema["minimum"] = _whole(rules.min)
        if rules is not None and rules.max is not None:
            schema["maximum"] = _whole(rules.max)
        return schema


def _method(method: MethodDescriptor) -> json_pb2.JsonMethod:
    return method.GetOptions().Extensions[json_pb2.json_method]


def _pattern(method: MethodDescriptor) -> str:
    # The package's stubs do not know the extension's type.
    extensions: Any = method.GetOptions().Extensions
    rule = extensions[annotations_pb2.http]
    pattern: str = getattr(rule, rule.WhichOneof("pattern"))
    return pattern


def _route(method: MethodDescriptor) -> tuple[str, str]:
    extensions: Any = method.GetOptions().Extensions
    verb = extensions[annotations_pb2.http].WhichOneof("pattern")
    assert verb in _VERBS
    return verb, _VARIABLE.sub(r"{\1}", _pattern(method))


def _fields(message: Message) -> Iterator[Field]:
    for member in message.members:
        if isinstance(member, Oneof):
            yield from member.arms
        else:
            yield member


def _always(member: Field | Oneof) -> bool:
    """Whether a member is there in everything that the server sends."""
    if isinstance(member, Oneof):
        return member.emit_null or not member.tag
    printed = member.emit_null or not (member.presence or member.omit_empty)
    return printed or member.always


def _nullable(schema: Schema) -> Schema:
    kind = schema.get("type")
    if not schema:
        return schema
    if isinstance(kind, str) and "enum" not in schema:
        return {**schema, "type": [kind, "null"]}
    if "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    return {"anyOf": [schema, {"type": "null"}]}


def _sizes(rules: Rules | None, what: str) -> Schema:
    schema: Schema = {}
    if rules is not None and rules.min_length is not None:
        schema[f"min{what}"] = rules.min_length
    if rules is not None and rules.max_length is not None:
        schema[f"max{what}"] = rules.max_length
    return schema


def _whole(value: float) -> int | float:
    return int(value) if value.is_integer() else value
