from antiphon.v1 import event_pb2 as _event_pb2
from antiphon.v1 import item_pb2 as _item_pb2
from antiphon.v1 import json_pb2 as _json_pb2
from antiphon.v1 import response_pb2 as _response_pb2
from antiphon.v1 import tool_pb2 as _tool_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CreateResponseRequest(_message.Message):
    __slots__ = ("model", "input_text", "input_list", "instructions", "stream", "store", "previous_response_id", "background", "metadata", "temperature", "top_p", "top_logprobs", "max_output_tokens", "max_tool_calls", "parallel_tool_calls", "reasoning", "text", "tool_choice_mode", "tools", "truncation", "service_tier", "safety_identifier", "prompt_cache_key", "user", "include", "stream_options")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    MODEL_FIELD_NUMBER: _ClassVar[int]
    INPUT_TEXT_FIELD_NUMBER: _ClassVar[int]
    INPUT_LIST_FIELD_NUMBER: _ClassVar[int]
    INSTRUCTIONS_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    STORE_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_RESPONSE_ID_FIELD_NUMBER: _ClassVar[int]
    BACKGROUND_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    TEMPERATURE_FIELD_NUMBER: _ClassVar[int]
    TOP_P_FIELD_NUMBER: _ClassVar[int]
    TOP_LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    MAX_OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MAX_TOOL_CALLS_FIELD_NUMBER: _ClassVar[int]
    PARALLEL_TOOL_CALLS_FIELD_NUMBER: _ClassVar[int]
    REASONING_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TOOL_CHOICE_MODE_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    TRUNCATION_FIELD_NUMBER: _ClassVar[int]
    SERVICE_TIER_FIELD_NUMBER: _ClassVar[int]
    SAFETY_IDENTIFIER_FIELD_NUMBER: _ClassVar[int]
    PROMPT_CACHE_KEY_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_FIELD_NUMBER: _ClassVar[int]
    STREAM_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    model: str
    input_text: str
    input_list: _item_pb2.ItemList
    instructions: str
    stream: bool
    store: bool
    previous_response_id: str
    background: bool
    metadata: _containers.ScalarMap[str, str]
    temperature: float
    top_p: float
    top_logprobs: int
    max_output_tokens: int
    max_tool_calls: int
    parallel_tool_calls: bool
    reasoning: _response_pb2.Reasoning
    text: _response_pb2.TextConfig
    tool_choice_mode: str
    tools: _containers.RepeatedCompositeFieldContainer[_tool_pb2.Tool]
    truncation: str
    service_tier: str
    safety_identifier: str
    prompt_cache_key: str
    user: str
    include: _containers.RepeatedScalarFieldContainer[str]
    stream_options: StreamOptions
    def __init__(self, model: _Optional[str] = ..., input_text: _Optional[str] = ..., input_list: _Optional[_Union[_item_pb2.ItemList, _Mapping]] = ..., instructions: _Optional[str] = ..., stream: _Optional[bool] = ..., store: _Optional[bool] = ..., previous_response_id: _Optional[str] = ..., background: _Optional[bool] = ..., metadata: _Optional[_Mapping[str, str]] = ..., temperature: _Optional[float] = ..., top_p: _Optional[float] = ..., top_logprobs: _Optional[int] = ..., max_output_tokens: _Optional[int] = ..., max_tool_calls: _Optional[int] = ..., parallel_tool_calls: _Optional[bool] = ..., reasoning: _Optional[_Union[_response_pb2.Reasoning, _Mapping]] = ..., text: _Optional[_Union[_response_pb2.TextConfig, _Mapping]] = ..., tool_choice_mode: _Optional[str] = ..., tools: _Optional[_Iterable[_Union[_tool_pb2.Tool, _Mapping]]] = ..., truncation: _Optional[str] = ..., service_tier: _Optional[str] = ..., safety_identifier: _Optional[str] = ..., prompt_cache_key: _Optional[str] = ..., user: _Optional[str] = ..., include: _Optional[_Iterable[str]] = ..., stream_options: _Optional[_Union[StreamOptions, _Mapping]] = ...) -> None: ...

class StreamOptions(_message.Message):
    __slots__ = ("include_obfuscation",)
    INCLUDE_OBFUSCATION_FIELD_NUMBER: _ClassVar[int]
    include_obfuscation: bool
    def __init__(self, include_obfuscation: _Optional[bool] = ...) -> None: ...

class GetResponseRequest(_message.Message):
    __slots__ = ("response_id",)
    RESPONSE_ID_FIELD_NUMBER: _ClassVar[int]
    response_id: str
    def __init__(self, response_id: _Optional[str] = ...) -> None: ...

class DeleteResponseRequest(_message.Message):
    __slots__ = ("response_id",)
    RESPONSE_ID_FIELD_NUMBER: _ClassVar[int]
    response_id: str
    def __init__(self, response_id: _Optional[str] = ...) -> None: ...

class DeleteResponseResponse(_message.Message):
    __slots__ = ("id", "deleted")
    ID_FIELD_NUMBER: _ClassVar[int]
    DELETED_FIELD_NUMBER: _ClassVar[int]
    id: str
    deleted: bool
    def __init__(self, id: _Optional[str] = ..., deleted: _Optional[bool] = ...) -> None: ...
