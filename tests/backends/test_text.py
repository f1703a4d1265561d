import pytest

from antiphon.backends.text import last_user_text, text_of
from antiphon.v1.item_pb2 import Item
from antiphon.v1.message_pb2 import Role
from tests.support.call import said

USER, ASSISTANT = Role.ROLE_USER, Role.ROLE_ASSISTANT


@pytest.mark.parametrize("role", [USER, ASSISTANT])
def test_the_parts_of_a_message_are_joined_by_line_breaks(role: Role.ValueType) -> None:
    assert text_of(said(role, "one", "two")) == "one\ntwo"


def test_a_part_without_text_says_nothing() -> None:
    item = said(USER, "one")
    item.message.content_list.parts.add().unknown = '{"type":"x_invented"}'
    item.message.content_list.parts.add()
    assert text_of(item) == "one"


@pytest.mark.parametrize("item", [Item(), Item(unknown='{"type":"x_invented"}'), said(USER)])
def test_other_items_say_nothing(item: Item) -> None:
    assert text_of(item) == ""


def test_the_last_message_of_the_users_counts() -> None:
    items = [said(USER, "one"), said(USER, "two"), said(ASSISTANT, "three")]
    assert last_user_text(items) == "two"


def test_without_a_message_of_the_users_there_is_no_text() -> None:
    assert last_user_text([]) == ""
    assert last_user_text([said(ASSISTANT, "one"), said(Role.ROLE_SYSTEM, "two")]) == ""
