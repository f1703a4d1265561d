"""Isolation: what is another scope's answers like what is not there, to the byte but for the id."""

import re
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, NamedTuple, NoReturn

import pytest
import pytest_asyncio
from grpc_health.v1 import health_pb2

from antiphon.core.keys import hash_key
from antiphon.core.output import Accepted, Finished, TextDelta
from antiphon.stores.memory import MemoryStore
from antiphon.transports.identity import Gate as Entrance
from tests.lifecycle.surfaces import (
    GRPC,
    MODEL,
    OK,
    REST,
    Json,
    Reply,
    Server,
    Surface,
    SurfaceName,
    Switch,
    serving,
)
from tests.support.backend import Script
from tests.support.gate import Gate

pytestmark = pytest.mark.asyncio(loop_scope="module")

USER = "x-agent-user-isolation-key"
OTHER_USER = "x-agent-user-id"
CHAT = "x-agent-chat-isolation-key"

KEYS = {"our key": "ours", "our other key": "ours", "their key": "theirs"}
OURS = {"authorization": "Bearer our key", USER: "ann", CHAT: "a"}
# Each differs from ours in one part of the scope.
STRANGERS = {
    "project": {**OURS, "authorization": "Bearer their key"},
    "user": {**OURS, USER: "bob"},
    "no user": {"authorization": "Bearer our key", CHAT: "a"},
    "chat": {**OURS, CHAT: "b"},
    "no chat": {"authorization": "Bearer our key", USER: "ann"},
}

both_surfaces = pytest.mark.parametrize("surface", [REST, GRPC])


class Ids(NamedTuple):
    """What there is of one scope, ended and in flight."""

    response: str
    running: str
    conversation: str
    item: str
    output: str


CONVERSATION = "talk_" + "7" * 32

# As long as ours: lengths are in the bytes of a message.
UNKNOWN = Ids(
    "resp_" + "0" * 32,
    "resp_" + "1" * 32,
    "talk_" + "2" * 32,
    "msg_" + "3" * 37,
    "msg_" + "4" * 37,
)


class World(NamedTuple):
    server: Server
    switch: Switch
    ids: Ids
    gate: Gate


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world() -> AsyncIterator[World]:
    switch = Switch()
    keys = {hash_key(key): project for key, project in KEYS.items()}
    async with serving(switch, gate=Entrance(keys)) as server:
        ask = server.rest.ask
        conversation = await ask(
            "CreateConversation", {"id": CONVERSATION, "items": [message("secret")]}, headers=OURS
        )
        switch.backend = Script([TextDelta("secret"), Finished()])
        response = await ask("CreateResponse", request(conversation=CONVERSATION), headers=OURS)
        page = await ask("ListConversationItems", conversation_id=CONVERSATION, headers=OURS)
        gate = Gate()
        switch.backend = Script([Accepted(), TextDelta("secret")], gate, [Finished()])
        running = await ask("CreateResponse", request(background=True, store=True), headers=OURS)
        await gate.reached()
        ids = Ids(
            response.body["id"],
            running.body["id"],
            conversation.body["id"],
            page.body["last_id"],
            response.body["output"][0]["id"],
        )
        switch.backend = Script([TextDelta("fine"), Finished()])
        yield World(server, switch, ids, gate)
        gate.open()


def message(text: str) -> Json:
    return {"type": "message", "role": "user", "content": text}


def request(**asked: object) -> Json:
    return {"model": MODEL, "input": "hi", **asked}


def refers(item: str) -> list[Json]:
    return [message("hi"), {"type": "item_reference", "id": item}]


class Asked(NamedTuple):
    operation: str
    body: Json | None = None
    path: Mapping[str, Any] = {}
    query: Mapping[str, Any] = {}


def of_response(operation: str, **query: object) -> Callable[[Ids], Asked]:
    return lambda ids: Asked(operation, None, {"response_id": ids.response}, query)


def of_running(operation: str, **query: object) -> Callable[[Ids], Asked]:
    return lambda ids: Asked(operation, None, {"response_id": ids.running}, query)


def of_conversation(operation: str, body: Json | None = None) -> Callable[[Ids], Asked]:
    return lambda ids: Asked(operation, body, {"conversation_id": ids.conversation})


def of_item(operation: str) -> Callable[[Ids], Asked]:
    return lambda ids: Asked(
        operation, None, {"conversation_id": ids.conversation, "item_id": ids.item}
    )


def creates(**how: Callable[[Ids], object]) -> Callable[[Ids], Asked]:
    return lambda ids: Asked(
        "CreateResponse", request(**{name: value(ids) for name, value in how.items()})
    )


# Every operation that takes an id, in every place where it takes one.
OPERATIONS = {
    "get": of_response("GetResponse"),
    "get what runs": of_running("GetResponse"),
    "replay": of_response("GetResponse", stream=True),
    "replay what runs": of_running("GetResponse", stream=True),
    "replay the rest": of_running("GetResponse", stream=True, starting_after=1),
    "cancel": of_response("CancelResponse"),
    "cancel what runs": of_running("CancelResponse"),
    "delete": of_response("DeleteResponse"),
    "delete what runs": of_running("DeleteResponse"),
    "input items": of_response("ListInputItems"),
    "input items of what runs": of_running("ListInputItems"),
    "chain": creates(previous_response_id=lambda ids: ids.response),
    "chain to what runs": creates(previous_response_id=lambda ids: ids.running),
    "chain in a stream": creates(
        previous_response_id=lambda ids: ids.response, stream=lambda _: True
    ),
    "chain in the background": creates(
        previous_response_id=lambda ids: ids.response, background=lambda _: True
    ),
    "chain without storing": creates(
        previous_response_id=lambda ids: ids.response, store=lambda _: False
    ),
    "refer to an output item": creates(input=lambda ids: refers(ids.output)),
    "refer to an input item": creates(input=lambda ids: refers(ids.item)),
    "converse": creates(conversation=lambda ids: ids.conversation),
    "converse by an object": creates(conversation=lambda ids: {"id": ids.conversation}),
    "converse by another name": creates(conversation_id=lambda ids: ids.conversation),
    "converse in a stream": creates(
        conversation=lambda ids: ids.conversation, stream=lambda _: True
    ),
    "converse in the background": creates(
        conversation=lambda ids: ids.conversation, background=lambda _: True
    ),
    "refer to an item in a conversation": creates(
        conversation=lambda ids: ids.conversation, input=lambda ids: refers(ids.item)
    ),
    "get a conversation": of_conversation("GetConversation"),
    "update a conversation": of_conversation("UpdateConversation", {"metadata": {"a": "b"}}),
    "delete a conversation": of_conversation("DeleteConversation"),
    "add items": of_conversation("CreateConversationItems", {"items": [message("hi")]}),
    "list items": of_conversation("ListConversationItems"),
    "get an item": of_item("GetConversationItem"),
    "delete an item": of_item("DeleteConversationItem"),
}


async def ask(surface: Surface, asked: Asked, headers: Mapping[str, str]) -> Reply:
    return await surface.ask(
        asked.operation, asked.body, query=asked.query, headers=headers, **asked.path
    )


def nameless(reply: Reply, ids: Ids) -> tuple[str, bytes, Mapping[str, object]]:
    """Returns all that a reply says, but for the ids: those of both worlds are equally long."""
    raw = reply.raw
    for name, value in ids._asdict().items():
        raw = raw.replace(value.encode(), name.encode())
    return (
        reply.status,
        raw,
        {name: value for name, value in reply.headers.items() if not name.endswith("-bin")},
    )


@both_surfaces
@pytest.mark.parametrize("stranger", STRANGERS)
@pytest.mark.parametrize("name", OPERATIONS)
async def test_what_is_foreign_is_as_good_as_unknown(
    world: World, name: str, stranger: str, surface: SurfaceName
) -> None:
    asked = OPERATIONS[name]
    where, headers = world.server.surface(surface), STRANGERS[stranger]
    foreign = await ask(where, asked(world.ids), headers)
    nowhere = await ask(where, asked(UNKNOWN), headers)
    assert foreign.status in ("404", "400", "NOT_FOUND", "INVALID_ARGUMENT")
    assert [len(each) for each in world.ids] == [len(each) for each in UNKNOWN]
    assert nameless(foreign, world.ids) == nameless(nowhere, UNKNOWN)


@both_surfaces
async def test_what_is_foreign_stays_as_it_is(world: World, surface: SurfaceName) -> None:
    where = world.server.surface(surface)
    before = await what_is_there(world, where)
    for headers in STRANGERS.values():
        for asked in OPERATIONS.values():
            await ask(where, asked(world.ids), headers)
    assert await what_is_there(world, where) == before
    running = await where.ask("GetResponse", response_id=world.ids.running, headers=OURS)
    assert running.body["status"] == "in_progress"


async def what_is_there(world: World, where: Surface) -> list[Json]:
    ids = world.ids
    return [
        (await ask(where, asked, OURS)).body
        for asked in (
            Asked("GetResponse", None, {"response_id": ids.response}),
            Asked("ListInputItems", None, {"response_id": ids.response}),
            Asked("GetResponse", None, {"response_id": ids.running}),
            Asked("GetConversation", None, {"conversation_id": ids.conversation}),
            Asked("ListConversationItems", None, {"conversation_id": ids.conversation}),
        )
    ]


@both_surfaces
async def test_one_id_is_free_in_each_scope(world: World, surface: SurfaceName) -> None:
    where = world.server.surface(surface)
    for name, headers in STRANGERS.items():
        made = await where.ask(
            "CreateConversation",
            {"id": f"same-{surface}", "metadata": {"of": name}},
            headers=headers,
        )
        assert made.status == OK[surface]
    for name, headers in STRANGERS.items():
        again = await where.ask("CreateConversation", {"id": f"same-{surface}"}, headers=headers)
        assert again.told == ("409" if surface == REST else "ALREADY_EXISTS", "id", None)
        found = await where.ask(
            "GetConversation", conversation_id=f"same-{surface}", headers=headers
        )
        assert found.body["metadata"] == {"of": name}


@both_surfaces
async def test_the_other_name_of_the_user_header_counts_where_the_first_is_not_sent(
    world: World, surface: SurfaceName
) -> None:
    where = world.server.surface(surface)
    ours = {key: value for key, value in OURS.items() if key != USER}
    for headers, found in (
        ({**ours, OTHER_USER: "ann"}, True),
        ({**ours, OTHER_USER: "bob"}, False),
        ({**OURS, OTHER_USER: "bob"}, True),
        ({**ours, OTHER_USER: "ann", USER: "bob"}, False),
    ):
        reply = await where.ask("GetResponse", response_id=world.ids.response, headers=headers)
        assert (reply.status == OK[surface]) is found


# Keys.

GOOD = [
    {"authorization": "Bearer our key"},
    {"authorization": "bearer our key"},
    {"authorization": "Bearer our other key"},
    {"api-key": "our key"},
    {"api-key": "our other key"},
    {"authorization": "Basic eDp5", "api-key": "our key"},
]
BAD: list[dict[str, str]] = [
    {},
    {"authorization": ""},
    {"authorization": "Bearer"},
    {"authorization": "Bearer "},
    {"authorization": "our key"},
    {"authorization": "Basic our key"},
    {"authorization": "Bearer no key"},
    {"authorization": "Bearer our key "[:-2]},
    {"authorization": "Bearer no key", "api-key": "our key"},
    {"authorization": "Bearer " + hash_key("our key")},
    {"api-key": "no key"},
    {"api-key": ""},
    {"x-api-key": "our key"},
]

MALFORMED_IDS = Ids(*["../x"] * 5)

# Every operation there is, of what is built and of what is not.
ALL: dict[str, Callable[[Ids], Asked]] = {
    **OPERATIONS,
    "create": lambda _: Asked("CreateResponse", request()),
    "create a conversation": lambda _: Asked("CreateConversation", {}),
    "compact": lambda _: Asked("CompactResponse", {"model": MODEL}),
    "count": lambda _: Asked("CountInputTokens", {"model": MODEL}),
}


@both_surfaces
@pytest.mark.parametrize("headers", GOOD, ids=repr)
async def test_every_key_of_a_project_opens_what_is_the_projects(
    world: World, surface: SurfaceName, headers: Mapping[str, str]
) -> None:
    where = world.server.surface(surface)
    made = await where.ask("CreateResponse", request(), headers={"api-key": "our key"})
    found = await where.ask("GetResponse", response_id=made.body["id"], headers=headers)
    assert (found.status, found.body) == (OK[surface], made.body)


@both_surfaces
@pytest.mark.parametrize("headers", BAD, ids=repr)
async def test_no_key_but_a_good_one_lets_a_call_in(
    world: World, surface: SurfaceName, headers: Mapping[str, str]
) -> None:
    await is_kept_out(world.server.surface(surface), ALL["get"](world.ids), headers)


@both_surfaces
@pytest.mark.parametrize("name", ALL)
async def test_every_operation_needs_a_key(world: World, name: str, surface: SurfaceName) -> None:
    for ids in (world.ids, UNKNOWN, MALFORMED_IDS):
        await is_kept_out(world.server.surface(surface), ALL[name](ids), {})


async def is_kept_out(where: Surface, asked: Asked, headers: Mapping[str, str]) -> None:
    reply = await ask(where, asked, headers)
    status = "401" if where.name == REST else "UNAUTHENTICATED"
    assert reply.told == (status, None, "invalid_api_key")
    assert reply.refusal is not None
    assert "key" in reply.refusal.message
    assert b"our key" not in reply.raw


async def test_health_is_open(world: World) -> None:
    reply = await world.server.rest.ask("GetHealth")
    assert reply.status == "200"
    check: Any = world.server.channel.unary_unary(
        "/grpc.health.v1.Health/Check",
        request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
        response_deserializer=health_pb2.HealthCheckResponse.FromString,
    )
    healthy = await check(health_pb2.HealthCheckRequest())
    assert healthy.status == health_pb2.HealthCheckResponse.SERVING


@pytest.mark.parametrize("operation", ["ListModels", "GetModel"])
async def test_models_need_a_key_on_rest(world: World, operation: str) -> None:
    path: Json = {"model": MODEL} if operation == "GetModel" else {}
    assert (await world.server.rest.ask(operation, **path)).status == "401"
    reply = await world.server.rest.ask(operation, headers={"api-key": "our key"}, **path)
    assert reply.status == "200"


# Malformed ids.


class Untouched(MemoryStore):
    """A store that nobody may ask."""

    def __getattribute__(self, name: str) -> object:
        if name.startswith("_") or name in ("retained_turns", "retained_bytes"):
            return super().__getattribute__(name)
        return self._fail(name)

    @staticmethod
    def _fail(name: str) -> NoReturn:
        pytest.fail(f"the store was asked: {name}")


MALFORMED = ["-a", "../x", "a b", "a\n", "a\x00", "é", "a/b", "a" * 129, "{id}", "a?b", "'", ""]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def untouched() -> AsyncIterator[Server]:
    async with serving(Script([Finished()]), store=Untouched()) as server:
        yield server


@both_surfaces
@pytest.mark.parametrize("name", OPERATIONS)
async def test_a_malformed_id_is_refused_before_the_store_is_asked(
    untouched: Server, name: str, surface: SurfaceName
) -> None:
    where = untouched.surface(surface)
    for malformed in MALFORMED:
        reply = await ask(where, OPERATIONS[name](Ids(*[malformed] * 5)), {})
        assert reply.status == ("400" if surface == REST else "INVALID_ARGUMENT"), malformed
        assert reply.refusal is not None
        assert re.fullmatch(r"\w+_id|conversation(\.id)?|input\[1\]\.id", reply.refusal.param or "")
        assert "'{id}'" not in reply.refusal.message
