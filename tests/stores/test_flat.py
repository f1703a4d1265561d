"""Memory at the bounds: what comes in pushes out as much."""

from antiphon.core.scope import Scope
from antiphon.stores.memory import Bounds, MemoryStore
from antiphon.stores.protocol import (
    Appended,
    ConversationState,
    StoredItem,
    TurnContent,
    TurnEnd,
)
from tests.support.memory import Samples

OURS = Scope(project="p")
RESPONSES = 100_000
BOUNDS = Bounds(
    max_turns=1_000,
    max_bytes=1 << 23,
    max_event_bytes=1 << 22,
    max_conversations=100,
    max_conversation_bytes=1 << 22,
)
MOST_BYTES = BOUNDS.max_bytes + BOUNDS.max_event_bytes + BOUNDS.max_conversation_bytes
EVENTS = [b"." * 100] * 8


async def respond(store: MemoryStore, first: int, count: int) -> None:
    """Stores responses: every second one with its events, every fourth in a conversation.

    Three of four continue the one before, and one of ten is deleted.
    """
    parent = None
    for number in range(first, first + count):
        name = f"resp_{number:032}"
        conversation = f"conv_{number // 40}" if number % 4 == 0 else ""
        if conversation and not await store.conversation_incarnation(OURS, conversation):
            state = ConversationState(b"." * 50, [])
            await store.create_conversation(OURS, conversation, state)
        if number % 4 == 1:
            parent = None
        await store.begin(
            OURS,
            name,
            None if conversation else parent,
            TurnContent(b"i" * 400, b"b" * 400),
            conversation_id=conversation,
            replayable=number % 2 == 0,
        )
        if number % 2 == 0:
            await store.append_events(OURS, name, EVENTS, last=False)
            await store.append_events(OURS, name, EVENTS, last=True)
        added = None
        if conversation:
            item = StoredItem(f"msg_{number:032}", b"." * 200, name)
            added = Appended(conversation, [item])
        await store.finish(OURS, name, TurnEnd(b"r" * 2_000, 10, appended=added))
        parent = await store.find(OURS, name)
        if number % 10 == 0:
            await store.delete(OURS, name)


async def test_a_hundred_thousand_responses_take_no_more_than_the_bounds() -> None:
    store = MemoryStore(BOUNDS)
    samples = Samples()
    fill = RESPONSES // 10
    for first in range(0, RESPONSES, fill):
        await respond(store, first, fill)
        assert store.retained_turns <= BOUNDS.max_turns
        assert store.retained_bytes <= MOST_BYTES
        samples.take()
    assert store.retained_turns > BOUNDS.max_turns // 2
    assert samples.objects < 1_000
    # Of the 10,000 of a round, about 30 MB, nothing but noise is left.
    assert samples.bytes < 2 << 20
