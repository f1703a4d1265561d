"""How the store in memory keeps conversations, and how long."""

import random

import pytest

from antiphon.core.scope import Scope
from antiphon.stores.memory import Bounds, MemoryStore
from antiphon.stores.protocol import Appended, Store, StoredItem, TurnContent
from tests.stores.contract import OURS
from tests.stores.conversation_contract import (
    ConversationContract,
    a_conversation,
    an_answer,
    items_of,
    named,
)
from tests.support.clock import Clock


class TestMemoryStore(ConversationContract):
    @pytest.fixture
    def store(self) -> Store:
        return MemoryStore()


async def known(store: MemoryStore, *names: str) -> list[str]:
    """Returns which conversations are there, from the last one to the first."""
    return [name for name in reversed(names) if await store.conversation_incarnation(OURS, name)]


# Time.


@pytest.mark.parametrize("use", ["find", "update", "append", "delete item", "turn"])
async def test_a_conversation_is_kept_for_a_while_after_its_last_use(use: str) -> None:
    clock = Clock()
    store = MemoryStore(Bounds(conversation_ttl_seconds=100), clock)
    await a_conversation(store, "c1", "a")
    await a_conversation(store, "c2", "a")
    for _ in range(3):
        clock.now += 60
        if use == "find":
            await store.find_conversation(OURS, "c1")
        elif use == "update":
            await store.update_conversation(OURS, "c1", b"it")
        elif use == "append":
            await store.append_items(OURS, Appended("c1", named("b")))
        elif use == "delete item":
            await store.append_items(OURS, Appended("c1", named("b")))
            await store.delete_item(OURS, "c1", "b")
        else:
            content = TurnContent(b"", b"")
            name = f"r{clock.now}"
            await store.begin(OURS, name, None, content, conversation_id="c1")
            await an_answer(store, "c1", name)
    clock.now += 99
    assert await store.find_conversation(OURS, "c2") is None
    assert await store.find_conversation(OURS, "c1") is not None
    clock.now += 100
    assert not await store.delete_conversation(OURS, "c1")
    # What is gone leaves its id and its bytes.
    assert store.retained_bytes == await size_of_turns(store)
    await a_conversation(store, "c1")


async def size_of_turns(store: MemoryStore) -> int:
    """Returns the bytes of the turns of a store that has no events and no conversations."""
    empty = MemoryStore()
    await empty.begin(OURS, "r", None, TurnContent(b"", b""))
    return store.retained_turns * empty.retained_bytes


async def test_a_conversation_is_kept_for_ever_without_a_time() -> None:
    clock = Clock()
    store = MemoryStore(Bounds(conversation_ttl_seconds=None), clock)
    await a_conversation(store, "c1")
    clock.now += 1e12
    assert await store.find_conversation(OURS, "c1") is not None


# Numbers and bytes.


async def test_the_conversation_used_longest_ago_is_evicted_beyond_their_number() -> None:
    store = MemoryStore(Bounds(max_conversations=3))
    for name in ("c1", "c2", "c3"):
        await a_conversation(store, name, "a")
    await store.append_items(OURS, Appended("c1", named("b")))
    await a_conversation(store, "c4")
    assert await known(store, "c1", "c2", "c3", "c4") == ["c4", "c3", "c1"]
    assert await items_of(store, "c1") == ["a", "b"]


async def test_the_conversation_used_longest_ago_is_evicted_beyond_their_bytes() -> None:
    store = MemoryStore(Bounds(max_conversation_bytes=10_000))
    for name in ("c1", "c2", "c3"):
        await a_conversation(store, name)
    for number in range(7):
        item = StoredItem(f"item{number}", b"." * 1_100)
        await store.append_items(OURS, Appended("c2", [item]))
        assert store.retained_bytes <= 10_000
    assert await known(store, "c1", "c2", "c3") == ["c2"]


async def test_a_conversation_gives_back_all_it_took() -> None:
    store = MemoryStore()
    await a_conversation(store, "c1", "a", "b")
    before = store.retained_bytes
    await store.append_items(OURS, Appended("c1", named("a", "c", "d")))
    await store.update_conversation(OURS, "c1", b"." * 1_000)
    assert store.retained_bytes > before + 900
    await store.update_conversation(OURS, "c1", b"it")
    for name in ("c", "d"):
        await store.delete_item(OURS, "c1", name)
    assert store.retained_bytes == before
    await store.begin(OURS, "r1", None, TurnContent(b"", b""), conversation_id="c1")
    await an_answer(store, "c1", "r1", "in", "out", "a")
    await store.delete(OURS, "r1")
    assert store.retained_bytes == before
    await store.delete_conversation(OURS, "c1")
    assert store.retained_bytes == 0


async def test_the_bounds_hold_whatever_is_done() -> None:
    dice = random.Random(5)
    store = MemoryStore(Bounds(max_conversations=20, max_conversation_bytes=100_000))
    for number in range(3_000):
        name = f"c{dice.randrange(60)}"
        action = dice.randrange(6)
        if not await store.conversation_incarnation(OURS, name):
            await a_conversation(store, name, "a")
        elif action < 3:
            item = StoredItem(f"item{number}", b"." * dice.randrange(3_000))
            await store.append_items(OURS, Appended(name, [item]))
        elif action == 3:
            await store.update_conversation(OURS, name, b"." * dice.randrange(3_000))
        elif action == 4:
            await store.delete_item(OURS, name, "a")
        else:
            await store.delete_conversation(OURS, name)
        assert store.retained_bytes <= 100_000
        assert len(await known(store, *(f"c{each}" for each in range(60)))) <= 20
    for number in range(60):
        await store.delete_conversation(OURS, f"c{number}")
    assert store.retained_bytes == 0


async def test_a_flood_of_scopes_is_bounded_with_its_project() -> None:
    store = MemoryStore(Bounds(max_conversations=10))
    for number in range(100):
        await a_conversation(store, "c1", scope=Scope(project="p", user=str(number)))
    there = [
        await store.conversation_incarnation(Scope(project="p", user=str(number)), "c1") != 0
        for number in range(100)
    ]
    assert sum(there) == 10


async def test_a_flood_in_one_project_pushes_nothing_of_another_out() -> None:
    store = MemoryStore(Bounds(max_conversations=10))
    quiet = Scope(project="q")
    await a_conversation(store, "c1", "a", scope=quiet)
    for number in range(100):
        await a_conversation(store, str(number), scope=Scope(project="p"))
    assert await items_of(store, "c1", quiet) == ["a"]
