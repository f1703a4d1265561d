from collections.abc import Sequence

import pytest

from antiphon.core.output import Accepted, Finished, TextDelta
from antiphon.core.tokens import count, usage
from antiphon.v1.item_pb2 import Item
from antiphon.v1.message_pb2 import Role
from tests.backends.sim.asking import singly_of
from tests.support.call import a_call, said

USER, ASSISTANT = Role.ROLE_USER, Role.ROLE_ASSISTANT


async def answer(*texts: str, before: Sequence[Item] = ()) -> str:
    steps = await singly_of(a_call(*texts, before=before))
    return "".join(step.text for step in steps if isinstance(step, TextDelta))


async def test_a_call_is_accepted_before_anything_is_written() -> None:
    first, *_ = await singly_of(a_call("hi"))
    assert first == Accepted()


async def test_an_answer_comes_word_by_word_and_ends_with_its_usage() -> None:
    _, *words, end = await singly_of(a_call("Repeat exactly: one  two"))
    assert words == [TextDelta("one"), TextDelta("  two")]
    assert end == Finished(usage(7, count("one") + count("  two")))


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ("Repeat exactly: one two", "one two"),
        ("repeat EXACTLY:one", "one"),
        ("  \nRepeat exactly:  one ", " one "),
        ("Repeat exactly: one\ntwo\n", "one\ntwo\n"),
        ("Repeat exactly: \u2028😀", "\u2028😀"),
        ("Repeat exactly:", ""),
        ("Repeat exactly: Repeat exactly: x", "Repeat exactly: x"),
    ],
)
async def test_what_is_to_be_repeated_is_repeated(asked: str, answered: str) -> None:
    assert await answer(asked) == answered


async def test_a_request_to_repeat_is_not_one_in_the_middle() -> None:
    assert (await answer("please Repeat exactly: x")).startswith("You said: ")


async def test_an_earlier_message_about_the_same_is_quoted() -> None:
    before = [said(USER, "My cat is called Felix."), said(ASSISTANT, "Noted.")]
    assert await answer("What is my cat Felix doing?", before=before) == (
        'Earlier you said: "My cat is called Felix."'
    )


async def test_words_match_whatever_their_case() -> None:
    before = [said(USER, "FELIX sleeps")]
    assert await answer("felix?", before=before) == 'Earlier you said: "FELIX sleeps"'


async def test_the_latest_of_such_messages_is_quoted() -> None:
    before = [said(USER, "Felix sleeps"), said(USER, "Felix eats"), said(USER, "Something else")]
    assert await answer("Felix?", before=before) == 'Earlier you said: "Felix eats"'


async def test_a_message_of_the_same_input_is_earlier_too() -> None:
    before = [said(USER, "Felix sleeps")]
    assert await answer("Felix eats", "Felix?", before=before) == 'Earlier you said: "Felix eats"'


async def test_only_the_user_is_quoted() -> None:
    before = [said(ASSISTANT, "Felix sleeps"), said(Role.ROLE_SYSTEM, "Felix eats")]
    assert await answer("Felix?", before=before) == "You said: Felix?"


@pytest.mark.parametrize("asked", ["What did they say about that?", "Is it so? No!", "a b c d"])
async def test_words_that_say_nothing_of_a_subject_match_nothing(asked: str) -> None:
    assert await answer(asked, before=[said(USER, asked)]) == f"You said: {asked}"


async def test_anything_else_is_answered_with_itself() -> None:
    assert await answer("Bonjour") == "You said: Bonjour"


async def test_without_a_text_there_is_nothing_to_answer() -> None:
    assert await answer() == "There is nothing to answer."
    assert await answer("") == "There is nothing to answer."


async def test_the_same_call_gets_the_same_answer() -> None:
    before = [said(USER, "Felix sleeps")]
    first = await singly_of(a_call("Felix?", before=before))
    assert await singly_of(a_call("Felix?", before=before)) == first
