from collections.abc import Callable

import pytest

from antiphon.core.errors import ApiError, ErrorKind
from antiphon.core.ids import MAX_LENGTH, check_id, item_id, new_id, output_item_id, owner_of


def test_a_new_id_tells_what_it_is_of() -> None:
    assert new_id("resp").startswith("resp_")


def test_no_two_new_ids_are_equal() -> None:
    assert len({new_id("resp") for _ in range(1_000)}) == 1_000


def test_a_new_id_passes_the_check_of_ids() -> None:
    check_id(new_id("resp"), "response_id")


def test_an_input_items_id_follows_from_its_response_and_place() -> None:
    owner = new_id("resp")
    ids = [item_id("msg", owner, index) for index in range(20)]
    assert ids == [item_id("msg", owner, index) for index in range(20)]
    assert len(set(ids)) == 20
    assert set(ids).isdisjoint(item_id("msg", new_id("resp"), index) for index in range(20))


def test_an_input_items_id_passes_the_check_of_ids() -> None:
    check_id(item_id("msg", new_id("resp"), 0xFFFFF), "item_id")


def test_items_of_input_and_output_never_have_the_same_id() -> None:
    owner = new_id("resp")
    inputs = {item_id("msg", owner, index) for index in range(100)}
    outputs = {output_item_id("msg", owner, index) for index in range(100)}
    assert len(outputs) == 100
    assert inputs.isdisjoint(outputs)


@pytest.mark.parametrize("make", [item_id, output_item_id])
@pytest.mark.parametrize("prefix", ["resp", "caresp"])
def test_an_items_id_tells_the_response_that_it_is_of(
    make: Callable[[str, str, int], str], prefix: str
) -> None:
    owner = new_id(prefix)
    for index in (0, 1, 0x7FFFF):
        assert owner_of(make("msg", owner, index), prefix) == owner


@pytest.mark.parametrize("value", ["", "a", "msg_", "no", "msg_1", "a_b_c", "x" * 128])
def test_an_id_that_was_not_made_here_is_of_no_response(value: str) -> None:
    made = owner_of(value, "resp")
    assert made.startswith("resp_")
    assert len(made) < len(new_id("resp")) or value == "x" * 128


@pytest.mark.parametrize(
    "value", ["a", "0", "resp_0123", "x.y:z-w_v", "A" * MAX_LENGTH], ids=lambda value: value[:12]
)
def test_letters_digits_and_a_few_signs_make_an_id(value: str) -> None:
    check_id(value, "response_id")


@pytest.mark.parametrize(
    "value",
    [
        "",
        "A" * (MAX_LENGTH + 1),
        "_resp",
        ".",
        "..",
        "../etc/passwd",
        "a/b",
        "a b",
        "a\n",
        "a\x00",
        "ä",
        "resp_٣",
        'a"b',
    ],
    ids=ascii,
)
def test_anything_else_is_refused_and_not_repeated(value: str) -> None:
    with pytest.raises(ApiError) as caught:
        check_id(value, "previous_response_id")
    error = caught.value
    assert error.kind is ErrorKind.INVALID_VALUE
    assert (error.param, error.code) == ("previous_response_id", "invalid_value")
    assert error.message == (
        "'previous_response_id' must be an id: 1 to 128 letters, digits, '_', '.', ':' or '-'."
    )
