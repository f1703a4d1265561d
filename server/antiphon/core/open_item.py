"""Open items: items that are being written, and the events that tell of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeAlias

from antiphon.core.calls import CALLS
from antiphon.core.event import (
    CUSTOM_INPUT,
    FUNCTION_ARGUMENTS,
    MCP_ARGUMENTS,
    OUTPUT_TEXT,
    REASONING_TEXT,
    REFUSAL,
    SUMMARY_TEXT,
    DeltaEvents,
    ItemEvent,
    OutputItem,
    PartEvent,
    PlainMessage,
    TextKind,
    TextPart,
)
from antiphon.core.ids import output_item_id, prefix_of
from antiphon.core.output import BackendFault
from antiphon.v1.content_pb2 import Content, OutputText, OutputTextLogprob
from antiphon.v1.event_pb2 import ResponseStreamEvent, TextLogprob, TextTopLogprob
from antiphon.v1.item_pb2 import Item
from antiphon.v1.item_status_pb2 import ItemStatus

__all__ = ["INPUTS", "OpenItem", "Told", "tell_logprobs"]

_IN_PROGRESS: Final = ItemStatus.ITEM_STATUS_IN_PROGRESS
_COMPLETED: Final = ItemStatus.ITEM_STATUS_COMPLETED
_INCOMPLETE: Final = ItemStatus.ITEM_STATUS_INCOMPLETE

_MESSAGE_PREFIX: Final = prefix_of("message")

INPUTS: Final = {kind.item: kind for kind in (FUNCTION_ARGUMENTS, MCP_ARGUMENTS, CUSTOM_INPUT)}
"""What calls give to their tools, by the kind of the item."""
_CONTENTS: Final = {
    (kind.item, kind.content): kind for kind in (OUTPUT_TEXT, REFUSAL, REASONING_TEXT, SUMMARY_TEXT)
}
"""The texts that are parts, by the kinds of the item and of the part."""
_WITH_STATUS: Final = frozenset(
    arm.name
    for arm in Item.DESCRIPTOR.oneofs_by_name["kind"].fields
    if arm.message_type is not None
    and (status := arm.message_type.fields_by_name.get("status")) is not None
    and status.enum_type is ItemStatus.DESCRIPTOR
)
"""The kinds of items whose status follows from how far they are written."""
_WITH_ID: Final = frozenset(
    arm.name
    for arm in Item.DESCRIPTOR.oneofs_by_name["kind"].fields
    if arm.message_type is not None and "id" in arm.message_type.fields_by_name
)
"""The kinds of items that have ids."""
# A search that the server runs has no call id.
_WITH_CALL_ID: Final = CALLS - {"tool_search_call"}
_TOLD: Final = (
    "id",
    "call_id",
    "name",
    "arguments",
    "input",
    "content_text",
    "content_list",
    "content",
    "summary",
)
"""What events have told of an item before it is finished."""


Told: TypeAlias = ResponseStreamEvent | PartEvent | ItemEvent
"""An event that has no number yet."""


class OpenItem:
    """An item that is being written; opened by `message` or `of`."""

    __slots__ = (
        "_body",
        "_cut",
        "_failed",
        "_id",
        "_item",
        "_plain",
        "_told",
        "index",
        "kind",
        "output",
        "parts",
        "text",
    )

    def __init__(self, index: int, kind: str, *, told: bool) -> None:
        self._told = told
        self.index: Final = index
        self.kind: Final = kind
        self._id = ""
        self._item: Item | None = None
        """The item, without what is still being written; None while it is a plain message."""
        self._body: Any = None
        self._plain: PlainMessage | None = None
        """The item while it is a message with nothing but one text in it: most are so to their
        end, and are no message of the schema until then."""
        self.parts: dict[str, TextPart] = {}
        """The texts that are being written, by the field of their place."""
        self.text: TextPart | None = None
        """The text of a message that is being written, also among `parts`."""
        self.output: OutputItem | None = None
        """The item as it is in the output, once it is closed."""
        self._cut = False
        self._failed = False

    @classmethod
    def message(cls, index: int, response_id: str, *, told: bool = True) -> OpenItem:
        """Opens a message of the model's that has no text yet; most items are such.

        Args:
            index: its place in the output.
            response_id: the id of the response whose output it is in.
            told: whether there are events.
        """
        opened = cls(index, "message", told=told)
        opened._id = output_item_id(_MESSAGE_PREFIX, response_id, index)
        opened._plain = PlainMessage(opened._id, _IN_PROGRESS)
        return opened

    @classmethod
    def of(cls, index: int, item: Item, response_id: str, *, told: bool = True) -> OpenItem:
        """Opens an item of a backend's.

        Args:
            index: its place in the output.
            item: what is known of it, which is changed as it is written.
            response_id: the id of the response whose output it is in.
            told: whether there are events; without them, only the item is written.
        """
        opened = cls(index, item.WhichOneof("kind") or "", told=told)
        opened._item = item
        opened._body = body = _body_of(item, opened.kind)
        opened._cut = _is_cut(body, opened.kind)
        opened._failed = opened.kind == "mcp_call" and body.status == "failed"
        if body is not None:
            opened._name(response_id)
            opened._set_in_progress()
        return opened

    def _make_item(self) -> None:
        """Makes an item of what was a plain message."""
        if self._plain is not None:
            self._item = item = Item()
            self._plain.put(item)
            self._body = item.message
            self._plain = None

    def _name(self, response_id: str) -> None:
        """Gives the item the ids that its kind has, where its backend gave none."""
        body = self._body
        if self.kind in _WITH_ID:
            body.id = body.id or output_item_id(prefix_of(self.kind), response_id, self.index)
            self._id = body.id
        if self.kind in _WITH_CALL_ID and not body.call_id:
            body.call_id = output_item_id("call", response_id, self.index)

    def _set_in_progress(self) -> None:
        body = self._body
        if self.kind in _WITH_STATUS:
            body.status = _IN_PROGRESS
        elif self.kind == "mcp_call":
            body.status = "in_progress"
        if self.kind == "message":
            if body.WhichOneof("content") == "content_text":
                text = body.content_text
                body.content_list.parts.add(output_text=OutputText(text=text))
            body.content_list.SetInParent()

    def begin(self) -> Iterator[Told]:
        """Yields the events that open the item and tell the text that it came with."""
        if self._plain is not None:
            if self._told:
                yield ItemEvent("output_item_added", self.index, OutputItem(self._plain))
            return
        contents, text = self._take()
        assert self._item is not None
        if self._told:
            event = ResponseStreamEvent()
            event.output_item_added.output_index = self.index
            event.output_item_added.item.CopyFrom(self._item)
            yield event
        if self._told and self.kind == "mcp_call":
            yield self._progress("mcp_call_in_progress")
        for content, parts in contents:
            yield from self._tell_content(content, parts)
        kind = INPUTS.get(self.kind)
        if kind is not None:
            part = self.parts[""] = TextPart(self._id, self.index, 0, kind)
            if text:
                part.texts.append(text)
                if self._told:
                    yield _delta(part, text)

    def _take(self) -> tuple[list[tuple[Content, Any]], str]:
        """Takes the text away that the item came with: it is told after the item.

        Returns:
            Its parts, each with the list that it is of, and the text that is no part.
        """
        contents: list[tuple[Content, Any]] = []
        for parts in self._lists():
            if parts:
                contents.extend((part, parts) for part in parts)
                del parts[:]
        kind = INPUTS.get(self.kind)
        if kind is None:
            return contents, ""
        text: str = getattr(self._body, kind.field)
        setattr(self._body, kind.field, "")
        return contents, text

    def _lists(self) -> list[Any]:
        """Returns the lists of the item's parts."""
        if self.kind == "message":
            return [self._body.content_list.parts]
        if self.kind == "reasoning":
            return [self._body.content, self._body.summary]
        return []

    def _tell_content(self, content: Content, parts: Any) -> Iterator[Told]:
        """Yields the events of a part that is there whole.

        Args:
            content: the part.
            parts: the list of the item's that it is of.
        """
        kind = _CONTENTS.get((self.kind, content.WhichOneof("kind") or ""))
        if kind is None:
            # No event adds to such a part.
            if self._told:
                summary = self.kind == "reasoning" and parts is self._body.summary
                name = SUMMARY_TEXT.part if summary else OUTPUT_TEXT.part
                yield self._part_event(f"{name}_added", len(parts), content)
                yield self._part_event(f"{name}_done", len(parts), content)
            parts.append(content)
            return
        yield from self.open_part(kind)
        part = self.parts[kind.index]
        text = getattr(getattr(content, kind.content), kind.field)
        part.texts.append(text)
        if kind is OUTPUT_TEXT:
            part.logprobs.extend(content.output_text.logprobs)
        if self._told and text:
            event = _delta(part, text)
            if part.logprobs:
                tell_logprobs(event.output_text_delta, part.logprobs)
            yield event
        for index, annotation in enumerate(content.output_text.annotations if self._told else ()):
            event = ResponseStreamEvent()
            added = event.output_text_annotation_added
            part.place(added)
            added.annotation_index = index
            added.annotation.CopyFrom(annotation)
            yield event
        yield from self._close_part(part, content)

    def open_part(self, kind: TextKind, index: int | None = None) -> Iterator[Told]:
        """Yields the events that open a part, and before it those that close the one before it.

        Args:
            kind: the text that is written to it.
            index: its place, which has to be the next one; or None.

        Raises:
            BackendFault: the item has no such parts, or the place is not the next one.
        """
        if kind.item != self.kind:
            raise BackendFault(f"{kind.name} is written to an item that is not a {kind.item}")
        before = self.parts.get(kind.index)
        if kind is not OUTPUT_TEXT or before is not None:
            self._make_item()
        following = 0
        if self._plain is None:
            parts = self._body.summary if kind is SUMMARY_TEXT else self._lists()[0]
            following = len(parts) + (before is not None)
        if index is not None and index != following:
            raise BackendFault("a part of a summary is neither the last one nor the next one")
        if before is not None:
            yield from self._close_part(before)
        part = self.parts[kind.index] = TextPart(self._id, self.index, following, kind)
        self.text = part if kind is OUTPUT_TEXT else None
        if not self._told:
            return
        yield PartEvent(f"{kind.part}_added", part)

    def merged(self, late: Item) -> Item:
        """Returns the item as it ends, with what is known of it only now.

        Args:
            late: what is known; it may repeat what was told of the item.

        Raises:
            BackendFault: it is of another kind, or contradicts what was told.
        """
        self._make_item()
        if self._body is None or late.WhichOneof("kind") != self.kind:
            raise BackendFault("an item is finished as one of another kind")
        final = self.current()
        new = Item()
        new.CopyFrom(late)
        told, body = _body_of(final, self.kind), _body_of(new, self.kind)
        for field, value in body.ListFields():
            if field.name not in _TOLD:
                # Lists would be merged into longer ones.
                told.ClearField(field.name)
            elif value == getattr(told, field.name):
                body.ClearField(field.name)
            else:
                raise BackendFault(f"an item is finished with another {field.name}")
        final.MergeFrom(new)
        return final

    def current(self) -> Item:
        """Returns a copy of the item with all that is written so far."""
        item = Item()
        self.put(item)
        return item

    def put(self, item: Item) -> None:
        """Makes another item what this one is, with all that is written so far.

        Args:
            item: the item, empty.
        """
        if self._plain is not None:
            self._plain.put(item)
        else:
            assert self._item is not None
            item.CopyFrom(self._item)
        if self.parts:
            body = _body_of(item, self.kind)
            for part in self.parts.values():
                _put(body, part)

    def close(self, *, cut: bool = False, final: Item | None = None) -> Iterator[Told]:
        """Yields the events that close the item and its parts.

        Args:
            cut: whether it is cut short.
            final: the item as `merged` returned it, if more is known of it.
        """
        if final is not None:
            self._cut = self._cut or _is_cut(_body_of(final, self.kind), self.kind)
        self._cut = self._cut or cut
        for part in list(self.parts.values()):
            yield from self._close_part(part)
        if final is not None:
            self._make_item()
            self._item = final
            self._body = _body_of(final, self.kind)
        body = self._body
        status = _INCOMPLETE if self._cut else _COMPLETED
        if self._plain is not None:
            self._plain = PlainMessage(self._id, status, self._plain.text)
        elif self.kind in _WITH_STATUS:
            body.status = status
        elif self.kind == "mcp_call":
            failed = self._failed or body.status == "failed" or body.HasField("error")
            body.status = "failed" if failed else "incomplete" if self._cut else "completed"
            if self._told and body.status != "incomplete":
                yield self._progress(f"mcp_call_{body.status}")
        self.output = OutputItem(self._plain, self._item)
        if self._told:
            yield ItemEvent("output_item_done", self.index, self.output)

    def _close_part(self, part: TextPart, whole: Content | None = None) -> Iterator[Told]:
        """Yields the events that close a part.

        Args:
            part: the part.
            whole: the part with more than its text, if it has more.
        """
        del self.parts[part.kind.index]
        if part is self.text:
            self.text = None
        kind, text = part.kind, part.text
        if part.logprobs:
            self._make_item()
        content = None
        if self._plain is not None:
            self._plain = PlainMessage(self._id, _IN_PROGRESS, text)
        else:
            content = _put(self._body, part, whole)
        if not self._told:
            return
        done = PartEvent(kind.done, part, text)
        if part.logprobs:
            event = done.message
            tell_logprobs(event.output_text_done, part.logprobs)
            yield event
        elif kind is FUNCTION_ARGUMENTS:
            event = done.message
            event.function_call_arguments_done.name = self._body.name
            yield event
        else:
            yield done
        if not kind.part:
            return
        done = PartEvent(f"{kind.part}_done", part, text)
        cut = self._cut and kind is SUMMARY_TEXT
        if whole is None and not part.logprobs and not cut:
            yield done
            return
        event = done.message
        getattr(event, done.name).part.CopyFrom(content)
        if cut:
            event.reasoning_summary_part_done.status = "incomplete"
        yield event

    def _part_event(self, name: str, index: int, content: Content) -> ResponseStreamEvent:
        event = ResponseStreamEvent()
        told = getattr(event, name)
        told.item_id = self._id
        told.output_index = self.index
        if name.startswith("reasoning_summary"):
            told.summary_index = index
        else:
            told.content_index = index
        told.part.CopyFrom(content)
        return event

    def _progress(self, name: str) -> ResponseStreamEvent:
        event = ResponseStreamEvent()
        told = getattr(event, name)
        told.item_id = self._id
        told.output_index = self.index
        return event


def tell_logprobs(told: Any, logprobs: Iterable[OutputTextLogprob]) -> None:
    """Tells the probabilities of tokens in an event of a text.

    Args:
        told: the event.
        logprobs: the probabilities, as the part of a message has them.
    """
    for logprob in logprobs:
        likely = [
            TextTopLogprob(token=top.token, logprob=top.logprob) for top in logprob.top_logprobs
        ]
        told.logprobs.append(
            TextLogprob(token=logprob.token, logprob=logprob.logprob, top_logprobs=likely)
        )


def _body_of(item: Item, kind: str) -> Any:
    """Returns the message that an item is, or None for an item of an unknown kind."""
    return getattr(item, kind) if kind not in ("", "unknown") else None


def _is_cut(body: Any, kind: str) -> bool:
    """Whether an item says of itself that it was cut short."""
    if kind in _WITH_STATUS:
        return bool(body.status == _INCOMPLETE)
    return kind == "mcp_call" and body.status == "incomplete"


def _put(body: Any, part: TextPart, whole: Content | None = None) -> Any:
    """Puts a text where it stands in its item; returns the part that it is there, if it is one.

    Args:
        body: the item.
        part: the text.
        whole: the part, if it has more than its text.
    """
    kind = part.kind
    if not kind.content:
        setattr(body, kind.field, part.text)
        return None
    if kind is SUMMARY_TEXT:
        parts = body.summary
    elif kind is REASONING_TEXT:
        parts = body.content
    else:
        parts = body.content_list.parts
    content = parts.add()
    if whole is not None:
        content.CopyFrom(whole)
        return content
    told = getattr(content, kind.content)
    setattr(told, kind.field, part.text)
    if part.logprobs:
        told.logprobs.extend(part.logprobs)
    return content


def _delta(part: TextPart, text: str) -> ResponseStreamEvent:
    return DeltaEvents(0, part, [text]).messages[0]
