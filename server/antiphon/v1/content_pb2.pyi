from antiphon.v1 import json_pb2 as _json_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Content(_message.Message):
    __slots__ = ("input_text", "output_text", "unknown")
    INPUT_TEXT_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TEXT_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    input_text: InputText
    output_text: OutputText
    unknown: str
    def __init__(self, input_text: _Optional[_Union[InputText, _Mapping]] = ..., output_text: _Optional[_Union[OutputText, _Mapping]] = ..., unknown: _Optional[str] = ...) -> None: ...

class InputText(_message.Message):
    __slots__ = ("text", "additional_properties")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    ADDITIONAL_PROPERTIES_FIELD_NUMBER: _ClassVar[int]
    text: str
    additional_properties: str
    def __init__(self, text: _Optional[str] = ..., additional_properties: _Optional[str] = ...) -> None: ...

class OutputText(_message.Message):
    __slots__ = ("text", "annotations", "logprobs", "additional_properties")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    ANNOTATIONS_FIELD_NUMBER: _ClassVar[int]
    LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    ADDITIONAL_PROPERTIES_FIELD_NUMBER: _ClassVar[int]
    text: str
    annotations: _containers.RepeatedCompositeFieldContainer[Annotation]
    logprobs: _containers.RepeatedCompositeFieldContainer[OutputTextLogprob]
    additional_properties: str
    def __init__(self, text: _Optional[str] = ..., annotations: _Optional[_Iterable[_Union[Annotation, _Mapping]]] = ..., logprobs: _Optional[_Iterable[_Union[OutputTextLogprob, _Mapping]]] = ..., additional_properties: _Optional[str] = ...) -> None: ...

class ContentList(_message.Message):
    __slots__ = ("parts",)
    PARTS_FIELD_NUMBER: _ClassVar[int]
    parts: _containers.RepeatedCompositeFieldContainer[Content]
    def __init__(self, parts: _Optional[_Iterable[_Union[Content, _Mapping]]] = ...) -> None: ...

class Annotation(_message.Message):
    __slots__ = ("file_citation", "url_citation", "container_file_citation", "file_path", "unknown")
    FILE_CITATION_FIELD_NUMBER: _ClassVar[int]
    URL_CITATION_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_FILE_CITATION_FIELD_NUMBER: _ClassVar[int]
    FILE_PATH_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    file_citation: FileCitation
    url_citation: UrlCitation
    container_file_citation: ContainerFileCitation
    file_path: FilePath
    unknown: str
    def __init__(self, file_citation: _Optional[_Union[FileCitation, _Mapping]] = ..., url_citation: _Optional[_Union[UrlCitation, _Mapping]] = ..., container_file_citation: _Optional[_Union[ContainerFileCitation, _Mapping]] = ..., file_path: _Optional[_Union[FilePath, _Mapping]] = ..., unknown: _Optional[str] = ...) -> None: ...

class FileCitation(_message.Message):
    __slots__ = ("file_id", "filename", "index", "additional_properties")
    FILE_ID_FIELD_NUMBER: _ClassVar[int]
    FILENAME_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    ADDITIONAL_PROPERTIES_FIELD_NUMBER: _ClassVar[int]
    file_id: str
    filename: str
    index: int
    additional_properties: str
    def __init__(self, file_id: _Optional[str] = ..., filename: _Optional[str] = ..., index: _Optional[int] = ..., additional_properties: _Optional[str] = ...) -> None: ...

class UrlCitation(_message.Message):
    __slots__ = ("url", "title", "start_index", "end_index", "additional_properties")
    URL_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    START_INDEX_FIELD_NUMBER: _ClassVar[int]
    END_INDEX_FIELD_NUMBER: _ClassVar[int]
    ADDITIONAL_PROPERTIES_FIELD_NUMBER: _ClassVar[int]
    url: str
    title: str
    start_index: int
    end_index: int
    additional_properties: str
    def __init__(self, url: _Optional[str] = ..., title: _Optional[str] = ..., start_index: _Optional[int] = ..., end_index: _Optional[int] = ..., additional_properties: _Optional[str] = ...) -> None: ...

class ContainerFileCitation(_message.Message):
    __slots__ = ("container_id", "file_id", "filename", "start_index", "end_index", "additional_properties")
    CONTAINER_ID_FIELD_NUMBER: _ClassVar[int]
    FILE_ID_FIELD_NUMBER: _ClassVar[int]
    FILENAME_FIELD_NUMBER: _ClassVar[int]
    START_INDEX_FIELD_NUMBER: _ClassVar[int]
    END_INDEX_FIELD_NUMBER: _ClassVar[int]
    ADDITIONAL_PROPERTIES_FIELD_NUMBER: _ClassVar[int]
    container_id: str
    file_id: str
    filename: str
    start_index: int
    end_index: int
    additional_properties: str
    def __init__(self, container_id: _Optional[str] = ..., file_id: _Optional[str] = ..., filename: _Optional[str] = ..., start_index: _Optional[int] = ..., end_index: _Optional[int] = ..., additional_properties: _Optional[str] = ...) -> None: ...

class FilePath(_message.Message):
    __slots__ = ("file_id", "index", "additional_properties")
    FILE_ID_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    ADDITIONAL_PROPERTIES_FIELD_NUMBER: _ClassVar[int]
    file_id: str
    index: int
    additional_properties: str
    def __init__(self, file_id: _Optional[str] = ..., index: _Optional[int] = ..., additional_properties: _Optional[str] = ...) -> None: ...

class OutputTextLogprob(_message.Message):
    __slots__ = ("token", "bytes", "logprob", "top_logprobs")
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    LOGPROB_FIELD_NUMBER: _ClassVar[int]
    TOP_LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    token: str
    bytes: _containers.RepeatedScalarFieldContainer[int]
    logprob: float
    top_logprobs: _containers.RepeatedCompositeFieldContainer[OutputTextTopLogprob]
    def __init__(self, token: _Optional[str] = ..., bytes: _Optional[_Iterable[int]] = ..., logprob: _Optional[float] = ..., top_logprobs: _Optional[_Iterable[_Union[OutputTextTopLogprob, _Mapping]]] = ...) -> None: ...

class OutputTextTopLogprob(_message.Message):
    __slots__ = ("token", "bytes", "logprob")
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    LOGPROB_FIELD_NUMBER: _ClassVar[int]
    token: str
    bytes: _containers.RepeatedScalarFieldContainer[int]
    logprob: float
    def __init__(self, token: _Optional[str] = ..., bytes: _Optional[_Iterable[int]] = ..., logprob: _Optional[float] = ...) -> None: ...
