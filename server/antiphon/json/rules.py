"""The schema's rules as Python conditions, shared by the decoder and the checks."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from antiphon.json.plan import Field
from antiphon.json.source import Scope, Source

__all__ = ["SCOPE", "emit_element_rules", "emit_rules"]


class _Rule(NamedTuple):
    broken: str
    reason: str
    code: str


def _longest(texts: Iterable[str]) -> int:
    return max(map(len, texts), default=0)


SCOPE: Final[Scope] = {"longest": _longest}
"""The global names that the conditions use."""


def emit_rules(source: Source, member: Field, expression: str, raise_as: str) -> None:
    """Adds the checks of a member's value, all elements of a list or map together.

    Args:
        source: where to add them.
        member: the member's plan.
        expression: the Python expression of the value.
        raise_as: the statement that raises, with `{}` in the place of the error's reason and code.
    """
    if member.repeated or member.value is not None:
        _emit(source, _size(member, expression, "array" if member.repeated else "object"), raise_as)
        if member.value is not None:
            _emit(source, _map(member, expression), raise_as)
    else:
        emit_element_rules(source, member, expression, raise_as)


def emit_element_rules(source: Source, member: Field, expression: str, raise_as: str) -> None:
    """Adds the checks of one value: a member's, or one element's of a list."""
    if member.bounds is not None:
        low, high = member.bounds
        rule = _Rule(f"not {low} <= {expression} <= {high}", "is out of range", "invalid_value")
        _emit(source, [rule], raise_as)
    if member.rules is None:
        return
    if member.kind in ("int", "double"):
        _emit(source, _range(member, expression), raise_as)
    elif member.kind == "string":
        if not member.repeated:
            _emit(source, _size(member, expression, "string"), raise_as)
        _emit(source, _text(source, member, expression), raise_as)


def _emit(source: Source, rules: list[_Rule], raise_as: str) -> None:
    for rule in rules:
        with source.block(f"if {rule.broken}:"):
            source.add(raise_as.format(f"{rule.reason!r}, {rule.code!r}"))


def _range(member: Field, expression: str) -> list[_Rule]:
    assert member.rules is not None
    kind = "integer" if member.kind == "int" else "decimal"
    found = []
    if member.rules.min is not None:
        low = _decimal(member.rules.min)
        code = f"{kind}_below_min_value"
        found.append(_Rule(f"not {expression} >= {low}", f"must be at least {low}", code))
    if member.rules.max is not None:
        high = _decimal(member.rules.max)
        code = f"{kind}_above_max_value"
        found.append(_Rule(f"not {expression} <= {high}", f"must be at most {high}", code))
    return found


def _decimal(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)


def _size(member: Field, expression: str, kind: str) -> list[_Rule]:
    rules = member.rules
    if rules is None:
        return []
    units = {"string": "characters", "array": "elements", "object": "members"}[kind]
    size = "properties" if kind == "object" else "length"
    found = []
    if rules.min_length is not None:
        reason = f"must have at least {rules.min_length} {units}"
        code = f"{kind}_below_min_{size}"
        found.append(_Rule(f"len({expression}) < {rules.min_length}", reason, code))
    if rules.max_length is not None:
        reason = f"must have at most {rules.max_length} {units}"
        code = f"{kind}_above_max_{size}"
        found.append(_Rule(f"len({expression}) > {rules.max_length}", reason, code))
    return found


def _map(member: Field, expression: str) -> list[_Rule]:
    rules = member.rules
    if rules is None:
        return []
    found = []
    for limit, part, what in (
        (rules.max_key_length, expression, "keys"),
        (rules.max_value_length, f"{expression}.values()", "values"),
    ):
        if limit is not None:
            reason = f"must have {what} of at most {limit} characters"
            found.append(_Rule(f"longest({part}) > {limit}", reason, "string_above_max_length"))
    return found


def _text(source: Source, member: Field, expression: str) -> list[_Rule]:
    rules = member.rules
    assert rules is not None
    found = []
    if rules.pattern:
        matches = source.bind(re.compile(rules.pattern).fullmatch)
        reason = f"must match ^{rules.pattern}$"
        found.append(_Rule(f"not {matches}({expression})", reason, "invalid_value"))
    if rules.values:
        values = source.bind(frozenset(rules.values))
        listed = ", ".join(f"'{value}'" for value in rules.values)
        reason = f"must be one of {listed}" if len(rules.values) > 1 else f"must be {listed}"
        found.append(_Rule(f"{expression} not in {values}", reason, "invalid_value"))
    return found
