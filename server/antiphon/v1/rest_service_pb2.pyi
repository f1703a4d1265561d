from google.api import annotations_pb2 as _annotations_pb2
from google.api import httpbody_pb2 as _httpbody_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RestCreateResponseRequest(_message.Message):
    __slots__ = ("body", "request_context")
    BODY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    body: _httpbody_pb2.HttpBody
    request_context: str
    def __init__(self, body: _Optional[_Union[_httpbody_pb2.HttpBody, _Mapping]] = ..., request_context: _Optional[str] = ...) -> None: ...

class RestGetResponseRequest(_message.Message):
    __slots__ = ("response_id", "include", "stream", "starting_after", "include_obfuscation")
    RESPONSE_ID_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    STARTING_AFTER_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_OBFUSCATION_FIELD_NUMBER: _ClassVar[int]
    response_id: str
    include: _containers.RepeatedScalarFieldContainer[str]
    stream: str
    starting_after: str
    include_obfuscation: str
    def __init__(self, response_id: _Optional[str] = ..., include: _Optional[_Iterable[str]] = ..., stream: _Optional[str] = ..., starting_after: _Optional[str] = ..., include_obfuscation: _Optional[str] = ...) -> None: ...

class RestDeleteResponseRequest(_message.Message):
    __slots__ = ("response_id",)
    RESPONSE_ID_FIELD_NUMBER: _ClassVar[int]
    response_id: str
    def __init__(self, response_id: _Optional[str] = ...) -> None: ...

class RestListModelsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RestGetModelRequest(_message.Message):
    __slots__ = ("model",)
    MODEL_FIELD_NUMBER: _ClassVar[int]
    model: str
    def __init__(self, model: _Optional[str] = ...) -> None: ...

class RestGetHealthRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
