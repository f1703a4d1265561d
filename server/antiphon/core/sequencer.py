"""The sequencer: turns a backend's steps into the events of the API, in the API's order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from antiphon.core.errors import MAX_MESSAGE, clamped
from antiphon.core.event import (
    OUTPUT_TEXT,
    REASONING_TEXT,
    REFUSAL,
    SUMMARY_TEXT,
    DeltaEvents,
    Entry,
    Lifecycle,
    LifecycleEvent,
    MessageEvent,
    Snapshot,
    TextKind,
    TextPart,
)
from antiphon.core.open_item import INPUTS, OpenItem, Told, tell_logprobs
from antiphon.core.output import (
    Accepted,
    BackendFault,
    Failed,
    Finished,
    InputDelta,
    ItemAdded,
    ItemDone,
    ReasoningDelta,
    RefusalDelta,
    Step,
    SummaryDelta,
    TextDelta,
    TextDeltas,
)
from antiphon.json import check, redact
from antiphon.v1 import response_pb2
from antiphon.v1.event_pb2 import ResponseStreamEvent
from antiphon.v1.item_pb2 import Item
from antiphon.v1.response_pb2 import Response
from antiphon.v1.usage_pb2 import ResponseUsage

__all__ = ["ERROR_CODES", "BackendFault", "Sequencer"]

ERROR_CODES: Final = frozenset(
    {
        "server_error",
        "rate_limit_exceeded",
        "invalid_prompt",
        "vector_store_timeout",
        "invalid_image",
        "invalid_image_format",
        "invalid_base64_image",
        "invalid_image_url",
        "image_too_large",
        "image_too_small",
        "image_parse_error",
        "image_content_policy_violation",
        "invalid_image_mode",
        "image_file_too_large",
        "unsupported_image_media_type",
        "empty_image_file",
        "failed_to_download_image",
        "image_file_not_found",
    }
)
"""The closed set of `response.error.code`; any other code becomes `server_error`."""


class Sequencer:
    """Makes the events of one run, and the response that they tell of.

    Args:
        begin: the response as it begins, queued or in progress and without output.
        max_event_bytes: the greatest size of a piece of output, in UTF-8 bytes.
        told: whether there are events at all: nobody reads those of an answer that is given
            whole.
    """

    def __init__(
        self, begin: Snapshot, max_event_bytes: int = 16 * 1024 * 1024, *, told: bool = True
    ) -> None:
        self._max_event_bytes = max_event_bytes
        self._told = told
        self.snapshot = begin
        """The response as it began or, after the end, as it ended."""
        self.entries: list[Entry] = []
        """The log of all events so far, but for those that were taken away."""
        self.ended = False
        """Whether the terminal event exists; nothing follows it."""
        self.following = 0
        """The number of the next event."""
        self._output: list[OpenItem] = []
        """All items so far, whether they are open or closed."""
        self._open: dict[str, OpenItem] = {}

    def begin(self) -> None:
        """Adds the events that open a stream; a queued response waits for `progress`."""
        self._lifecycle("created")
        if self.snapshot.response.status == response_pb2.RESPONSE_STATUS_QUEUED:
            self._lifecycle("queued")
        else:
            self._lifecycle("in_progress")

    def progress(self) -> None:
        """Adds the event that a queued response is in progress."""
        if self.snapshot.response.status == response_pb2.RESPONSE_STATUS_QUEUED:
            response = Response()
            response.CopyFrom(self.snapshot.response)
            response.status = response_pb2.RESPONSE_STATUS_IN_PROGRESS
            self.snapshot = self.snapshot.later(response)
            self._lifecycle("in_progress")

    def apply(self, step: Step) -> Finished | Failed | None:
        """Adds the events of one step.

        Args:
            step: the step. A step that ends the answer closes its items and is returned; `end`
                adds the terminal event, after the response has been stored.

        Raises:
            BackendFault: the step does not fit what came before.
        """
        if isinstance(step, TextDeltas):
            self._text(step.key, step.texts)
        elif isinstance(step, TextDelta):
            if step.logprobs:
                self._text_with_logprobs(step)
            else:
                self._text(step.key, (step.text,))
        elif isinstance(step, InputDelta):
            self._input(step)
        elif isinstance(step, RefusalDelta):
            opened = self._open.get(step.key) or self._add_message(step.key)
            self._write(opened, REFUSAL, step.text)
        elif isinstance(step, SummaryDelta):
            self._write(self._opened(step.key), SUMMARY_TEXT, step.text, step.index)
        elif isinstance(step, ReasoningDelta):
            self._write(self._opened(step.key), REASONING_TEXT, step.text)
        elif isinstance(step, ItemAdded):
            self._add(step.item, step.key)
        elif isinstance(step, ItemDone):
            self._finish(step)
        elif isinstance(step, Finished | Failed):
            return step
        elif not isinstance(step, Accepted):
            raise BackendFault("a step is of no known kind")
        return None

    def current(self) -> Response:
        """Returns the response as it is now, with the output so far."""
        response = Response()
        response.CopyFrom(self.snapshot.response)
        if not self.ended:
            self._put_output(response)
        return response

    def complete(self, end: Finished, at: int) -> Response:
        """Closes all items and returns the response as it ends.

        Args:
            end: how the backend finished.
            at: the time, in seconds since 1970.

        Raises:
            InvalidValue: the reason is none of the API's.
        """
        if end.incomplete:
            check(response_pb2.IncompleteDetails(reason=end.incomplete))
        self._close_all(cut=bool(end.incomplete))
        response = self._ending(end.usage)
        if end.incomplete:
            response.status = response_pb2.RESPONSE_STATUS_INCOMPLETE
            response.incomplete_details.reason = end.incomplete
        else:
            response.status = response_pb2.RESPONSE_STATUS_COMPLETED
            response.completed_at = at
        return response

    def fail(self, end: Failed) -> Response:
        """Closes all items as incomplete and returns the failed response.

        Args:
            end: why it failed.
        """
        message = clamped(end.message, MAX_MESSAGE)
        self._close_all(cut=True)
        response = self._ending(end.usage)
        response.status = response_pb2.RESPONSE_STATUS_FAILED
        response.error.code = end.code if end.code in ERROR_CODES else "server_error"
        response.error.message = message
        return response

    def cancel(self) -> Response:
        """Closes all items as incomplete and returns the cancelled response."""
        self._close_all(cut=True)
        response = self._ending(None)
        response.status = response_pb2.RESPONSE_STATUS_CANCELLED
        return response

    def end(self, response: Response) -> None:
        """Adds the terminal event, once.

        Args:
            response: the response as `complete`, `fail` or `cancel` returned it.
        """
        if self.ended:
            raise BackendFault("a run ends once")
        self.ended = True
        output = [each.output for each in self._output if each.output is not None]
        self.snapshot = self.snapshot.later(response, output)
        names: dict[int, Lifecycle] = {
            response_pb2.RESPONSE_STATUS_COMPLETED: "completed",
            response_pb2.RESPONSE_STATUS_INCOMPLETE: "incomplete",
        }
        # A cancelled response ends in `response.failed` too: the API has no other event for it.
        self._lifecycle(names.get(response.status, "failed"))

    def _ending(self, usage: ResponseUsage | None) -> Response:
        response = Response()
        response.CopyFrom(self.snapshot.response)
        self._put_output(response)
        if usage is not None:
            response.usage.CopyFrom(usage)
        return response

    def _put_output(self, response: Response) -> None:
        for each in self._output:
            each.put(response.output.add())

    def _lifecycle(self, name: Lifecycle) -> None:
        if not self._told:
            return
        self.entries.append(LifecycleEvent(self.following, name, self.snapshot))
        self.following += 1

    def _tell(self, events: Iterable[Told]) -> None:
        for event in events:
            event.sequence_number = number = self.following
            self.following = number + 1
            if isinstance(event, ResponseStreamEvent):
                self.entries.append(MessageEvent(number, event))
            else:
                self.entries.append(event)

    def _text(self, key: str, texts: Sequence[str]) -> None:
        """Adds text to a message; most steps are this one."""
        whole = "".join(texts)
        if not whole.isascii():
            # A lone surrogate fails here, not in the middle of an encoding later.
            whole.encode()
        most = self._max_event_bytes
        if len(whole) * 4 > most and any(len(text.encode()) > most for text in texts):
            raise _too_large()
        part = self._text_part(key)
        if whole:
            self._add_text(part, whole, list(filter(None, texts)))

    def _text_part(self, key: str) -> TextPart:
        opened = self._open.get(key)
        part = opened.text if opened is not None else None
        return part or self._part(opened or self._add_message(key), OUTPUT_TEXT)

    def _text_with_logprobs(self, step: TextDelta) -> None:
        for logprob in step.logprobs:
            check(logprob)
        part = self._text_part(step.key)
        message = DeltaEvents(0, part, [step.text]).messages[0]
        told = message.output_text_delta
        tell_logprobs(told, step.logprobs)
        if message.ByteSize() > self._max_event_bytes:
            raise _too_large()
        part.texts.append(told.delta)
        part.logprobs.extend(step.logprobs)
        if self._told:
            self._tell([message])

    def _input(self, step: InputDelta) -> None:
        opened = self._opened(step.key)
        kind = INPUTS.get(opened.kind)
        if kind is None:
            raise BackendFault("input is written to an item that is not a call of a tool")
        self._write(opened, kind, step.text)

    def _write(self, opened: OpenItem, kind: TextKind, text: str, index: int | None = None) -> None:
        """Adds text to an item.

        Args:
            opened: the item.
            kind: what text it is.
            text: the text.
            index: the place of its part, if the backend says so.
        """
        if not isinstance(text, str):
            raise BackendFault("a text is not a string")
        # A lone surrogate fails here, not in the middle of an encoding later.
        if len(text.encode()) > self._max_event_bytes:
            raise _too_large()
        part = self._part(opened, kind, index)
        if text:
            self._add_text(part, text, (text,))

    def _add_text(self, part: TextPart, whole: str, deltas: Sequence[str]) -> None:
        part.texts.append(whole)
        if self._told:
            self.entries.append(DeltaEvents(self.following, part, deltas))
            self.following += len(deltas)

    def _part(self, opened: OpenItem, kind: TextKind, index: int | None = None) -> TextPart:
        """Returns the part of an item that text is added to, which is opened if need be."""
        part = opened.parts.get(kind.index)
        if part is None or part.kind is not kind or index not in (None, part.index):
            self._tell(opened.open_part(kind, index))
            part = opened.parts[kind.index]
        return part

    def _opened(self, key: str) -> OpenItem:
        opened = self._open.get(key)
        if opened is None:
            raise BackendFault("text is written to an item that is not open")
        return opened

    def _add_message(self, key: str) -> OpenItem:
        response_id = self.snapshot.response.id
        return self._enter(OpenItem.message(len(self._output), response_id, told=self._told), key)

    def _add(self, item: Item, key: str) -> OpenItem:
        if key in self._open:
            raise BackendFault("an item is added under the key of one that is open")
        if item.ByteSize() > self._max_event_bytes:
            raise _too_large()
        # A backend may give the tools of its request back as those that it found.
        redact(item)
        opened = OpenItem.of(len(self._output), item, self.snapshot.response.id, told=self._told)
        check(item)
        return self._enter(opened, key)

    def _enter(self, opened: OpenItem, key: str) -> OpenItem:
        self._open[key] = opened
        self._output.append(opened)
        self._tell(opened.begin())
        return opened

    def _finish(self, step: ItemDone) -> None:
        opened = self._open.get(step.key)
        if opened is None:
            raise BackendFault("an item is finished that is not open")
        final = None
        if step.item is not None:
            if step.item.ByteSize() > self._max_event_bytes:
                raise _too_large()
            final = opened.merged(step.item)
            redact(final)
            check(final)
        # Only now: an item that cannot be finished so is finished when the run ends.
        del self._open[step.key]
        self._tell(opened.close(final=final))

    def _close_all(self, *, cut: bool) -> None:
        for opened in self._open.values():
            self._tell(opened.close(cut=cut))
        self._open.clear()


def _too_large() -> BackendFault:
    return BackendFault("a piece of output is too large")
