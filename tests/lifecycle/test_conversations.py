import asyncio
from collections.abc import Mapping
from typing import Any

import grpc
import pytest

from antiphon.backends.echo import EchoBackend
from antiphon.core.output import Finished, ItemAdded
from antiphon.v1 import conversations_service_pb2 as pb
from antiphon.v1.item_pb2 import Item
from antiphon.v1.item_status_pb2 import ItemStatus
from antiphon.v1.message_pb2 import Role
from antiphon.v1.responses_service_pb2 import CreateResponseRequest
from tests.lifecycle.desk import Desk
from tests.lifecycle.house import MODEL, USER, House, Json, settled, text_of, texts_of
from tests.schema.served import refusal
from tests.support.call import said

LONGEST = "A9_.:-" + "z" * 122
UNKNOWN = "conv_0123456789abcdef"


def user(text: str, **more: Any) -> Json:
    """Returns a message of the user's as a client sends it."""
    return {"type": "message", "role": "user", "content": text, **more}


async def made(house: House, *texts: str, **asked: Any) -> str:
    """Makes a conversation that begins with messages, and returns its id."""
    body = {"items": [user(text) for text in texts], **asked}
    found = await house.get("CreateConversation", body)
    conversation_id: str = found["id"]
    return conversation_id


async def said_in(house: House, conversation_id: str) -> list[str]:
    """Returns the texts of a conversation, oldest first."""
    return texts_of(await house.items(conversation_id))


async def refused(house: House, operation: str, body: Json | None = None, **how: Any) -> Json:
    """Asks for what is refused, and returns the error with its status."""
    answer = await house.ask(operation, body, **how)
    assert answer.status >= 400, answer.body
    error: Json = answer.json["error"]
    return {"status": answer.status, **error}


# The conversation itself.


async def test_a_conversation_is_as_it_was_made() -> None:
    house = House(EchoBackend())
    made_one = await house.get("CreateConversation", {"metadata": {"topic": "tests"}})
    assert made_one["id"].startswith("conv_")
    assert made_one == {
        "id": made_one["id"],
        "object": "conversation",
        "created_at": 1_700_000_000,
        "metadata": {"topic": "tests"},
    }
    assert await house.get("GetConversation", conversation_id=made_one["id"]) == made_one
    assert await house.items(made_one["id"]) == []


@pytest.mark.parametrize("body", [None, {}])
async def test_nothing_has_to_be_said_of_a_conversation(body: Json | None) -> None:
    found = await House(EchoBackend()).get("CreateConversation", body)
    assert found["metadata"] == {}


async def test_metadata_is_replaced_and_the_rest_stays() -> None:
    house = House(EchoBackend())
    conversation_id = await made(house, "one", metadata={"a": "1", "b": "2"})
    before = await house.get("GetConversation", conversation_id=conversation_id)
    updated = await house.get(
        "UpdateConversation", {"metadata": {"c": "3"}}, conversation_id=conversation_id
    )
    assert updated == {**before, "metadata": {"c": "3"}}
    assert await house.get("GetConversation", conversation_id=conversation_id) == updated
    assert await said_in(house, conversation_id) == ["one"]


async def test_a_deleted_conversation_is_unknown_to_every_operation() -> None:
    house = House(EchoBackend())
    conversation_id = await made(house, "one")
    (item,) = await house.items(conversation_id)
    assert await house.get("DeleteConversation", conversation_id=conversation_id) == {
        "id": conversation_id,
        "object": "conversation.deleted",
        "deleted": True,
    }
    operations: list[tuple[str, Json | None, dict[str, str]]] = [
        ("GetConversation", None, {}),
        ("UpdateConversation", {"metadata": {}}, {}),
        ("DeleteConversation", None, {}),
        ("CreateConversationItems", {"items": [user("two")]}, {}),
        ("ListConversationItems", None, {}),
        ("GetConversationItem", None, {"item_id": item["id"]}),
        ("DeleteConversationItem", None, {"item_id": item["id"]}),
    ]
    for operation, body, path in operations:
        errors = [
            await refused(house, operation, body, conversation_id=each, **path)
            for each in (conversation_id, UNKNOWN)
        ]
        assert errors[0]["status"] == 404, operation
        assert str(errors[0]).replace(conversation_id, UNKNOWN) == str(errors[1])
    asked = {"model": MODEL, "input": "hi", "conversation": conversation_id}
    assert (await refused(house, "CreateResponse", asked))["status"] == 404


# Ids that clients choose.


@pytest.mark.parametrize("conversation_id", ["a", "conv_1", "2026-01-01:Chat.7", "a_", LONGEST])
async def test_a_client_may_choose_the_id(conversation_id: str) -> None:
    house = House(EchoBackend())
    assert await made(house, "one", "two", id=conversation_id) == conversation_id
    items = await house.items(conversation_id)
    assert texts_of(items) == ["one", "two"]
    for item in items:
        # Each can be asked for by the id that it was given.
        assert item == await house.get(
            "GetConversationItem", conversation_id=conversation_id, item_id=item["id"]
        )
    await house.create("three", conversation=conversation_id)
    assert await said_in(house, conversation_id) == ["one", "two", "three", "three"]


@pytest.mark.parametrize(
    "conversation_id", ["", "a" * 129, "a b", "a/b", "../a", "é", "a\n", "a\x00", "a%2f"]
)
async def test_an_id_of_another_form_is_refused(conversation_id: str) -> None:
    house = House(EchoBackend())
    error = await refused(house, "CreateConversation", {"id": conversation_id})
    assert (error["status"], error["param"]) == (400, "id")


async def test_an_id_that_exists_stays_as_it_is() -> None:
    house = House(EchoBackend())
    await made(house, "one", id="c1", metadata={"a": "1"})
    await house.create("two", conversation="c1")
    before = [
        await house.get("GetConversation", conversation_id="c1"),
        await house.items("c1"),
    ]
    other = {"id": "c1", "items": [user("mine")], "metadata": {"a": "2"}}
    for _ in range(2):
        error = await refused(house, "CreateConversation", other)
        assert (error["status"], error["type"], error["param"]) == (
            409,
            "invalid_request_error",
            "id",
        )
    assert before == [
        await house.get("GetConversation", conversation_id="c1"),
        await house.items("c1"),
    ]


async def test_an_id_is_free_in_another_scope_and_stays_with_its_owner() -> None:
    house = House(EchoBackend())
    await made(house, "ours", id="c1")
    await house.get("CreateConversation", {"id": "c1", "items": [user("theirs")]}, user="other")
    assert texts_of(await house.items("c1")) == ["ours"]
    assert texts_of(await house.items("c1", user="other")) == ["theirs"]
    await house.get("DeleteConversation", conversation_id="c1", user="other")
    assert texts_of(await house.items("c1")) == ["ours"]


async def test_of_two_that_choose_an_id_at_once_one_gets_it() -> None:
    house = House(EchoBackend())
    answers = await asyncio.gather(
        *(house.ask("CreateConversation", {"id": "c1", "items": [user(t)]}) for t in "ab")
    )
    assert sorted(answer.status for answer in answers) == [200, 409]
    assert len(await house.items("c1")) == 1


# Items.


async def test_items_are_added_at_the_end_and_answered_with_their_ids() -> None:
    house = House(EchoBackend())
    conversation_id = await made(house, "one")
    page = await house.get(
        "CreateConversationItems",
        {"items": [user("two"), user("three", id="msg_three")]},
        conversation_id=conversation_id,
    )
    items = await house.items(conversation_id)
    assert texts_of(items) == ["one", "two", "three"]
    assert page["data"] == items[1:]
    assert (page["object"], page["has_more"]) == ("list", False)
    assert (page["first_id"], page["last_id"]) == (items[1]["id"], "msg_three")
    assert len({item["id"] for item in items}) == 3
    assert all(item["status"] == "completed" for item in items)


@pytest.mark.parametrize("operation", ["CreateConversation", "CreateConversationItems"])
async def test_an_id_names_one_item(operation: str) -> None:
    house = House(EchoBackend())
    conversation_id = await made(house)
    path = {} if operation == "CreateConversation" else {"conversation_id": conversation_id}
    twice = {"items": [user("two", id="msg_a"), user("three", id="msg_a")]}
    error = await refused(house, operation, twice, **path)
    assert (error["status"], error["param"]) == (409, "items[1].id")
    assert await house.items(conversation_id) == []


async def test_an_item_that_exists_is_not_replaced_and_none_of_the_others_is_added() -> None:
    house = House(EchoBackend())
    conversation_id = await made(house)
    body = {"items": [user("one", id="msg_a")]}
    await house.get("CreateConversationItems", body, conversation_id=conversation_id)
    body = {"items": [user("two"), user("three", id="msg_a")]}
    error = await refused(house, "CreateConversationItems", body, conversation_id=conversation_id)
    assert (error["status"], error["param"]) == (409, "items[1].id")
    assert await said_in(house, conversation_id) == ["one"]


@pytest.mark.parametrize("count", [0, 21])
async def test_items_are_added_one_to_twenty_at_once(count: int) -> None:
    house = House(EchoBackend())
    conversation_id = await made(house)
    body = {"items": [user("x")] * count}
    error = await refused(house, "CreateConversationItems", body, conversation_id=conversation_id)
    assert (error["status"], error["param"]) == (400, "items")


async def a_long_one(house: House) -> tuple[str, list[str]]:
    """Makes a conversation of 40 items; returns its id and those of its items."""
    conversation_id = await made(house)
    for first in (0, 20):
        items = [user(str(number)) for number in range(first, first + 20)]
        await house.get(
            "CreateConversationItems", {"items": items}, conversation_id=conversation_id
        )
    return conversation_id, [item["id"] for item in await house.items(conversation_id)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, range(39, 19, -1)),
        ({"limit": "1"}, [39]),
        ({"limit": "100"}, range(39, -1, -1)),
        ({"order": "desc", "limit": "3"}, [39, 38, 37]),
        ({"order": "asc", "limit": "3"}, [0, 1, 2]),
        ({"after": 10, "limit": "3"}, [9, 8, 7]),
        ({"after": 10, "order": "asc", "limit": "3"}, [11, 12, 13]),
        ({"after": 39, "order": "asc"}, []),
        ({"after": 0}, []),
        ({"before": 10, "order": "asc", "limit": "3"}, [7, 8, 9]),
        ({"before": 10, "limit": "3"}, [13, 12, 11]),
        ({"before": 0, "order": "asc"}, []),
        ({"after": 5, "before": 8, "order": "asc"}, [6, 7]),
        ({"after": 8, "before": 5}, [7, 6]),
        ({"after": 8, "before": 5, "order": "asc"}, []),
    ],
)
async def test_items_are_listed_in_pages(query: Mapping[str, Any], expected: Any) -> None:
    house = House(EchoBackend())
    conversation_id, ids = await a_long_one(house)
    asked = {name: value if isinstance(value, str) else ids[value] for name, value in query.items()}
    page = await house.get("ListConversationItems", query=asked, conversation_id=conversation_id)
    found = texts_of(page["data"])
    assert found == [str(number) for number in expected]
    assert [item["id"] for item in page["data"]] == [ids[int(text)] for text in found]
    assert page["first_id"] == (ids[int(found[0])] if found else "")
    assert page["last_id"] == (ids[int(found[-1])] if found else "")


@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("limit", [1, 7, 20, 39, 40])
async def test_every_item_is_on_one_page(order: str, limit: int) -> None:
    house = House(EchoBackend())
    conversation_id, ids = await a_long_one(house)
    found: list[str] = []
    query = {"order": order, "limit": str(limit)}
    while True:
        page = await house.get(
            "ListConversationItems", query=query, conversation_id=conversation_id
        )
        found += [item["id"] for item in page["data"]]
        if not page["has_more"]:
            break
        query["after"] = page["last_id"]
    assert found == (ids if order == "asc" else ids[::-1])


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ({"limit": "0"}, "limit"),
        ({"limit": "101"}, "limit"),
        ({"limit": "ten"}, "limit"),
        ({"order": "up"}, "order"),
        ({"after": "msg_unknown"}, "after"),
        ({"before": "msg_unknown"}, "before"),
        ({"include": ["everything"]}, "include[0]"),
    ],
)
async def test_a_bad_parameter_of_a_listing_is_refused(query: Json, param: str) -> None:
    house = House(EchoBackend())
    conversation_id = await made(house, "one")
    error = await refused(
        house, "ListConversationItems", query=query, conversation_id=conversation_id
    )
    # A cursor is the id of an item: one that is not there is not found.
    status = 404 if param in ("after", "before") else 400
    assert (error["status"], error["param"]) == (status, param)


async def test_what_else_to_include_is_accepted() -> None:
    house = House(EchoBackend())
    conversation_id = await made(house, "one")
    include = ["message.output_text.logprobs", "reasoning.encrypted_content"]
    (item,) = await house.items(conversation_id, include=include)
    found = await house.get(
        "GetConversationItem",
        query={"include": include},
        conversation_id=conversation_id,
        item_id=item["id"],
    )
    assert found == item


async def test_an_item_is_deleted_alone() -> None:
    house = House(EchoBackend())
    conversation_id = await made(house, "one", "two", "three")
    item = (await house.items(conversation_id))[1]
    path = {"conversation_id": conversation_id, "item_id": item["id"]}
    assert text_of(await house.get("GetConversationItem", **path)) == "two"
    told = await house.get("DeleteConversationItem", **path)
    assert told == await house.get("GetConversation", conversation_id=conversation_id)
    assert await said_in(house, conversation_id) == ["one", "three"]
    for operation in ("GetConversationItem", "DeleteConversationItem"):
        assert (await refused(house, operation, **path))["status"] == 404


# Responses in a conversation.


@pytest.mark.parametrize("name", ["id", "object", "alias", "both"])
async def test_a_response_takes_the_items_and_adds_its_own(name: str) -> None:
    desk = Desk()
    house = House(desk)
    conversation_id = await made(house, "one")
    names: dict[str, Json] = {
        "id": {"conversation": conversation_id},
        "object": {"conversation": {"id": conversation_id}},
        "alias": {"conversation_id": conversation_id},
        "both": {"conversation": conversation_id, "conversation_id": conversation_id},
    }
    asked = names[name]
    creating = asyncio.ensure_future(house.create("two", **asked))
    call = await desk.next()
    assert [text_of_item(item) for item in await call.call.history()] == ["one"]
    assert call.text == "two"
    assert await said_in(house, conversation_id) == ["one"]
    call.finish("TWO")
    response = await creating
    assert response["conversation"] == {"id": conversation_id}
    assert response.get("conversation_id") == asked.get("conversation_id")
    items = await house.items(conversation_id)
    assert texts_of(items) == ["one", "two", "TWO"]
    assert items[2] == response["output"][0]
    own = await house.input_items(response["id"], order="asc")
    assert own["data"] == items[:2]


def text_of_item(item: Item) -> str:
    """Returns the text of a message, of input and of output alike."""
    return "".join(
        part.input_text.text + part.output_text.text for part in item.message.content_list.parts
    )


async def test_two_names_for_different_conversations_are_refused() -> None:
    house = House(EchoBackend())
    body = {
        "model": MODEL,
        "input": "hi",
        "conversation": await made(house),
        "conversation_id": await made(house),
    }
    error = await refused(house, "CreateResponse", body)
    assert (error["status"], error["param"]) == (400, "conversation_id")


async def test_a_previous_response_and_a_conversation_exclude_each_other() -> None:
    house = House(EchoBackend())
    first = await house.create("one")
    conversation_id = await made(house)
    for how in (
        {"conversation": conversation_id},
        {"conversation": {"id": conversation_id}},
        {"conversation_id": conversation_id},
    ):
        body = {"model": MODEL, "input": "hi", "previous_response_id": first["id"], **how}
        error = await refused(house, "CreateResponse", body)
        assert (error["status"], error["param"]) == (400, "previous_response_id")
    assert await house.items(conversation_id) == []


@pytest.mark.parametrize(
    ("conversation", "param"),
    [("a/b", "conversation"), ({"id": "a/b"}, "conversation.id"), ("", "conversation")],
)
async def test_a_conversation_of_no_possible_id_is_refused(conversation: Any, param: str) -> None:
    body = {"model": MODEL, "input": "hi", "conversation": conversation}
    error = await refused(House(EchoBackend()), "CreateResponse", body)
    assert (error["status"], error["param"]) == (400, param)


async def test_what_is_not_stored_leaves_no_trace_in_a_conversation() -> None:
    desk = Desk()
    house = House(desk)
    conversation_id = await made(house, "one")
    creating = asyncio.ensure_future(house.create("two", conversation=conversation_id, store=False))
    call = await desk.next()
    # It may read the conversation, and does not write to it.
    assert [text_of_item(item) for item in await call.call.history()] == ["one"]
    call.finish("TWO")
    await creating
    assert await said_in(house, conversation_id) == ["one"]


MODES: dict[str, Json] = {
    "plain": {},
    "stream": {"stream": True},
    "background": {"background": True},
    "background stream": {"background": True, "stream": True},
}
each_mode = pytest.mark.parametrize("mode", MODES)


@each_mode
async def test_several_at_once_are_applied_one_after_the_other(mode: str) -> None:
    desk = Desk()
    house = House(desk)
    conversation_id = await made(house, "0")
    asking = []
    for number in range(1, 6):
        body = {"model": MODEL, "input": str(number), "conversation": conversation_id}
        asking.append(asyncio.ensure_future(house.ask("CreateResponse", {**body, **MODES[mode]})))
        await settled()
    expected = ["0"]
    for number in range(1, 6):
        call = await desk.next()
        assert call.text == str(number)
        assert [text_of_item(item) for item in await call.call.history()] == expected
        await settled()
        # The others wait, and nothing of this one is there before its end.
        assert len(desk.asked) == number
        call.say("half")
        await settled()
        assert await said_in(house, conversation_id) == expected
        call.finish("!")
        expected += [str(number), "half!"]
    assert [answer.status for answer in await asyncio.gather(*asking)] == [200] * 5
    await settled()
    assert await said_in(house, conversation_id) == expected
    assert house.engine.running == 0


@each_mode
@pytest.mark.parametrize("end", ["fail", "break_down", "stop", "cancel", "delete"])
@pytest.mark.parametrize("stubborn", [False, True])
async def test_one_that_does_not_complete_adds_nothing_and_holds_nobody_up(
    mode: str, end: str, stubborn: bool
) -> None:
    desk = Desk(stubborn=stubborn)
    house = House(desk)
    conversation_id = await made(house, "0")
    asking = []
    for number in (1, 2, 3):
        body = {"model": MODEL, "input": str(number), "conversation": conversation_id}
        asking.append(asyncio.ensure_future(house.ask("CreateResponse", {**body, **MODES[mode]})))
        await settled()
    (await desk.next()).finish("one")
    call = await desk.next()
    assert call.text == "2"
    call.say("half")
    await settled()
    if end in ("fail", "break_down", "stop"):
        getattr(call, end)()
    elif end == "cancel" and "background" in mode:
        await house.get("CancelResponse", response_id=call.call.response_id)
    elif end == "cancel":
        asking[1].cancel()
    else:
        await house.get("DeleteResponse", response_id=call.call.response_id)
    last = await desk.next()
    assert last.text == "3"
    history = [text_of_item(item) for item in await last.call.history()]
    assert history == ["0", "1", "one"]
    # What the second still says, if it goes on, counts for nothing.
    call.finish("late")
    last.finish("three")
    await asyncio.gather(*asking, return_exceptions=True)
    await settled()
    assert await said_in(house, conversation_id) == ["0", "1", "one", "3", "three"]
    assert house.engine.running == 0


async def test_one_that_waits_for_its_turn_can_be_cancelled() -> None:
    desk = Desk()
    house = House(desk)
    conversation_id = await made(house)
    responses = [
        await house.create(text, conversation=conversation_id, background=True) for text in "abc"
    ]
    call = await desk.next()
    assert (await house.get("GetResponse", response_id=responses[1]["id"]))["status"] == "queued"
    cancelled = await house.get("CancelResponse", response_id=responses[1]["id"])
    assert (cancelled["status"], cancelled["output"]) == ("cancelled", [])
    call.finish("A")
    (await desk.next()).finish("C")
    await settled()
    assert await said_in(house, conversation_id) == ["a", "A", "c", "C"]
    assert [each.text for each in desk.asked] == ["a", "c"]


async def test_items_wait_for_the_run_that_has_its_turn() -> None:
    desk = Desk()
    house = House(desk)
    conversation_id = await made(house, "0")
    await house.create("1", conversation=conversation_id, background=True)
    call = await desk.next()
    adding = asyncio.ensure_future(
        house.get(
            "CreateConversationItems",
            {"items": [user("between")]},
            conversation_id=conversation_id,
        )
    )
    await settled()
    call.finish("one")
    await adding
    assert await said_in(house, conversation_id) == ["0", "1", "one", "between"]


async def test_conversations_do_not_wait_for_each_other() -> None:
    desk = Desk()
    house = House(desk)
    ids = [await made(house) for _ in range(3)]
    for conversation_id in ids:
        await house.create("hi", conversation=conversation_id, background=True)
    calls = [await desk.next() for _ in ids]
    for call in reversed(calls):
        call.finish("there")
    await settled()
    for conversation_id in ids:
        assert await said_in(house, conversation_id) == ["hi", "there"]


async def test_an_incomplete_answer_is_part_of_the_conversation() -> None:
    desk = Desk()
    house = House(desk)
    conversation_id = await made(house)
    creating = asyncio.ensure_future(house.create("one", conversation=conversation_id))
    call = await desk.next()
    call.say("half")
    call.give(Finished(incomplete="max_output_tokens"))
    assert (await creating)["status"] == "incomplete"
    assert await said_in(house, conversation_id) == ["one", "half"]


async def test_a_response_without_input_continues_the_conversation() -> None:
    desk = Desk()
    house = House(desk)
    conversation_id = await made(house, "one")
    body = {"model": MODEL, "conversation": conversation_id}
    creating = asyncio.ensure_future(house.get("CreateResponse", body))
    (await desk.next()).finish("two")
    response = await creating
    assert await said_in(house, conversation_id) == ["one", "two"]
    await house.get(
        "CreateConversationItems", {"items": [user("three")]}, conversation_id=conversation_id
    )
    # What it was made from is what was there before it.
    assert texts_of((await house.input_items(response["id"]))["data"]) == ["one"]


# Pruning.


async def test_a_deleted_response_is_pruned_with_its_input() -> None:
    house = House(EchoBackend())
    conversation_id = await made(house, "0")
    responses = [await house.create(text, conversation=conversation_id) for text in "abc"]
    await house.get("DeleteResponse", response_id=responses[1]["id"])
    assert await said_in(house, conversation_id) == ["0", "a", "a", "c", "c"]
    last = await house.input_items(responses[2]["id"], order="asc")
    assert texts_of(last["data"]) == ["0", "a", "a", "c"]


async def test_the_responses_of_a_deleted_conversation_stay_without_it() -> None:
    house = House(EchoBackend())
    conversation_id = await made(house, "0")
    response = await house.create("a", conversation=conversation_id)
    await house.get("DeleteConversation", conversation_id=conversation_id)
    assert await house.get("GetResponse", response_id=response["id"]) == response
    assert texts_of((await house.input_items(response["id"]))["data"]) == ["a"]


@each_mode
async def test_a_conversation_can_be_deleted_while_a_run_is_in_flight(mode: str) -> None:
    desk = Desk()
    house = House(desk)
    conversation_id = await made(house, "0")
    body = {"model": MODEL, "input": "1", "conversation": conversation_id, **MODES[mode]}
    asking = [asyncio.ensure_future(house.ask("CreateResponse", body)) for _ in range(2)]
    call = await desk.next()
    await settled()
    await house.get("DeleteConversation", conversation_id=conversation_id)
    call.finish("one")
    answers = await asyncio.gather(*asking)
    await settled()
    response = await house.get("GetResponse", response_id=call.call.response_id)
    assert (response["status"], texts_of(response["output"])) == ("completed", ["one"])
    # The second finds no conversation when it is its turn.
    assert len(desk.asked) == 1
    assert house.engine.running == 0
    assert answers[1].status == (200 if "background" in mode else 404)
    error = await refused(house, "GetConversation", conversation_id=conversation_id)
    assert error["status"] == 404


async def test_a_conversation_made_anew_has_nothing_of_the_one_that_was_deleted() -> None:
    desk = Desk()
    house = House(desk)
    await made(house, "old", id="c1")
    response = await house.create("1", conversation="c1", background=True)
    call = await desk.next()
    await house.get("DeleteConversation", conversation_id="c1")
    await made(house, "new", id="c1")
    call.finish("one")
    await settled()
    assert (await house.get("GetResponse", response_id=response["id"]))["status"] == "completed"
    assert await said_in(house, "c1") == ["new"]
    assert "new" not in texts_of((await house.input_items(response["id"]))["data"])


async def test_items_with_ids_of_their_own_are_kept_once() -> None:
    house = House(EchoBackend())
    conversation_id = await made(house)
    await house.create([user("one", id="msg_a")], conversation=conversation_id)
    (first, _) = await house.items(conversation_id)
    reference = {"type": "item_reference", "id": "msg_a"}
    second = await house.create([reference, user("two")], conversation=conversation_id)
    items = await house.items(conversation_id)
    assert texts_of(items) == ["one", "one", "two", "two"]
    assert items[0] == first
    # The item is still the first response's.
    await house.get("DeleteResponse", response_id=second["id"])
    assert await house.items(conversation_id) == items[:2]


async def test_another_item_of_an_id_that_exists_is_refused() -> None:
    house = House(EchoBackend())
    conversation_id = await made(house)
    await house.create([user("one", id="msg_a")], conversation=conversation_id)
    before = await house.items(conversation_id)
    for given in (
        [user("two"), user("another", id="msg_a")],
        [user("two", id="msg_b"), user("three", id="msg_b")],
    ):
        body = {"model": MODEL, "input": given, "conversation": conversation_id}
        error = await refused(house, "CreateResponse", body)
        assert (error["status"], error["param"]) == (409, "input[1].id")
    assert await house.items(conversation_id) == before


# Calls.


def a_tool_call(call_id: str) -> ItemAdded:
    item = Item()
    item.function_call.call_id = call_id
    item.function_call.name = "look"
    item.function_call.status = ItemStatus.ITEM_STATUS_COMPLETED
    return ItemAdded(item, call_id)


def result(call_id: str) -> list[Json]:
    return [{"type": "function_call_output", "call_id": call_id, "output": "4"}]


async def called(house: House, desk: Desk, *call_ids: str) -> tuple[str, str]:
    """Makes a conversation whose response calls tools; returns the ids of both."""
    conversation_id = await made(house)
    creating = asyncio.ensure_future(house.create("look", conversation=conversation_id))
    (await desk.next()).give(*map(a_tool_call, call_ids), Finished())
    return conversation_id, (await creating)["id"]


async def test_a_call_is_answered_by_the_next_turn() -> None:
    desk = Desk()
    house = House(desk)
    conversation_id, _ = await called(house, desk, "call_1", "call_2")
    for given in ("what?", result("call_1"), result("call_3")):
        body = {"model": MODEL, "input": given, "conversation": conversation_id}
        error = await refused(house, "CreateResponse", body)
        assert (error["status"], error["param"]) == (400, "input")
    assert len(desk.asked) == 1
    both = [*result("call_1"), *result("call_2")]
    creating = asyncio.ensure_future(house.create(both, conversation=conversation_id))
    (await desk.next()).finish("Four.")
    assert (await creating)["status"] == "completed"
    # And once only.
    body = {"model": MODEL, "input": result("call_1"), "conversation": conversation_id}
    assert (await refused(house, "CreateResponse", body))["status"] == 400


async def test_a_call_can_be_answered_by_an_item() -> None:
    desk = Desk()
    house = House(desk)
    conversation_id, _ = await called(house, desk, "call_1")
    await house.get(
        "CreateConversationItems", {"items": result("call_1")}, conversation_id=conversation_id
    )
    creating = asyncio.ensure_future(house.create("And?", conversation=conversation_id))
    (await desk.next()).finish("Four.")
    assert (await creating)["status"] == "completed"


@pytest.mark.parametrize("pruned", ["response", "item"])
async def test_a_call_that_was_pruned_waits_for_no_answer(pruned: str) -> None:
    desk = Desk()
    house = House(desk)
    conversation_id, response_id = await called(house, desk, "call_1")
    if pruned == "response":
        await house.get("DeleteResponse", response_id=response_id)
    else:
        item = (await house.items(conversation_id))[-1]
        await house.get(
            "DeleteConversationItem", conversation_id=conversation_id, item_id=item["id"]
        )
    body = {"model": MODEL, "input": result("call_1"), "conversation": conversation_id}
    assert (await refused(house, "CreateResponse", body))["status"] == 400
    creating = asyncio.ensure_future(house.create("And?", conversation=conversation_id))
    (await desk.next()).finish("Nothing.")
    assert (await creating)["status"] == "completed"


@pytest.mark.parametrize("pruned", ["response", "item"])
async def test_a_call_whose_answer_was_pruned_waits_again(pruned: str) -> None:
    desk = Desk()
    house = House(desk)
    conversation_id, _ = await called(house, desk, "call_1")
    creating = asyncio.ensure_future(house.create(result("call_1"), conversation=conversation_id))
    (await desk.next()).finish("Four.")
    second = await creating
    if pruned == "response":
        await house.get("DeleteResponse", response_id=second["id"])
    else:
        item = (await house.items(conversation_id))[2]
        assert item["type"] == "function_call_output"
        await house.get(
            "DeleteConversationItem", conversation_id=conversation_id, item_id=item["id"]
        )
    body = {"model": MODEL, "input": "And?", "conversation": conversation_id}
    assert (await refused(house, "CreateResponse", body))["status"] == 400
    creating = asyncio.ensure_future(house.create(result("call_1"), conversation=conversation_id))
    (await desk.next()).finish("Four again.")
    assert (await creating)["status"] == "completed"


# gRPC.


async def test_everything_is_the_same_over_grpc() -> None:
    house = House(EchoBackend())
    async with house.stubs() as (responses, conversations):
        request = pb.CreateConversationRequest(
            id="c1", items=[said(Role.ROLE_USER, "one")], metadata={"a": "1"}
        )
        conversation = await conversations.CreateConversation(request)
        assert (conversation.id, dict(conversation.metadata)) == ("c1", {"a": "1"})
        get = pb.GetConversationRequest(conversation_id="c1")
        assert await conversations.GetConversation(get) == conversation
        update = pb.UpdateConversationRequest(conversation_id="c1", metadata={"b": "2"})
        updated = await conversations.UpdateConversation(update)
        assert dict(updated.metadata) == {"b": "2"}
        assert await conversations.GetConversation(get) == updated

        asked = CreateResponseRequest(model=MODEL, input_text="two", conversation_text="c1")
        await responses.CreateResponse(asked)
        asked.input_text = "three"
        events = [event async for event in responses.StreamResponse(asked)]
        assert events[-1].HasField("completed")
        added = await conversations.CreateConversationItems(
            pb.CreateConversationItemsRequest(
                conversation_id="c1", items=[said(Role.ROLE_USER, "four")]
            )
        )
        listed = pb.ListConversationItemsRequest(conversation_id="c1", order="asc", limit=3)
        page = await conversations.ListConversationItems(listed)
        assert [text_of_item(item) for item in page.data] == ["one", "two", "two"]
        assert page.has_more
        listed.after = page.last_id
        rest = await conversations.ListConversationItems(listed)
        assert [text_of_item(item) for item in rest.data] == ["three", "three", "four"]
        assert not rest.has_more
        assert rest.data[-1] == added.data[0]
        assert rest.last_id == added.first_id
        newest = await conversations.ListConversationItems(
            pb.ListConversationItemsRequest(conversation_id="c1")
        )
        assert list(newest.data) == [*reversed(rest.data), *reversed(page.data)]

        item = pb.GetConversationItemRequest(conversation_id="c1", item_id=rest.last_id)
        assert await conversations.GetConversationItem(item) == added.data[0]
        gone = pb.DeleteConversationItemRequest(conversation_id="c1", item_id=rest.last_id)
        assert await conversations.DeleteConversationItem(gone) == updated
        deleted = await conversations.DeleteConversation(
            pb.DeleteConversationRequest(conversation_id="c1")
        )
        assert (deleted.id, deleted.deleted) == ("c1", True)


async def test_refusals_are_the_same_over_grpc() -> None:
    house = House(EchoBackend())
    await made(house, "one", id="c1")
    (known,) = await house.items("c1")
    async with house.stubs() as (responses, conversations):
        body = pb.CreateConversationRequest
        for call, code, param in (
            (conversations.CreateConversation(body(id="c1")), "ALREADY_EXISTS", "id"),
            (conversations.CreateConversation(body(id="a/b")), "INVALID_ARGUMENT", "id"),
            (
                conversations.GetConversation(
                    pb.GetConversationRequest(conversation_id="c1"), metadata=((USER, "other"),)
                ),
                "NOT_FOUND",
                "conversation_id",
            ),
            (
                conversations.GetConversation(pb.GetConversationRequest(conversation_id="a/b")),
                "INVALID_ARGUMENT",
                "conversation_id",
            ),
            (
                conversations.CreateConversationItems(
                    pb.CreateConversationItemsRequest(conversation_id="c1")
                ),
                "INVALID_ARGUMENT",
                "items",
            ),
            (
                conversations.ListConversationItems(
                    pb.ListConversationItemsRequest(conversation_id="c1", limit=0)
                ),
                "INVALID_ARGUMENT",
                "limit",
            ),
            (
                conversations.ListConversationItems(
                    pb.ListConversationItemsRequest(conversation_id="c1", after="msg_x")
                ),
                "NOT_FOUND",
                "after",
            ),
            (
                conversations.DeleteConversationItem(
                    pb.DeleteConversationItemRequest(conversation_id=UNKNOWN, item_id=known["id"])
                ),
                "NOT_FOUND",
                "conversation_id",
            ),
            (
                conversations.DeleteConversationItem(
                    pb.DeleteConversationItemRequest(conversation_id="c1", item_id="msg_x")
                ),
                "NOT_FOUND",
                "item_id",
            ),
            (
                responses.CreateResponse(
                    CreateResponseRequest(model=MODEL, input_text="hi", conversation_text=UNKNOWN)
                ),
                "NOT_FOUND",
                "conversation",
            ),
            (
                responses.CreateResponse(
                    CreateResponseRequest(model=MODEL, input_text="hi", conversation_id=UNKNOWN)
                ),
                "NOT_FOUND",
                "conversation_id",
            ),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await call
            found = refusal(caught.value)
            assert (found.status, found.param) == (code, param)
    assert await said_in(house, "c1") == ["one"]
