"""Schemas that some value is known to fit: each is drawn around a value."""

import re
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

__all__ = ["satisfiable"]

NAMES = ("a", "b", "city", "x_one", "x_two", "Zoë", "key/with~marks", "")
FORMATTED = {
    "date": "2024-05-06",
    "email": "a@example.com",
    "uri": "https://example.com/",
    "ipv4": "192.0.2.1",
    "uuid": "00000000-0000-4000-8000-000000000000",
}
KINDS = ("string", "integer", "number", "boolean", "null", "object", "array")
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.integers(-20, 20),
    st.sampled_from([0.5, -1.25, 3.75, 1e-7, 1e20]),
    st.text(st.characters(min_codepoint=32, max_codepoint=0x2FFF, exclude_categories=["Cs"])),
    st.sampled_from(["", "alpha", "AB-1234", "x" * 40, *FORMATTED.values()]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.sampled_from(NAMES), inner, max_size=4)
    ),
    max_leaves=8,
)


def kind_of(value: Any) -> str:
    for kind, classes in (
        ("boolean", bool),
        ("integer", int),
        ("number", float),
        ("string", str),
        ("object", dict),
        ("array", list),
    ):
        if isinstance(value, classes):
            return kind
    return "null"


class _Around:
    """Draws schemas around values; some of them go into `$defs`."""

    def __init__(self, draw: Any, combined: bool) -> None:
        self.draw = draw
        self.combined = combined
        self.defs: dict[str, Any] = {}

    def chance(self, one_in: int = 3) -> bool:
        return bool(self.draw(st.integers(1, one_in)) == 1)

    def schema(self, value: Any, depth: int = 0) -> Any:
        schema = self._plain(value, depth)
        if self.combined and depth < 4:
            schema = self._combined(value, schema, depth)
        if self.chance(6):
            name = f"d{len(self.defs)}"
            self.defs[name] = schema
            schema = {"$ref": f"#/$defs/{name}"}
        return schema

    def _plain(self, value: Any, depth: int) -> dict[str, Any]:
        if self.chance(12):
            return {"const": value}
        if self.chance(12):
            return {"enum": [*self.draw(st.lists(SCALARS, max_size=2)), value]}
        kind = kind_of(value)
        schema: dict[str, Any] = {}
        if self.chance(4):
            others = self.draw(st.lists(st.sampled_from(KINDS), max_size=2))
            schema["type"] = list(dict.fromkeys([*others, kind]))
        elif not self.chance(8):
            schema["type"] = "number" if kind == "integer" and self.chance() else kind
        add = getattr(self, f"_{kind}", None)
        if add is not None:
            add(value, schema, depth)
        return schema

    def _number(self, value: Any, schema: dict[str, Any], _depth: int) -> None:
        below = self.draw(st.sampled_from([0, 1, 3, 1000]))
        above = self.draw(st.sampled_from([0, 1, 3, 1000]))
        if self.chance():
            schema["minimum"] = value - below
        elif self.chance():
            schema["exclusiveMinimum"] = value - below - 1
        if self.chance():
            schema["maximum"] = value + above
        elif self.chance():
            schema["exclusiveMaximum"] = value + above + 1
        if self.chance() and Decimal(str(value)) % Decimal("0.25") == 0:
            schema["multipleOf"] = self.draw(st.sampled_from([0.25, 0.125]))

    def _integer(self, value: int, schema: dict[str, Any], depth: int) -> None:
        self._number(value, schema, depth)
        if self.chance():
            divisors = [each for each in (1, 2, 3, 7, 10, abs(value)) if each and not value % each]
            schema["multipleOf"] = self.draw(st.sampled_from(divisors))

    def _string(self, value: str, schema: dict[str, Any], _depth: int) -> None:
        for name, example in FORMATTED.items():
            if value == example and not self.chance():
                schema["format"] = name
        if self.chance():
            schema["minLength"] = self.draw(st.integers(0, len(value)))
        if self.chance():
            schema["maxLength"] = len(value) + self.draw(st.integers(0, 3))
        if self.chance(4):
            start = re.escape(value[: self.draw(st.integers(0, 3))])
            schema["pattern"] = f"^{start}" + self.draw(
                st.sampled_from(["", ".*", "[^]*$", "\\W?"])
            )
            schema["pattern"] = schema["pattern"].replace("[^]", r"[\s\S]")

    def _object(self, value: dict[str, Any], schema: dict[str, Any], depth: int) -> None:
        described = [name for name in value if not self.chance(5)]
        if described or self.chance():
            schema["properties"] = {name: self._inner(value[name], depth) for name in described}
            missing = [name for name in NAMES if name not in value]
            if missing and self.chance(4):
                schema["properties"][missing[0]] = self.draw(
                    st.sampled_from([False, {"type": "integer"}, {}])
                )
        if self.chance(2):
            schema["required"] = [name for name in value if self.chance(2)]
        rest = [value[name] for name in value if name not in described]
        if self.chance():
            schema["additionalProperties"] = self._any(rest, depth)
        if self.chance(4):
            schema["minProperties"] = self.draw(st.integers(0, len(value)))
        if self.chance(4):
            schema["maxProperties"] = len(value) + self.draw(st.integers(0, 2))
        if self.chance(5):
            schema["propertyNames"] = {"maxLength": max(map(len, [*value, "abc"]))}
        if self.chance(5):
            matching = [value[name] for name in value if name.startswith("x_")]
            schema["patternProperties"] = {"^x_": self._any(matching, depth) or {}}
        if self.chance(5) and value:
            first, *others = value
            schema["dependentRequired"] = {first: others}
        if self.chance(6) and value:
            schema["dependentSchemas"] = {next(iter(value)): {"minProperties": 1}}

    def _array(self, value: list[Any], schema: dict[str, Any], depth: int) -> None:
        cut = self.draw(st.integers(0, len(value))) if self.chance() else 0
        if cut:
            schema["prefixItems"] = [self.schema(each, depth + 1) for each in value[:cut]]
        if self.chance(2):
            schema["items"] = self._any(value[cut:], depth)
        if self.chance():
            schema["minItems"] = self.draw(st.integers(0, len(value)))
        if self.chance():
            schema["maxItems"] = len(value) + self.draw(st.integers(0, 2))
        if self.chance(4) and len({str(each) for each in value}) == len(value):
            schema["uniqueItems"] = all(
                one != other for i, one in enumerate(value) for other in value[:i]
            )
        if value and self.chance(5):
            schema["contains"] = self.schema(value[-1], depth + 1)

    def _inner(self, value: Any, depth: int) -> Any:
        """Returns a schema of a value within another, which may be one like the whole instead."""
        schema = self.schema(value, depth + 1)
        if self.combined and self.chance(8):
            key = self.draw(st.sampled_from(["anyOf", "oneOf"]))
            return {key: [{"$ref": "#"}, {"allOf": [schema, {"not": {"$ref": "#"}}]}]}
        return schema

    def _any(self, values: list[Any], depth: int) -> Any:
        """Returns a schema of all of some values; false, perhaps, if there are none."""
        if not values:
            return self.draw(st.sampled_from([False, True, {"type": "string"}]))
        schemas = [self._inner(each, depth) for each in values]
        return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}

    def _combined(self, value: Any, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        if self.chance(8):
            return {"allOf": [schema, self.schema(value, depth + 1)]}
        if self.chance(8):
            return {"anyOf": [self.schema(self.draw(VALUES), depth + 1), schema]}
        if self.chance(10):
            other = next(kind for kind in ("null", "boolean") if kind != kind_of(value))
            return {"oneOf": [schema, {"allOf": [{"type": other}, {"not": schema}]}]}
        if self.chance(10) and "not" not in schema:
            other = self.draw(SCALARS)
            if other != value:
                return {**schema, "not": {"const": other}}
        if self.chance(10):
            condition = self.schema(self.draw(VALUES), depth + 1)
            return {"if": condition, "then": schema, "else": self.schema(value, depth + 1)} | (
                {"$comment": "both fit"} if self.chance() else {}
            )
        return schema


@st.composite
def satisfiable(draw: Any, *, combined: bool = True) -> Any:
    """Returns a schema that some value fits, and that value.

    Args:
        draw: draws from strategies.
        combined: whether schemas are combined with others, as by `allOf` and `if`.
    """
    value = draw(VALUES)
    around = _Around(draw, combined)
    schema = around.schema(value)
    if around.defs:
        schema = {**schema, "$defs": around.defs}
    return schema, value
