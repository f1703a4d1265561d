"""The JSON mapping: between the messages of the schema and the JSON of the Responses API.

Pure, and driven by the options of `json.proto` alone.
"""

from antiphon.json.check import check
from antiphon.json.decode import decode
from antiphon.json.encode import encode, one_line, quote, quote_all, sections
from antiphon.json.errors import InvalidValue
from antiphon.json.secret import redact
from antiphon.json.shape import shape

__all__ = [
    "InvalidValue",
    "check",
    "decode",
    "encode",
    "one_line",
    "quote",
    "quote_all",
    "redact",
    "sections",
    "shape",
]
