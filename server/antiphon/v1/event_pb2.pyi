from antiphon.v1 import content_pb2 as _content_pb2
from antiphon.v1 import item_pb2 as _item_pb2
from antiphon.v1 import json_pb2 as _json_pb2
from antiphon.v1 import response_pb2 as _response_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ResponseStreamEvent(_message.Message):
    __slots__ = ("sequence_number", "created", "in_progress", "completed", "failed", "incomplete", "output_item_added", "output_item_done", "content_part_added", "content_part_done", "output_text_delta", "output_text_done")
    SEQUENCE_NUMBER_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    IN_PROGRESS_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    INCOMPLETE_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_ITEM_ADDED_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_ITEM_DONE_FIELD_NUMBER: _ClassVar[int]
    CONTENT_PART_ADDED_FIELD_NUMBER: _ClassVar[int]
    CONTENT_PART_DONE_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TEXT_DELTA_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TEXT_DONE_FIELD_NUMBER: _ClassVar[int]
    sequence_number: int
    created: ResponseCreatedEvent
    in_progress: ResponseInProgressEvent
    completed: ResponseCompletedEvent
    failed: ResponseFailedEvent
    incomplete: ResponseIncompleteEvent
    output_item_added: ResponseOutputItemAddedEvent
    output_item_done: ResponseOutputItemDoneEvent
    content_part_added: ResponseContentPartAddedEvent
    content_part_done: ResponseContentPartDoneEvent
    output_text_delta: ResponseTextDeltaEvent
    output_text_done: ResponseTextDoneEvent
    def __init__(self, sequence_number: _Optional[int] = ..., created: _Optional[_Union[ResponseCreatedEvent, _Mapping]] = ..., in_progress: _Optional[_Union[ResponseInProgressEvent, _Mapping]] = ..., completed: _Optional[_Union[ResponseCompletedEvent, _Mapping]] = ..., failed: _Optional[_Union[ResponseFailedEvent, _Mapping]] = ..., incomplete: _Optional[_Union[ResponseIncompleteEvent, _Mapping]] = ..., output_item_added: _Optional[_Union[ResponseOutputItemAddedEvent, _Mapping]] = ..., output_item_done: _Optional[_Union[ResponseOutputItemDoneEvent, _Mapping]] = ..., content_part_added: _Optional[_Union[ResponseContentPartAddedEvent, _Mapping]] = ..., content_part_done: _Optional[_Union[ResponseContentPartDoneEvent, _Mapping]] = ..., output_text_delta: _Optional[_Union[ResponseTextDeltaEvent, _Mapping]] = ..., output_text_done: _Optional[_Union[ResponseTextDoneEvent, _Mapping]] = ...) -> None: ...

class ResponseCreatedEvent(_message.Message):
    __slots__ = ("response",)
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    response: _response_pb2.Response
    def __init__(self, response: _Optional[_Union[_response_pb2.Response, _Mapping]] = ...) -> None: ...

class ResponseInProgressEvent(_message.Message):
    __slots__ = ("response",)
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    response: _response_pb2.Response
    def __init__(self, response: _Optional[_Union[_response_pb2.Response, _Mapping]] = ...) -> None: ...

class ResponseCompletedEvent(_message.Message):
    __slots__ = ("response",)
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    response: _response_pb2.Response
    def __init__(self, response: _Optional[_Union[_response_pb2.Response, _Mapping]] = ...) -> None: ...

class ResponseFailedEvent(_message.Message):
    __slots__ = ("response",)
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    response: _response_pb2.Response
    def __init__(self, response: _Optional[_Union[_response_pb2.Response, _Mapping]] = ...) -> None: ...

class ResponseIncompleteEvent(_message.Message):
    __slots__ = ("response",)
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    response: _response_pb2.Response
    def __init__(self, response: _Optional[_Union[_response_pb2.Response, _Mapping]] = ...) -> None: ...

class ResponseOutputItemAddedEvent(_message.Message):
    __slots__ = ("output_index", "item")
    OUTPUT_INDEX_FIELD_NUMBER: _ClassVar[int]
    ITEM_FIELD_NUMBER: _ClassVar[int]
    output_index: int
    item: _item_pb2.Item
    def __init__(self, output_index: _Optional[int] = ..., item: _Optional[_Union[_item_pb2.Item, _Mapping]] = ...) -> None: ...

class ResponseOutputItemDoneEvent(_message.Message):
    __slots__ = ("output_index", "item")
    OUTPUT_INDEX_FIELD_NUMBER: _ClassVar[int]
    ITEM_FIELD_NUMBER: _ClassVar[int]
    output_index: int
    item: _item_pb2.Item
    def __init__(self, output_index: _Optional[int] = ..., item: _Optional[_Union[_item_pb2.Item, _Mapping]] = ...) -> None: ...

class ResponseContentPartAddedEvent(_message.Message):
    __slots__ = ("item_id", "output_index", "content_index", "part")
    ITEM_ID_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_INDEX_FIELD_NUMBER: _ClassVar[int]
    CONTENT_INDEX_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    item_id: str
    output_index: int
    content_index: int
    part: _content_pb2.Content
    def __init__(self, item_id: _Optional[str] = ..., output_index: _Optional[int] = ..., content_index: _Optional[int] = ..., part: _Optional[_Union[_content_pb2.Content, _Mapping]] = ...) -> None: ...

class ResponseContentPartDoneEvent(_message.Message):
    __slots__ = ("item_id", "output_index", "content_index", "part")
    ITEM_ID_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_INDEX_FIELD_NUMBER: _ClassVar[int]
    CONTENT_INDEX_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    item_id: str
    output_index: int
    content_index: int
    part: _content_pb2.Content
    def __init__(self, item_id: _Optional[str] = ..., output_index: _Optional[int] = ..., content_index: _Optional[int] = ..., part: _Optional[_Union[_content_pb2.Content, _Mapping]] = ...) -> None: ...

class ResponseTextDeltaEvent(_message.Message):
    __slots__ = ("item_id", "output_index", "content_index", "delta", "logprobs")
    ITEM_ID_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_INDEX_FIELD_NUMBER: _ClassVar[int]
    CONTENT_INDEX_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    item_id: str
    output_index: int
    content_index: int
    delta: str
    logprobs: _containers.RepeatedCompositeFieldContainer[TextLogprob]
    def __init__(self, item_id: _Optional[str] = ..., output_index: _Optional[int] = ..., content_index: _Optional[int] = ..., delta: _Optional[str] = ..., logprobs: _Optional[_Iterable[_Union[TextLogprob, _Mapping]]] = ...) -> None: ...

class ResponseTextDoneEvent(_message.Message):
    __slots__ = ("item_id", "output_index", "content_index", "text", "logprobs")
    ITEM_ID_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_INDEX_FIELD_NUMBER: _ClassVar[int]
    CONTENT_INDEX_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    item_id: str
    output_index: int
    content_index: int
    text: str
    logprobs: _containers.RepeatedCompositeFieldContainer[TextLogprob]
    def __init__(self, item_id: _Optional[str] = ..., output_index: _Optional[int] = ..., content_index: _Optional[int] = ..., text: _Optional[str] = ..., logprobs: _Optional[_Iterable[_Union[TextLogprob, _Mapping]]] = ...) -> None: ...

class TextLogprob(_message.Message):
    __slots__ = ("token", "logprob", "top_logprobs")
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    LOGPROB_FIELD_NUMBER: _ClassVar[int]
    TOP_LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    token: str
    logprob: float
    top_logprobs: _containers.RepeatedCompositeFieldContainer[TextTopLogprob]
    def __init__(self, token: _Optional[str] = ..., logprob: _Optional[float] = ..., top_logprobs: _Optional[_Iterable[_Union[TextTopLogprob, _Mapping]]] = ...) -> None: ...

class TextTopLogprob(_message.Message):
    __slots__ = ("token", "logprob")
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    LOGPROB_FIELD_NUMBER: _ClassVar[int]
    token: str
    logprob: float
    def __init__(self, token: _Optional[str] = ..., logprob: _Optional[float] = ...) -> None: ...
