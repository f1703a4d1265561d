import pytest

from antiphon.backends.sim.words import name_words, spoken, subjects


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("get_weather", {"weather"}),
        ("getWeatherForecast", {"weather", "forecast"}),
        ("HTTPRequest-log", {"http", "request", "log"}),
        ("run_the_tool", set()),
        ("a1", set()),
    ],
)
def test_a_name_tells_what_a_tool_is_about(name: str, words: set[str]) -> None:
    assert name_words(name) == words


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("What is the weather in Paris?", ["Paris"]),
        ("Fly from New York to São Paulo", ["New York", "São Paulo", "Fly"]),
        ('Look for "red shoes" in Oslo', ["red shoes", "Oslo"]),
        ("Paris. In 3 days", ["Paris", "In", "3"]),
        ("weather in paris", ["weather", "paris"]),
        ("", []),
        ("12 and 1.5 and x7", ["12"]),
    ],
)
def test_a_text_names_its_subjects(text: str, found: list[str]) -> None:
    assert list(subjects(text)) == found


def test_words_that_are_not_wanted_are_left_out() -> None:
    assert list(subjects("the weather in paris", frozenset({"weather"}))) == ["paris"]
    assert list(subjects("Weather in Paris", frozenset({"weather"}))) == ["Paris"]


def test_a_long_text_is_looked_at_in_part() -> None:
    assert len(subjects("Aa bb " * 10_000)) == 1
    assert len(spoken("a " * 10_000)) == 64
