"""How long the store in memory keeps turns and their events."""

from antiphon.stores.memory import Bounds, MemoryStore
from antiphon.stores.protocol import TurnContent, TurnEnd
from tests.stores.contract import OURS, a_turn
from tests.support.clock import Clock

NOTHING = TurnContent(b"", b"")


async def events(store: MemoryStore, response_id: str) -> list[bytes] | None:
    found = await store.read_events(OURS, response_id, 0)
    return None if found is None else list(found)


async def a_replayed_turn(store: MemoryStore, response_id: str, *told: bytes) -> None:
    """Adds a turn whose run has ended with these events."""
    await store.begin(OURS, response_id, None, NOTHING, replayable=True)
    await store.append_events(OURS, response_id, told, last=True)
    await store.finish(OURS, response_id, TurnEnd(b"", 0))


# Time.


async def test_a_turn_is_kept_for_a_while_after_its_end() -> None:
    clock = Clock()
    store = MemoryStore(Bounds(turn_ttl_seconds=100), clock)
    await store.begin(OURS, "running", None, NOTHING)
    clock.now += 50
    await a_turn(store, "ended")
    clock.now += 99
    assert await store.find(OURS, "ended") is not None
    clock.now += 1
    assert await store.find(OURS, "ended") is None
    assert not await store.delete(OURS, "ended")
    assert await store.find(OURS, "running") is not None
    assert store.retained_turns == 1


async def test_a_turn_whose_time_is_up_is_kept_for_those_that_continue_it() -> None:
    clock = Clock()
    store = MemoryStore(Bounds(turn_ttl_seconds=100), clock)
    root = await a_turn(store, "root")
    clock.now += 60
    child = await a_turn(store, "child", root)
    clock.now += 60
    assert await store.find(OURS, "root") is None
    assert await store.find(OURS, "child") is not None
    assert await child.parent() is root
    assert store.retained_turns == 2
    clock.now += 60
    assert await store.find(OURS, "child") is None
    assert (store.retained_turns, store.retained_bytes) == (0, 0)


async def test_a_turn_is_kept_for_ever_without_a_time() -> None:
    clock = Clock()
    store = MemoryStore(Bounds(turn_ttl_seconds=None), clock)
    await a_turn(store, "r1")
    clock.now += 1e12
    assert await store.find(OURS, "r1") is not None


async def test_events_are_kept_for_a_while_after_the_last_one() -> None:
    clock = Clock()
    store = MemoryStore(Bounds(event_ttl_seconds=100), clock)
    await store.begin(OURS, "running", None, NOTHING, replayable=True)
    await store.append_events(OURS, "running", [b"0"], last=False)
    await a_replayed_turn(store, "ended", b"0", b"1")
    clock.now += 99
    assert await events(store, "ended") == [b"0", b"1"]
    clock.now += 1
    assert await events(store, "ended") is None
    assert await events(store, "running") == [b"0"]
    turn = await store.find(OURS, "ended")
    assert turn is not None
    assert turn.replayable


# Bytes and numbers.


async def test_events_take_bytes_until_they_are_dropped() -> None:
    store = MemoryStore()
    await store.begin(OURS, "r1", None, NOTHING, replayable=True)
    before = store.retained_bytes
    await store.append_events(OURS, "r1", [b"." * 1_000], last=False)
    assert store.retained_bytes > before + 1_000
    await store.delete(OURS, "r1")
    assert store.retained_bytes == 0


async def test_the_events_that_ended_first_go_first_when_there_are_too_many_bytes() -> None:
    store = MemoryStore(Bounds(max_event_bytes=2_500))
    for name in ("r1", "r2", "r3"):
        await a_replayed_turn(store, name, b"." * 1_000)
    assert await events(store, "r1") is None
    assert await events(store, "r2") == [b"." * 1_000]
    assert await events(store, "r3") == [b"." * 1_000]


async def test_the_events_of_a_run_in_flight_are_kept_whole() -> None:
    store = MemoryStore(Bounds(max_event_bytes=100))
    await store.begin(OURS, "r1", None, NOTHING, replayable=True)
    await store.append_events(OURS, "r1", [b"." * 1_000], last=False)
    await store.append_events(OURS, "r1", [b"." * 1_000], last=False)
    assert await events(store, "r1") == [b"." * 1_000] * 2


async def test_the_events_of_an_evicted_turn_are_gone() -> None:
    store = MemoryStore(Bounds(max_turns=1))
    await a_replayed_turn(store, "r1", b"0")
    await a_turn(store, "r2")
    assert await events(store, "r1") is None
