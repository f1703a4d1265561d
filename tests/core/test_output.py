"""Steps in any order: those that fit keep the rules of a stream, all others are refused."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.core.output import (
    BackendFault,
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
from antiphon.core.sequencer import Sequencer
from antiphon.json import InvalidValue
from antiphon.v1.content_pb2 import OutputTextLogprob
from antiphon.v1.item_pb2 import Item
from antiphon.v1.item_status_pb2 import ItemStatus
from antiphon.v1.response_pb2 import Response
from tests.support.items import (
    ENDINGS,
    LARGEST,
    Json,
    a_call,
    a_custom_call,
    a_message,
    after,
    an_item,
    an_mcp_call,
    begun,
    ended,
    late,
    logprob,
    output,
    reasoning,
    text_part,
)
from tests.support.stream import messages_of

# Backends that misbehave.


def odd(value: object) -> Any:
    """Returns a value whose type is not what it should be."""
    return value


NAN = OutputTextLogprob(token="t", logprob=float("nan"))

FAULTS: dict[str, tuple[list[Step], Step]] = {
    "input for nothing": ([], InputDelta("{}")),
    "input for a message": ([TextDelta("a")], InputDelta("{}")),
    "input for reasoning": ([ItemAdded(reasoning())], InputDelta("{}")),
    "input for an unknown kind": ([ItemAdded(an_item(type="x_invented"))], InputDelta("{}")),
    "input for a finished call": ([ItemAdded(a_call()), ItemDone()], InputDelta("{}")),
    "text for a call": ([ItemAdded(a_call())], TextDelta("a")),
    "text for reasoning": ([ItemAdded(reasoning())], TextDelta("a")),
    "a refusal for a call": ([ItemAdded(a_call())], RefusalDelta("no")),
    "reasoning for nothing": ([], ReasoningDelta("a")),
    "reasoning for a message": ([TextDelta("a")], ReasoningDelta("a")),
    "a summary for nothing": ([], SummaryDelta("a")),
    "a summary for a message": ([TextDelta("a")], SummaryDelta("a")),
    "a summary that begins late": ([ItemAdded(reasoning())], SummaryDelta("a", 1)),
    "a summary that skips": ([ItemAdded(reasoning()), SummaryDelta("a")], SummaryDelta("b", 2)),
    "a summary that goes back": (
        [ItemAdded(reasoning()), SummaryDelta("a"), SummaryDelta("b", 1)],
        SummaryDelta("c", 0),
    ),
    "a summary at a negative place": ([ItemAdded(reasoning())], SummaryDelta("a", -1)),
    "a summary at no place": ([ItemAdded(reasoning())], SummaryDelta("a", odd("0"))),
    "bytes as input": ([ItemAdded(a_call())], InputDelta(odd(b"{}"))),
    "nothing as input": ([ItemAdded(a_call())], InputDelta(odd(None))),
    "a surrogate as input": ([ItemAdded(a_call())], InputDelta("\ud800")),
    "a surrogate as a refusal": ([TextDelta("a")], RefusalDelta("\udfff")),
    "a surrogate as a summary": ([ItemAdded(reasoning())], SummaryDelta("\ud800")),
    "a surrogate as reasoning": ([ItemAdded(reasoning())], ReasoningDelta("\ud800")),
    "a surrogate with probabilities": (
        [TextDelta("a")],
        TextDelta("\ud800", logprobs=[logprob("a")]),
    ),
    "a number with probabilities": ([TextDelta("a")], TextDelta(odd(5), logprobs=[logprob("a")])),
    "too much input": ([ItemAdded(a_call())], InputDelta("x" * (LARGEST + 1))),
    "too much input in bytes": ([ItemAdded(a_call())], InputDelta("é" * (LARGEST // 2 + 1))),
    "a number among texts": ([TextDelta("a")], TextDeltas(odd(["a", 5]))),
    "a surrogate among texts": ([TextDelta("a")], TextDeltas(["a", "\ud800"])),
    "too much of one text": ([TextDelta("a")], TextDeltas(["a", "x" * (LARGEST + 1)])),
    "too much of a refusal": ([TextDelta("a")], RefusalDelta("x" * (LARGEST + 1))),
    "too much of a summary": ([ItemAdded(reasoning())], SummaryDelta("x" * (LARGEST + 1))),
    "too much reasoning": ([ItemAdded(reasoning())], ReasoningDelta("x" * (LARGEST + 1))),
    "too many probabilities": (
        [TextDelta("a")],
        TextDelta("a", logprobs=[logprob("a")] * LARGEST),
    ),
    "a probability that is none": ([TextDelta("a")], TextDelta("a", logprobs=[NAN])),
    "probabilities that are none": ([TextDelta("a")], TextDelta("a", logprobs=odd([0.5]))),
    "an end of another kind": ([TextDelta("a")], ItemDone(item=late("reasoning"))),
    "an end of no kind": ([TextDelta("a")], ItemDone(item=Item())),
    "an end that is no item": ([TextDelta("a")], ItemDone(item=odd("message"))),
    "an end of an unknown kind": (
        [ItemAdded(an_item(type="x_invented"))],
        ItemDone(item=an_item(type="x_invented")),
    ),
    "an end with another id": ([ItemAdded(a_call())], ItemDone(item=late("function_call", id="x"))),
    "an end with another name": (
        [ItemAdded(a_call())],
        ItemDone(item=late("function_call", name="g")),
    ),
    "an end with another call id": (
        [ItemAdded(a_call())],
        ItemDone(item=late("function_call", call_id="call_2")),
    ),
    "an end with other arguments": (
        [ItemAdded(a_call()), InputDelta("{}")],
        ItemDone(item=late("function_call", arguments="[]")),
    ),
    "an end with another input": (
        [ItemAdded(a_custom_call()), InputDelta("a")],
        ItemDone(item=late("custom_tool_call", input="b")),
    ),
    "an end with another text": ([TextDelta("a")], ItemDone(item=a_message(text_part("b")))),
    "an end with another summary": (
        [ItemAdded(reasoning()), SummaryDelta("a")],
        ItemDone(item=reasoning(summary=[{"type": "summary_text", "text": "b"}])),
    ),
    "an end that breaks the schema's rules": (
        [ItemAdded(reasoning())],
        ItemDone(item=late("reasoning", additional_properties='{"a":1}, "b": 2')),
    ),
    "an end that is too large": (
        [ItemAdded(reasoning())],
        ItemDone(item=late("reasoning", encrypted_content="x" * LARGEST)),
    ),
}
"""What was before, and a step that does not fit."""

ERRORS = (BackendFault, InvalidValue, TypeError, UnicodeEncodeError, AttributeError)


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_step_that_does_not_fit_is_refused_and_loses_nothing(name: str, ending: str) -> None:
    before, step = FAULTS[name]
    sequencer = after(*before)
    told = sequencer.following
    with pytest.raises(ERRORS):
        sequencer.apply(step)
    assert sequencer.following == told
    now = output(sequencer.current())
    final = output(ended_with_unknown(sequencer, ending))
    assert list(map(without_status, final)) == list(map(without_status, now))


def ended_with_unknown(sequencer: Sequencer, ending: str) -> Response:
    """Ends a run whose items may be of kinds that no model of the SDK knows."""
    if any(item.HasField("unknown") for item in sequencer.current().output):
        sequencer.end(ENDINGS[ending](sequencer))
        return sequencer.snapshot.response
    return ended(sequencer, ending)


def without_status(item: Json) -> Json:
    return {key: value for key, value in item.items() if key != "status"}


# Whatever comes, in whatever order.


TEXTS = st.text(st.sampled_from('aé"\\\n\u2028😀'), max_size=3)
KEYS = st.sampled_from(["", "x", "y"])
ITEMS = st.one_of(
    st.builds(lambda text: a_call(arguments=text), TEXTS),
    st.builds(lambda text: a_custom_call(input=text), TEXTS),
    st.builds(lambda text: an_mcp_call(arguments=text), TEXTS),
    st.builds(lambda texts: a_message(*map(text_part, texts)), st.lists(TEXTS, max_size=2)),
    st.builds(
        lambda texts, said: reasoning(
            summary=[{"type": "summary_text", "text": text} for text in texts],
            content=[{"type": "reasoning_text", "text": text} for text in said],
        ),
        st.lists(TEXTS, max_size=2),
        st.lists(TEXTS, max_size=2),
    ),
)
LATE = st.sampled_from(
    [
        None,
        late("reasoning", encrypted_content="words"),
        late("mcp_call", output="42"),
        late("function_call", status=ItemStatus.ITEM_STATUS_INCOMPLETE),
    ]
)
STEPS: st.SearchStrategy[list[Step]] = st.lists(
    st.one_of(
        st.builds(TextDelta, TEXTS, KEYS),
        st.builds(
            lambda text, key, many: TextDelta(text, key, [logprob(text)] * many),
            TEXTS,
            KEYS,
            st.integers(0, 2),
        ),
        st.builds(RefusalDelta, TEXTS, KEYS),
        st.builds(InputDelta, TEXTS, KEYS),
        st.builds(SummaryDelta, TEXTS, st.integers(0, 2), KEYS),
        st.builds(ReasoningDelta, TEXTS, KEYS),
        st.builds(ItemAdded, ITEMS, KEYS),
        st.builds(ItemDone, KEYS, LATE),
    ),
    max_size=30,
)


@given(STEPS, st.sampled_from(sorted(ENDINGS)))
def test_whatever_a_backend_does_the_stream_keeps_the_rules(
    steps: Sequence[Step], ending: str
) -> None:
    sequencer = begun()
    for step in steps:
        told = sequencer.following
        try:
            sequencer.apply(step)
        except BackendFault:
            # What was refused has told nothing; other items may go on.
            assert sequencer.following == told
    now = output(sequencer.current())
    final = output(ended(sequencer, ending))
    assert list(map(without_status, final)) == list(map(without_status, now))
    assert output(sequencer.current()) == final


def grouped(steps: Sequence[Step], most: int) -> list[Step]:
    """Returns the same steps, with texts that follow on as one step."""
    found: list[Step] = []
    texts: list[str] = []
    for step in steps:
        if not isinstance(step, TextDelta) or step.logprobs:
            found.append(step)
            continue
        last = found[-1] if found else None
        if isinstance(last, TextDeltas) and last.key == step.key and len(texts) < most:
            texts.append(step.text)
        else:
            texts = [step.text]
            found.append(TextDeltas(texts, step.key))
    return found


def taken(sequencer: Sequencer, steps: Sequence[Step]) -> int:
    """Takes steps as a run does, until one does not fit; returns how many were taken."""
    for number, step in enumerate(steps):
        try:
            sequencer.apply(step)
        except BackendFault:
            return number
    return len(steps)


@given(STEPS, st.sampled_from(sorted(ENDINGS)), st.integers(1, 4))
def test_however_texts_are_given_the_answer_is_the_same(
    steps: Sequence[Step], ending: str, most: int
) -> None:
    one_by_one, together, unread = begun(), begun(), begun(told=False)
    at = taken(one_by_one, deepcopy(steps))
    groups = [*grouped(deepcopy(steps[:at]), most), *deepcopy(steps[at : at + 1])]
    fit = len(groups) - (at < len(steps))
    assert taken(together, deepcopy(groups)) == fit
    assert taken(unread, groups) == fit
    now = output(one_by_one.current())
    assert output(together.current()) == output(unread.current()) == now
    final = ended(one_by_one, ending)
    assert ended(together, ending) == final
    assert messages_of(together.entries) == messages_of(one_by_one.entries)
    unread.end(ENDINGS[ending](unread))
    assert unread.snapshot.response == final
    assert unread.entries == []
