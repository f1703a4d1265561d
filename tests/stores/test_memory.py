import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.core.scope import Scope
from antiphon.stores.memory import Bounds, MemoryStore
from antiphon.stores.protocol import (
    AlreadyExists,
    HistoryTooLong,
    Store,
    Turn,
    TurnContent,
    TurnEnd,
)
from tests.stores.contract import OURS, StoreContract, a_turn, inputs

MANY = 1_000_000


def a_store(max_turns: int, max_bytes: int) -> MemoryStore:
    """Returns a store with bounds for its turns."""
    return MemoryStore(Bounds(max_turns=max_turns, max_bytes=max_bytes))


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self) -> Store:
        return a_store(MANY, 1 << 30)


async def known(store: Store, *names: str) -> list[str]:
    """Returns which turns can be found, without counting any of the others as used before it."""
    return [name for name in names if await store.find(OURS, name) is not None]


async def size_of_a_turn() -> int:
    """Returns the bytes that a turn without any content takes."""
    store = a_store(MANY, MANY)
    await store.begin(OURS, "r", None, TurnContent(b"", b""))
    return store.retained_bytes


# Accounting.


async def test_an_empty_store_takes_nothing() -> None:
    store = a_store(MANY, MANY)
    assert (store.retained_turns, store.retained_bytes) == (0, 0)


async def test_a_turn_takes_what_was_said_and_some_more() -> None:
    overhead = await size_of_a_turn()
    assert overhead > 0
    store = a_store(MANY, MANY)
    await store.begin(OURS, "r1", None, TurnContent(b"12345", b"67"))
    assert store.retained_bytes == overhead + 7
    await store.finish(OURS, "r1", TurnEnd(b"1234567890", 1))
    assert store.retained_bytes == overhead + 15
    assert store.retained_turns == 1


async def test_a_refused_begin_and_finish_take_nothing() -> None:
    store = a_store(MANY, MANY)
    await a_turn(store, "r1")
    before = (store.retained_turns, store.retained_bytes)
    with pytest.raises(AlreadyExists):
        await store.begin(OURS, "r1", None, TurnContent(b"12345", b"67"))
    await store.finish(OURS, "r1", TurnEnd(b"1234567890", 1))
    assert (store.retained_turns, store.retained_bytes) == before


async def test_a_deleted_turn_gives_back_all_it_took() -> None:
    store = a_store(MANY, MANY)
    await a_turn(store, "r1", size=1_000)
    await store.delete(OURS, "r1")
    assert (store.retained_turns, store.retained_bytes) == (0, 0)


async def test_a_running_turn_gives_back_all_it_took() -> None:
    store = a_store(MANY, MANY)
    await store.begin(OURS, "r1", await a_turn(store, "r0"), TurnContent(b"12345", b"67"))
    for name in ("r0", "r1"):
        await store.delete(OURS, name)
    assert (store.retained_turns, store.retained_bytes) == (0, 0)


async def test_a_deleted_turn_is_counted_as_long_as_another_continues_it() -> None:
    store = a_store(MANY, MANY)
    root = await a_turn(store, "root")
    await a_turn(store, "left", root)
    await a_turn(store, "right", root)
    await store.delete(OURS, "root")
    assert store.retained_turns == 3
    await store.delete(OURS, "left")
    assert store.retained_turns == 2
    await store.delete(OURS, "right")
    assert (store.retained_turns, store.retained_bytes) == (0, 0)


async def test_a_deleted_id_is_free_again() -> None:
    store = a_store(MANY, MANY)
    await a_turn(store, "r1")
    await store.delete(OURS, "r1")
    await a_turn(store, "r1")
    assert store.retained_turns == 1


async def test_the_parent_has_to_be_of_the_same_kind_of_store() -> None:
    class Foreign:
        response_id = "r0"
        ended = True
        tokens = 0
        open_calls: frozenset[str] = frozenset()
        conversation_id = ""
        incarnation = 0
        replayable = False
        position = 0

        async def read(self) -> TurnContent:
            raise NotImplementedError

        async def parent(self) -> Turn | None:
            raise NotImplementedError

    store = a_store(MANY, MANY)
    with pytest.raises(TypeError):
        await store.begin(OURS, "r1", Foreign(), TurnContent(b"", b""))
    assert store.retained_turns == 0


# Eviction.


async def test_the_turn_used_longest_ago_is_evicted_beyond_the_number_of_turns() -> None:
    store = a_store(2, MANY)
    for name in ("r1", "r2", "r3"):
        await a_turn(store, name)
    assert await known(store, "r1", "r2", "r3") == ["r2", "r3"]
    assert store.retained_turns == 2


async def test_the_turn_used_longest_ago_is_evicted_beyond_the_number_of_bytes() -> None:
    store = a_store(MANY, 2 * await size_of_a_turn() + 250)
    for name in ("r1", "r2", "r3"):
        await a_turn(store, name, size=100)
    assert await known(store, "r1", "r2", "r3") == ["r2", "r3"]


async def test_a_final_response_may_evict_too() -> None:
    store = a_store(MANY, 2 * await size_of_a_turn() + 100)
    await a_turn(store, "r1")
    await store.begin(OURS, "r2", None, TurnContent(b"", b""))
    assert await known(store, "r1", "r2") == ["r1", "r2"]
    await store.finish(OURS, "r2", TurnEnd(b"." * 101, 1))
    assert await known(store, "r1", "r2") == ["r2"]


async def test_a_found_turn_counts_as_used() -> None:
    store = a_store(2, MANY)
    await a_turn(store, "r1")
    await a_turn(store, "r2")
    await store.find(OURS, "r1")
    await a_turn(store, "r3")
    assert await known(store, "r1", "r2", "r3") == ["r1", "r3"]


async def test_a_turn_that_is_continued_goes_after_those_that_continue_it() -> None:
    store = a_store(3, MANY)
    root = await a_turn(store, "root")
    await a_turn(store, "child", root)
    await a_turn(store, "other")
    await a_turn(store, "another")
    assert await known(store, "root", "child", "other", "another") == ["root", "other", "another"]


async def test_a_turn_that_was_continued_goes_by_when_it_was_used_itself() -> None:
    store = a_store(3, MANY)
    await a_turn(store, "old")
    root = await a_turn(store, "root")
    await a_turn(store, "child", root)
    await store.delete(OURS, "child")
    await a_turn(store, "new")
    await a_turn(store, "newer")
    assert await known(store, "old", "root", "new", "newer") == ["root", "new", "newer"]


async def test_a_running_turn_is_not_evicted_until_it_ends() -> None:
    store = a_store(1, MANY)
    await store.begin(OURS, "r1", None, TurnContent(b"", b""))
    await a_turn(store, "r2")
    # Whoever has just been told of a turn may go on from it, so that it outlives its own end.
    assert await known(store, "r1", "r2") == ["r1", "r2"]
    assert await store.finish(OURS, "r1", TurnEnd(b"", 1))
    await a_turn(store, "r3")
    assert await known(store, "r1", "r3") == ["r3"]


async def test_a_deleted_beginning_is_evicted_with_its_end() -> None:
    store = a_store(2, MANY)
    await a_turn(store, "child", await a_turn(store, "root"))
    await store.delete(OURS, "root")
    await a_turn(store, "other")
    assert await known(store, "child", "other") == ["other"]
    assert store.retained_turns == 1


async def test_a_handle_stays_good_when_its_turn_is_evicted() -> None:
    store = a_store(2, MANY)
    turn = await a_turn(store, "child", await a_turn(store, "root"))
    for name in ("r1", "r2"):
        await a_turn(store, name)
    assert await known(store, "root", "child") == []
    assert await inputs(turn) == ["child", "root"]


async def test_a_turn_evicted_since_it_was_found_is_kept_for_the_one_that_continues_it() -> None:
    store = a_store(3, MANY)
    parent = await a_turn(store, "parent", await a_turn(store, "root"))
    for name in ("r1", "r2", "r3"):
        await a_turn(store, name)
    assert await known(store, "root", "parent") == []
    child = await a_turn(store, "child", parent)
    assert await inputs(child) == ["child", "parent", "root"]
    assert store.retained_turns == 3
    assert await known(store, "root", "parent", "child", "r1", "r2", "r3") == ["child"]
    # They are kept for the child alone: they go with it, and nothing stays behind.
    await store.delete(OURS, "child")
    assert (store.retained_turns, store.retained_bytes) == (0, 0)


async def test_a_turn_that_lost_an_evicted_child_twice_can_be_evicted_itself() -> None:
    store = a_store(3, MANY)
    root = await a_turn(store, "root")
    child = await a_turn(store, "child", root)
    await store.delete(OURS, "child")
    await a_turn(store, "grandchild", child)
    await store.delete(OURS, "grandchild")
    assert store.retained_turns == 1
    for name in ("r1", "r2", "r3"):
        await a_turn(store, name)
    assert await known(store, "root") == []


async def test_a_turn_is_not_evicted_as_long_as_one_child_is_there() -> None:
    store = a_store(4, MANY)
    root = await a_turn(store, "root")
    lost = await a_turn(store, "lost", root)
    await store.delete(OURS, "lost")
    again = await a_turn(store, "again", lost)
    await store.delete(OURS, "again")
    child = await a_turn(store, "child", root)
    await a_turn(store, "r1")
    await store.find(OURS, "child")
    await a_turn(store, "r2")
    await a_turn(store, "r3")
    assert await known(store, "root", "child") == ["root", "child"]
    assert await inputs(child) == ["child", "root"]
    assert await inputs(again) == ["again", "lost", "root"]


async def test_a_turn_is_not_evicted_by_its_own_end_when_its_child_is() -> None:
    store = a_store(2, await size_of_a_turn())
    await store.begin(OURS, "parent", None, TurnContent(b"", b""))
    await store.begin(OURS, "running", None, TurnContent(b"", b""))
    await store.begin(OURS, "child", await store.find(OURS, "parent"), TurnContent(b"", b""))
    await store.finish(OURS, "child", TurnEnd(b"", 0))
    # Everything is beyond the bounds, and the child is all that can go.
    await store.finish(OURS, "parent", TurnEnd(b"", 0))
    assert await known(store, "parent", "running", "child") == ["parent", "running"]
    # It has its place in line from now on.
    await store.finish(OURS, "running", TurnEnd(b"", 0))
    assert await known(store, "parent", "running", "child") == ["running"]


async def test_a_long_history_can_be_taken_up_again() -> None:
    store = a_store(MANY, 1 << 30)
    turn = None
    for number in range(5_000):
        turn = await a_turn(store, f"r{number}", turn)
    for number in range(5_000):
        await store.delete(OURS, f"r{number}")
    assert store.retained_turns == 0
    await a_turn(store, "again", turn)
    assert store.retained_turns == 5_001
    await store.delete(OURS, "again")
    assert (store.retained_turns, store.retained_bytes) == (0, 0)


class _Counted(bytes):
    """Bytes that are counted while they are in memory."""

    alive = 0

    def __new__(cls, value: bytes) -> "_Counted":
        cls.alive += 1
        return super().__new__(cls, value)

    def __del__(self) -> None:
        _Counted.alive -= 1


@pytest.mark.parametrize("kept", [0, 10])
async def test_what_is_deleted_leaves_memory(kept: int) -> None:
    _Counted.alive = 0
    store = a_store(MANY, 1 << 30)
    for number in range(1_000):
        name = f"r{number}"
        await store.begin(OURS, name, None, TurnContent(_Counted(b"input"), b""))
        await store.finish(OURS, name, TurnEnd(b"", 0))
        if number >= kept:
            await store.delete(OURS, name)
    assert store.retained_turns == kept
    assert _Counted.alive < kept + 100


# The bounds hold whatever happens.


@dataclass
class _Node:
    name: str
    parent: "_Node | None"
    size: int
    used: int
    ended: bool = False
    weight: int = 0

    @property
    def depth(self) -> int:
        return 1 if self.parent is None else self.parent.depth + 1


@dataclass
class _Model:
    """What the store should do, computed anew from the beginning every time."""

    max_turns: int
    max_bytes: int
    overhead: int
    known: dict[str, _Node] = field(default_factory=dict)
    ticks: int = 0

    def tick(self) -> int:
        self.ticks += 1
        return self.ticks

    def retained(self) -> dict[str, _Node]:
        found: dict[str, _Node] = {}
        for node in self.known.values():
            step: _Node | None = node
            while step is not None and step.name not in found:
                found[step.name] = step
                step = step.parent
        return found

    def size(self, nodes: dict[str, _Node]) -> int:
        return sum(node.size + self.overhead for node in nodes.values())

    def too_long(self, parent: _Node | None) -> bool:
        return parent is not None and (
            parent.depth >= self.max_turns or parent.weight >= self.max_bytes
        )

    def begin(self, name: str, parent: _Node | None, size: int) -> _Node:
        node = self.known[name] = _Node(name, parent, size, self.tick())
        if parent is not None:
            parent.used = node.used
        self.evict()
        return node

    def finish(self, node: _Node, size: int) -> None:
        if self.known.get(node.name) is node and not node.ended:
            node.size += size
            node.weight = node.size + self.overhead + (node.parent.weight if node.parent else 0)
            # A turn is not evicted by its own end: its client is about to go on from it.
            self.evict()
            node.ended = True

    def evict(self) -> None:
        while True:
            retained = self.retained()
            if len(retained) <= self.max_turns and self.size(retained) <= self.max_bytes:
                return
            continued = {node.parent.name for node in retained.values() if node.parent is not None}
            leaves = [n for n in self.known.values() if n.ended and n.name not in continued]
            if not leaves:
                return
            del self.known[min(leaves, key=lambda node: node.used).name]


@dataclass
class _Pair:
    """The store beside its model."""

    store: MemoryStore
    model: _Model
    turns: list[tuple[Turn, _Node]] = field(default_factory=list)
    """Every turn there has ever been, in the store and in the model."""

    async def act(self, action: str, pick: int, size: int) -> None:
        if action in ("root", "child") or not self.turns:
            turn, parent = self.turns[pick % len(self.turns)] if self.turns else (None, None)
            if action != "child":
                turn, parent = None, None
            name = f"r{len(self.turns)}"
            if self.model.too_long(parent):
                with pytest.raises(HistoryTooLong):
                    await self.store.begin(OURS, name, turn, TurnContent(b"." * size, b""))
                return
            await self.store.begin(OURS, name, turn, TurnContent(b"." * size, b""))
            node = self.model.begin(name, parent, size)
            begun = await self.store.find(OURS, name)
            assert begun is not None
            node.used = self.model.tick()
            self.turns.append((begun, node))
            return
        _, node = self.turns[pick % len(self.turns)]
        if action == "finish":
            done = await self.store.finish(OURS, node.name, TurnEnd(b"." * size, 0))
            assert done == (self.model.known.get(node.name) is node and not node.ended)
            self.model.finish(node, size)
        elif action == "delete":
            done = await self.store.delete(OURS, node.name)
            assert done == (self.model.known.pop(node.name, None) is not None)
        else:
            turn = await self.store.find(OURS, node.name)
            assert (turn is not None) == (node.name in self.model.known)
            if turn is not None:
                node.used = self.model.tick()

    def check(self) -> None:
        retained = self.model.retained()
        assert self.store.retained_turns == len(retained)
        assert self.store.retained_bytes == self.model.size(retained)


async def a_pair(max_turns: int, max_bytes: int) -> _Pair:
    overhead = await size_of_a_turn()
    return _Pair(
        a_store(max_turns, max_bytes * overhead),
        _Model(max_turns, max_bytes * overhead, overhead),
    )


ACTIONS = st.tuples(
    st.sampled_from(["root", "child", "child", "finish", "finish", "delete", "find"]),
    st.integers(0, 30),
    st.integers(0, 1_000),
)


@settings(max_examples=150)
@given(st.lists(ACTIONS, max_size=60), st.integers(1, 6), st.integers(1, 12))
async def test_the_store_keeps_what_its_model_keeps(
    actions: Sequence[tuple[str, int, int]], max_turns: int, max_bytes: int
) -> None:
    pair = await a_pair(max_turns, max_bytes)
    for action in actions:
        await pair.act(*action)
        pair.check()
    for turn, node in pair.turns:
        # Whatever became of it, a handle reads its whole history.
        step: _Node | None = node
        chain = []
        while step is not None:
            chain.append(step.size)
            step = step.parent
        assert len(await inputs(turn)) == len(chain)


async def test_the_bounds_hold_over_ten_thousand_turns() -> None:
    dice = random.Random(5)
    max_turns, max_bytes = 100, 200_000
    store = a_store(max_turns, max_bytes)
    handles: list[Turn] = []
    for number in range(10_000):
        # Mostly chains, some forks, now and then a beginning or a continued deleted turn.
        parent = None
        if handles and dice.random() < 0.9:
            parent = handles[-1] if dice.random() < 0.7 else dice.choice(handles)
        size = dice.randrange(4_000)
        try:
            handles.append(await a_turn(store, f"r{number}", parent, size=size))
        except HistoryTooLong:
            handles.append(await a_turn(store, f"r{number}", size=size))
        del handles[:-50]
        if dice.random() < 0.2:
            await store.delete(OURS, dice.choice(handles).response_id)
        assert store.retained_turns <= max_turns
        # A turn may go beyond by what its own answer takes.
        assert store.retained_bytes <= max_bytes + 5_000
    assert store.retained_turns > 0


async def test_a_flood_of_scopes_is_bounded_with_its_project() -> None:
    store = a_store(10, MANY)
    for number in range(100):
        await a_turn(store, "r", scope=Scope(project="p", user=str(number)))
    assert store.retained_turns == 10


async def test_a_flood_in_one_project_pushes_nothing_of_another_out() -> None:
    store = a_store(10, MANY)
    await a_turn(store, "r", scope=Scope(project="q"))
    for number in range(100):
        await a_turn(store, str(number), scope=Scope(project="p"))
    assert await store.find(Scope(project="q"), "r") is not None


async def test_a_chain_at_its_bound_keeps_its_end_and_grows_no_further() -> None:
    store = a_store(5, MANY)
    turn = await a_turn(store, "r0")
    for number in range(1, 5):
        turn = await a_turn(store, f"r{number}", turn)
    with pytest.raises(HistoryTooLong):
        await store.begin(OURS, "r5", turn, TurnContent(b"", b""))
    assert await store.find(OURS, "r4") is not None
    assert store.retained_turns == 5
