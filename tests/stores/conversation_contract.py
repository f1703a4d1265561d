"""What every store promises of its conversations."""

import asyncio
from collections.abc import Sequence

import pytest

from antiphon.core.scope import Scope
from antiphon.stores.protocol import (
    AlreadyExists,
    Appended,
    ConversationState,
    Store,
    StoredItem,
    TurnContent,
    TurnEnd,
)
from tests.stores.contract import OURS, SCOPES

__all__ = ["ConversationContract", "a_conversation", "an_answer", "items_of", "named"]


def named(*names: str, response_id: str = "") -> list[StoredItem]:
    """Returns items that say what their ids are."""
    return [StoredItem(name, name.encode(), response_id) for name in names]


async def a_conversation(
    store: Store, conversation_id: str, *names: str, scope: Scope = OURS, data: bytes = b"it"
) -> ConversationState:
    """Adds a conversation of some items, and returns it as it is then."""
    state = ConversationState(data, named(*names))
    await store.create_conversation(scope, conversation_id, state)
    return await found(store, conversation_id, scope)


async def found(store: Store, conversation_id: str, scope: Scope = OURS) -> ConversationState:
    """Finds a conversation that is there."""
    state = await store.find_conversation(scope, conversation_id)
    assert state is not None
    return state


async def items_of(store: Store, conversation_id: str, scope: Scope = OURS) -> Sequence[str]:
    """Returns the ids of a conversation's items, which say the same."""
    items = (await found(store, conversation_id, scope)).items
    for item in items:
        assert item.data == item.id.encode()
    return [item.id for item in items]


async def begin_answer(store: Store, conversation_id: str, response_id: str) -> None:
    """Begins a turn in a conversation."""
    content = TurnContent(b"", b"")
    await store.begin(OURS, response_id, None, content, conversation_id=conversation_id)


async def an_answer(store: Store, conversation_id: str, response_id: str, *names: str) -> bool:
    """Ends a turn that adds items to its conversation."""
    added = Appended(conversation_id, named(*names, response_id=response_id))
    return await store.finish(OURS, response_id, TurnEnd(b"", 0, appended=added))


class ConversationContract:
    """Tests of a store; a class of tests for one store inherits them.

    Its `store` fixture returns an empty store without bounds that matter here.
    """

    @pytest.fixture
    def store(self) -> Store:
        raise NotImplementedError

    # The conversation itself.

    async def test_a_conversation_is_found_as_it_was_made(self, store: Store) -> None:
        state = await a_conversation(store, "c1", "a", "b", data=b"of itself")
        assert state.data == b"of itself"
        assert await items_of(store, "c1") == ["a", "b"]

    async def test_an_id_is_taken_once(self, store: Store) -> None:
        before = await a_conversation(store, "c1", "a", data=b"first")
        with pytest.raises(AlreadyExists):
            await a_conversation(store, "c1", "b", data=b"second")
        assert await found(store, "c1") == before

    async def test_of_two_that_are_made_at_once_one_is(self, store: Store) -> None:
        states = [ConversationState(name.encode(), named(name)) for name in "ab"]
        done = await asyncio.gather(
            *(store.create_conversation(OURS, "c1", state) for state in states),
            return_exceptions=True,
        )
        assert {type(each) for each in done} == {AlreadyExists, type(None)}
        state = await found(store, "c1")
        assert state.data == states[done.index(None)].data == state.items[0].data

    async def test_what_it_says_of_itself_is_replaced_alone(self, store: Store) -> None:
        before = await a_conversation(store, "c1", "a", "b")
        assert await store.update_conversation(OURS, "c1", b"other")
        assert await found(store, "c1") == before._replace(data=b"other")

    async def test_a_deleted_conversation_is_gone(self, store: Store) -> None:
        await a_conversation(store, "c1", "a")
        assert await store.delete_conversation(OURS, "c1")
        await self.is_unknown(store, "c1", OURS)

    async def test_what_is_not_there_is_unknown(self, store: Store) -> None:
        await a_conversation(store, "c2", "a")
        await self.is_unknown(store, "c1", OURS)

    async def is_unknown(self, store: Store, conversation_id: str, scope: Scope) -> None:
        """Checks that a conversation is unknown to every operation."""
        assert await store.find_conversation(scope, conversation_id) is None
        assert not await store.conversation_incarnation(scope, conversation_id)
        assert not await store.update_conversation(scope, conversation_id, b"other")
        assert not await store.append_items(scope, Appended(conversation_id, named("z")))
        assert not await store.delete_item(scope, conversation_id, "a")
        assert not await store.delete_conversation(scope, conversation_id)
        assert await store.find_conversation(scope, conversation_id) is None

    async def test_one_made_anew_is_another(self, store: Store) -> None:
        first = await a_conversation(store, "c1", "a")
        assert first.incarnation == await store.conversation_incarnation(OURS, "c1")
        await store.delete_conversation(OURS, "c1")
        second = await a_conversation(store, "c1")
        assert second.incarnation not in (0, first.incarnation)
        assert await items_of(store, "c1") == []

    # Items.

    async def test_items_are_added_at_the_end(self, store: Store) -> None:
        await a_conversation(store, "c1", "a")
        assert await store.append_items(OURS, Appended("c1", named("c", "b")))
        assert await store.append_items(OURS, Appended("c1", named("d")))
        assert await items_of(store, "c1") == ["a", "c", "b", "d"]

    async def test_an_item_that_is_there_stays_as_it_is(self, store: Store) -> None:
        before = await a_conversation(store, "c1", "a", "b")
        other = [StoredItem("a", b"other", "r1"), *named("c", "c")]
        assert await store.append_items(OURS, Appended("c1", other))
        after = await found(store, "c1")
        assert after.items[:2] == before.items
        assert await items_of(store, "c1") == ["a", "b", "c"]

    async def test_an_item_is_deleted_alone(self, store: Store) -> None:
        await a_conversation(store, "c1", "a", "b", "c")
        assert await store.delete_item(OURS, "c1", "b")
        assert not await store.delete_item(OURS, "c1", "b")
        assert not await store.delete_item(OURS, "c1", "unknown")
        assert await items_of(store, "c1") == ["a", "c"]

    async def test_every_item_has_a_place_of_its_own_for_ever(self, store: Store) -> None:
        await a_conversation(store, "c1", "a", "b", "c")
        await store.delete_item(OURS, "c1", "c")
        read = await found(store, "c1")
        assert [item.position < read.position for item in read.items] == [True, True]
        await store.append_items(OURS, Appended("c1", named("d")))
        after = await found(store, "c1")
        places = [item.position for item in after.items]
        assert places == sorted(set(places))
        # What came in after a conversation was read is told from what was there.
        assert after.items[-1].position >= read.position
        assert after.position > after.items[-1].position

    async def test_what_was_read_does_not_change_with_what_comes(self, store: Store) -> None:
        state = await a_conversation(store, "c1", "a", "b")
        await store.append_items(OURS, Appended("c1", named("c")))
        await store.delete_item(OURS, "c1", "a")
        assert [item.id for item in state.items] == ["a", "b"]

    # Turns.

    async def test_a_turn_adds_its_items_when_it_ends(self, store: Store) -> None:
        state = await a_conversation(store, "c1", "a")
        await begin_answer(store, "c1", "r1")
        assert await items_of(store, "c1") == ["a"]
        turn = await store.find(OURS, "r1")
        assert turn is not None
        assert (turn.conversation_id, turn.incarnation) == ("c1", state.incarnation)
        assert await an_answer(store, "c1", "r1", "in", "out")
        assert await items_of(store, "c1") == ["a", "in", "out"]
        owners = [item.response_id for item in (await found(store, "c1")).items]
        assert owners == ["", "r1", "r1"]

    async def test_a_turn_that_ends_twice_adds_its_items_once(self, store: Store) -> None:
        await a_conversation(store, "c1")
        await begin_answer(store, "c1", "r1")
        assert await an_answer(store, "c1", "r1", "a")
        assert not await an_answer(store, "c1", "r1", "b")
        assert await items_of(store, "c1") == ["a"]

    async def test_a_turn_that_adds_nothing_ends_all_the_same(self, store: Store) -> None:
        await a_conversation(store, "c1")
        await begin_answer(store, "c1", "r1")
        assert await store.finish(OURS, "r1", TurnEnd(b"", 0, position=7))
        turn = await store.find(OURS, "r1")
        assert turn is not None
        assert (turn.ended, turn.position) == (True, 7)
        assert await items_of(store, "c1") == []

    async def test_a_deleted_turn_adds_nothing(self, store: Store) -> None:
        await a_conversation(store, "c1")
        await begin_answer(store, "c1", "r1")
        await store.delete(OURS, "r1")
        assert not await an_answer(store, "c1", "r1", "a")
        assert await items_of(store, "c1") == []

    async def test_a_deleted_turn_takes_its_items_along(self, store: Store) -> None:
        await a_conversation(store, "c1", "a")
        for response_id in ("r1", "r2"):
            await begin_answer(store, "c1", response_id)
            await an_answer(store, "c1", response_id, f"{response_id}-in", f"{response_id}-out")
        await store.delete(OURS, "r1")
        assert await items_of(store, "c1") == ["a", "r2-in", "r2-out"]
        await store.delete(OURS, "r2")
        assert await items_of(store, "c1") == ["a"]

    async def test_a_turn_ends_without_its_conversation(self, store: Store) -> None:
        await a_conversation(store, "c1")
        await begin_answer(store, "c1", "r1")
        await store.delete_conversation(OURS, "c1")
        assert await an_answer(store, "c1", "r1", "a")
        turn = await store.find(OURS, "r1")
        assert turn is not None
        assert turn.ended
        assert await store.find_conversation(OURS, "c1") is None

    async def test_a_turn_adds_nothing_to_a_conversation_made_anew(self, store: Store) -> None:
        await a_conversation(store, "c1")
        await begin_answer(store, "c1", "r1")
        await store.delete_conversation(OURS, "c1")
        await a_conversation(store, "c1", "new")
        assert await an_answer(store, "c1", "r1", "a")
        assert await items_of(store, "c1") == ["new"]

    # Isolation.

    @pytest.mark.parametrize("theirs", SCOPES, ids=str)
    async def test_another_scopes_conversation_is_an_unknown_one(
        self, store: Store, theirs: Scope
    ) -> None:
        before = await a_conversation(store, "c1", "a", scope=theirs)
        await self.is_unknown(store, "c1", OURS)
        await begin_answer(store, "c1", "r1")
        await an_answer(store, "c1", "r1", "b")
        assert await found(store, "c1", theirs) == before

    @pytest.mark.parametrize("theirs", SCOPES, ids=str)
    async def test_an_id_is_free_in_every_scope(self, store: Store, theirs: Scope) -> None:
        await a_conversation(store, "c1", "theirs", scope=theirs)
        await a_conversation(store, "c1", "ours")
        await begin_answer(store, "c1", "r1")
        await an_answer(store, "c1", "r1", "b")
        assert await items_of(store, "c1") == ["ours", "b"]
        assert await store.delete_conversation(OURS, "c1")
        assert await items_of(store, "c1", theirs) == ["theirs"]
