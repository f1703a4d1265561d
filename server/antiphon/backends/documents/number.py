"""Numbers within the bounds of a JSON Schema, exact whatever their size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor
from random import Random
from typing import Any, Final

__all__ = ["numbers"]

_USUAL: Final = 100
"""How far from its bound a number is that could be anything."""
_TRIES: Final = 24
_FINEST: Final = 10**12
"""How fine a step is that was meant as it is written."""


def numbers(node: Mapping[str, Any], random: Random, *, whole: bool) -> Iterator[int | Decimal]:
    """Yields numbers that fit the bounds of a schema, the best first; none if none fits.

    Args:
        node: the schema.
        random: what the choices come from.
        whole: whether they are to be integers.
    """
    low, low_open = _bound(node, "minimum", "exclusiveMinimum", max)
    high, high_open = _bound(node, "maximum", "exclusiveMaximum", min)
    step = Fraction(1) if whole else Fraction(0)
    if "multipleOf" in node:
        step = _common(_exact(node["multipleOf"]), step)
    if step:
        yield from _multiples(step, (low, low_open), (high, high_open), random)
        return
    # Whole numbers read best; then tenths and so on, as fine as the bounds are narrow.
    for places in (0, 1, 2, 4, 8, 16, 32):
        step = Fraction(1, 10**places)
        for found in _multiples(step, (low, low_open), (high, high_open), random):
            yield found
            if places < 1:
                break


def _multiples(
    step: Fraction,
    low: tuple[Fraction | None, bool],
    high: tuple[Fraction | None, bool],
    random: Random,
) -> Iterator[int | Decimal]:
    first = None if low[0] is None else ceil(low[0] / step)
    if first is not None and low[1] and first * step == low[0]:
        first += 1
    last = None if high[0] is None else floor(high[0] / step)
    if last is not None and high[1] and last * step == high[0]:
        last -= 1
    usual = max(1, floor(_USUAL / step)) if step < _USUAL else 1
    if first is None and last is None:
        first, last = 1, usual
    elif first is None:
        assert last is not None
        first = 1 if last >= 1 else last - usual
    elif last is None:
        last = max(first, 1) + usual - 1 if first < usual else first + usual
    assert last is not None
    if last < first:
        return
    last = min(last, first + 10**6)
    if step.denominator > _FINEST:
        # Only the first multiples of a step that is not exact as it is written are seen to be some.
        last = min(last, max(first, 2))
    seen = set()
    tried = []
    for _ in range(min(_TRIES, last - first + 1)):
        count = random.randint(first, last)
        while count in seen:
            count = count + 1 if count < last else first
        seen.add(count)
        value = _printed(count * step)
        # Others divide in binary: what comes out whole there too is the safer answer.
        if value is not None and _divides(value, step):
            yield value
        elif value is not None:
            tried.append(value)
    yield from tried


def _divides(value: int | Decimal, step: Fraction) -> bool:
    try:
        return step.denominator == 1 or (float(value) / float(step)).is_integer()
    except (OverflowError, ZeroDivisionError):
        return False


def _bound(
    node: Mapping[str, Any], inclusive: str, exclusive: str, tighter: Any
) -> tuple[Fraction | None, bool]:
    bounds = []
    for key in (inclusive, exclusive):
        value = node.get(key)
        if value is not None and not isinstance(value, bool):
            bounds.append((_exact(value), key == exclusive))
    if not bounds:
        return None, False
    bound = tighter(value for value, _ in bounds)
    return bound, (bound, True) in bounds


def _exact(value: Any) -> Fraction:
    return Fraction(value if isinstance(value, int) else Decimal(str(value)))


def _common(one: Fraction, other: Fraction) -> Fraction:
    """Returns the least common multiple of two steps; the first if the other is zero."""
    if not other:
        return one
    scale = one.denominator * other.denominator
    a, b = int(one * scale), int(other * scale)
    while b:
        a, b = b, a % b
    return one * other / Fraction(a, scale) if a else one


def _printed(value: Fraction) -> int | Decimal | None:
    """Returns a number as JSON prints it exactly, or None if it has no end."""
    if value.denominator == 1:
        return value.numerator
    rest = value.denominator
    places = 0
    while rest % 10 == 0:
        rest, places = rest // 10, places + 1
    for prime in (2, 5):
        while rest % prime == 0:
            rest, places = rest // prime, places + 1
    if rest != 1 or places > 400:
        return None
    scaled = value * 10**places
    return Decimal(f"{scaled.numerator}E-{places}")
