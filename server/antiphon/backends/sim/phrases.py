"""Phrases: what a message can tell the simulator to do."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from json import JSONDecoder
from typing import Final

__all__ = [
    "NO_PHRASES",
    "NamedCall",
    "NamedCalls",
    "Phrases",
    "read_calls",
    "read_phrases",
    "without_phrases",
]

_MAX_DELTAS: Final = 10_000
_MAX_CALLS: Final = 128
_MAX_DELAY: Final = 60.0
_DELAY: Final = 0.2
_LOOKED_AT: Final = 100_000
"""The characters of a message in which phrases are looked for."""

_REPEAT: Final = re.compile(r"(?ims)^[ \t]*repeat exactly:\s?(.*)")
_HINT: Final = re.compile(r"produce|fail|in the middle|be slow|refuse|think", re.IGNORECASE)
"""What one of its words is in every other phrase."""
_PRODUCE: Final = re.compile(r"\bproduce (\d{1,9}) deltas?\b", re.IGNORECASE)
_FAIL: Final = re.compile(
    r"\bfail (?:(before|after) the first event|after (\d{1,9}) deltas?)"
    r"(?: with (server_error|rate_limit_exceeded))?\b",
    re.IGNORECASE,
)
_STOP: Final = re.compile(r"\bstop in the middle\b", re.IGNORECASE)
_BREAK: Final = re.compile(r"\bbreak off in the middle\b", re.IGNORECASE)
_SLOW: Final = re.compile(r"\bbe slow\b(?::\s*(\d{1,9}(?:\.\d{1,6})?)\s*(ms|s)\b)?", re.IGNORECASE)
_REFUSE: Final = re.compile(r"\brefuse to answer\b", re.IGNORECASE)
_THINK: Final = re.compile(r"\bthink (about it|aloud)\b", re.IGNORECASE)
_RECALL: Final = re.compile(r"\bwhat did you think\b", re.IGNORECASE)

_CALL: Final = re.compile(r"\bcall\s+", re.IGNORECASE)
_ARTICLE: Final = re.compile(r"(?:the\s+)?(?:(?:tool|function)\s+)?", re.IGNORECASE)
_NAME: Final = re.compile(r"[`'\"]?([A-Za-z0-9_.-]+)[`'\"]?")
_TIMES: Final = re.compile(r"\s+(\d{1,9})\s+times\b", re.IGNORECASE)
_WITH: Final = re.compile(r"\s+with\s+", re.IGNORECASE)
_AND: Final = re.compile(r"\s*,\s*(?:and\s+)?|\s+and\s+", re.IGNORECASE)
_INTERLEAVED: Final = re.compile(r"\s+interleaved\b", re.IGNORECASE)


def _refuse(_constant: str) -> object:
    raise ValueError


# The standard library's decoder tells where a document ends; alone it would take `NaN` for one.
_decode = JSONDecoder(parse_constant=_refuse).raw_decode


@dataclass(frozen=True, slots=True)
class Phrases:
    """What a message asks for, apart from calls.

    Args:
        repeat: the text to answer with, or None.
        deltas: how many deltas to write, or None.
        fail_before: whether to fail before the answer begins.
        fail_after: after how many deltas to fail, or None.
        fail_code: the code to fail with.
        stop: whether to be cut short in the middle.
        break_off: whether to end in the middle without an end.
        delay: the seconds between deltas.
        refuse: whether to refuse.
        think: whether to reason first.
        think_aloud: whether to write the reasoning itself, too.
        recall: whether to tell what was thought before.
    """

    repeat: str | None = None
    deltas: int | None = None
    fail_before: bool = False
    fail_after: int | None = None
    fail_code: str = "server_error"
    stop: bool = False
    break_off: bool = False
    delay: float = 0.0
    refuse: bool = False
    think: bool = False
    think_aloud: bool = False
    recall: bool = False


NO_PHRASES: Final = Phrases()
"""What most messages ask for."""


def read_phrases(text: str) -> Phrases:
    """Returns what a message asks for.

    Args:
        text: the message. `Repeat exactly:` begins a line, and all that follows it is repeated;
            other phrases may be anywhere before it.
    """
    repeat = _REPEAT.search(text)
    text = text[: _LOOKED_AT if repeat is None else min(_LOOKED_AT, repeat.start())]
    if not _HINT.search(text):
        return NO_PHRASES if repeat is None else Phrases(repeat=repeat[1])
    produce, fail, slow = _PRODUCE.search(text), _FAIL.search(text), _SLOW.search(text)
    think = _THINK.search(text)
    fail_after = None
    if fail is not None and (fail[1] or "").lower() != "before":
        fail_after = int(fail[2] or 0)
    return Phrases(
        repeat=None if repeat is None else repeat[1],
        deltas=None if produce is None else min(int(produce[1]), _MAX_DELTAS),
        fail_before=fail is not None and fail_after is None,
        fail_after=None if fail_after is None else min(fail_after, _MAX_DELTAS),
        fail_code="server_error" if fail is None else (fail[3] or "server_error").lower(),
        stop=_STOP.search(text) is not None,
        break_off=_BREAK.search(text) is not None,
        delay=0.0 if slow is None else _delay(slow),
        refuse=_REFUSE.search(text) is not None,
        think=think is not None,
        think_aloud=think is not None and think[1].lower() == "aloud",
        recall=_RECALL.search(text) is not None,
    )


def without_phrases(text: str) -> str:
    """Returns a message without what it tells the simulator to do.

    Args:
        text: the message.
    """
    repeat = _REPEAT.search(text)
    if repeat is not None:
        return repeat[1]
    if _HINT.search(text):
        for pattern in (_PRODUCE, _FAIL, _STOP, _BREAK, _SLOW, _REFUSE, _THINK, _RECALL):
            text = pattern.sub(" ", text)
    return text


def _delay(slow: re.Match[str]) -> float:
    if slow[1] is None:
        return _DELAY
    return min(float(slow[1]) / (1000 if slow[2].lower() == "ms" else 1), _MAX_DELAY)


@dataclass(frozen=True, slots=True)
class NamedCall:
    """A call that a message asks for.

    Args:
        name: the tool's name.
        given: the arguments or the input, if the message has them.
    """

    name: str
    given: str | None = None


@dataclass(frozen=True, slots=True)
class NamedCalls:
    """The calls that a message asks for.

    Args:
        calls: the calls, in order.
        interleaved: whether they are written at once.
        rest: the message without them.
    """

    calls: list[NamedCall] = field(default_factory=list)
    interleaved: bool = False
    rest: str = ""


def read_calls(text: str, names: dict[str, bool]) -> NamedCalls:
    """Returns the calls that a message asks for by name.

    Args:
        text: the message.
        names: the names of the tools, and whether each takes free text.
    """
    repeat = _REPEAT.search(text)
    before = text[: _LOOKED_AT if repeat is None else min(_LOOKED_AT, repeat.start())]
    calls: list[NamedCall] = []
    rest: list[str] = []
    interleaved = False
    at = 0
    for match in _CALL.finditer(before):
        if match.start() < at:
            continue
        if len(calls) >= _MAX_CALLS:
            break
        reader = _Reader(before, match.end(), names)
        found = reader.calls()
        if reader.at > match.end():
            calls += found
            interleaved = interleaved or reader.interleaved
            rest.append(before[at : match.start()])
            at = reader.at
    rest.append(before[at:])
    return NamedCalls(calls[:_MAX_CALLS], interleaved, " ".join(rest))


class _Reader:
    """Reads the names after one `Call`."""

    def __init__(self, text: str, at: int, names: dict[str, bool]) -> None:
        self._text = text
        self._names = names
        self.at = at
        self.interleaved = False

    def calls(self) -> list[NamedCall]:
        found: list[NamedCall] = []
        at = self.at
        while len(found) < _MAX_CALLS:
            self._skip(_ARTICLE)
            call = self._call()
            if call is None:
                # What follows an "and" that is no name is of the sentence.
                self.at = at
                break
            found += call
            at = self.at
            if not self._skip(_AND):
                break
        if len(found) > 1 and self._skip(_INTERLEAVED):
            self.interleaved = True
        return found

    def _call(self) -> list[NamedCall] | None:
        match = _NAME.match(self._text, self.at)
        name = "" if match is None else match[1].rstrip(".")
        if match is None or name not in self._names:
            return None
        self.at = match.end() if name == match[1] else match.start(1) + len(name)
        times = 1
        count = _TIMES.match(self._text, self.at)
        if count is not None:
            self.at = count.end()
            times = min(int(count[1]), _MAX_CALLS)
        return [NamedCall(name, self._given(name))] * times

    def _given(self, name: str) -> str | None:
        match = _WITH.match(self._text, self.at)
        if match is None:
            return None
        start = match.end()
        if self._names[name]:
            end = self._text.find("\n", start)
            self.at = len(self._text) if end < 0 else end
            return self._text[start : self.at]
        if not self._text.startswith("{", start):
            return None
        try:
            _, end = _decode(self._text, start)
        except (ValueError, RecursionError):
            return None
        self.at = end
        return self._text[start:end]

    def _skip(self, pattern: re.Pattern[str]) -> bool:
        match = pattern.match(self._text, self.at)
        if match is None:
            return False
        self.at = match.end()
        return True
