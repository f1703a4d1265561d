"""What every store promises, whatever it keeps its turns in."""

import asyncio
from collections.abc import Sequence

import pytest

from antiphon.core.scope import Scope
from antiphon.stores.protocol import (
    AlreadyExists,
    Store,
    Turn,
    TurnContent,
    TurnEnd,
)

__all__ = ["OURS", "SCOPES", "StoreContract", "a_turn", "inputs"]

OURS = Scope(project="p", user="u", chat="c")
SCOPES = [
    Scope(project="q", user="u", chat="c"),
    Scope(project="p", user="v", chat="c"),
    Scope(project="p", user="u", chat="d"),
    Scope(),
]
"""Scopes that each differ from ours."""

BEGUN = b"begun"


async def found(store: Store, response_id: str, scope: Scope = OURS) -> Turn:
    """Finds a turn that is there."""
    turn = await store.find(scope, response_id)
    assert turn is not None
    return turn


async def a_turn(
    store: Store,
    response_id: str,
    parent: Turn | None = None,
    *,
    scope: Scope = OURS,
    size: int = 0,
) -> Turn:
    """Adds a finished turn whose input is its id, padded to a size in bytes.

    The handle it returns is good even if the store could not keep the turn.
    """
    content = TurnContent(response_id.encode().ljust(size, b"."), b"")
    await store.begin(scope, response_id, parent, content)
    turn = await found(store, response_id, scope)
    await store.finish(scope, response_id, TurnEnd(b"", 0))
    return turn


async def inputs(turn: Turn | None) -> Sequence[str]:
    """Reads the inputs of a chain, newest first."""
    chain = []
    while turn is not None:
        chain.append((await turn.read()).input.rstrip(b".").decode())
        turn = await turn.parent()
    return chain


async def a_replayable_turn(store: Store, response_id: str, *events: bytes) -> None:
    """Adds a turn with events, and more to come."""
    await store.begin(OURS, response_id, None, TurnContent(b"", b""), replayable=True)
    if events:
        await store.append_events(OURS, response_id, events, last=False)


class StoreContract:
    """Tests of a store; a class of tests for one store inherits them.

    Its `store` fixture returns an empty store without bounds that matter here.
    """

    @pytest.fixture
    def store(self) -> Store:
        raise NotImplementedError

    # Begin.

    async def test_a_begun_turn_is_found_as_it_began(self, store: Store) -> None:
        await store.begin(OURS, "r1", None, TurnContent(b"input", BEGUN))
        turn = await found(store, "r1")
        assert turn.response_id == "r1"
        assert not turn.ended
        assert turn.tokens == 0
        assert turn.open_calls == frozenset()
        assert await turn.read() == TurnContent(b"input", BEGUN)
        assert await turn.parent() is None

    async def test_an_id_is_taken_once(self, store: Store) -> None:
        await store.begin(OURS, "r1", None, TurnContent(b"first", BEGUN))
        with pytest.raises(AlreadyExists):
            await store.begin(OURS, "r1", None, TurnContent(b"second", BEGUN))
        await store.finish(OURS, "r1", TurnEnd(b"ended", 1))
        with pytest.raises(AlreadyExists):
            await store.begin(OURS, "r1", None, TurnContent(b"third", BEGUN))
        assert await (await found(store, "r1")).read() == TurnContent(b"first", b"ended")

    async def test_of_two_that_begin_at_once_one_begins(self, store: Store) -> None:
        content = TurnContent(b"input", BEGUN)
        done = await asyncio.gather(
            *(store.begin(OURS, "r1", None, content) for _ in range(2)), return_exceptions=True
        )
        assert [type(each) for each in done if each is not None] == [AlreadyExists]

    # Finish.

    async def test_a_finished_turn_has_its_final_response(self, store: Store) -> None:
        await store.begin(OURS, "r1", None, TurnContent(b"input", BEGUN))
        end = TurnEnd(b"the final response", 42, frozenset({"call_1", "call_2"}))
        assert await store.finish(OURS, "r1", end)
        turn = await found(store, "r1")
        assert turn.ended
        assert turn.tokens == 42
        assert turn.open_calls == {"call_1", "call_2"}
        assert await turn.read() == TurnContent(b"input", b"the final response")

    async def test_a_turn_is_finished_once(self, store: Store) -> None:
        await store.begin(OURS, "r1", None, TurnContent(b"input", BEGUN))
        assert await store.finish(OURS, "r1", TurnEnd(b"first", 1))
        assert not await store.finish(OURS, "r1", TurnEnd(b"second", 2, frozenset({"call_1"})))
        turn = await found(store, "r1")
        assert ((await turn.read()).response, turn.tokens) == (b"first", 1)
        assert turn.open_calls == frozenset()

    async def test_of_two_that_finish_at_once_one_finishes(self, store: Store) -> None:
        await store.begin(OURS, "r1", None, TurnContent(b"input", BEGUN))
        ends = [TurnEnd(b"a", 1), TurnEnd(b"b", 2)]
        done = await asyncio.gather(*(store.finish(OURS, "r1", end) for end in ends))
        assert sorted(done) == [False, True]
        turn = await found(store, "r1")
        assert (await turn.read()).response == ends[done.index(True)].response

    async def test_what_is_not_there_cannot_be_finished(self, store: Store) -> None:
        assert not await store.finish(OURS, "r1", TurnEnd(b"ended", 1))
        assert await store.find(OURS, "r1") is None

    async def test_a_deleted_turn_cannot_be_finished(self, store: Store) -> None:
        await store.begin(OURS, "r1", None, TurnContent(b"input", BEGUN))
        await store.delete(OURS, "r1")
        assert not await store.finish(OURS, "r1", TurnEnd(b"ended", 1))
        assert await store.find(OURS, "r1") is None

    # Find and delete.

    async def test_what_is_not_there_is_not_found(self, store: Store) -> None:
        assert await store.find(OURS, "r1") is None

    async def test_a_deleted_turn_is_not_found(self, store: Store) -> None:
        await a_turn(store, "r1")
        assert await store.delete(OURS, "r1")
        assert await store.find(OURS, "r1") is None

    async def test_a_turn_is_deleted_once(self, store: Store) -> None:
        await a_turn(store, "r1")
        assert await store.delete(OURS, "r1")
        assert not await store.delete(OURS, "r1")
        assert not await store.delete(OURS, "r2")

    async def test_a_handle_stays_good_when_its_turn_is_deleted(self, store: Store) -> None:
        await a_turn(store, "r2", await a_turn(store, "r1"))
        turn = await found(store, "r2")
        await store.delete(OURS, "r2")
        await store.delete(OURS, "r1")
        assert turn.ended
        assert await inputs(turn) == ["r2", "r1"]

    # Chains.

    async def test_a_chain_is_read_from_its_end(self, store: Store) -> None:
        turn = None
        for number in range(5):
            turn = await a_turn(store, f"r{number}", turn)
        assert await inputs(await found(store, "r4")) == ["r4", "r3", "r2", "r1", "r0"]

    async def test_a_turn_can_be_continued_more_than_once(self, store: Store) -> None:
        root = await a_turn(store, "root")
        for branch in ("left", "right"):
            child = await a_turn(store, branch, root)
            await a_turn(store, f"{branch}-leaf", child)
        assert await inputs(await found(store, "left-leaf")) == ["left-leaf", "left", "root"]
        assert await inputs(await found(store, "right-leaf")) == ["right-leaf", "right", "root"]

    async def test_a_child_keeps_the_context_of_deleted_ancestors(self, store: Store) -> None:
        turn = None
        for number in range(4):
            turn = await a_turn(store, f"r{number}", turn)
        for number in (1, 0, 2):
            await store.delete(OURS, f"r{number}")
        assert await inputs(await found(store, "r3")) == ["r3", "r2", "r1", "r0"]

    async def test_one_branch_keeps_its_context_when_the_other_is_deleted(
        self, store: Store
    ) -> None:
        root = await a_turn(store, "root")
        await a_turn(store, "left", root)
        await a_turn(store, "right", root)
        for name in ("root", "left"):
            await store.delete(OURS, name)
        assert await inputs(await found(store, "right")) == ["right", "root"]

    async def test_a_turn_can_continue_one_that_was_deleted_since_it_was_found(
        self, store: Store
    ) -> None:
        parent = await a_turn(store, "r2", await a_turn(store, "r1"))
        await store.delete(OURS, "r2")
        await store.delete(OURS, "r1")
        await a_turn(store, "r3", parent)
        assert await inputs(await found(store, "r3")) == ["r3", "r2", "r1"]

    # Isolation.

    @pytest.mark.parametrize("theirs", SCOPES, ids=str)
    async def test_another_scopes_turn_is_an_unknown_one(self, store: Store, theirs: Scope) -> None:
        await store.begin(theirs, "r1", None, TurnContent(b"input", BEGUN))
        assert await store.find(OURS, "r1") is None
        assert not await store.finish(OURS, "r1", TurnEnd(b"ours", 1))
        assert not await store.delete(OURS, "r1")
        turn = await found(store, "r1", theirs)
        assert not turn.ended
        assert await turn.read() == TurnContent(b"input", BEGUN)

    @pytest.mark.parametrize("theirs", SCOPES, ids=str)
    async def test_an_id_is_free_in_every_scope(self, store: Store, theirs: Scope) -> None:
        await store.begin(theirs, "r1", None, TurnContent(b"theirs", BEGUN))
        await store.begin(OURS, "r1", None, TurnContent(b"ours", BEGUN))
        assert await store.finish(OURS, "r1", TurnEnd(b"ended", 1))
        assert (await (await found(store, "r1")).read()).input == b"ours"
        assert not (await found(store, "r1", theirs)).ended
        assert await store.delete(OURS, "r1")
        assert (await (await found(store, "r1", theirs)).read()).input == b"theirs"

    # Events.

    async def test_the_events_of_a_turn_are_kept_only_if_they_are_to_be_replayed(
        self, store: Store
    ) -> None:
        await store.begin(OURS, "r1", None, TurnContent(b"", b""))
        assert not (await found(store, "r1")).replayable
        await store.append_events(OURS, "r1", [b"0"], last=True)
        assert await store.read_events(OURS, "r1", 0) is None
        assert await store.read_events(OURS, "r2", 0) is None

    async def test_events_are_read_from_any_number_on(self, store: Store) -> None:
        await a_replayable_turn(store, "r1")
        assert (await found(store, "r1")).replayable
        assert list(await store.read_events(OURS, "r1", 0) or ()) == []
        await store.append_events(OURS, "r1", [b"0", b"1"], last=False)
        await store.append_events(OURS, "r1", [b"2"], last=False)
        for start in range(5):
            events = await store.read_events(OURS, "r1", start)
            assert events is not None
            assert list(events) == [b"0", b"1", b"2"][start:]

    async def test_events_are_kept_after_the_last_one(self, store: Store) -> None:
        await a_replayable_turn(store, "r1", b"0")
        await store.append_events(OURS, "r1", [b"1"], last=True)
        assert list(await store.read_events(OURS, "r1", 0) or ()) == [b"0", b"1"]

    async def test_what_was_read_does_not_change_with_what_comes(self, store: Store) -> None:
        await a_replayable_turn(store, "r1", b"0")
        events = await store.read_events(OURS, "r1", 0)
        await store.append_events(OURS, "r1", [b"1"], last=False)
        assert list(events or ()) == [b"0"]

    async def test_the_events_of_a_deleted_turn_are_gone(self, store: Store) -> None:
        await a_replayable_turn(store, "r1", b"0")
        await store.delete(OURS, "r1")
        assert await store.read_events(OURS, "r1", 0) is None
        await store.append_events(OURS, "r1", [b"1"], last=True)
        assert await store.read_events(OURS, "r1", 0) is None

    @pytest.mark.parametrize("theirs", SCOPES, ids=str)
    async def test_another_scopes_events_are_unknown_ones(
        self, store: Store, theirs: Scope
    ) -> None:
        await a_replayable_turn(store, "r1", b"0")
        await store.append_events(theirs, "r1", [b"theirs"], last=True)
        assert await store.read_events(theirs, "r1", 0) is None
        assert list(await store.read_events(OURS, "r1", 0) or ()) == [b"0"]

    # One at a time.

    async def test_a_conversation_has_one_holder_at_a_time_in_the_order_they_ask(
        self, store: Store
    ) -> None:
        order = []
        free = asyncio.Event()

        async def hold(name: str) -> None:
            async with store.lock_conversation(OURS, "c1", 1):
                order.append(f"{name} begins")
                await free.wait()
                order.append(f"{name} ends")

        holders = [asyncio.create_task(hold(name)) for name in "abc"]
        free.set()
        await asyncio.gather(*holders)
        assert order == [f"{name} {what}" for name in "abc" for what in ("begins", "ends")]

    async def test_a_holder_that_gives_up_lets_the_next_one_have_its_turn(
        self, store: Store
    ) -> None:
        async def wait_for_it() -> None:
            async with store.lock_conversation(OURS, "c1", 1):
                raise AssertionError("it has given up")

        async with store.lock_conversation(OURS, "c1", 1):
            waiting = asyncio.create_task(wait_for_it())
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        async with store.lock_conversation(OURS, "c1", 1):
            pass

    @pytest.mark.parametrize("theirs", SCOPES, ids=str)
    async def test_conversations_do_not_wait_for_each_other(
        self, store: Store, theirs: Scope
    ) -> None:
        async with (
            store.lock_conversation(OURS, "c1", 1),
            store.lock_conversation(OURS, "c2", 1),
            store.lock_conversation(theirs, "c1", 1),
        ):
            pass
