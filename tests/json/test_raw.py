import pytest

from antiphon.json import InvalidValue
from antiphon.json.raw import MAX_DEPTH, compact, parse, recompact


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (' {"b" : 1 , "a" : [ 1.0 , 2 ] } ', '{"b":1,"a":[1.0,2]}'),
        ("\n[\t]\r", "[]"),
        ('"\\u2028\\u0041\\/"', '"\u2028A/"'),
        ("18446744073709551617", "18446744073709551617"),
        ("1e2", "100.0"),
        ("-0", "0"),
        ('{"a":1,"a":2}', '{"a":2}'),
    ],
)
def test_a_document_is_printed_on_one_line(text: str, expected: str) -> None:
    assert recompact(text) == expected


def test_what_is_compact_stays_as_it_is() -> None:
    text = recompact('{"z":[1,1.0,1e100,0.1,-5],"a":{"é":"\\n\\"\\\\"},"n":[null,true,false,""]}')
    assert recompact(text) == text


def test_bytes_and_text_are_parsed_alike() -> None:
    assert parse("[1,1.5]") == parse(b"[1,1.5]") == [1, 1.5]


@pytest.mark.parametrize("text", ["", '{}, "name":"evil"', "{}\n{}", "[1", "NaN", '"\ud800"'])
def test_what_is_not_one_document_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        recompact(text)
    assert caught.value.code == "invalid_json"


def test_depth_is_counted_exactly() -> None:
    value: list[object] = []
    for _ in range(MAX_DEPTH - 1):
        value = [value, [], {}]
    assert compact(value).count("[") > MAX_DEPTH
    with pytest.raises(InvalidValue, match="nested deeper than 128 levels"):
        compact([value])


def test_a_value_too_deep_for_the_printer_is_refused() -> None:
    value: list[object] = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(InvalidValue, match="nested deeper than 128 levels"):
        compact(value)
    # Freed level by level: the interpreter's own way down is not what is tested here.
    while value:
        value = value.pop()  # type: ignore[assignment]
