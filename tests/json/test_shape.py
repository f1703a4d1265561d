from json.encoder import encode_basestring

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.json import encode, one_line, quote, quote_all, shape
from antiphon.v1.event_pb2 import ResponseStreamEvent

PATHS = ["sequence_number", "output_text_delta.item_id", "output_text_delta.output_index"]

TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.integers(0, 2**53), TEXT, st.integers(0, 2**53))
def test_what_is_put_into_a_shape_is_what_the_message_prints(
    number: int, item_id: str, index: int
) -> None:
    template = shape(ResponseStreamEvent(), PATHS)
    message = ResponseStreamEvent(sequence_number=number)
    message.output_text_delta.item_id = item_id
    message.output_text_delta.output_index = index
    assert one_line(template % (number, quote(item_id), index)) == encode(message)


def test_a_shape_keeps_what_else_the_message_holds() -> None:
    message = ResponseStreamEvent()
    message.output_text_delta.delta = "stays %s 100%"
    template = shape(message, ["output_text_delta.item_id"])
    message.output_text_delta.item_id = "msg_1"
    assert template % '"msg_1"' == encode(message)


@pytest.mark.parametrize(
    "paths", [PATHS[::-1], ["sequence_number", "output_text_delta.logprobs.token"]]
)
def test_values_that_are_not_printed_in_this_order_have_no_shape(paths: list[str]) -> None:
    with pytest.raises((ValueError, AttributeError)):
        shape(ResponseStreamEvent(), paths)


@given(TEXT, st.integers(0, 100))
def test_a_string_is_printed_the_same_however_long_it_is(text: str, times: int) -> None:
    assert quote(text * times) == encode_basestring(text * times)


@given(st.lists(TEXT | st.sampled_from(["\0", "\\u0000", "\\", "u0000", '"', ""]), min_size=1))
def test_strings_are_printed_together_as_they_are_alone(texts: list[str]) -> None:
    assert [f'"{text}"' for text in quote_all(texts)] == [quote(text) for text in texts]
