import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.core.errors import ApiError, ErrorKind
from antiphon.core.page import DEFAULT_LIMIT, Page, PageRequest, take_page

IDS = ["a", "b", "c", "d", "e"]


def page(asked: PageRequest, ids: list[str] = IDS) -> tuple[list[str], bool]:
    """Returns the ids of a page, and whether there are more."""
    found: Page = take_page(ids, asked)
    return [ids[place] for place in found.places], found.has_more


def test_the_newest_come_first_unless_it_is_said_otherwise() -> None:
    assert page(PageRequest()) == (["e", "d", "c", "b", "a"], False)
    assert page(PageRequest(ascending=True)) == (IDS, False)


def test_a_page_has_a_greatest_size() -> None:
    assert page(PageRequest(limit=2)) == (["e", "d"], True)
    assert page(PageRequest(limit=5)) == (["e", "d", "c", "b", "a"], False)
    many = [str(number) for number in range(100)]
    assert len(page(PageRequest(), many)[0]) == DEFAULT_LIMIT


def test_the_next_page_begins_after_the_last_element() -> None:
    assert page(PageRequest(limit=2, after="d")) == (["c", "b"], True)
    assert page(PageRequest(limit=2, after="b")) == (["a"], False)
    assert page(PageRequest(limit=2, after="a")) == ([], False)
    assert page(PageRequest(limit=2, ascending=True, after="b")) == (["c", "d"], True)


def test_the_page_before_ends_before_an_element() -> None:
    assert page(PageRequest(limit=2, before="b")) == (["d", "c"], True)
    assert page(PageRequest(limit=2, before="d")) == (["e"], False)
    assert page(PageRequest(limit=2, ascending=True, before="d")) == (["b", "c"], True)


def test_both_cursors_make_a_range() -> None:
    assert page(PageRequest(after="e", before="b")) == (["d", "c"], False)
    assert page(PageRequest(limit=1, after="e", before="b")) == (["d"], True)
    assert page(PageRequest(after="b", before="e")) == ([], False)
    assert page(PageRequest(after="c", before="c")) == ([], False)


def test_an_empty_list_has_an_empty_page() -> None:
    assert page(PageRequest(), []) == ([], False)


@pytest.mark.parametrize("param", ["after", "before"])
def test_a_cursor_is_an_element_of_the_list(param: str) -> None:
    with pytest.raises(ApiError) as caught:
        take_page(IDS, PageRequest(**{param: "hunter2"}))  # type: ignore[arg-type]
    error = caught.value
    assert (error.kind, error.param) == (ErrorKind.NOT_FOUND, param)
    assert "hunter2" not in error.message


@given(st.integers(0, 30), st.integers(1, 7), st.booleans())
def test_page_after_page_is_the_whole_list(size: int, limit: int, ascending: bool) -> None:
    ids = [str(number) for number in range(size)]
    seen: list[str] = []
    has_more = True
    while has_more:
        after = seen[-1] if seen else ""
        found, has_more = page(PageRequest(limit=limit, ascending=ascending, after=after), ids)
        seen += found
    assert seen == (ids if ascending else ids[::-1])
