import re
from random import Random

import jsonschema_rs
import pytest

from antiphon.backends.documents.pattern import Pattern, PatternError

PATTERNS = [
    "^$",
    "abc",
    "^abc$",
    "^[a-z]+$",
    "^[^a-z]{3}$",
    "^[A-Z]{2}[0-9]{4,9}$",
    r"^\d{3}-\d{2}-\d{4}$",
    r"^\+?[1-9]\d{1,14}$",
    r"^(?:red|green|blue)$",
    r"^(a|b)*c(?:d)?$",
    r"^(?<year>\d{4})-(?<month>0[1-9]|1[0-2])$",
    r"^([a-z])\1\1$",
    r"^\w+@\w+\.\w+$",
    r"^\S+\s\S+$",
    r"^\p{Lu}\p{L}*$",
    r"^[\p{L}\d_-]{2,5}$",
    r"^\u0041\x42$",
    r"^[\u0041-\u0043]{4}$",
    r"^\/[a-z]+\/$",
    r"^[\]\-^]+$",
    r"^#(?:[0-9a-fA-F]{3}){1,2}$",
    r"^\bfoo\b$",
    r"^a{2}b{0,3}$",
    r"^a.c$",
    r"^[一-龥]{2}$",
    r"^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)$",
    r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
    r"^a+?b*?$",
]


@pytest.mark.parametrize("source", PATTERNS)
@pytest.mark.parametrize("seed", range(5))
def test_a_text_matches_its_pattern(source: str, seed: int) -> None:
    text = Pattern(source).text(Random(seed), 0, None)
    assert jsonschema_rs.validator_for({"pattern": source}).is_valid(text)


@pytest.mark.parametrize("least", [0, 1, 7, 200])
@pytest.mark.parametrize("source", ["^[a-z]+$", "a", "^a", "b$", r"^\d+(?:\.\d+)*$"])
def test_a_text_is_as_long_as_it_has_to_be(source: str, least: int) -> None:
    for seed in range(5):
        text = Pattern(source).text(Random(seed), least, None)
        assert len(text) >= least
        assert re.search(source, text)


def test_a_text_is_no_longer_than_it_may_be() -> None:
    for seed in range(20):
        assert len(Pattern("^[a-z]+$").text(Random(seed), 2, 3)) in (2, 3)


@pytest.mark.parametrize(
    "source",
    ["(", ")", "a)", "[", "[a", "*", "a{3,2}", "\\", "(?<a", "[z-a]", "(" * 100, r"\u{zz}"],
)
def test_what_is_no_pattern_is_refused(source: str) -> None:
    with pytest.raises(PatternError):
        Pattern(source)


@pytest.mark.parametrize("source", ["a{100000}", "(?:a{1000}){1000}", "((a{999}){999}){999}"])
def test_a_pattern_of_endless_texts_has_none(source: str) -> None:
    with pytest.raises(PatternError):
        Pattern(source).text(Random(1), 0, None)
