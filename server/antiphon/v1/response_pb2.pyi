from antiphon.v1 import error_pb2 as _error_pb2
from antiphon.v1 import item_pb2 as _item_pb2
from antiphon.v1 import json_pb2 as _json_pb2
from antiphon.v1 import tool_pb2 as _tool_pb2
from antiphon.v1 import usage_pb2 as _usage_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ResponseStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RESPONSE_STATUS_UNSPECIFIED: _ClassVar[ResponseStatus]
    RESPONSE_STATUS_QUEUED: _ClassVar[ResponseStatus]
    RESPONSE_STATUS_IN_PROGRESS: _ClassVar[ResponseStatus]
    RESPONSE_STATUS_COMPLETED: _ClassVar[ResponseStatus]
    RESPONSE_STATUS_FAILED: _ClassVar[ResponseStatus]
    RESPONSE_STATUS_INCOMPLETE: _ClassVar[ResponseStatus]
    RESPONSE_STATUS_CANCELLED: _ClassVar[ResponseStatus]
RESPONSE_STATUS_UNSPECIFIED: ResponseStatus
RESPONSE_STATUS_QUEUED: ResponseStatus
RESPONSE_STATUS_IN_PROGRESS: ResponseStatus
RESPONSE_STATUS_COMPLETED: ResponseStatus
RESPONSE_STATUS_FAILED: ResponseStatus
RESPONSE_STATUS_INCOMPLETE: ResponseStatus
RESPONSE_STATUS_CANCELLED: ResponseStatus

class Response(_message.Message):
    __slots__ = ("id", "created_at", "status", "background", "completed_at", "error", "incomplete_details", "instructions_text", "instructions_list", "max_output_tokens", "max_tool_calls", "metadata", "model", "output", "parallel_tool_calls", "previous_response_id", "prompt_cache_key", "reasoning", "safety_identifier", "service_tier", "store", "temperature", "text", "tool_choice_mode", "tools", "top_logprobs", "top_p", "truncation", "usage", "user", "presence_penalty", "frequency_penalty")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    BACKGROUND_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_AT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    INCOMPLETE_DETAILS_FIELD_NUMBER: _ClassVar[int]
    INSTRUCTIONS_TEXT_FIELD_NUMBER: _ClassVar[int]
    INSTRUCTIONS_LIST_FIELD_NUMBER: _ClassVar[int]
    MAX_OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MAX_TOOL_CALLS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    PARALLEL_TOOL_CALLS_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_RESPONSE_ID_FIELD_NUMBER: _ClassVar[int]
    PROMPT_CACHE_KEY_FIELD_NUMBER: _ClassVar[int]
    REASONING_FIELD_NUMBER: _ClassVar[int]
    SAFETY_IDENTIFIER_FIELD_NUMBER: _ClassVar[int]
    SERVICE_TIER_FIELD_NUMBER: _ClassVar[int]
    STORE_FIELD_NUMBER: _ClassVar[int]
    TEMPERATURE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TOOL_CHOICE_MODE_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    TOP_LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    TOP_P_FIELD_NUMBER: _ClassVar[int]
    TRUNCATION_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    PRESENCE_PENALTY_FIELD_NUMBER: _ClassVar[int]
    FREQUENCY_PENALTY_FIELD_NUMBER: _ClassVar[int]
    id: str
    created_at: int
    status: ResponseStatus
    background: bool
    completed_at: int
    error: _error_pb2.ResponseError
    incomplete_details: IncompleteDetails
    instructions_text: str
    instructions_list: _item_pb2.ItemList
    max_output_tokens: int
    max_tool_calls: int
    metadata: _containers.ScalarMap[str, str]
    model: str
    output: _containers.RepeatedCompositeFieldContainer[_item_pb2.Item]
    parallel_tool_calls: bool
    previous_response_id: str
    prompt_cache_key: str
    reasoning: Reasoning
    safety_identifier: str
    service_tier: str
    store: bool
    temperature: float
    text: TextConfig
    tool_choice_mode: str
    tools: _containers.RepeatedCompositeFieldContainer[_tool_pb2.Tool]
    top_logprobs: int
    top_p: float
    truncation: str
    usage: _usage_pb2.ResponseUsage
    user: str
    presence_penalty: float
    frequency_penalty: float
    def __init__(self, id: _Optional[str] = ..., created_at: _Optional[int] = ..., status: _Optional[_Union[ResponseStatus, str]] = ..., background: _Optional[bool] = ..., completed_at: _Optional[int] = ..., error: _Optional[_Union[_error_pb2.ResponseError, _Mapping]] = ..., incomplete_details: _Optional[_Union[IncompleteDetails, _Mapping]] = ..., instructions_text: _Optional[str] = ..., instructions_list: _Optional[_Union[_item_pb2.ItemList, _Mapping]] = ..., max_output_tokens: _Optional[int] = ..., max_tool_calls: _Optional[int] = ..., metadata: _Optional[_Mapping[str, str]] = ..., model: _Optional[str] = ..., output: _Optional[_Iterable[_Union[_item_pb2.Item, _Mapping]]] = ..., parallel_tool_calls: _Optional[bool] = ..., previous_response_id: _Optional[str] = ..., prompt_cache_key: _Optional[str] = ..., reasoning: _Optional[_Union[Reasoning, _Mapping]] = ..., safety_identifier: _Optional[str] = ..., service_tier: _Optional[str] = ..., store: _Optional[bool] = ..., temperature: _Optional[float] = ..., text: _Optional[_Union[TextConfig, _Mapping]] = ..., tool_choice_mode: _Optional[str] = ..., tools: _Optional[_Iterable[_Union[_tool_pb2.Tool, _Mapping]]] = ..., top_logprobs: _Optional[int] = ..., top_p: _Optional[float] = ..., truncation: _Optional[str] = ..., usage: _Optional[_Union[_usage_pb2.ResponseUsage, _Mapping]] = ..., user: _Optional[str] = ..., presence_penalty: _Optional[float] = ..., frequency_penalty: _Optional[float] = ...) -> None: ...

class IncompleteDetails(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...

class Reasoning(_message.Message):
    __slots__ = ("effort", "summary")
    EFFORT_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    effort: str
    summary: str
    def __init__(self, effort: _Optional[str] = ..., summary: _Optional[str] = ...) -> None: ...

class TextConfig(_message.Message):
    __slots__ = ("format", "verbosity")
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    VERBOSITY_FIELD_NUMBER: _ClassVar[int]
    format: TextFormat
    verbosity: str
    def __init__(self, format: _Optional[_Union[TextFormat, _Mapping]] = ..., verbosity: _Optional[str] = ...) -> None: ...

class TextFormat(_message.Message):
    __slots__ = ("text",)
    TEXT_FIELD_NUMBER: _ClassVar[int]
    text: TextFormatText
    def __init__(self, text: _Optional[_Union[TextFormatText, _Mapping]] = ...) -> None: ...

class TextFormatText(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
