from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.backends.documents.number import numbers


def fits(value: int | Decimal, node: dict[str, Any]) -> bool:
    exact = Fraction(value)
    return (
        exact >= Fraction(node.get("minimum", exact))
        and exact <= Fraction(node.get("maximum", exact))
        and ("exclusiveMinimum" not in node or exact > Fraction(node["exclusiveMinimum"]))
        and ("exclusiveMaximum" not in node or exact < Fraction(node["exclusiveMaximum"]))
        and ("multipleOf" not in node or (exact / Fraction(node["multipleOf"])).denominator == 1)
    )


DECIMALS = st.decimals(-(10**6), 10**6, allow_nan=False, places=3)


@given(DECIMALS, DECIMALS, st.booleans(), st.booleans())
def test_a_number_is_found_in_every_range(
    one: Decimal, other: Decimal, low_open: bool, high_open: bool
) -> None:
    low, high = min(one, other), max(one, other)
    node = {
        "exclusiveMinimum" if low_open else "minimum": low,
        "exclusiveMaximum" if high_open else "maximum": high,
    }
    found = list(numbers(node, Random(1), whole=False))
    assert all(fits(value, node) for value in found)
    assert found or low == high


@given(st.integers(-(2**80), 2**80), st.integers(1, 2**70))
def test_a_multiple_is_found_if_there_is_one(low: int, step: int) -> None:
    node = {"minimum": low, "maximum": low + step - 1, "multipleOf": step}
    (found,) = numbers(node, Random(1), whole=True)
    assert isinstance(found, int)
    assert fits(found, node)


@pytest.mark.parametrize(
    "node",
    [
        {"minimum": 2, "maximum": 1},
        {"exclusiveMinimum": 1, "exclusiveMaximum": 2},
        {"minimum": 1, "maximum": 2, "multipleOf": 5},
        {"minimum": 0.25, "maximum": 0.75},
    ],
)
def test_where_none_fits_there_is_none(node: dict[str, Any]) -> None:
    assert list(numbers(node, Random(1), whole=True)) == []


def test_a_number_is_whole_where_that_fits() -> None:
    for seed in range(9):
        assert isinstance(next(numbers({"minimum": 0.5}, Random(seed), whole=False)), int)
