import re
from random import Random

import jsonschema_rs
import pytest

from antiphon.backends.documents.language import Language
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
    r"^(?=.*\d)(?=.*[a-z]).{8,}$",
    r"^(?=.*[A-Za-z])(?=.*\d)[A-Za-z\d]{8,}$",
    r"^(?=.*[a-z])(?=.*[A-Z])(?=.*\d)(?=.*[@$!%*?&])[A-Za-z\d@$!%*?&]{8,20}$",
    r"^(?=.{5,10}$)[a-z]+(-[a-z]+)*$",
    r"^(?!.*--)[a-z-]+$",
    r"^(?!000|666|9\d\d)\d{3}-(?!00)\d{2}-(?!0{4})\d{4}$",
    r"^(?:(?!--).){2,}$",
    r"^(?:(?!--).)*-$",
    r"^(?=[A-Z])\w{3}$",
    r"^(?=.*foo)(?=.*bar).*$",
    r"(?=.*\d)(?=.*[A-Z])",
    r"(?<=\$)\d+",
    r"^(?<!x)y$",
    r"foo(?=bar)",
    r"^(\p{Extended_Pictographic}|\p{Emoji_Component})+$",
    r"^\P{L}\p{Script=Greek}\p{Lowercase_Letter}$",
    r"^(?P<word>[ab])\D[\W]$",
    r"^[^\x00-\x1f-]+$",
]


def matches(source: str, text: str | None) -> bool:
    return text is not None and jsonschema_rs.validator_for({"pattern": source}).is_valid(text)


@pytest.mark.parametrize("source", PATTERNS)
@pytest.mark.parametrize("seed", range(5))
def test_a_text_matches_its_pattern(source: str, seed: int) -> None:
    assert matches(source, Language([source]).text(Random(seed), 0, None))


@pytest.mark.parametrize("least", [0, 1, 7, 200])
@pytest.mark.parametrize("source", ["^[a-z]+$", "a", "^a", "b$", r"^\d+(?:\.\d+)*$", "^(ab)*$"])
def test_a_text_is_as_long_as_it_has_to_be(source: str, least: int) -> None:
    for seed in range(5):
        text = Language([source]).text(Random(seed), least, None)
        assert text is not None
        assert len(text) >= least
        assert re.search(source, text)


@pytest.mark.parametrize("source", ["^[a-z]+$", "b", "^(?:ab|c)*$"])
def test_a_text_is_no_longer_than_it_may_be(source: str) -> None:
    for seed in range(20):
        text = Language([source]).text(Random(seed), 2, 3)
        assert matches(source, text)
        assert len(text or "") in (2, 3)


@pytest.mark.parametrize(
    ("patterns", "excluded"),
    [
        (["^ab", "yz$"], []),
        (["^[a-z]+$", "^.{5}$", "q"], []),
        ([], ["[a-zA-Z]"]),
        (["^.{3}$"], ["^[aeiou]", r"\s", "[b-z]"]),
        ([r"^\d+$"], ["^1", "[02-9]$"]),
        (["^(?:ab)*$"], ["^(?:abab)*$"]),
    ],
)
def test_a_text_matches_all_patterns_and_none_that_it_must_not(
    patterns: list[str], excluded: list[str]
) -> None:
    for seed in range(9):
        text = Language(patterns, excluded).text(Random(seed), 1, None)
        assert all(matches(source, text) for source in patterns)
        assert not any(matches(source, text) for source in excluded)


@pytest.mark.parametrize(
    ("patterns", "excluded"),
    [
        (["^a$", "^b$"], []),
        (["^a+$"], ["a"]),
        ([], [""]),
        (["^(?!a)a$"], []),
        (["a^b"], []),
        (["^a*b(?=c)$"], []),
        (["[]"], []),
    ],
)
def test_where_no_text_matches_there_is_none(patterns: list[str], excluded: list[str]) -> None:
    assert Language(patterns, excluded).text(Random(1), 0, None) is None


def test_where_no_text_is_of_the_length_there_is_none() -> None:
    assert Language(["^(?:abc)*$"]).text(Random(1), 4, 5) is None


def test_texts_of_a_pattern_differ() -> None:
    language = Language(["^[ab]{4}$"])
    random = Random(1)
    assert len({language.text(random, 0, None) for _ in range(200)}) == 16
    # What is referred to is chosen anew each time.
    again = Language([r"^([ab])-\1$"])
    assert {again.text(random, 0, None) for _ in range(20)} == {"a-a", "b-b"}


def test_a_class_holds_what_is_between_its_ends() -> None:
    # 中 is in the range, though it is neither of its ends nor half way between them.
    text = Language(["^[^一-龥]$", r"^[^\x00-\x7f]$"]).text(Random(1), 0, None)
    assert text is not None
    assert not "一" <= text <= "龥"


@pytest.mark.parametrize(
    "source",
    ["(", ")", "a)", "[", "[a", "*", "a{3,2}", "\\", "(?<a", "[z-a]", "(" * 100, r"\u{zz}"],
)
def test_what_is_no_pattern_is_refused(source: str) -> None:
    with pytest.raises(PatternError):
        Pattern(source)


@pytest.mark.parametrize(
    "source",
    [
        "a{100000}",
        "(?:a{1000}){1000}",
        "((a{999}){999}){999}",
        "^(?:.?){90}(?:.?.?){90}(?=.*a.{40}$)(?=.*b.{40}$)x",
        "a?" * 9000,
        "(?:(?=a)a){9999}",
    ],
)
def test_a_pattern_of_which_too_much_has_to_be_looked_at_has_no_text(source: str) -> None:
    with pytest.raises(PatternError):
        Language([source]).text(Random(1), 0, None)
