"""Formats: the texts of the formats that JSON Schema names, as patterns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

__all__ = ["WORD", "sources"]

WORD: Final = "WORD"
"""What stands for a word in a pattern."""

_MONTH_DAY: Final = r"(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])"
_NEAR_DATE: Final = rf"202[4-6]-{_MONTH_DAY}"
_DATE: Final = rf"\d{{4}}-{_MONTH_DAY}"
_CLOCK: Final = r"(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d"
_TIME: Final = rf"{_CLOCK}(?:\.\d+)?(?:Z|[+-](?:0\d|1[0-3]):[0-5]\d)"
_LABEL: Final = r"[a-z0-9](?:[a-z0-9-]{0,18}[a-z0-9])?"
_HOST: Final = rf"{_LABEL}(?:\.{_LABEL})*"
_EMAIL: Final = r"[A-Za-z0-9]+(?:[._+-][A-Za-z0-9]+)*"
_BYTE: Final = r"(?:\d|[1-9]\d|1\d\d|2[0-4]\d|25[0-5])"
_HEX: Final = r"[0-9a-f]{1,4}"
_PATH: Final = r"[A-Za-z0-9._~/-]*(?:\?[a-z0-9=&]*)?(?:#[a-z0-9]*)?"
_URI: Final = (
    rf"[a-z]{{2,8}}://{_HOST}(?::\d{{2,4}})?(?:/{_PATH})?",
    r"[a-z]{2,8}:[A-Za-z0-9][A-Za-z0-9.,:;/@=+_-]*",
)
_EMAILS: Final = (
    rf"{WORD}@example\.com",
    rf"{_EMAIL}@example\.(?:com|org)",
    rf"{_EMAIL}@(?:{_LABEL}\.)+[a-z]{{2,18}}",
)
_HOSTS: Final = (rf"{WORD}\.example\.com", _HOST)
_URIS: Final = (rf"https://example\.com/{WORD}", rf"https?://example\.com/{_PATH}", *_URI)
_REFERENCES: Final = (f"/{WORD}", rf"/{_PATH}", *_URI, r"[a-z0-9]*")

_SOURCES: Final[Mapping[str, Sequence[str]]] = {
    "date": (_NEAR_DATE, _DATE),
    "date-time": (f"{_NEAR_DATE}T{_CLOCK}Z", f"{_DATE}T{_TIME}"),
    "duration": (r"P[1-9]D|PT[1-5]\dM|P1DT12H", r"P\d+[YMWD]|PT\d+[HMS]|P\d+DT\d+[HMS]"),
    "email": _EMAILS,
    "hostname": _HOSTS,
    "idn-email": _EMAILS,
    "idn-hostname": _HOSTS,
    "ipv4": (r"192\.0\.2\.(?:[1-9]|[1-9]\d|1\d\d)", rf"{_BYTE}(?:\.{_BYTE}){{3}}"),
    "ipv6": (
        r"2001:db8::[1-9a-f][0-9a-f]{0,3}",
        rf"(?:{_HEX}:){{7}}{_HEX}|(?:{_HEX}:){{1,6}}:{_HEX}|::(?:{_HEX})?",
    ),
    "iri": _URIS,
    "iri-reference": _REFERENCES,
    "json-pointer": (rf"/{WORD}/0", r"(?:/[A-Za-z0-9_-]*)*"),
    "regex": (rf"\^{WORD}\[0-9\]\*\$", r"\^?[A-Za-z0-9_ -]*\$?"),
    "relative-json-pointer": (rf"[0-2]/{WORD}", r"\d(?:/[A-Za-z0-9_-]*)*"),
    "time": (f"{_CLOCK}Z", _TIME),
    "uri": _URIS,
    "uri-reference": _REFERENCES,
    "uri-template": (rf"https://example\.com/{WORD}/\{{id\}}", r"/\{[a-z]+\}", *_REFERENCES),
    "uuid": (
        r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
        r"[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
        r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}",
    ),
}


def sources(name: str) -> Sequence[str]:
    """Returns patterns of texts of a format, those that read best first; none if it is not known.

    Args:
        name: the format's name.
    """
    return [f"^(?:{source})$" for source in _SOURCES.get(name, ())]
