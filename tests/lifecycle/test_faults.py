"""Backends that misbehave, in every mode: each way has one end, and disturbs nobody else."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any, NamedTuple, cast

import pytest
import pytest_asyncio
import structlog

from antiphon.backends.protocol import Backend, Call
from antiphon.core.errors import ApiError, ErrorKind
from antiphon.core.output import (
    Accepted,
    Failed,
    Finished,
    InputDelta,
    ItemAdded,
    ItemDone,
    ReasoningDelta,
    RefusalDelta,
    Step,
    TextDelta,
)
from antiphon.core.scope import Scope
from antiphon.engine.engine import EngineOptions
from antiphon.stores.memory import MemoryStore
from antiphon.v1.content_pb2 import OutputTextLogprob
from antiphon.v1.item_pb2 import Item
from antiphon.v1.message_pb2 import Role
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
from tests.support.backend import Script
from tests.support.gate import Gate
from tests.support.store import SteeredStore

pytestmark = pytest.mark.asyncio(loop_scope="module")

SECRET = "password=hunter2"
LARGEST = 1_000
LARGE = "x" * (LARGEST + 1)


class Mode(NamedTuple):
    stream: bool = False
    background: bool = False
    store: bool = True
    shared: bool = False
    """Whether it is in a conversation."""

    @property
    def name(self) -> str:
        return "+".join(name for name, on in self._asdict().items() if on) or "plain"


MODES = [
    Mode(stream, background, store, shared)
    for stream in (False, True)
    for background, store in ((False, True), (True, True), (False, False))
    for shared in (False, True)
]


@pytest.fixture(autouse=True)
def logs() -> Iterator[list[Any]]:
    """What is logged, which is not printed."""
    with structlog.testing.capture_logs() as captured:
        yield captured


every_mode = pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
both_surfaces = pytest.mark.parametrize("surface", [REST, GRPC])


# Backends.


class Odd(BaseException):
    """What is no `Exception`."""


class Returns:
    """Answers with something that is no iterator of batches."""

    def __init__(self, answer: object) -> None:
        self._answer = answer

    def respond(self, call: Call) -> AsyncIterator[Sequence[Step]]:
        return cast("AsyncIterator[Sequence[Step]]", self._answer)


class Raises:
    """Raises before there is an iterator."""

    def respond(self, call: Call) -> AsyncIterator[Sequence[Step]]:
        raise ZeroDivisionError(SECRET)


class Closing:
    """Answers, and does something when it is closed.

    Args:
        closing: what.
    """

    def __init__(self, closing: Callable[[], object]) -> None:
        self._closing = closing

    async def respond(self, call: Call) -> AsyncIterator[Sequence[Step]]:
        try:
            yield [TextDelta("Hello"), Finished()]
        finally:
            done = self._closing()
            if isinstance(done, Gate):
                await done.enter()


class GoesOn:
    """Yields although it was closed."""

    async def respond(self, call: Call) -> AsyncIterator[Sequence[Step]]:
        try:
            yield [TextDelta("Hello"), Finished()]
        finally:
            yield [TextDelta("more"), Finished()]


class Unclosable:
    """An iterator whose attribute `aclose` is of no use."""

    aclose = 5

    def __init__(self) -> None:
        self._batches: list[list[Step]] = [[TextDelta("Hello"), Finished()]]

    def __aiter__(self) -> "Unclosable":
        return self

    async def __anext__(self) -> list[Step]:
        if not self._batches:
            raise StopAsyncIteration
        return self._batches.pop()


class Yields:
    """Yields whatever it is given."""

    def __init__(self, *batches: object) -> None:
        self._batches = batches

    async def respond(self, call: Call) -> AsyncIterator[Sequence[Step]]:
        for batch in self._batches:
            yield cast("Sequence[Step]", batch)


class Stubborn:
    """Writes, and goes on when it is cancelled.

    Args:
        gate: where it waits, however often it is cancelled; then it goes on writing.
        once: whether the first cancellation lets it pass.
    """

    def __init__(self, gate: Gate, *, once: bool) -> None:
        self._gate = gate
        self._once = once
        self.ended = asyncio.Event()

    async def respond(self, call: Call) -> AsyncIterator[Sequence[Step]]:
        try:
            yield [TextDelta("Hel")]
            while True:
                try:
                    await self._gate.enter()
                except asyncio.CancelledError:
                    if not self._once:
                        continue
                break
            yield [TextDelta("lo"), Finished()]
        finally:
            self.ended.set()


class Recorded:
    """Remembers the response that a backend was asked for."""

    def __init__(self, backend: Stubborn) -> None:
        self.backend = backend
        self.response_id = ""

    def respond(self, call: Call) -> AsyncIterator[Sequence[Step]]:
        self.response_id = call.response_id
        return self.backend.respond(call)


def raising(error: BaseException) -> Callable[[], object]:
    def do() -> object:
        raise error

    return do


def odd(value: object) -> Any:
    """Returns a value whose type is not what it should be."""
    return value


def message(text: str = "", logprob: float | None = None) -> Item:
    item = Item()
    item.message.role = Role.ROLE_ASSISTANT
    part = item.message.content_list.parts.add().output_text
    part.text = text
    if logprob is not None:
        part.logprobs.add(token="t", logprob=logprob)
    return item


def unknown(document: str) -> Item:
    return Item(unknown=document)


# The table.


class Fault(NamedTuple):
    """A way to misbehave, and what comes of it.

    Args:
        backend: who misbehaves.
        end: how the answer ends: what fails before it begins is refused in the foreground.
        said: the output that is kept.
        rest: the status of the refusal.
        grpc: the same.
    """

    backend: Callable[[], Backend]
    end: str
    said: Sequence[str] = ()
    rest: str = "500"
    grpc: str = "INTERNAL"


def early(backend: Callable[[], Backend]) -> Fault:
    """Something that happens before the backend has accepted."""
    return Fault(backend, "refused")


def late(*entries: Any) -> Fault:
    """Something that happens when there is output already, which is kept."""
    return Fault(lambda: Script([TextDelta("Hel")], *entries), "failed", ["Hel"])


def after(backend: Callable[[], Backend]) -> Fault:
    """Something that happens when the answer is finished already, and changes nothing."""
    return Fault(backend, "completed", ["Hello"])


FAULTS = {
    "refuses": Fault(
        lambda: Script(ApiError(ErrorKind.RATE_LIMIT, "Too many.")),
        "refused",
        rest="429",
        grpc="RESOURCE_EXHAUSTED",
    ),
    "raises at once": early(Raises),
    "raises before acceptance": early(lambda: Script(ZeroDivisionError(SECRET))),
    "raises no Exception before acceptance": early(lambda: Script(Odd(SECRET))),
    "exits before acceptance": early(lambda: Script(SystemExit(SECRET))),
    "cancels itself before acceptance": early(lambda: Script(asyncio.CancelledError(SECRET))),
    "is no iterator": early(lambda: Returns(None)),
    "is a list": early(lambda: Returns([[Finished()]])),
    "yields nothing": Fault(Script, "failed"),
    "yields empty batches": Fault(lambda: Script([], []), "failed"),
    "ends when it has accepted": Fault(lambda: Script([Accepted()]), "failed"),
    "raises before the first event": Fault(
        lambda: Script([Accepted()], ZeroDivisionError(SECRET)), "failed"
    ),
    "raises after the first event": late(ZeroDivisionError(SECRET)),
    "refuses after the first event": late(ApiError(ErrorKind.RATE_LIMIT, "Too many.")),
    "raises no Exception after the first event": late(Odd(SECRET)),
    "exits after the first event": late(SystemExit(SECRET)),
    "interrupts after the first event": late(KeyboardInterrupt(SECRET)),
    "cancels itself after the first event": late(asyncio.CancelledError(SECRET)),
    "closes itself after the first event": late(GeneratorExit(SECRET)),
    "ends without finishing": late(),
    "yields after finishing": after(
        lambda: Script([TextDelta("Hello"), Finished()], [TextDelta("more")])
    ),
    "yields after finishing at once": after(
        lambda: Script([TextDelta("Hello"), Finished(), TextDelta("more")])
    ),
    "yields when it is closed": after(GoesOn),
    "finishes twice": after(lambda: Script([TextDelta("Hello"), Finished()], [Finished()])),
    "finishes and fails": after(
        lambda: Script([TextDelta("Hello"), Finished(), Failed("server_error", "It failed.")])
    ),
    "raises when it is closed": after(lambda: Closing(raising(ZeroDivisionError(SECRET)))),
    "raises no Exception when it is closed": after(lambda: Closing(raising(Odd(SECRET)))),
    "exits when it is closed": after(lambda: Closing(raising(SystemExit(SECRET)))),
    "cancels itself when it is closed": after(
        lambda: Closing(raising(asyncio.CancelledError(SECRET)))
    ),
    "cannot be closed": after(lambda: Returns(Unclosable())),
    "yields a lone surrogate": late([TextDelta("\ud800")]),
    "yields a lone surrogate in a large text": late([TextDelta("\ud800" * LARGEST)]),
    "fails with a lone surrogate": late([Failed("server_error", "\ud800")]),
    "yields NaN": late([ItemAdded(message(logprob=float("nan")), "b")]),
    "yields an infinite number": late([ItemAdded(message(logprob=float("inf")), "b")]),
    "counts NaN": late([Finished(odd(float("nan")))]),
    "yields None": Fault(lambda: Yields([TextDelta("Hel")], None), "failed", ["Hel"]),
    "yields a number": Fault(lambda: Yields([TextDelta("Hel")], 5), "failed", ["Hel"]),
    "yields a text": Fault(lambda: Yields([TextDelta("Hel")], "lo"), "failed", ["Hel"]),
    "yields a step that is none": late([odd({"text": "lo"})]),
    "yields bytes for text": late([TextDelta(odd(b"lo"))]),
    "yields a number for text": late([TextDelta(odd(5))]),
    "yields a list for a key": late([TextDelta("lo", odd([]))]),
    "adds no item": late([ItemAdded(odd(None), "b")]),
    "adds an empty item": late([ItemAdded(Item(), "b")]),
    "adds an item twice": late([ItemAdded(message())]),
    "finishes an item that is not open": late([ItemDone("b")]),
    "finishes with a wrong usage": late([Finished(odd("many"))]),
    "finishes with a wrong reason": late([Finished(incomplete=odd(5))]),
    "finishes with an unknown reason": late([Finished(incomplete="boredom")]),
    "fails with wrong types": late([Failed(odd([]), odd(5))]),
    "yields a document that is none": late([ItemAdded(unknown('{"type":'), "b")]),
    "yields a line break in a document": late(
        [ItemAdded(unknown('{"type":"x"}\n\ndata: {}'), "b")]
    ),
    "yields a known kind as an unknown one": late([ItemAdded(unknown('{"type":"message"}'), "b")]),
    "writes input to a message": late([InputDelta("{}")]),
    "writes reasoning to nothing": late([ReasoningDelta("hm", "b")]),
    "refuses with a lone surrogate": late([RefusalDelta("\ud800")]),
    "yields a logprob that is NaN": late(
        [TextDelta("lo", logprobs=[OutputTextLogprob(token="t", logprob=float("nan"))])]
    ),
    "finishes an item with another text": late([ItemDone(item=message("Bye"))]),
    "finishes an item as none": late([ItemDone(item=odd("message"))]),
    "refuses at over-large length": late([RefusalDelta(LARGE)]),
    "yields an over-large text": late([TextDelta(LARGE)]),
    "yields an over-large item": late([ItemAdded(message(LARGE), "b")]),
    "fails with an over-large message": late([Failed("server_error", LARGE * 1_000)]),
}


# What is seen.


class Bench:
    """A server with a conversation, and a client of it.

    Args:
        server: the server.
        switch: its backend.
        surface: the surface to ask.
        mode: how responses are made.
    """

    def __init__(self, server: Server, switch: Switch, surface: SurfaceName, mode: Mode) -> None:
        self.server = server
        self.switch = switch
        self.surface = server.surface(surface)
        self.ok = OK[surface]
        self.mode = mode
        self.conversation = ""
        self.events: list[Json] = []

    async def open(self) -> None:
        reply = await self.surface.ask("CreateConversation", {})
        self.conversation = reply.body["id"]

    async def create(self, backend: Backend) -> Reply:
        self.switch.backend = backend
        stream, background, store, shared = self.mode
        body: Json = {"model": MODEL, "input": "hi", "store": store}
        body |= {"stream": stream, "background": background}
        if shared:
            body["conversation"] = self.conversation
        return await self.surface.ask("CreateResponse", body, begun=self.events.append)

    async def final(self, reply: Reply) -> Json:
        """Returns the response as it ended, which the stream and the store tell alike."""
        assert reply.status == self.ok, reply.refusal and reply.refusal.message
        await self.server.engine.idle()
        told = one_terminal(reply.events) if reply.events is not None else reply.body
        if not self.mode.store:
            return told
        found = await self.get(told["id"])
        assert found["status"] not in ("queued", "in_progress")
        if self.mode.stream or not self.mode.background:
            assert found == told
        if self.mode.stream and self.mode.background:
            replayed = await self.surface.ask(
                "GetResponse", query={"stream": True}, response_id=told["id"]
            )
            assert (replayed.events, replayed.raw) == (reply.events, reply.raw)
        return found

    async def get(self, response_id: str) -> Json:
        reply = await self.surface.ask("GetResponse", response_id=response_id)
        assert reply.status == self.ok
        return reply.body

    async def nobody_is_blocked(self, said: Sequence[str] = ()) -> None:
        """Sees to it that the conversation has what was said, and goes on."""
        if self.mode.shared:
            page = await self.surface.ask(
                "ListConversationItems",
                query={"order": "asc"},
                conversation_id=self.conversation,
            )
            assert texts(page.body["data"]) == list(said)
        self.events = []
        reply = await self.create(Script([TextDelta("next"), Finished()]))
        assert (await self.final(reply))["status"] in ("completed", "queued")
        assert self.server.engine.running == 0


def one_terminal(events: Sequence[Json]) -> Json:
    """Holds a stream to its order; returns the response of its one terminal event."""
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert events[0]["type"] == "response.created"
    ends = [
        event
        for event in events
        if event["type"] in ("response.completed", "response.failed", "response.incomplete")
    ]
    assert ends == [events[-1]]
    done: Json = ends[0]["response"]
    written = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert done["output"] == written
    return done


class World(NamedTuple):
    server: Server
    switch: Switch
    store: MemoryStore


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world() -> AsyncIterator[World]:
    switch, store = Switch(), MemoryStore()
    options = EngineOptions(accept_seconds=LONG_SECONDS, max_event_bytes=LARGEST)
    async with serving(switch, store=store, options=options) as server:
        yield World(server, switch, store)


# What a run does in a conversation, or without a store, is the same whoever asked for it.
PLACES = [(REST, mode) for mode in MODES]
PLACES += [(GRPC, mode) for mode in MODES if mode.store and not mode.shared]


@pytest.mark.parametrize(
    ("surface", "mode"),
    [pytest.param(*place, id=f"{place[0]}-{place[1].name}") for place in PLACES],
)
@pytest.mark.parametrize("name", FAULTS)
async def test_a_fault_has_one_end(
    world: World, name: str, mode: Mode, surface: SurfaceName
) -> None:
    fault = FAULTS[name]
    bench = Bench(world.server, world.switch, surface, mode)
    await bench.open()
    retained = world.store.retained_turns
    reply = await bench.create(fault.backend())
    appended: list[str] = []
    if fault.end == "refused" and not mode.background:
        assert reply.status == (fault.rest if surface == REST else fault.grpc)
        await world.server.engine.idle()
        assert world.store.retained_turns == retained
    else:
        final = await bench.final(reply)
        expected = "failed" if fault.end == "refused" else fault.end
        assert (final["status"], texts(final["output"])) == (expected, list(fault.said))
        assert (final["error"] is not None) is (expected == "failed")
        if expected == "completed" and mode.store and mode.shared:
            appended = ["hi", *fault.said]
        assert world.store.retained_turns == retained + int(mode.store)
    assert SECRET.encode() not in reply.raw + repr(reply.body).encode()
    assert len(reply.raw) < 100 * LARGEST
    await bench.nobody_is_blocked(appended)


# Backends that have to be stopped.


async def stopped(bench: Bench, asking: "asyncio.Task[Reply]", response_id: str) -> None:
    """Stops a run in the way of its mode, and sees how it has ended."""
    if bench.mode.background:
        reply = await bench.surface.ask("CancelResponse", response_id=response_id)
        assert (reply.status, reply.body["status"]) == (bench.ok, "cancelled")
        told = await asking
        if bench.mode.stream:
            assert told.events is not None
            assert one_terminal(told.events) == reply.body
    else:
        asking.cancel()
        await asyncio.wait([asking])
    await bench.server.engine.idle()


async def cancelled(bench: Bench, response_id: str, said: Sequence[str]) -> None:
    if bench.mode.store:
        found = await bench.get(response_id)
        assert (found["status"], texts(found["output"])) == ("cancelled", list(said))


@both_surfaces
@every_mode
@pytest.mark.parametrize("once", [True, False], ids=["goes on", "never returns"])
async def test_a_backend_that_ignores_its_cancellation_is_left_alone(
    world: World, once: bool, mode: Mode, surface: SurfaceName
) -> None:
    gate = Gate()
    stubborn = Recorded(Stubborn(gate, once=once))
    bench = Bench(world.server, world.switch, surface, mode)
    await bench.open()
    asking = asyncio.create_task(bench.create(stubborn))
    await gate.reached()
    await stopped(bench, asking, stubborn.response_id)
    await cancelled(bench, stubborn.response_id, ["Hel"])
    await bench.nobody_is_blocked()
    gate.open()
    await stubborn.backend.ended.wait()
    await cancelled(bench, stubborn.response_id, ["Hel"])


@both_surfaces
@every_mode
async def test_a_backend_that_never_starts_can_be_stopped(
    world: World, mode: Mode, surface: SurfaceName
) -> None:
    gate = Gate()
    script = Script(gate)
    bench = Bench(world.server, world.switch, surface, mode)
    await bench.open()
    retained = world.store.retained_turns
    asking = asyncio.create_task(bench.create(script))
    await gate.reached()
    response_id = script.calls[0].response_id
    await stopped(bench, asking, response_id)
    assert script.closed == 1
    if mode.background:
        await cancelled(bench, response_id, [])
    else:
        assert world.store.retained_turns == retained
    await bench.nobody_is_blocked()


@pytest.mark.parametrize("accepted", [False, True], ids=["in vain", "begun without"])
@every_mode
async def test_a_backend_that_never_starts_is_stopped_when_its_time_is_up(
    accepted: bool, mode: Mode
) -> None:
    switch, store = Switch(), SteeredStore()
    options = EngineOptions(accept_seconds=0.0 if accepted else LONG_SECONDS, max_run_seconds=0.01)
    async with serving(switch, store=store, options=options) as server:
        bench = Bench(server, switch, REST, mode)
        await bench.open()
        script = Script(Gate())
        reply = await bench.create(script)
        if mode.background or accepted:
            final = await bench.final(reply)
            assert (final["status"], final["output"]) == ("failed", [])
            assert final["error"]["message"] == "The model took too long."
        else:
            assert reply.status == "503"
            assert store.retained_turns == 0
        await server.engine.idle()
        assert script.closed == 1


@both_surfaces
@every_mode
async def test_a_backend_that_does_not_come_to_its_end_keeps_back_nothing(
    world: World, mode: Mode, surface: SurfaceName
) -> None:
    gate = Gate()
    bench = Bench(world.server, world.switch, surface, mode)
    await bench.open()
    final = await bench.final(await bench.create(Closing(lambda: gate)))
    assert (final["status"], texts(final["output"])) == ("completed", ["Hello"])
    await gate.reached()
    await bench.nobody_is_blocked(["hi", "Hello"] if mode.store else [])
    gate.open()


@both_surfaces
@every_mode
async def test_a_backend_that_blocks_the_loop_delays_the_others_and_no_more(
    world: World, mode: Mode, surface: SurfaceName
) -> None:
    gate = Gate()
    other = Bench(world.server, world.switch, surface, mode)
    await other.open()
    waiting = asyncio.create_task(
        other.create(Script([TextDelta("Hel")], gate, [TextDelta("lo"), Finished()]))
    )
    await gate.reached()
    bench = Bench(world.server, world.switch, surface, mode)
    await bench.open()

    def block() -> None:
        gate.open()
        time.sleep(0.02)

    script = Script([TextDelta("Hel")], block, [TextDelta("lo"), Finished()])
    reply = await bench.create(script)
    for each, answered in ((bench, reply), (other, await waiting)):
        final = await each.final(answered)
        assert (final["status"], texts(final["output"])) == ("completed", ["Hello"])


# Clients and stores that do not keep still.


async def test_a_background_run_goes_on_when_its_client_leaves_while_it_is_stored() -> None:
    switch, store = Switch(Script([TextDelta("Hello"), Finished()])), SteeredStore()
    async with serving(switch, store=store) as server:
        store.gates["begin"] = Gate()
        request = CreateResponseRequest(model=MODEL, input_text="hi", background=True)
        asking = asyncio.create_task(server.engine.create(Scope(), request))
        await store.gates["begin"].reached()
        asking.cancel()
        await asyncio.wait([asking])
        store.gates["begin"].open()
        await server.engine.idle()
        (response_id,) = [call.response_id for call in cast("Script", switch.backend).calls]
        found = await server.rest.ask("GetResponse", response_id=response_id)
        assert (found.body["status"], texts(found.body["output"])) == ("completed", ["Hello"])


@pytest.mark.parametrize("stream", [False, True])
async def test_a_background_run_that_cannot_be_stored_is_refused(stream: bool) -> None:
    switch, store = Switch(Script([Finished()])), SteeredStore()
    async with serving(switch, store=store) as server:
        store.faults["begin"] = ConnectionError(SECRET)
        body = {"model": MODEL, "input": "hi", "background": True, "stream": stream}
        reply = await server.rest.ask("CreateResponse", body)
        assert reply.status == "500"
        assert SECRET.encode() not in reply.raw
        await server.engine.idle()
        assert cast("Script", switch.backend).calls == []


async def test_a_replay_between_the_last_event_and_its_storing_has_its_terminal() -> None:
    gate = Gate()
    switch, store = Switch(Script([TextDelta("Hello")], gate, [Finished()])), SteeredStore()
    async with serving(switch, store=store) as server:
        body = {"model": MODEL, "input": "hi", "background": True, "stream": True}
        asking = asyncio.create_task(server.rest.ask("CreateResponse", body))
        await gate.reached()
        store.gates["append_events"] = Gate()
        gate.open()
        await store.gates["append_events"].reached()
        response_id = cast("Script", switch.backend).calls[0].response_id
        found = await server.rest.ask("GetResponse", response_id=response_id)
        assert found.body["status"] == "completed"
        replayed = await server.rest.ask(
            "GetResponse", query={"stream": True}, response_id=response_id
        )
        store.gates["append_events"].open()
        assert replayed.raw == (await asking).raw
