import pytest

from antiphon.core.tokens import count, count_items, usage
from antiphon.v1.item_pb2 import Item


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2)])
def test_four_characters_are_a_token(text: str, tokens: int) -> None:
    assert count(text) == tokens


def test_items_are_counted_by_their_size() -> None:
    short, long = Item(unknown="{}"), Item(unknown='{"type":"x_invented","a":"' + "b" * 400 + '"}')
    assert 0 < count_items([short]) < count_items([long])
    assert count_items([short, long]) == count_items([short]) + count_items([long])
    assert count_items([]) == 0


def test_the_total_is_the_sum() -> None:
    told = usage(3, 4)
    assert (told.input_tokens, told.output_tokens, told.total_tokens) == (3, 4, 7)


def test_the_details_are_told_even_when_they_are_zero() -> None:
    told = usage(0, 0)
    assert told.HasField("input_tokens_details")
    assert told.HasField("output_tokens_details")


def test_details_are_told() -> None:
    told = usage(10, 20, cached_tokens=4, reasoning_tokens=5)
    assert told.input_tokens_details.cached_tokens == 4
    assert told.output_tokens_details.reasoning_tokens == 5
    assert told.total_tokens == 30
