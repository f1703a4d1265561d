"""The sequencer: turns a backend's steps into the events of the API, in the API's order."""

from __future__ import annotations

from typing import Any, Final

from antiphon.core.errors import MAX_MESSAGE, clamped
from antiphon.core.event import (
    Event,
    Lifecycle,
    LifecycleEvent,
    MessageEvent,
    Snapshot,
    TextDeltaEvent,
    TextPart,
)
from antiphon.core.ids import output_item_id, prefix_of
from antiphon.core.output import Accepted, Failed, Finished, ItemAdded, ItemDone, Step, TextDelta
from antiphon.json import check, redact
from antiphon.v1 import response_pb2
from antiphon.v1.content_pb2 import Content, OutputText
from antiphon.v1.event_pb2 import ResponseStreamEvent
from antiphon.v1.item_pb2 import Item
from antiphon.v1.item_status_pb2 import ItemStatus
from antiphon.v1.message_pb2 import Message, Role
from antiphon.v1.response_pb2 import Response
from antiphon.v1.usage_pb2 import ResponseUsage

__all__ = ["BackendFault", "Sequencer"]

_IN_PROGRESS: Final = ItemStatus.ITEM_STATUS_IN_PROGRESS
_COMPLETED: Final = ItemStatus.ITEM_STATUS_COMPLETED
_INCOMPLETE: Final = ItemStatus.ITEM_STATUS_INCOMPLETE

_ERROR_CODES: Final = frozenset(
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


class BackendFault(Exception):
    """A backend took a step that no order of events allows."""


class _OpenItem:
    """An item that is being written."""

    __slots__ = ("index", "item", "part")

    def __init__(self, index: int, item: Item) -> None:
        self.index = index
        self.item = item
        self.part: TextPart | None = None


class Sequencer:
    """Makes the events of one run, and the response that they tell of.

    Args:
        response: the response as it begins, queued or in progress and without output. It is not
            changed.
        max_event_bytes: the greatest size of a piece of output, in UTF-8 bytes.
    """

    def __init__(self, response: Response, max_event_bytes: int = 16 * 1024 * 1024) -> None:
        self._max_event_bytes = max_event_bytes
        self.snapshot = Snapshot(response)
        """The response as it began or, after the end, as it ended."""
        self.events: list[Event] = []
        """All events so far that have not been taken away."""
        self.ended = False
        """Whether the terminal event exists; nothing follows it."""
        self._next = 0
        self._output: list[Item] = []
        self._open: dict[str, _OpenItem] = {}

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
            self.snapshot = Snapshot(response)
            self._lifecycle("in_progress")

    def apply(self, step: Step) -> Finished | Failed | None:
        """Adds the events of one step.

        Args:
            step: the step. A step that ends the answer closes its items and is returned; `end`
                adds the terminal event, after the response has been stored.

        Raises:
            BackendFault: the step does not fit what came before.
        """
        if step.__class__ is TextDelta:
            self._text(step)
        elif isinstance(step, ItemAdded):
            self._add(step.item, step.key)
        elif isinstance(step, ItemDone):
            opened = self._open.pop(step.key, None)
            if opened is None:
                raise BackendFault("an item is finished that is not open")
            self._close(opened, _COMPLETED)
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
            response.output.extend(self._output)
            for opened in self._open.values():
                _fill(response.output[opened.index], opened)
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
        self._close_all(_INCOMPLETE if end.incomplete else _COMPLETED)
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
        self._close_all(_INCOMPLETE)
        response = self._ending(end.usage)
        response.status = response_pb2.RESPONSE_STATUS_FAILED
        response.error.code = end.code if end.code in _ERROR_CODES else "server_error"
        response.error.message = message
        return response

    def cancel(self) -> Response:
        """Closes all items as incomplete and returns the cancelled response."""
        self._close_all(_INCOMPLETE)
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
        self.snapshot = Snapshot(response)
        names: dict[int, Lifecycle] = {
            response_pb2.RESPONSE_STATUS_COMPLETED: "completed",
            response_pb2.RESPONSE_STATUS_INCOMPLETE: "incomplete",
        }
        # A cancelled response ends in `response.failed` too: the API has no other event for it.
        self._lifecycle(names.get(response.status, "failed"))

    def _ending(self, usage: ResponseUsage | None) -> Response:
        response = Response()
        response.CopyFrom(self.snapshot.response)
        response.output.extend(self._output)
        if usage is not None:
            response.usage.CopyFrom(usage)
        return response

    def _lifecycle(self, name: Lifecycle) -> None:
        self.events.append(LifecycleEvent(self._next, name, self.snapshot))
        self._next += 1

    def _event(self) -> ResponseStreamEvent:
        event = ResponseStreamEvent(sequence_number=self._next)
        self._next += 1
        return event

    def _text(self, step: TextDelta) -> None:
        opened = self._open.get(step.key)
        if opened is None:
            item = Item(message=Message(role=Role.ROLE_ASSISTANT))
            opened = self._add(item, step.key)
        part = opened.part
        if part is None:
            part = self._open_part(opened)
        text = step.text
        if text:
            if len(text) * 4 > self._max_event_bytes < len(text.encode()):
                raise _too_large()
            # Called on the class, it refuses what is not a string, such as bytes.
            if not str.isascii(text):
                # A lone surrogate fails here, not in the middle of an encoding later.
                text.encode()
            part.texts.append(text)
            self.events.append(TextDeltaEvent(self._next, part, text))
            self._next += 1

    def _add(self, item: Item, key: str) -> _OpenItem:
        if key in self._open:
            raise BackendFault("an item is added under the key of one that is open")
        if item.ByteSize() > self._max_event_bytes:
            raise _too_large()
        # A backend may give the tools of its request back as those that it found.
        redact(item)
        opened = _OpenItem(len(self._output), item)
        self._name(opened)
        if item.WhichOneof("kind") == "message":
            item.message.status = _IN_PROGRESS
            item.message.content_list.SetInParent()
        check(item)
        self._open[key] = opened
        self._output.append(item)
        event = self._event()
        added = event.output_item_added
        added.output_index = opened.index
        added.item.CopyFrom(item)
        self.events.append(MessageEvent(event))
        return opened

    def _name(self, opened: _OpenItem) -> None:
        """Gives an item an id, if its kind has any and its backend gave it none."""
        kind = opened.item.WhichOneof("kind") or ""
        body: Any = getattr(opened.item, kind) if kind not in ("", "unknown") else None
        if body is not None and "id" in body.DESCRIPTOR.fields_by_name and not body.id:
            body.id = output_item_id(prefix_of(kind), self.snapshot.response.id, opened.index)

    def _open_part(self, opened: _OpenItem) -> TextPart:
        if opened.item.WhichOneof("kind") != "message":
            raise BackendFault("text is written to an item that is not a message")
        part = opened.part = TextPart(opened.item.message.id, opened.index, 0)
        event = self._event()
        added = event.content_part_added
        added.item_id = part.item_id
        added.output_index = part.output_index
        added.content_index = part.content_index
        added.part.output_text.SetInParent()
        self.events.append(MessageEvent(event))
        return part

    def _close_all(self, status: ItemStatus.ValueType) -> None:
        for opened in self._open.values():
            self._close(opened, status)
        self._open.clear()

    def _close(self, opened: _OpenItem, status: ItemStatus.ValueType) -> None:
        part = opened.part
        if part is not None:
            text = "".join(part.texts)
            event = self._event()
            done = event.output_text_done
            done.item_id = part.item_id
            done.output_index = part.output_index
            done.content_index = part.content_index
            done.text = text
            self.events.append(MessageEvent(event))
            event = self._event()
            closed = event.content_part_done
            closed.item_id = part.item_id
            closed.output_index = part.output_index
            closed.content_index = part.content_index
            closed.part.output_text.text = text
            self.events.append(MessageEvent(event))
        _fill(opened.item, opened)
        if opened.item.WhichOneof("kind") == "message":
            opened.item.message.status = status
        event = self._event()
        finished = event.output_item_done
        finished.output_index = opened.index
        finished.item.CopyFrom(opened.item)
        self.events.append(MessageEvent(event))


def _too_large() -> BackendFault:
    return BackendFault("a piece of output is too large")


def _fill(item: Item, opened: _OpenItem) -> None:
    """Puts the text written so far into a message."""
    if opened.part is not None:
        text = OutputText(text="".join(opened.part.texts))
        item.message.content_list.parts.append(Content(output_text=text))
