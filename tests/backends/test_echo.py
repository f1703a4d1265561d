import pytest

from antiphon.backends.echo import EchoBackend
from antiphon.core.output import Finished, TextDeltas
from antiphon.core.tokens import usage
from tests.support.call import a_call, steps_of


async def test_an_answer_is_the_last_text_of_the_users() -> None:
    steps = await steps_of(EchoBackend(), a_call("one", "two"))
    assert steps == [TextDeltas(["two"]), Finished(usage(7, 1))]


async def test_an_answer_comes_in_as_many_pieces_as_are_asked_for() -> None:
    steps = await steps_of(EchoBackend(deltas=3), a_call("abcdefg"))
    assert steps[:-1] == [TextDeltas(["abc", "def", "g"])]


@pytest.mark.parametrize("deltas", [1, 2, 5, 100])
async def test_the_pieces_join_to_the_text(deltas: int) -> None:
    text = "Grüße, 世界! 😀\n"
    step, _ = await steps_of(EchoBackend(deltas=deltas), a_call(text))
    assert isinstance(step, TextDeltas)
    assert len(step.texts) <= deltas
    assert "".join(step.texts) == text


async def test_many_pieces_come_in_several_steps() -> None:
    *steps, _ = await steps_of(EchoBackend(deltas=1_000), a_call("a" * 1_000))
    sizes = [len(step.texts) for step in steps if isinstance(step, TextDeltas)]
    assert sizes == [256, 256, 256, 232]


async def test_without_a_text_there_is_only_an_end() -> None:
    assert await steps_of(EchoBackend(deltas=3), a_call()) == [Finished(usage(7, 0))]
    assert await steps_of(EchoBackend(), a_call("")) == [Finished(usage(7, 0))]


async def test_an_answer_comes_in_one_batch() -> None:
    batches = [batch async for batch in EchoBackend(deltas=3).respond(a_call("one"))]
    assert len(batches) == 1
