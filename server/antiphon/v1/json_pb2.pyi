from google.protobuf import descriptor_pb2 as _descriptor_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor
JSON_MESSAGE_FIELD_NUMBER: _ClassVar[int]
json_message: _descriptor.FieldDescriptor
JSON_FIELD_FIELD_NUMBER: _ClassVar[int]
json_field: _descriptor.FieldDescriptor
RULES_FIELD_NUMBER: _ClassVar[int]
rules: _descriptor.FieldDescriptor
JSON_ONEOF_FIELD_NUMBER: _ClassVar[int]
json_oneof: _descriptor.FieldDescriptor
JSON_NAME_FIELD_NUMBER: _ClassVar[int]
json_name: _descriptor.FieldDescriptor

class JsonMessage(_message.Message):
    __slots__ = ("bare", "constants")
    class ConstantsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    BARE_FIELD_NUMBER: _ClassVar[int]
    CONSTANTS_FIELD_NUMBER: _ClassVar[int]
    bare: bool
    constants: _containers.ScalarMap[str, str]
    def __init__(self, bare: _Optional[bool] = ..., constants: _Optional[_Mapping[str, str]] = ...) -> None: ...

class JsonField(_message.Message):
    __slots__ = ("name", "raw", "additional", "emit_null", "omit_empty", "tag", "implied_by", "secret", "required")
    NAME_FIELD_NUMBER: _ClassVar[int]
    RAW_FIELD_NUMBER: _ClassVar[int]
    ADDITIONAL_FIELD_NUMBER: _ClassVar[int]
    EMIT_NULL_FIELD_NUMBER: _ClassVar[int]
    OMIT_EMPTY_FIELD_NUMBER: _ClassVar[int]
    TAG_FIELD_NUMBER: _ClassVar[int]
    IMPLIED_BY_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    REQUIRED_FIELD_NUMBER: _ClassVar[int]
    name: str
    raw: bool
    additional: bool
    emit_null: bool
    omit_empty: bool
    tag: str
    implied_by: str
    secret: bool
    required: bool
    def __init__(self, name: _Optional[str] = ..., raw: _Optional[bool] = ..., additional: _Optional[bool] = ..., emit_null: _Optional[bool] = ..., omit_empty: _Optional[bool] = ..., tag: _Optional[str] = ..., implied_by: _Optional[str] = ..., secret: _Optional[bool] = ..., required: _Optional[bool] = ...) -> None: ...

class JsonOneof(_message.Message):
    __slots__ = ("tag", "by_type", "emit_null", "required")
    TAG_FIELD_NUMBER: _ClassVar[int]
    BY_TYPE_FIELD_NUMBER: _ClassVar[int]
    EMIT_NULL_FIELD_NUMBER: _ClassVar[int]
    REQUIRED_FIELD_NUMBER: _ClassVar[int]
    tag: str
    by_type: bool
    emit_null: bool
    required: bool
    def __init__(self, tag: _Optional[str] = ..., by_type: _Optional[bool] = ..., emit_null: _Optional[bool] = ..., required: _Optional[bool] = ...) -> None: ...

class FieldRules(_message.Message):
    __slots__ = ("min", "max", "min_length", "max_length", "pattern", "values", "max_key_length", "max_value_length")
    MIN_FIELD_NUMBER: _ClassVar[int]
    MAX_FIELD_NUMBER: _ClassVar[int]
    MIN_LENGTH_FIELD_NUMBER: _ClassVar[int]
    MAX_LENGTH_FIELD_NUMBER: _ClassVar[int]
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    MAX_KEY_LENGTH_FIELD_NUMBER: _ClassVar[int]
    MAX_VALUE_LENGTH_FIELD_NUMBER: _ClassVar[int]
    min: float
    max: float
    min_length: int
    max_length: int
    pattern: str
    values: _containers.RepeatedScalarFieldContainer[str]
    max_key_length: int
    max_value_length: int
    def __init__(self, min: _Optional[float] = ..., max: _Optional[float] = ..., min_length: _Optional[int] = ..., max_length: _Optional[int] = ..., pattern: _Optional[str] = ..., values: _Optional[_Iterable[str]] = ..., max_key_length: _Optional[int] = ..., max_value_length: _Optional[int] = ...) -> None: ...
