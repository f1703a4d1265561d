import asyncio
from typing import Any

import pytest

from antiphon.backends.echo import EchoBackend
from antiphon.core.output import Finished, ItemAdded, TextDelta
from antiphon.stores.memory import Bounds, MemoryStore
from antiphon.v1.item_pb2 import Item
from antiphon.v1.item_status_pb2 import ItemStatus
from antiphon.v1.responses_service_pb2 import CreateResponseRequest, ListInputItemsRequest
from tests.lifecycle.desk import Desk
from tests.lifecycle.house import MODEL, House, Json, settled, text_of, texts_of
from tests.support.backend import Script

INCLUDE = [
    "message.output_text.logprobs",
    "reasoning.encrypted_content",
    "file_search_call.results",
]


def user(text: str, **more: Any) -> Json:
    """Returns a message of the user's as a client sends it."""
    return {"type": "message", "role": "user", "content": text, **more}


async def whole(house: House, response_id: str) -> list[Json]:
    """Returns all items of a context of at most a hundred, oldest first."""
    page = await house.input_items(response_id, order="asc", limit="100")
    assert not page["has_more"]
    found: list[Json] = page["data"]
    return found


async def paged(house: House, response_id: str, limit: int, order: str) -> list[Json]:
    """Returns all items of a context, read page by page as SDKs do it."""
    found: list[Json] = []
    query = {"order": order, "limit": str(limit)}
    while True:
        page = await house.input_items(response_id, **query)
        assert 0 < len(page["data"]) <= limit
        found += page["data"]
        if not page["has_more"]:
            return found
        assert len(page["data"]) == limit
        query["after"] = page["data"][-1]["id"]


async def a_chain(house: House, *texts: str) -> list[Json]:
    """Makes responses that continue each other."""
    made: list[Json] = []
    for text in texts:
        how = {"previous_response_id": made[-1]["id"]} if made else {}
        made.append(await house.create(text, **how))
    return made


# The context.


async def test_the_first_response_was_made_from_its_own_input() -> None:
    house = House(EchoBackend())
    response = await house.create([user("one"), user("two")])
    page = await house.input_items(response["id"])
    assert texts_of(page["data"]) == ["two", "one"]
    assert page["object"] == "list"
    assert not page["has_more"]
    first = page["data"][1]
    assert first == {
        "type": "message",
        "id": first["id"],
        "status": "completed",
        "role": "user",
        "content": [{"type": "input_text", "text": "one"}],
    }
    assert first["id"].startswith("msg_")


async def test_a_later_one_from_all_input_and_output_before_it() -> None:
    house = House(Script([TextDelta("answer"), Finished()]))
    made = await a_chain(house, "one", "two", "three")
    items = await whole(house, made[2]["id"])
    assert texts_of(items) == ["one", "answer", "two", "answer", "three"]
    assert [item["role"] for item in items] == ["user", "assistant"] * 2 + ["user"]
    # The output is told as it was told, and the input as it is told of the response it is of.
    assert [items[1], items[3]] == [made[0]["output"][0], made[1]["output"][0]]
    assert items[:1] == await whole(house, made[0]["id"])
    assert items[:3] == await whole(house, made[1]["id"])


async def test_a_fork_has_the_context_of_its_own_branch() -> None:
    house = House(EchoBackend())
    root = await house.create("root")
    branches = [await house.create(text, previous_response_id=root["id"]) for text in "ab"]
    for text, branch in zip("ab", branches, strict=True):
        leaf = await house.create("leaf", previous_response_id=branch["id"])
        items = await whole(house, leaf["id"])
        assert texts_of(items) == ["root", "root", text, text, "leaf"]


async def test_a_response_without_input_has_what_came_before() -> None:
    house = House(EchoBackend())
    root = await house.create("root")
    body = {"model": MODEL, "previous_response_id": root["id"]}
    response = await house.get("CreateResponse", body)
    assert texts_of(await whole(house, response["id"])) == ["root", "root"]


async def test_instructions_are_no_items() -> None:
    house = House(EchoBackend())
    first = await house.create("one", instructions="be brief")
    second = await house.create("two", instructions="be kind", previous_response_id=first["id"])
    assert texts_of(await whole(house, second["id"])) == ["one", "one", "two"]


@pytest.mark.parametrize("mode", [{}, {"stream": True}, {"background": True}])
async def test_a_run_in_flight_tells_its_context_already(mode: Json) -> None:
    desk = Desk()
    house = House(desk)
    body = {"model": MODEL, "input": "one", **mode}
    asking = asyncio.ensure_future(house.ask("CreateResponse", body))
    call = await desk.next()
    await settled()
    before = await whole(house, call.call.response_id)
    call.finish("answer")
    await asking
    await settled()
    assert texts_of(before) == ["one"]
    assert await whole(house, call.call.response_id) == before


@pytest.mark.parametrize("deleted", [[0], [1], [2], [0, 1, 2], [2, 1, 0]])
async def test_a_context_outlives_those_it_came_from(deleted: list[int]) -> None:
    house = House(EchoBackend())
    made = await a_chain(house, "a", "b", "c", "d")
    before = await whole(house, made[3]["id"])
    for place in deleted:
        await house.get("DeleteResponse", response_id=made[place]["id"])
    assert await whole(house, made[3]["id"]) == before
    assert await paged(house, made[3]["id"], 2, "asc") == before
    leaf = await house.create("e", previous_response_id=made[3]["id"])
    assert texts_of(await whole(house, leaf["id"])) == [*"aabbccdde"]


async def test_a_context_outlives_an_eviction_and_a_lifetime() -> None:
    house = House(EchoBackend(), MemoryStore(Bounds(max_turns=6)))
    made = await a_chain(house, "a", "b", "c")
    before = await whole(house, made[2]["id"])
    for _ in range(50):
        await house.create("other")
        assert await whole(house, made[2]["id"]) == before


async def test_what_is_not_there_has_no_context() -> None:
    house = House(EchoBackend())
    response = await house.create("one", user="ann")
    unstored = await house.create("one", store=False)
    deleted = await house.create("one")
    await house.get("DeleteResponse", response_id=deleted["id"])
    for response_id in (response["id"], unstored["id"], deleted["id"]):
        answer = await house.ask("ListInputItems", response_id=response_id)
        assert (answer.status, answer.refusal.param) == (404, "response_id")
    answer = await house.ask("ListInputItems", response_id="a/b")
    assert (answer.status, answer.refusal.param) == (400, "response_id")


# Pages.

NUMBERS = [str(number) for number in range(40)]


async def numbered(house: House) -> tuple[str, list[str]]:
    """Makes a response of 40 items; returns its id and theirs, oldest first."""
    response = await house.create([user(text) for text in NUMBERS])
    return response["id"], [item["id"] for item in await whole(house, response["id"])]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, range(39, 19, -1)),
        ({"limit": "1"}, [39]),
        ({"limit": "100"}, range(39, -1, -1)),
        ({"order": "asc"}, range(20)),
        ({"order": "desc", "limit": "3"}, [39, 38, 37]),
        ({"after": 10, "limit": "3"}, [9, 8, 7]),
        ({"after": 10, "order": "asc", "limit": "3"}, [11, 12, 13]),
        ({"after": 39, "order": "asc"}, []),
        ({"before": 10, "order": "asc", "limit": "3"}, [7, 8, 9]),
        ({"before": 10, "limit": "3"}, [13, 12, 11]),
        ({"before": 0, "order": "asc"}, []),
        ({"after": 5, "before": 8, "order": "asc"}, [6, 7]),
        ({"after": 5, "before": 20, "order": "asc", "limit": "2"}, [6, 7]),
        ({"after": 8, "before": 5}, [7, 6]),
        ({"after": 5, "before": 8}, []),
    ],
)
async def test_a_context_is_listed_in_pages(query: Json, expected: Any) -> None:
    house = House(EchoBackend())
    response_id, ids = await numbered(house)
    asked = {name: value if isinstance(value, str) else ids[value] for name, value in query.items()}
    page = await house.input_items(response_id, **asked)
    assert [item["id"] for item in page["data"]] == [ids[place] for place in expected]
    assert texts_of(page["data"]) == [str(place) for place in expected]
    assert page["first_id"] == (ids[expected[0]] if expected else "")
    assert page["last_id"] == (ids[expected[-1]] if expected else "")


@pytest.mark.parametrize(
    ("query", "more"),
    [
        ({"limit": "39"}, True),
        ({"limit": "40"}, False),
        ({"after": 1, "limit": "1"}, False),
        ({"after": 2, "limit": "1"}, True),
        ({"after": 37, "order": "asc", "limit": "1"}, True),
        ({"after": 38, "order": "asc", "limit": "1"}, False),
        # Towards the beginning of the list: whether anything is before it.
        ({"before": 2, "order": "asc", "limit": "1"}, True),
        ({"before": 1, "order": "asc", "limit": "1"}, False),
    ],
)
async def test_a_page_tells_whether_there_is_more(query: Json, more: bool) -> None:
    house = House(EchoBackend())
    response_id, ids = await numbered(house)
    asked = {name: value if isinstance(value, str) else ids[value] for name, value in query.items()}
    assert (await house.input_items(response_id, **asked))["has_more"] is more


@pytest.mark.parametrize(
    ("query", "status", "param"),
    [
        ({"limit": "0"}, 400, "limit"),
        ({"limit": "101"}, 400, "limit"),
        ({"limit": "-1"}, 400, "limit"),
        ({"limit": "9" * 40}, 400, "limit"),
        ({"limit": "1.0"}, 400, "limit"),
        ({"limit": "ten"}, 400, "limit"),
        ({"order": "newest"}, 400, "order"),
        ({"order": "ASC"}, 400, "order"),
        ({"after": "msg_unknown"}, 404, "after"),
        ({"before": "msg_unknown"}, 404, "before"),
        ({"include": ["everything"]}, 400, "include[0]"),
        ({"include": [INCLUDE[0], "everything"]}, 400, "include[1]"),
    ],
)
async def test_a_bad_parameter_is_refused(query: Json, status: int, param: str) -> None:
    house = House(EchoBackend())
    response = await house.create("one")
    answer = await house.ask("ListInputItems", query=query, response_id=response["id"])
    assert (answer.status, answer.refusal.param) == (status, param)
    assert "everything" not in answer.refusal.message


async def test_what_else_to_include_is_accepted() -> None:
    house = House(EchoBackend())
    response = await house.create("one")
    plain = await house.input_items(response["id"])
    for count in range(1, len(INCLUDE) + 1):
        assert await house.input_items(response["id"], include=INCLUDE[:count]) == plain


@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("limit", [7, 100])
async def test_a_thousand_items_are_each_on_one_page(order: str, limit: int) -> None:
    house = House(EchoBackend())
    # In turns of 40, 25 items long each with their answers.
    texts: list[str] = []
    previous: Json = {}
    for turn in range(40):
        given = [user(f"{turn}-{number}") for number in range(24)]
        response = await house.create(given, **previous)
        previous = {"previous_response_id": response["id"]}
        texts += [item["content"] for item in given]
        texts += [text_of(item) for item in response["output"]]
    last = await house.create("end", **previous)
    texts.append("end")
    assert len(texts) == 1_001
    found = await paged(house, last["id"], limit, order)
    assert texts_of(found) == (texts if order == "asc" else texts[::-1])
    assert len({item["id"] for item in found}) == 1_001


async def test_pages_are_the_same_over_grpc() -> None:
    house = House(EchoBackend())
    response_id, ids = await numbered(house)
    async with house.stubs() as (responses, _):
        asked = ListInputItemsRequest(response_id=response_id)
        page = await responses.ListInputItems(asked)
        assert [item.message.id for item in page.data] == ids[:19:-1]
        assert (page.first_id, page.last_id, page.has_more) == (ids[39], ids[20], True)
        for order, expected in (("asc", ids), ("desc", ids[::-1])):
            found: list[str] = []
            asked = ListInputItemsRequest(response_id=response_id, order=order, limit=7)
            while True:
                page = await responses.ListInputItems(asked)
                found += [item.message.id for item in page.data]
                if not page.has_more:
                    break
                asked.after = page.last_id
            assert found == expected
        asked = ListInputItemsRequest(response_id=response_id, before=ids[10], order="asc", limit=2)
        page = await responses.ListInputItems(asked)
        assert [item.message.id for item in page.data] == ids[8:10]


# Ids.


async def test_items_sent_without_an_id_always_have_the_same_one() -> None:
    house = House(EchoBackend())
    given = [
        user("one"),
        {"role": "user", "content": "easy"},
        {"type": "reasoning", "summary": []},
        {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "4"},
    ]
    first = await house.create(given)
    second = await house.create(given, previous_response_id=first["id"])
    items = await whole(house, second["id"])
    assert items[:5] == await whole(house, first["id"])
    assert items == await whole(house, second["id"])
    assert len({item["id"] for item in items}) == len(items) == 11
    prefixes = [item["id"].partition("_")[0] for item in items[:5]]
    assert prefixes == ["msg", "msg", "rs", "fc", "fco"]


async def test_items_keep_the_ids_that_they_were_sent_with() -> None:
    house = House(EchoBackend())
    response = await house.create([user("one", id="msg_mine"), user("two")])
    items = await whole(house, response["id"])
    assert items[0]["id"] == "msg_mine"
    page = await house.input_items(response["id"], after="msg_mine", order="asc")
    assert page["data"] == items[1:]


async def test_calls_that_a_backend_gave_no_id_have_one() -> None:
    call = Item()
    call.function_call.call_id = "call_1"
    call.function_call.name = "f"
    call.function_call.status = ItemStatus.ITEM_STATUS_COMPLETED
    house = House(Script([ItemAdded(call), Finished()]))
    first = await house.create("one")
    (told,) = first["output"]
    assert told["id"].startswith("fc_")
    given = [
        {"type": "function_call_output", "call_id": "call_1", "output": "4"},
        {"type": "function_call", "call_id": "call_2", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_2", "output": "5"},
    ]
    body = {"model": MODEL, "input": given, "previous_response_id": first["id"]}
    second = await house.get("CreateResponse", body)
    items = await whole(house, second["id"])
    assert [item["type"] for item in items] == [
        "message",
        "function_call",
        "function_call_output",
        "function_call",
        "function_call_output",
    ]
    assert items[1] == told
    assert len({item["id"] for item in items}) == 5


@pytest.mark.parametrize("order", ["asc", "desc"])
async def test_items_that_clients_repeat_do_not_turn_pages_back(order: str) -> None:
    house = House(EchoBackend())
    first = await house.create([user("one", id="msg_a"), user("two")])
    again = [*(await whole(house, first["id"])), *first["output"], user("three")]
    second = await house.create(again, previous_response_id=first["id"])
    items = await paged(house, second["id"], 1, order)
    assert sorted(texts_of(items)) == ["one", "three", "two", "two"]
    assert len({item["id"] for item in items}) == 4


async def test_items_of_an_unknown_kind_are_told_as_they_were_sent_and_can_be_cursors() -> None:
    house = House(EchoBackend())
    strange = [
        {"type": "from_the_future", "id": f"fut_{n}", "what": [n, {"b": None}]} for n in (1, 2)
    ]
    response = await house.create([user("one"), *strange, user("two")])
    items = await paged(house, response["id"], 1, "asc")
    assert items[1:3] == strange
    assert texts_of([items[0], items[3]]) == ["one", "two"]
    newest = await house.input_items(response["id"], after="fut_2")
    assert newest["data"] == [items[1], items[0]]
    assert newest["first_id"] == "fut_1"


# References.


async def reference(house: House, item_id: str, **how: Any) -> Any:
    """Asks with a reference to an item, and returns the answer."""
    given = [{"type": "item_reference", "id": item_id}, user("and?")]
    body = {"model": MODEL, "input": given, **how}
    return await house.ask("CreateResponse", body, user=how.pop("user", ""))


async def test_a_reference_stands_for_an_item_of_an_input_or_an_output() -> None:
    backend = Script([TextDelta("answer"), Finished()])
    house = House(backend)
    first = await house.create("one")
    (said,) = await whole(house, first["id"])
    for item in (said, first["output"][0]):
        answer = await reference(house, item["id"])
        assert answer.status == 200
        asked = backend.calls[-1].input
        assert asked[0].message.id == item["id"]
        listed = await whole(house, answer.json["id"])
        assert listed[0] == item
        assert texts_of(listed) == [text_of(item), "and?"]


async def test_a_reference_to_what_is_in_the_context_adds_nothing_to_the_list() -> None:
    house = House(EchoBackend())
    first = await house.create("one")
    answer = await reference(house, first["output"][0]["id"], previous_response_id=first["id"])
    assert texts_of(await whole(house, answer.json["id"])) == ["one", "one", "and?"]


@pytest.mark.parametrize(
    "item_id", ["msg_unknown", "msg_0123456789abcdef0123456789abcdef00000", "x", "_", "a" * 128]
)
async def test_a_reference_to_nothing_is_not_found(item_id: str) -> None:
    house = House(EchoBackend())
    await house.create("one")
    if item_id == "_":
        item_id = "msg_"
    answer = await reference(house, item_id)
    assert (answer.status, answer.refusal.param) == (404, "input[0].id")


@pytest.mark.parametrize("item_id", ["", "a/b", "a" * 129])
async def test_a_reference_of_no_possible_form_is_refused(item_id: str) -> None:
    answer = await reference(House(EchoBackend()), item_id)
    assert (answer.status, answer.refusal.param) == (400, "input[0].id")


async def test_a_reference_does_not_reach_what_is_deleted_foreign_or_running() -> None:
    desk = Desk()
    house = House(desk)

    async def made(**how: Any) -> Json:
        creating = asyncio.ensure_future(house.create("one", **how))
        (await desk.next()).finish("answer")
        return await creating

    deleted, foreign, unstored = await made(), await made(user="ann"), await made(store=False)
    (item,) = await whole(house, deleted["id"])
    await house.get("DeleteResponse", response_id=deleted["id"])
    running = await house.create("one", background=True)
    call = await desk.next()
    call.say("half")
    await settled()
    half = (await house.get("GetResponse", response_id=running["id"]))["output"][0]
    for item_id in (
        item["id"],
        deleted["output"][0]["id"],
        foreign["output"][0]["id"],
        unstored["output"][0]["id"],
        half["id"],
    ):
        answer = await reference(house, item_id)
        assert (answer.status, answer.refusal.param) == (404, "input[0].id")
        assert item_id not in answer.refusal.message
    call.finish()


async def test_an_item_can_be_referred_to_by_the_id_that_its_client_gave_it() -> None:
    house = House(EchoBackend())
    first = await house.create([user("one", id="msg_mine")])
    second = await house.create("two", previous_response_id=first["id"])
    answer = await reference(house, "msg_mine", previous_response_id=second["id"])
    assert answer.status == 200
    found = await whole(house, answer.json["id"])
    assert texts_of(found) == ["one", "one", "two", "two", "and?"]
    # Only within its own history: ids that clients give are no names for the whole scope.
    assert (await reference(house, "msg_mine")).status == 404


async def test_references_are_the_same_over_grpc() -> None:
    house = House(EchoBackend())
    first = await house.create("one")
    async with house.stubs() as (responses, _):
        asked = CreateResponseRequest(model=MODEL)
        asked.input_list.items.add().item_reference.id = first["output"][0]["id"]
        response = await responses.CreateResponse(asked)
    (item,) = await whole(house, response.id)
    assert item == first["output"][0]
