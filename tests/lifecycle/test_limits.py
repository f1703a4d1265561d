"""Limits of a project, of sizes, and of who may listen where; and the prefix of response ids."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
import structlog
from click.testing import CliRunner
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status

from antiphon.app import build_engine, build_gate, build_store
from antiphon.backends.documents.maker import DocumentMaker
from antiphon.cli import main
from antiphon.core.errors import ApiError, ErrorKind
from antiphon.core.keys import hash_key
from antiphon.core.limits import RateLimiter
from antiphon.core.output import Accepted, Failed, Finished, TextDelta
from antiphon.core.scope import Scope
from antiphon.engine.engine import EngineOptions
from antiphon.gateway import HEADER_LIMIT
from antiphon.settings import ApiKey, Isolation, Limits, Settings, SettingsError, Store, load
from antiphon.stores.memory import MemoryStore
from antiphon.transports.identity import Gate as Entrance
from antiphon.v1.response_pb2 import Response, ResponseStatus
from antiphon.v1.responses_service_pb2 import CreateResponseRequest
from tests.lifecycle.surfaces import (
    GRPC,
    LONG_SECONDS,
    MODEL,
    OK,
    REST,
    Json,
    Reply,
    Server,
    SurfaceName,
    Switch,
    serving,
    texts,
)
from tests.support.backend import Entry, Script
from tests.support.clock import Clock
from tests.support.gate import Gate

KEYS = {"our key": "ours", "our other key": "ours", "their key": "theirs"}
OURS = {"api-key": "our key"}
THEIRS = {"api-key": "their key"}

both_surfaces = pytest.mark.parametrize("surface", [REST, GRPC])


@pytest.fixture
def unprinted() -> Iterator[None]:
    """Keeps what is logged from being printed, which takes long."""
    with structlog.testing.capture_logs():
        yield


def request(**asked: Any) -> Json:
    return {"model": MODEL, "input": "hi", **asked}


def retry_after(reply: Reply) -> int:
    """Returns when to try again, in seconds, as either surface says it."""
    if "retry-after" in reply.headers:
        return int(reply.headers["retry-after"])
    info = RetryInfo()
    assert any(detail.Unpack(info) for detail in Status.FromString(reply.raw).details)
    return info.retry_delay.seconds


def is_over_the_limit(reply: Reply, surface: SurfaceName) -> bool:
    status = "429" if surface == REST else "RESOURCE_EXHAUSTED"
    if surface == REST and reply.status == "429":
        assert reply.body["error"]["type"] == "rate_limit_exceeded"
    return reply.told == (status, None, "rate_limit_exceeded")


# Requests per minute.


@asynccontextmanager
async def limited(requests_per_minute: int, clock: Clock) -> AsyncIterator[Server]:
    limiter = RateLimiter(requests_per_minute, clock)
    keys = {hash_key(key): project for key, project in KEYS.items()}
    backend = Script([TextDelta("fine"), Finished()])
    async with serving(backend, gate=Entrance(keys, limiter=limiter)) as server:
        yield server


@both_surfaces
async def test_a_project_has_so_many_requests_a_minute_and_others_have_theirs(
    surface: SurfaceName,
) -> None:
    clock = Clock()
    async with limited(2, clock) as server:
        ask = server.surface(surface).ask
        for key in ("our key", "our other key"):
            reply = await ask("CreateResponse", request(), headers={"api-key": key})
            assert reply.status == OK[surface]
        refused = await ask("CreateResponse", request(), headers=OURS)
        assert is_over_the_limit(refused, surface)
        assert retry_after(refused) == 30
        assert (await ask("CreateResponse", request(), headers=THEIRS)).status == OK[surface]
        clock.now += 29
        assert is_over_the_limit(await ask("CreateResponse", request(), headers=OURS), surface)
        clock.now += 1
        assert (await ask("CreateResponse", request(), headers=OURS)).status == OK[surface]
        assert is_over_the_limit(await ask("CreateResponse", request(), headers=OURS), surface)


@both_surfaces
@pytest.mark.parametrize(
    ("operation", "body", "query", "path"),
    [
        ("CreateResponse", request(stream=True), {}, {}),
        ("GetResponse", None, {}, {"response_id": "resp_1"}),
        ("GetResponse", None, {"stream": True}, {"response_id": "resp_1"}),
        ("CancelResponse", None, {}, {"response_id": "resp_1"}),
        ("DeleteResponse", None, {}, {"response_id": "resp_1"}),
        ("ListInputItems", None, {}, {"response_id": "resp_1"}),
        ("CompactResponse", {"model": MODEL}, {}, {}),
        ("CountInputTokens", {"model": MODEL}, {}, {}),
        ("CreateConversation", {}, {}, {}),
        ("GetConversation", None, {}, {"conversation_id": "conv_1"}),
        ("DeleteConversation", None, {}, {"conversation_id": "conv_1"}),
        ("ListConversationItems", None, {}, {"conversation_id": "conv_1"}),
        ("GetConversationItem", None, {}, {"conversation_id": "conv_1", "item_id": "msg_1"}),
        ("DeleteConversationItem", None, {}, {"conversation_id": "conv_1", "item_id": "msg_1"}),
    ],
)
async def test_every_request_counts_whatever_becomes_of_it(
    surface: SurfaceName,
    operation: str,
    body: Json | None,
    query: Mapping[str, Any],
    path: Mapping[str, Any],
) -> None:
    async with limited(1, Clock()) as server:
        where = server.surface(surface)
        first = await where.ask(operation, body, query=query, headers=OURS, **path)
        assert not is_over_the_limit(first, surface)
        second = await where.ask(operation, body, query=query, headers=OURS, **path)
        assert is_over_the_limit(second, surface)


async def test_rest_says_in_every_reply_what_is_left() -> None:
    clock = Clock()
    async with limited(4, clock) as server:
        told = []
        asked: list[tuple[str, Json | None, dict[str, Any]]] = [
            ("CreateResponse", request(), {}),
            ("CreateResponse", request(stream=True), {}),
            ("GetResponse", None, {"response_id": "resp_none"}),
            ("CreateResponse", {}, {}),
            ("CreateResponse", request(), {}),
        ]
        for operation, body, path in asked:
            reply = await server.rest.ask(operation, body, headers=OURS, **path)
            limits = [
                reply.headers[f"x-ratelimit-{name}-requests"]
                for name in ("limit", "remaining", "reset")
            ]
            told.append((reply.status, *limits))
        assert told == [
            ("200", "4", "3", "15.000s"),
            ("200", "4", "2", "30.000s"),
            ("404", "4", "1", "45.000s"),
            ("400", "4", "0", "60.000s"),
            ("429", "4", "0", "60.000s"),
        ]


async def test_who_has_no_key_uses_up_nothing_and_health_is_free() -> None:
    async with limited(1, Clock()) as server:
        for _ in range(3):
            refused = await server.rest.ask("CreateResponse", request(), headers={"api-key": "x"})
            assert refused.status == "401"
            assert (await server.rest.ask("GetHealth", headers=OURS)).status == "200"
        assert (await server.rest.ask("CreateResponse", request(), headers=OURS)).status == "200"


async def test_both_surfaces_draw_on_one_limit() -> None:
    async with limited(1, Clock()) as server:
        assert (await server.grpc.ask("CreateConversation", {}, headers=OURS)).status == "OK"
        assert (await server.rest.ask("CreateConversation", {}, headers=OURS)).status == "429"


# Concurrent runs.


class Crowd:
    """A server whose projects may have two runs at once, and the runs that go on.

    Args:
        server: the server.
        switch: its backend.
        surface: the surface to ask.
    """

    def __init__(self, server: Server, switch: Switch, surface: SurfaceName) -> None:
        self.server = server
        self._switch = switch
        self._surface = server.surface(surface)
        self._name = surface

    async def starts(self, *entries: Entry, headers: Mapping[str, str] = OURS, **asked: Any) -> Any:
        """Starts a run that goes on until its gate is opened; returns gate and reply to come."""
        gate = Gate()
        self._switch.backend = Script(*entries, gate, [Finished()])
        asking = asyncio.create_task(self.ask(headers, **asked))
        await gate.reached()
        return gate, asking

    async def ask(self, headers: Mapping[str, str] = OURS, **asked: Any) -> Reply:
        return await self._surface.ask("CreateResponse", request(**asked), headers=headers)

    async def is_full(self) -> None:
        """Sees to it that no run may start, in any mode, and that others' runs may."""
        untouched = Script([Finished()])
        self._switch.backend = untouched
        modes: list[dict[str, Any]] = [{}, {"stream": True}, {"background": True}, {"store": False}]
        for asked in modes:
            refused = await self.ask(**asked)
            assert is_over_the_limit(refused, self._name)
            assert retry_after(refused) >= 1
            if self._name == REST:
                assert refused.headers["x-ratelimit-limit-runs"] == "2"
                assert refused.headers["x-ratelimit-remaining-runs"] == "0"
        assert untouched.calls == []
        assert (await self.ask(THEIRS)).status == OK[self._name]

    async def has_room(self) -> None:
        self._switch.backend = Script([Finished()])
        assert (await self.ask()).status == OK[self._name]


@asynccontextmanager
async def crowd(surface: SurfaceName) -> AsyncIterator[Crowd]:
    keys = {hash_key(key): project for key, project in KEYS.items()}
    options = EngineOptions(accept_seconds=LONG_SECONDS, concurrent_runs=2)
    switch = Switch()
    async with serving(switch, gate=Entrance(keys), options=options) as server:
        yield Crowd(server, switch, surface)


@both_surfaces
@pytest.mark.parametrize(
    "asked", [{}, {"stream": True}, {"background": True}, {"store": False}], ids=repr
)
async def test_a_project_has_so_many_runs_at_once(surface: SurfaceName, asked: Json) -> None:
    async with crowd(surface) as full:
        # One that its backend has not accepted yet counts as well.
        waiting, first = await full.starts(**asked)
        writing, second = await full.starts([Accepted(), TextDelta("a")], **asked)
        await full.is_full()
        for gate, asking in ((waiting, first), (writing, second)):
            gate.open()
            assert (await asking).status == OK[surface]
            await full.server.engine.idle(1 if gate is waiting else 0)
            await full.has_room()


@pytest.mark.usefixtures("unprinted")
@both_surfaces
async def test_a_run_gives_its_place_back_however_it_ends(surface: SurfaceName) -> None:
    async with crowd(surface) as full:
        switch = full._switch
        for _ in range(3):
            for ending in (
                [ApiError(ErrorKind.UNAVAILABLE, "Not now.")],
                [ZeroDivisionError()],
                [[Accepted()], ZeroDivisionError()],
                [[Failed("server_error", "It failed.")]],
                [],
            ):
                switch.backend = Script(*ending)
                await full.ask()
                await full.server.engine.idle()
            _, leaving = await full.starts()
            leaving.cancel()
            await full.server.engine.idle()
        assert full.server.engine.running == 0
        (one, first), (other, second) = await full.starts(), await full.starts()
        await full.is_full()
        one.open()
        other.open()
        await asyncio.gather(first, second)


# Sizes.

LARGEST = 1_000


def padded(document: Json, size: int) -> bytes:
    """Returns a document in so many bytes."""
    text = json.dumps(document).encode()
    return text[:-1] + b" " * (size - len(text)) + text[-1:]


@pytest.mark.parametrize(
    ("operation", "body", "path"),
    [
        ("CreateResponse", request(), {}),
        ("CreateConversation", {}, {}),
        ("UpdateConversation", {"metadata": {}}, {"conversation_id": "conv_1"}),
        (
            "CreateConversationItems",
            {"items": [{"type": "message", "role": "user", "content": "hi"}]},
            {"conversation_id": "conv_1"},
        ),
    ],
)
async def test_a_body_has_a_greatest_size(
    operation: str, body: Json, path: Mapping[str, Any]
) -> None:
    async with serving(Script([Finished()]), max_body_bytes=LARGEST) as server:
        await server.rest.ask("CreateConversation", {"id": "conv_1"})
        assert (await server.rest.ask(operation, padded(body, LARGEST), **path)).status == "200"
        large = padded(body, LARGEST + 1)
        squeezed = gzip.compress(large)
        assert len(squeezed) < LARGEST
        for sent, headers in ((large, {}), (squeezed, {"content-encoding": "gzip"})):
            reply = await server.rest.ask(operation, sent, headers=headers, **path)
            assert reply.told == ("413", None, "request_too_large")


async def test_a_message_has_a_greatest_size() -> None:
    async with serving(Script([Finished()]), max_body_bytes=LARGEST) as server:
        create: Any = server.channel.unary_unary(
            "/antiphon.v1.ResponsesService/CreateResponse",
            request_serializer=CreateResponseRequest.SerializeToString,
            response_deserializer=Response.FromString,
        )
        text = "x" * (LARGEST + 2 * HEADER_LIMIT + 1)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await create(CreateResponseRequest(model=MODEL, input_text=text))
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.usefixtures("unprinted")
@pytest.mark.parametrize(
    ("text", "status"), [("x" * 10, "completed"), ("x" * 11, "failed"), ("é" * 6, "failed")]
)
async def test_a_piece_of_output_has_a_greatest_size_in_bytes(text: str, status: str) -> None:
    settings = Settings(max_output_event_bytes=10)
    engine = build_engine(settings, MemoryStore(), DocumentMaker())
    asked = CreateResponseRequest(model="echo", input_text=text)
    final = (await (await engine.create(Scope(), asked)).result()).response
    assert ResponseStatus.Name(final.status) == f"RESPONSE_STATUS_{status.upper()}"


async def test_a_store_keeps_to_its_count_and_its_bytes() -> None:
    for kept in (Store(max_responses=2), Store(max_bytes=4_000)):
        store = build_store(Settings(store=kept))
        engine = build_engine(Settings(), store, DocumentMaker())
        assert isinstance(store, MemoryStore)
        response_id = ""
        for number in range(20):
            asked = CreateResponseRequest(model="echo", input_text=f"{number}" * 100)
            run = await engine.create(Scope(), asked)
            response_id = (await run.result()).response.id
            assert store.retained_turns <= kept.max_responses
            assert store.retained_bytes <= kept.max_bytes
        assert (await engine.get(Scope(), response_id)).response.id == response_id


# Settings.


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.9", "::1", "localhost"])
def test_loopback_needs_no_keys(host: str) -> None:
    assert load(None, host=host).host == host


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "192.168.1.1", "10.0.0.1", "example.org", "localhost.example.org"]
)
def test_other_addresses_need_keys_or_a_word_that_it_is_meant(host: str) -> None:
    with pytest.raises(SettingsError, match=r"^host: .*insecure"):
        load(None, host=host)
    with pytest.raises(SettingsError, match=r"^host: .*insecure"):
        load(None, host=host, insecure=False, api_keys=())
    assert load(None, host=host, insecure=True).host == host
    keys = [{"hash": hash_key("our key")}]
    assert load(None, host=host, api_keys=keys).api_keys == (ApiKey(hash=hash_key("our key")),)


def test_the_command_refuses_an_open_address() -> None:
    done = CliRunner().invoke(main, ["serve", "--host", "0.0.0.0", "--port", "0"])
    assert done.exit_code == 1
    assert "--insecure" in done.output


def test_a_key_is_kept_as_its_hash() -> None:
    with pytest.raises(SettingsError, match=r"api_keys"):
        load(None, api_keys=[{"hash": "our key"}])


def test_settings_reach_the_gate() -> None:
    settings = Settings(
        api_keys=(
            ApiKey(hash=hash_key("one"), project="p"),
            ApiKey(hash=hash_key("two"), project="p"),
            ApiKey(hash=hash_key("three")),
        ),
        isolation=Isolation(user_headers=("X-User",), chat_header="X-Chat"),
        limits=Limits(requests_per_minute=3),
    )
    gate = build_gate(settings)
    headers = {"x-user": "ann", "x-chat": "a", "x-agent-user-id": "bob"}
    for key, project in (("one", "p"), ("two", "p"), ("three", "default")):
        passed = gate.enter({**headers, "api-key": key})
        assert passed.scope == Scope(project, "ann", "a")
        assert passed.rate is not None
        assert passed.rate.limit == 3


async def test_settings_reach_the_engine() -> None:
    engine = build_engine(
        Settings(limits=Limits(concurrent_runs=1)), MemoryStore(), DocumentMaker()
    )
    engine._running["ours"] += 1
    with pytest.raises(ApiError) as caught:
        await engine.create(
            Scope("ours"), CreateResponseRequest(model="echo", input_text="hi", store=False)
        )
    assert caught.value.kind is ErrorKind.RATE_LIMIT


# The prefix of response ids.


@both_surfaces
@pytest.mark.parametrize("prefix", ["resp", "caresp"])
async def test_the_prefix_of_response_ids_is_used_everywhere(
    surface: SurfaceName, prefix: str
) -> None:
    switch = Switch(Script([TextDelta("Hello"), Finished()]))
    options = EngineOptions(accept_seconds=LONG_SECONDS, response_prefix=prefix)
    async with serving(switch, options=options) as server:
        ask = server.surface(surface).ask
        conversation = (await ask("CreateConversation", {})).body["id"]
        for asked in (
            {},
            {"stream": True},
            {"background": True},
            {"stream": True, "background": True},
            {"store": False},
            {"conversation": conversation},
        ):
            reply = await ask("CreateResponse", request(**asked))
            told = (
                [event["response"] for event in reply.events if "response" in event]
                if reply.events is not None
                else [reply.body]
            )
            (response_id,) = {each["id"] for each in told}
            assert response_id.startswith(f"{prefix}_")
            await server.engine.idle()
            if asked.get("store") is False:
                continue
            found = (await ask("GetResponse", response_id=response_id)).body
            assert found["id"] == response_id
            items = (await ask("ListInputItems", response_id=response_id)).body["data"]
            chained = await ask("CreateResponse", request(previous_response_id=response_id))
            assert chained.body["previous_response_id"] == response_id
            # An item's id tells the response that it is of.
            for item, text in ((items[0], "hi"), (found["output"][0], "Hello")):
                reference = {"type": "item_reference", "id": item["id"]}
                referring = await ask("CreateResponse", request(input=[reference]))
                context = await ask("ListInputItems", response_id=referring.body["id"])
                assert texts(context.body["data"]) == [text]
            deleted = await ask("DeleteResponse", response_id=response_id)
            assert deleted.body["id"] == response_id


@pytest.mark.parametrize("prefix", ["", "Resp", "a_b", "a-b", "a" * 17])
def test_a_prefix_is_a_short_word(prefix: str) -> None:
    with pytest.raises(SettingsError, match=r"^response_id_prefix: "):
        load(None, response_id_prefix=prefix)


async def test_the_prefix_of_the_settings_reaches_the_engine() -> None:
    engine = build_engine(load(None, response_id_prefix="caresp"), MemoryStore(), DocumentMaker())
    run = await engine.create(Scope(), CreateResponseRequest(model="echo", input_text="hi"))
    assert run.response_id.startswith("caresp_")
