"""Every operation, on a response made in every mode, in every state it can be in.

What is expected follows from the rules below, which are the words of the API's documentation:
each says for a mode and a state what is refused, and each operation then says what else is told
and what comes of it.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, NamedTuple

import pytest
import pytest_asyncio

from antiphon.core.output import Accepted, Failed, Finished, TextDelta
from antiphon.engine.engine import EngineOptions
from antiphon.stores.memory import Bounds, MemoryStore
from tests.lifecycle.surfaces import (
    GRPC,
    LONG_SECONDS,
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
    texts,
)
from tests.support.backend import Entry, Script
from tests.support.clock import Clock
from tests.support.gate import Gate

pytestmark = pytest.mark.asyncio(loop_scope="module")

EVENT_TTL: Final = 600.0
TURN_TTL: Final = 7_200.0


class Mode(NamedTuple):
    stream: bool
    background: bool
    store: bool

    @property
    def name(self) -> str:
        return "+".join(name for name, on in self._asdict().items() if on) or "plain"


MODES = [
    Mode(stream, background, store)
    for stream in (False, True)
    for background in (False, True)
    for store in (True, False)
    # What runs without its client has to be kept for it.
    if store or not background
]

# The states, by the entries with which their backend ends.
ENDINGS: dict[str, Entry] = {
    "waiting": [Finished()],
    "writing": [TextDelta("lo"), Finished()],
    "completed": [TextDelta("lo"), Finished()],
    "failed": [Failed("server_error", "It failed.")],
    "incomplete": [Finished(incomplete="max_output_tokens")],
    "cancelled": [Finished()],
    "deleted": [Finished()],
    "expired": [Finished()],
    "events expired": [TextDelta("lo"), Finished()],
}
IN_FLIGHT = ("waiting", "writing")
GONE = ("deleted", "expired")


class Refused(NamedTuple):
    rest: str
    grpc: str
    param: str | None = None
    code: str | None = None

    def on(self, surface: Surface) -> tuple[str, str | None, str | None]:
        return (self.rest if surface.name == REST else self.grpc, self.param, self.code)


UNKNOWN = Refused("404", "NOT_FOUND", "response_id")
UNKNOWN_PARENT = Refused(
    "400", "INVALID_ARGUMENT", "previous_response_id", "previous_response_not_found"
)
RUNNING_PARENT = Refused("400", "FAILED_PRECONDITION", "previous_response_id")
NOT_REPLAYABLE = Refused("400", "FAILED_PRECONDITION", "stream")
NOT_IN_BACKGROUND = Refused("400", "FAILED_PRECONDITION", "response_id")


# The rules.


def known(mode: Mode, state: str) -> bool:
    """What is not stored, not begun, deleted or expired cannot be found."""
    begun = mode.background or state != "waiting"
    return mode.store and begun and state not in GONE


def looks_up(mode: Mode, state: str) -> Refused | None:
    """An operation that works whenever the response can be found."""
    return None if known(mode, state) else UNKNOWN


def replays(mode: Mode, state: str) -> Refused | None:
    """Events are kept of background streams, for a while."""
    if not known(mode, state):
        return UNKNOWN
    kept = mode.background and mode.stream and state != "events expired"
    return None if kept else NOT_REPLAYABLE


def cancels(mode: Mode, state: str) -> Refused | None:
    """Only what is in the background can be cancelled, which includes what has ended."""
    if not known(mode, state):
        return UNKNOWN
    return None if mode.background else NOT_IN_BACKGROUND


def continues(mode: Mode, state: str) -> Refused | None:
    """A parent can be found and has ended, however it ended."""
    if not known(mode, state):
        return UNKNOWN_PARENT
    return RUNNING_PARENT if state in IN_FLIGHT else None


def status_in(mode: Mode, state: str) -> str:
    if state == "waiting":
        return "queued" if mode.background else "in_progress"
    return {"writing": "in_progress", "events expired": "completed"}.get(state, state)


def said_in(state: str) -> list[str]:
    """The output so far is kept, whatever the end."""
    if state == "waiting":
        return []
    return ["Hello"] if state in ("completed", "events expired") else ["Hel"]


# A response in a state.


class World:
    """A server, whose clock goes when it is told to."""

    def __init__(self, server: Server, switch: Switch, clock: Clock) -> None:
        self.server = server
        self.switch = switch
        self.clock = clock
        self.root: tuple[float, str] = (0.0, "")
        """When the response that all others continue was made, and its id."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world() -> AsyncIterator[World]:
    clock, switch = Clock(), Switch()
    bounds = Bounds(turn_ttl_seconds=TURN_TTL, event_ttl_seconds=EVENT_TTL)
    options = EngineOptions(accept_seconds=LONG_SECONDS)
    store = MemoryStore(bounds, clock)
    async with serving(switch, store=store, clock=clock, options=options) as server:
        yield World(server, switch, clock)


class Made:
    """A response in a state, and its client.

    Args:
        world: the server.
        surface: the surface that everything is asked on.
        mode: how it is made.
        state: the state to bring it to.
    """

    def __init__(self, world: World, surface: Surface, mode: Mode, state: str) -> None:
        self.surface = surface
        self.mode = mode
        self.state = state
        self._world = world
        self._early, self._late = Gate(), Gate()
        self.script = Script(
            self._early, [Accepted(), TextDelta("Hel")], self._late, ENDINGS[state]
        )
        self.id = ""
        self.live: asyncio.Task[Reply]

    async def bring_about(self) -> None:
        """Makes a response that continues another one, and brings it to the state."""
        parent = await self._root()
        self.live = asyncio.create_task(
            self.create("two", mode=self.mode, parent=parent, backend=self.script)
        )
        await self._early.reached()
        self.id = self.script.calls[0].response_id
        if self.state == "waiting":
            return
        self._early.open()
        await self._late.reached()
        if self.state == "writing":
            return
        engine = self._world.server.engine
        if self.state != "cancelled":
            self._late.open()
            await self.live
        elif self.mode.background:
            assert (await self.ask("CancelResponse")).status == OK[self.surface.name]
        else:
            self.live.cancel()
        await engine.idle()
        if self.state == "deleted":
            assert (await self.ask("DeleteResponse")).status == OK[self.surface.name]
        elif self.state == "expired":
            self._world.clock.now += TURN_TTL
        elif self.state == "events expired":
            self._world.clock.now += EVENT_TTL

    async def _root(self) -> str:
        """Returns the id of a response to continue: a new one when time has passed."""
        world = self._world
        made_at, response_id = world.root
        if made_at != world.clock.now:
            mode = Mode(stream=False, background=False, store=True)
            made = await self.create("one", mode=mode, backend=Script([Finished()]))
            response_id = made.body["id"]
            world.root = (world.clock.now, response_id)
        return response_id

    async def create(
        self, text: str, *, mode: Mode, backend: Script, parent: str | None = None
    ) -> Reply:
        self._world.switch.backend = backend
        body: Json = {"model": MODEL, "input": text, **mode._asdict()}
        if parent is not None:
            body["previous_response_id"] = parent
        return await self.surface.ask("CreateResponse", body)

    async def chain(self) -> tuple[Reply, Script]:
        """Asks for a response that continues it."""
        script = Script([Finished()])
        plain = Mode(False, False, True)
        return await self.create("three", mode=plain, parent=self.id, backend=script), script

    async def ask(self, operation: str, **query: object) -> Reply:
        return await self.surface.ask(operation, query=query, response_id=self.id)

    async def release(self) -> None:
        """Lets the backend go on, to its end."""
        self._early.open()
        self._late.open()
        await self._world.server.engine.idle()

    async def told(self) -> Json:
        """Returns the response as the client was told of it at the end."""
        reply = await self.live
        assert reply.status == OK[self.surface.name]
        if reply.events is None:
            return reply.body
        assert [event["sequence_number"] for event in reply.events] == list(
            range(len(reply.events))
        )
        ends = {"response.completed", "response.incomplete", "response.failed"}
        assert [event["type"] in ends for event in reply.events].index(True) == (
            len(reply.events) - 1
        )
        last: Json = reply.events[-1]["response"]
        return last

    async def is_unknown(self) -> None:
        assert (await self.ask("GetResponse")).told == UNKNOWN.on(self.surface)

    async def has_stopped(self) -> None:
        """Sees to it that the backend was stopped by itself."""
        await self._world.server.engine.idle()
        assert self.script.closed == 1


# The operations: each is asked, and returns what the surface says; then what came of it.


async def get(made: Made) -> None:
    found = (await made.ask("GetResponse")).body
    assert found["id"] == made.id
    assert found["object"] == "response"
    assert found["status"] == status_in(made.mode, made.state)
    assert texts(found["output"]) == said_in(made.state)
    assert (found["background"], found["store"]) == (made.mode.background, True)
    assert (found["error"] is not None) is (made.state == "failed")
    assert (found["incomplete_details"] is not None) is (made.state == "incomplete")
    assert (found["completed_at"] is not None) is (status_in(made.mode, made.state) == "completed")
    heard = made.mode.stream or not made.mode.background
    if made.state not in IN_FLIGHT and heard and not made.live.cancelled():
        assert found == await made.told()


async def get_stream(made: Made) -> None:
    await replayed(made, -1)


async def get_stream_after(made: Made) -> None:
    await replayed(made, 1)


async def replayed(made: Made, after: int) -> None:
    asked: Json = {"stream": True, "include_obfuscation": True}
    if after >= 0:
        asked["starting_after"] = after
    following = asyncio.create_task(made.ask("GetResponse", **asked))
    if made.state in IN_FLIGHT:
        # The stored events first, live ones then: one reader gets both.
        await made.ask("GetResponse")
        assert not following.done()
        await made.release()
    reply, live = await following, await made.live
    await made.told()
    assert (reply.status, reply.raw) == (OK[made.surface.name], live.raw[-len(reply.raw) :])
    assert live.events is not None
    assert reply.events == live.events[after + 1 :]
    past = await made.ask("GetResponse", stream=True, starting_after=len(live.events) + 7)
    assert (past.status, past.events) == (OK[made.surface.name], [])


async def cancel(made: Made) -> None:
    before = (await made.ask("GetResponse")).body
    reply = await made.ask("CancelResponse")
    if made.state in IN_FLIGHT:
        assert reply.body == {**before, "status": "cancelled", "output": reply.body["output"]}
        assert texts(reply.body["output"]) == said_in(made.state)
        await made.has_stopped()
        if made.mode.stream:
            assert await made.told() == reply.body
        await made.release()
    else:
        assert reply.body == before
    assert (await made.ask("GetResponse")).body == reply.body
    assert (await made.ask("CancelResponse")).body == reply.body


async def delete(made: Made) -> None:
    child = None if made.state in IN_FLIGHT else (await made.chain())[0]
    await deleted(made)
    if child is None:
        await made.has_stopped()
        if made.mode.stream or not made.mode.background:
            told = await made.told()
            assert (told["status"], texts(told["output"])) == ("cancelled", said_in(made.state))
        await made.release()
    else:
        made_from = await made.surface.ask(
            "ListInputItems", query={"order": "asc"}, response_id=child.body["id"]
        )
        assert texts(made_from.body["data"]) == ["one", "two", *said_in(made.state), "three"]
    await made.is_unknown()


async def delete_twice(made: Made) -> None:
    await deleted(made)
    for _ in range(2):
        assert (await made.ask("DeleteResponse")).told == UNKNOWN.on(made.surface)
    for operation in ("GetResponse", "CancelResponse", "ListInputItems"):
        assert (await made.ask(operation)).told == UNKNOWN.on(made.surface)
    assert (await made.ask("GetResponse", stream=True)).told == UNKNOWN.on(made.surface)
    assert (await made.chain())[0].told == UNKNOWN_PARENT.on(made.surface)


async def deleted(made: Made) -> None:
    reply = await made.ask("DeleteResponse")
    assert reply.body == {"id": made.id, "object": "response", "deleted": True}


async def input_items(made: Made) -> None:
    for order, expected in (("asc", ["one", "two"]), ("desc", ["two", "one"])):
        page = (await made.ask("ListInputItems", order=order)).body
        assert page["object"] == "list"
        assert texts(page["data"]) == expected
        ids = [item["id"] for item in page["data"]]
        assert (page["first_id"], page["last_id"]) == (ids[0], ids[-1])
        assert page["has_more"] is False
        again = (await made.ask("ListInputItems", order=order)).body
        assert again == page


async def chain(made: Made) -> None:
    reply, script = await made.chain()
    assert reply.body["status"] == "completed"
    assert reply.body["previous_response_id"] == made.id
    history = await script.calls[0].history()
    heard = [item.message.content_list.parts[0] for item in history]
    said = [part.input_text.text or part.output_text.text for part in heard]
    assert said == ["one", "two", *said_in(made.state)]


class Operation(NamedTuple):
    refused: Callable[[Mode, str], Refused | None]
    ask: Callable[[Made], Awaitable[Reply]]
    effect: Callable[[Made], Awaitable[None]]


async def _chained(made: Made) -> Reply:
    return (await made.chain())[0]


def _asks(operation: str, **query: object) -> Callable[[Made], Awaitable[Reply]]:
    return lambda made: made.ask(operation, **query)


OPERATIONS = {
    "get": Operation(looks_up, _asks("GetResponse"), get),
    "stream": Operation(replays, _asks("GetResponse", stream=True), get_stream),
    "stream after": Operation(
        replays, _asks("GetResponse", stream=True, starting_after=1), get_stream_after
    ),
    "cancel": Operation(cancels, _asks("CancelResponse"), cancel),
    "delete": Operation(looks_up, _asks("DeleteResponse"), delete),
    "delete twice": Operation(looks_up, _asks("DeleteResponse"), delete_twice),
    "input items": Operation(looks_up, _asks("ListInputItems"), input_items),
    "chain": Operation(continues, _chained, chain),
}


def states_of(mode: Mode) -> list[str]:
    """Only what was stored can be deleted, or expire."""
    return [state for state in ENDINGS if mode.store or state not in (*GONE, "events expired")]


@pytest.mark.parametrize("surface", [REST, GRPC])
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(
    ("mode", "state"),
    [
        pytest.param(mode, state, id=f"{mode.name}-{state}")
        for mode in MODES
        for state in states_of(mode)
    ],
)
async def test_an_operation_on_a_response(
    world: World, surface: SurfaceName, mode: Mode, state: str, operation: str
) -> None:
    made = Made(world, world.server.surface(surface), mode, state)
    await made.bring_about()
    try:
        refused, ask, effect = OPERATIONS[operation]
        expected = refused(mode, state)
        if expected is None:
            await effect(made)
        else:
            reply = await ask(made)
            assert reply.told == expected.on(made.surface)
            await nothing_came_of_it(made)
    finally:
        await made.release()
        await asyncio.wait([made.live])


async def nothing_came_of_it(made: Made) -> None:
    """What is refused changes nothing: the response goes on, and ends as it would have."""
    if made.state in IN_FLIGHT:
        await made.release()
        if made.mode.stream or not made.mode.background:
            assert (await made.told())["status"] == "completed"
    if known(made.mode, made.state):
        found = (await made.ask("GetResponse")).body
        ended = "completed" if made.state in IN_FLIGHT else status_in(made.mode, made.state)
        assert found["status"] == ended


@pytest.mark.parametrize("surface", [REST, GRPC])
async def test_the_reason_says_whether_events_were_never_kept_or_are_no_more(
    world: World, surface: SurfaceName
) -> None:
    messages = {}
    for mode in (Mode(False, True, True), Mode(True, True, True)):
        made = Made(world, world.server.surface(surface), mode, "events expired")
        await made.bring_about()
        refused = (await made.ask("GetResponse", stream=True)).refusal
        assert refused is not None
        messages[mode.stream] = refused.message
    assert messages == {
        False: (
            "The events of this response are not kept: it was not created with both "
            "'background' and 'stream'."
        ),
        True: "The events of this response are no longer kept.",
    }


@pytest.mark.parametrize("surface", [REST, GRPC])
@pytest.mark.parametrize("stream", [False, True])
async def test_what_runs_in_the_background_has_to_be_stored(
    world: World, surface: SurfaceName, stream: bool
) -> None:
    script = Script([Finished()])
    world.switch.backend = script
    asked = {"model": MODEL, "input": "hi", "background": True, "store": False, "stream": stream}
    reply = await world.server.surface(surface).ask("CreateResponse", asked)
    expected = Refused("400", "INVALID_ARGUMENT", "background", "invalid_value")
    assert reply.told == expected.on(world.server.surface(surface))
    assert script.calls == []


@pytest.mark.parametrize(
    ("surface", "name", "value"),
    [
        (REST, "starting_after", "x"),
        (REST, "starting_after", "1.5"),
        (REST, "starting_after", "-1"),
        (REST, "starting_after", "9" * 30),
        (REST, "stream", "maybe"),
        (REST, "include_obfuscation", "maybe"),
        (REST, "include", ["nothing"]),
        (GRPC, "starting_after", -1),
        (GRPC, "starting_after", -(2**63)),
        (GRPC, "include", ["nothing"]),
    ],
)
async def test_a_bad_parameter_of_a_replay_is_refused_by_its_name(
    world: World, surface: SurfaceName, name: str, value: object
) -> None:
    asked = {"stream": True, name: value}
    made = Made(world, world.server.surface(surface), Mode(True, True, True), "completed")
    await made.bring_about()
    reply = await made.ask("GetResponse", **asked)
    assert reply.status == ("400" if surface == REST else "INVALID_ARGUMENT")
    assert reply.refusal is not None
    assert (reply.refusal.param or "").partition("[")[0] == name
