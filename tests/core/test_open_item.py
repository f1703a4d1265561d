"""What the API tells of each kind of item, event by event."""

import json

import pytest

from antiphon.core.calls import check_calls, open_calls
from antiphon.core.event import event_type
from antiphon.core.open_item import OpenItem
from antiphon.core.output import (
    InputDelta,
    ItemAdded,
    ItemDone,
    ReasoningDelta,
    RefusalDelta,
    Step,
    SummaryDelta,
    TextDelta,
)
from antiphon.json import encode
from antiphon.v1.event_pb2 import ResponseStreamEvent
from antiphon.v1.item_pb2 import Item
from tests.support.items import (
    Json,
    a_call,
    a_custom_call,
    a_message,
    after,
    an_item,
    an_mcp_call,
    ended,
    late,
    logprob,
    output,
    reasoning,
    text_part,
)
from tests.support.stream import messages_of


def brief(event: Json) -> str:
    """Returns an event in one line: its type, where it belongs, and what it tells."""
    told = [event["type"].removeprefix("response.")]
    told += [
        str(event[key])
        for key in ("output_index", "content_index", "summary_index")
        if key in event
    ]
    for key in ("delta", "text", "refusal", "arguments", "input", "name", "status"):
        if key in event:
            told.append(f"{key}={event[key]}")
    if event.get("logprobs"):
        told.append("logprobs=" + ",".join(each["token"] for each in event["logprobs"]))
    part = event.get("part")
    if part is not None:
        told.append(f"{part['type']}={part.get('text', part.get('refusal'))}")
    item = event.get("item")
    if item is not None:
        told.append(f"{item['type']}:{item['status']}")
    return " ".join(told)


def events_of(*steps: Step, ending: str = "completed") -> list[str]:
    """Returns the events between the opening and the terminal ones, each in one line."""
    sequencer = after(*steps)
    ended(sequencer, ending)
    return [brief(json.loads(encode(event))) for event in messages_of(sequencer.entries)[2:-1]]


def final_items(*steps: Step, ending: str = "completed") -> list[Json]:
    """Returns the final output as JSON, which `current` tells as well."""
    sequencer = after(*steps)
    final = output(ended(sequencer, ending))
    assert output(sequencer.current()) == final
    return final


# The events of each kind, in the API's order.

TABLE: dict[str, tuple[list[Step], list[str]]] = {
    "function call": (
        [ItemAdded(a_call()), InputDelta('{"a":'), InputDelta(""), InputDelta("1}"), ItemDone()],
        [
            "output_item.added 0 function_call:in_progress",
            'function_call_arguments.delta 0 delta={"a":',
            "function_call_arguments.delta 0 delta=1}",
            'function_call_arguments.done 0 arguments={"a":1} name=f',
            "output_item.done 0 function_call:completed",
        ],
    ),
    "function call that comes whole": (
        [ItemAdded(a_call(arguments="{}", status="completed")), ItemDone()],
        [
            "output_item.added 0 function_call:in_progress",
            "function_call_arguments.delta 0 delta={}",
            "function_call_arguments.done 0 arguments={} name=f",
            "output_item.done 0 function_call:completed",
        ],
    ),
    "function call that comes with a beginning": (
        [ItemAdded(a_call(arguments="{")), InputDelta("}")],
        [
            "output_item.added 0 function_call:in_progress",
            "function_call_arguments.delta 0 delta={",
            "function_call_arguments.delta 0 delta=}",
            "function_call_arguments.done 0 arguments={} name=f",
            "output_item.done 0 function_call:completed",
        ],
    ),
    "function call without arguments": (
        [ItemAdded(a_call()), ItemDone()],
        [
            "output_item.added 0 function_call:in_progress",
            "function_call_arguments.done 0 arguments= name=f",
            "output_item.done 0 function_call:completed",
        ],
    ),
    "function call with arguments that are no JSON": (
        [ItemAdded(a_call()), InputDelta("{oh no"), ItemDone()],
        [
            "output_item.added 0 function_call:in_progress",
            "function_call_arguments.delta 0 delta={oh no",
            "function_call_arguments.done 0 arguments={oh no name=f",
            "output_item.done 0 function_call:completed",
        ],
    ),
    "function call that is repeated at its end": (
        [
            ItemAdded(a_call(call_id="call_1")),
            InputDelta("{}"),
            ItemDone(
                item=a_call(id="fc_180000", call_id="call_1", arguments="{}", status="completed")
            ),
        ],
        [
            "output_item.added 0 function_call:in_progress",
            "function_call_arguments.delta 0 delta={}",
            "function_call_arguments.done 0 arguments={} name=f",
            "output_item.done 0 function_call:completed",
        ],
    ),
    "function call that says that it was cut short": (
        [ItemAdded(a_call()), InputDelta("{"), ItemDone(item=late("function_call", status=3))],
        [
            "output_item.added 0 function_call:in_progress",
            "function_call_arguments.delta 0 delta={",
            "function_call_arguments.done 0 arguments={ name=f",
            "output_item.done 0 function_call:incomplete",
        ],
    ),
    "two function calls at once": (
        [
            ItemAdded(a_call(name="a"), "x"),
            InputDelta("{", "x"),
            ItemAdded(a_call(name="b"), "y"),
            InputDelta("[", "y"),
            InputDelta("}", "x"),
            InputDelta("]", "y"),
            ItemDone("y"),
            ItemDone("x"),
        ],
        [
            "output_item.added 0 function_call:in_progress",
            "function_call_arguments.delta 0 delta={",
            "output_item.added 1 function_call:in_progress",
            "function_call_arguments.delta 1 delta=[",
            "function_call_arguments.delta 0 delta=}",
            "function_call_arguments.delta 1 delta=]",
            "function_call_arguments.done 1 arguments=[] name=b",
            "output_item.done 1 function_call:completed",
            "function_call_arguments.done 0 arguments={} name=a",
            "output_item.done 0 function_call:completed",
        ],
    ),
    "custom tool call": (
        [ItemAdded(a_custom_call()), InputDelta("ls "), InputDelta("-l"), ItemDone()],
        [
            "output_item.added 0 custom_tool_call:in_progress",
            "custom_tool_call_input.delta 0 delta=ls ",
            "custom_tool_call_input.delta 0 delta=-l",
            "custom_tool_call_input.done 0 input=ls -l",
            "output_item.done 0 custom_tool_call:completed",
        ],
    ),
    "MCP call": (
        [
            ItemAdded(an_mcp_call()),
            InputDelta("{}"),
            ItemDone(item=late("mcp_call", output="42")),
        ],
        [
            "output_item.added 0 mcp_call:in_progress",
            "mcp_call.in_progress 0",
            "mcp_call_arguments.delta 0 delta={}",
            "mcp_call_arguments.done 0 arguments={}",
            "mcp_call.completed 0",
            "output_item.done 0 mcp_call:completed",
        ],
    ),
    "MCP call that fails": (
        [
            ItemAdded(an_mcp_call(arguments="{}")),
            ItemDone(
                item=an_mcp_call(
                    error={"type": "http_error", "code": 500, "message": "It failed."},
                    arguments="{}",
                )
            ),
        ],
        [
            "output_item.added 0 mcp_call:in_progress",
            "mcp_call.in_progress 0",
            "mcp_call_arguments.delta 0 delta={}",
            "mcp_call_arguments.done 0 arguments={}",
            "mcp_call.failed 0",
            "output_item.done 0 mcp_call:failed",
        ],
    ),
    "MCP call that comes whole and has failed": (
        [ItemAdded(an_mcp_call(status="failed"))],
        [
            "output_item.added 0 mcp_call:in_progress",
            "mcp_call.in_progress 0",
            "mcp_call_arguments.done 0 arguments=",
            "mcp_call.failed 0",
            "output_item.done 0 mcp_call:failed",
        ],
    ),
    "text, a refusal, text": (
        [TextDelta("a"), TextDelta("b"), RefusalDelta("no"), RefusalDelta("!"), TextDelta("c")],
        [
            "output_item.added 0 message:in_progress",
            "content_part.added 0 0 output_text=",
            "output_text.delta 0 0 delta=a",
            "output_text.delta 0 0 delta=b",
            "output_text.done 0 0 text=ab",
            "content_part.done 0 0 output_text=ab",
            "content_part.added 0 1 refusal=",
            "refusal.delta 0 1 delta=no",
            "refusal.delta 0 1 delta=!",
            "refusal.done 0 1 refusal=no!",
            "content_part.done 0 1 refusal=no!",
            "content_part.added 0 2 output_text=",
            "output_text.delta 0 2 delta=c",
            "output_text.done 0 2 text=c",
            "content_part.done 0 2 output_text=c",
            "output_item.done 0 message:completed",
        ],
    ),
    "a refusal alone": (
        [RefusalDelta("no"), ItemDone()],
        [
            "output_item.added 0 message:in_progress",
            "content_part.added 0 0 refusal=",
            "refusal.delta 0 0 delta=no",
            "refusal.done 0 0 refusal=no",
            "content_part.done 0 0 refusal=no",
            "output_item.done 0 message:completed",
        ],
    ),
    "text with the probabilities of its tokens": (
        [
            TextDelta("ab", logprobs=[logprob("a"), logprob("b")]),
            TextDelta("c"),
            TextDelta("", logprobs=[logprob("")]),
            TextDelta("d", logprobs=[logprob("d")]),
        ],
        [
            "output_item.added 0 message:in_progress",
            "content_part.added 0 0 output_text=",
            "output_text.delta 0 0 delta=ab logprobs=a,b",
            "output_text.delta 0 0 delta=c",
            "output_text.delta 0 0 delta= logprobs=",
            "output_text.delta 0 0 delta=d logprobs=d",
            "output_text.done 0 0 text=abcd logprobs=a,b,,d",
            "content_part.done 0 0 output_text=abcd",
            "output_item.done 0 message:completed",
        ],
    ),
    "a message that comes whole": (
        [
            ItemAdded(a_message(text_part("a"), {"type": "refusal", "refusal": "no"})),
            TextDelta("b"),
        ],
        [
            "output_item.added 0 message:in_progress",
            "content_part.added 0 0 output_text=",
            "output_text.delta 0 0 delta=a",
            "output_text.done 0 0 text=a",
            "content_part.done 0 0 output_text=a",
            "content_part.added 0 1 refusal=",
            "refusal.delta 0 1 delta=no",
            "refusal.done 0 1 refusal=no",
            "content_part.done 0 1 refusal=no",
            "content_part.added 0 2 output_text=",
            "output_text.delta 0 2 delta=b",
            "output_text.done 0 2 text=b",
            "content_part.done 0 2 output_text=b",
            "output_item.done 0 message:completed",
        ],
    ),
    "a message that comes whole as plain text": (
        [ItemAdded(an_item(type="message", role="assistant", content="a")), TextDelta("b")],
        [
            "output_item.added 0 message:in_progress",
            "content_part.added 0 0 output_text=",
            "output_text.delta 0 0 delta=a",
            "output_text.done 0 0 text=a",
            "content_part.done 0 0 output_text=a",
            "content_part.added 0 1 output_text=",
            "output_text.delta 0 1 delta=b",
            "output_text.done 0 1 text=b",
            "content_part.done 0 1 output_text=b",
            "output_item.done 0 message:completed",
        ],
    ),
    "a summary of two parts": (
        [
            ItemAdded(reasoning()),
            SummaryDelta("a"),
            SummaryDelta("b", 0),
            SummaryDelta("c", 1),
            ItemDone(),
        ],
        [
            "output_item.added 0 reasoning:in_progress",
            "reasoning_summary_part.added 0 0 summary_text=",
            "reasoning_summary_text.delta 0 0 delta=a",
            "reasoning_summary_text.delta 0 0 delta=b",
            "reasoning_summary_text.done 0 0 text=ab",
            "reasoning_summary_part.done 0 0 summary_text=ab",
            "reasoning_summary_part.added 0 1 summary_text=",
            "reasoning_summary_text.delta 0 1 delta=c",
            "reasoning_summary_text.done 0 1 text=c",
            "reasoning_summary_part.done 0 1 summary_text=c",
            "output_item.done 0 reasoning:completed",
        ],
    ),
    "reasoning": (
        [ItemAdded(reasoning()), ReasoningDelta("a"), ReasoningDelta("b"), ItemDone()],
        [
            "output_item.added 0 reasoning:in_progress",
            "content_part.added 0 0 reasoning_text=",
            "reasoning_text.delta 0 0 delta=a",
            "reasoning_text.delta 0 0 delta=b",
            "reasoning_text.done 0 0 text=ab",
            "content_part.done 0 0 reasoning_text=ab",
            "output_item.done 0 reasoning:completed",
        ],
    ),
    "reasoning and its summary in turns": (
        [
            ItemAdded(reasoning()),
            ReasoningDelta("a"),
            SummaryDelta("s"),
            ReasoningDelta("b"),
            SummaryDelta("t"),
            ItemDone(),
        ],
        [
            "output_item.added 0 reasoning:in_progress",
            "content_part.added 0 0 reasoning_text=",
            "reasoning_text.delta 0 0 delta=a",
            "reasoning_summary_part.added 0 0 summary_text=",
            "reasoning_summary_text.delta 0 0 delta=s",
            "reasoning_text.delta 0 0 delta=b",
            "reasoning_summary_text.delta 0 0 delta=t",
            "reasoning_text.done 0 0 text=ab",
            "content_part.done 0 0 reasoning_text=ab",
            "reasoning_summary_text.done 0 0 text=st",
            "reasoning_summary_part.done 0 0 summary_text=st",
            "output_item.done 0 reasoning:completed",
        ],
    ),
    "reasoning that comes whole": (
        [
            ItemAdded(
                reasoning(
                    content=[{"type": "reasoning_text", "text": "a"}],
                    summary=[{"type": "summary_text", "text": "s"}],
                )
            ),
            SummaryDelta("t", 1),
        ],
        [
            "output_item.added 0 reasoning:in_progress",
            "content_part.added 0 0 reasoning_text=",
            "reasoning_text.delta 0 0 delta=a",
            "reasoning_text.done 0 0 text=a",
            "content_part.done 0 0 reasoning_text=a",
            "reasoning_summary_part.added 0 0 summary_text=",
            "reasoning_summary_text.delta 0 0 delta=s",
            "reasoning_summary_text.done 0 0 text=s",
            "reasoning_summary_part.done 0 0 summary_text=s",
            "reasoning_summary_part.added 0 1 summary_text=",
            "reasoning_summary_text.delta 0 1 delta=t",
            "reasoning_summary_text.done 0 1 text=t",
            "reasoning_summary_part.done 0 1 summary_text=t",
            "output_item.done 0 reasoning:completed",
        ],
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_the_events_of_an_item_are_those_of_the_api(name: str) -> None:
    steps, expected = TABLE[name]
    assert events_of(*steps) == expected


OPEN: dict[str, tuple[list[Step], list[str]]] = {
    "function_call": (
        [ItemAdded(a_call()), InputDelta("{")],
        ["function_call_arguments.done 0 arguments={ name=f"],
    ),
    "custom_tool_call": (
        [ItemAdded(a_custom_call()), InputDelta("ls")],
        ["custom_tool_call_input.done 0 input=ls"],
    ),
    "mcp_call": (
        [ItemAdded(an_mcp_call()), InputDelta("{")],
        ["mcp_call_arguments.done 0 arguments={"],
    ),
    "message": (
        [TextDelta("a"), RefusalDelta("no")],
        ["refusal.done 0 1 refusal=no", "content_part.done 0 1 refusal=no"],
    ),
    "reasoning": (
        [ItemAdded(reasoning()), ReasoningDelta("a"), SummaryDelta("s")],
        [
            "reasoning_text.done 0 0 text=a",
            "content_part.done 0 0 reasoning_text=a",
            "reasoning_summary_text.done 0 0 text=s",
            "reasoning_summary_part.done 0 0 status=incomplete summary_text=s",
        ],
    ),
}
"""Items that are open at the end, and the events by which their parts are closed then."""


@pytest.mark.parametrize("kind", OPEN)
@pytest.mark.parametrize("ending", ["incomplete", "failed", "cancelled"])
def test_what_is_open_when_an_answer_is_cut_short_is_closed_as_incomplete(
    kind: str, ending: str
) -> None:
    steps, closing = OPEN[kind]
    so_far = after(*steps).following - 2
    assert events_of(*steps, ending=ending)[so_far:] == [
        *closing,
        f"output_item.done 0 {kind}:incomplete",
    ]


# Ids.


@pytest.mark.parametrize(
    ("item", "prefix", "call_id"),
    [
        (a_call(), "fc_", "call_180000"),
        (a_call(call_id="call_given"), "fc_", "call_given"),
        (a_custom_call(), "ctc_", "call_180000"),
        (a_custom_call(call_id="call_given"), "ctc_", "call_given"),
        (an_mcp_call(), "mcp_", None),
        (reasoning(), "rs_", None),
    ],
    ids=range(6),
)
def test_ids_are_made_where_the_backend_gave_none(
    item: Item, prefix: str, call_id: str | None
) -> None:
    (final,) = final_items(ItemAdded(item), ItemDone())
    assert final["id"] == f"{prefix}180000"
    assert final.get("call_id") == call_id


def test_the_call_ids_of_several_calls_differ() -> None:
    calls = final_items(*(ItemAdded(a_call(), str(at)) for at in range(3)))
    assert len({call["call_id"] for call in calls}) == 3


def test_an_item_keeps_the_id_that_its_backend_gave() -> None:
    sequencer = after(ItemAdded(a_call(id="fc_given")), InputDelta("{}"))
    ended(sequencer)
    told = [json.loads(encode(event)) for event in messages_of(sequencer.entries)[2:-1]]
    assert {event.get("item_id", event.get("item", {}).get("id")) for event in told} == {"fc_given"}


@pytest.mark.parametrize("kind", ["function", "custom_tool"])
def test_a_completed_call_waits_for_its_answer_and_one_cut_short_does_not(kind: str) -> None:
    item = a_call if kind == "function" else a_custom_call
    sequencer = after(ItemAdded(item(), "x"), ItemDone("x"), ItemAdded(item(), "y"))
    waiting = open_calls(ended(sequencer, "failed").output)
    assert waiting == {"call_180000"}
    answer = an_item(type=f"{kind}_call_output", call_id="call_180000", output="42")
    check_calls([answer], waiting)


# What is known only at the end.


def test_what_is_known_at_the_end_is_in_the_item() -> None:
    (final,) = final_items(
        ItemAdded(reasoning()),
        SummaryDelta("s"),
        ItemDone(item=late("reasoning", encrypted_content="words")),
    )
    assert final == {
        "type": "reasoning",
        "id": "rs_180000",
        "status": "completed",
        "summary": [{"type": "summary_text", "text": "s"}],
        "encrypted_content": "words",
    }


def test_the_event_before_does_not_know_what_is_known_only_at_the_end() -> None:
    sequencer = after(
        ItemAdded(reasoning()), ItemDone(item=late("reasoning", encrypted_content="words"))
    )
    added, done = messages_of(sequencer.entries)[2:]
    assert not added.output_item_added.item.reasoning.HasField("encrypted_content")
    assert done.output_item_done.item.reasoning.encrypted_content == "words"


def test_what_is_repeated_at_the_end_is_there_once() -> None:
    parts = [text_part("a"), {"type": "refusal", "refusal": "no"}]
    summary = [{"type": "summary_text", "text": "s"}]
    said, thought = final_items(
        TextDelta("a"),
        RefusalDelta("no"),
        ItemDone(item=a_message(*parts, phase="final_answer")),
        ItemAdded(reasoning()),
        SummaryDelta("s"),
        ItemDone(item=reasoning(summary=summary)),
    )
    assert (said["content"], said["phase"]) == (parts, "final_answer")
    assert thought["summary"] == summary


LISTED: list[Json] = [
    {"type": "file_search_call", "status": "in_progress", "queries": ["a", "b"]},
    {"type": "mcp_list_tools", "server_label": "s", "tools": [{"name": "t", "input_schema": {}}]},
    {
        "type": "shell_call",
        "call_id": "call_1",
        "action": {"commands": ["ls"], "timeout_ms": 5, "max_output_length": 9},
        "environment": {"type": "local"},
    },
]
"""Items with lists that no events tell of."""


@pytest.mark.parametrize("item", LISTED, ids=lambda item: item["type"])
def test_lists_that_are_repeated_at_the_end_are_there_once(item: Json) -> None:
    ended_so = {**item, "status": "completed"} if "status" in item else item
    (repeated,) = final_items(ItemAdded(an_item(**item)), ItemDone(item=an_item(**ended_so)))
    members = item.keys() - {"status"}
    assert {name: repeated[name] for name in members} == {name: item[name] for name in members}


def test_what_is_given_at_the_end_is_not_changed() -> None:
    given = late("reasoning", encrypted_content="words")
    sequencer = after(ItemAdded(reasoning()))
    sequencer.apply(ItemDone(item=given))
    assert given == late("reasoning", encrypted_content="words")


def test_a_part_that_comes_whole_keeps_all_it_has() -> None:
    citation = {"type": "file_path", "file_id": "file_1", "index": 1}
    told = json.loads(encode(a_message(text_part("a"))))["content"][0]
    whole = {
        **told,
        "annotations": [citation, citation],
        "logprobs": [json.loads(encode(logprob("a")))],
    }
    sequencer = after(ItemAdded(a_message(whole, {"type": "x_invented", "a": 1})))
    (item,) = output(sequencer.current())
    assert item["content"] == [whole, {"type": "x_invented", "a": 1}]
    assert [
        brief(json.loads(encode(event)))
        for event in messages_of(sequencer.entries)
        if "part" not in event_type(event)
    ][2:] == [
        "output_item.added 0 message:in_progress",
        "output_text.delta 0 0 delta=a logprobs=a",
        "output_text.annotation.added 0 0",
        "output_text.annotation.added 0 0",
        "output_text.done 0 0 text=a logprobs=a",
    ]


def test_a_part_of_a_kind_without_events_stays_in_its_list() -> None:
    odd = {"type": "x_invented", "a": 1}
    item = reasoning(content=[odd, odd], summary=[odd])
    opened = OpenItem.of(0, item, "resp_1")
    told = [
        event_type(event) if isinstance(event, ResponseStreamEvent) else event
        for event in opened.begin()
    ]
    assert json.loads(encode(opened.current()))["content"] == [odd, odd]
    assert json.loads(encode(opened.current()))["summary"] == [odd]
    assert told == [
        "response.output_item.added",
        *["response.content_part.added", "response.content_part.done"] * 2,
        "response.reasoning_summary_part.added",
        "response.reasoning_summary_part.done",
    ]


def test_the_probabilities_of_tokens_are_in_the_part_with_their_bytes() -> None:
    (final,) = final_items(TextDelta("a", logprobs=[logprob("a")]), TextDelta("b"))
    assert final["content"] == [
        text_part("ab", logprobs=[json.loads(encode(logprob("a")))]),
    ]
