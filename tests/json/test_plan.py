import pytest

from antiphon.json.plan import Field, Oneof, PlanError, dump, plan
from tests.support.schema import compiled, descriptor

CONTRADICTIONS = {
    "a bare message has one member": [
        "message M { option (json_message).bare = true; string a = 1; string b = 2; }",
        "message M { option (json_message).bare = true; }",
        """message M {
          option (json_message).bare = true;
          string a = 1;
          string b = 2 [(json_field).additional = true];
        }""",
        """message M {
          option (json_message) = {bare: true constants: {key: "object" value: "m"}};
          string a = 1;
        }""",
    ],
    "a tagged union stands alone in its object": [
        """message A {} message M {
          oneof a { option (json_oneof).tag = "type"; A x = 1; }
          oneof b { option (json_oneof).tag = "kind"; A y = 2; }
        }""",
        """message A {} message M {
          oneof a { option (json_oneof).tag = "type"; A x = 1; }
          string b = 2 [(json_field).additional = true];
        }""",
    ],
    "two members have the same JSON key": [
        'message M { string a = 1; string b = 2 [(json_field).name = "a"]; }',
        """message M {
          option (json_message).constants = {key: "a" value: "m"};
          string a = 1;
        }""",
        """message M {
          oneof a { option (json_oneof).by_type = true; string x = 1; }
          string b = 2 [(json_field).name = "a"];
        }""",
    ],
    "stand twice": [
        """message A { string type = 1; } message M {
          oneof a { option (json_oneof).tag = "type"; A x = 1; }
        }""",
        """message A { string id = 1; } message M {
          string id = 1;
          oneof a { option (json_oneof).tag = "type"; A x = 2; }
        }""",
    ],
    "an arm is a message or raw": [
        'message M { oneof a { option (json_oneof).tag = "type"; string x = 1; } }',
    ],
    "a oneof has either a tag or by_type": [
        "message M { oneof a { string x = 1; } }",
        """message A {} message M {
          oneof a { option (json_oneof) = {tag: "type" by_type: true}; A x = 1; }
        }""",
    ],
    "a raw field is a string": [
        "message M { bytes a = 1 [(json_field).raw = true]; }",
        "message M { int32 a = 1 [(json_field).raw = true]; }",
    ],
    "this type of field has no JSON shape": [
        "message M { bytes a = 1; }",
        "message M { float a = 1; }",
        "message M { fixed64 a = 1; }",
    ],
    "the keys of a map are strings": [
        "message M { map<int32, string> a = 1; }",
        "message M { map<bool, string> a = 1; }",
    ],
}


@pytest.mark.parametrize(
    ("reason", "source"),
    [(reason, source) for reason, sources in CONTRADICTIONS.items() for source in sources],
)
def test_options_that_contradict_each_other_are_refused(reason: str, source: str) -> None:
    with pytest.raises(PlanError, match=reason) as caught:
        plan(descriptor(source))
    assert ".M" in str(caught.value)


def test_a_plan_is_made_once() -> None:
    message = descriptor("message M { string a = 1; }")
    assert plan(message) is plan(message)


def test_members_stand_in_the_order_of_their_fields() -> None:
    shape = plan(
        descriptor("""
        message M {
          option (json_message).constants = {key: "object" value: "m"};
          string b = 2;
          oneof u { option (json_oneof).by_type = true; string s = 3; int32 i = 4; }
          string a = 1;
          string rest = 9 [(json_field).additional = true];
        }""")
    )
    assert shape.keys == ("object", "b", "u", "a")
    assert shape.additional == "rest"
    assert shape.union is None


def test_an_optional_field_is_no_union() -> None:
    (member,) = plan(descriptor("message M { optional string a = 1; }")).members
    assert isinstance(member, Field)
    assert member.presence


def test_a_tagged_union_has_the_key_of_its_tag() -> None:
    shape = plan(
        descriptor("""
        message A { string x = 1; }
        message M {
          int64 n = 1;
          oneof kind {
            option (json_oneof).tag = "type";
            A a = 2 [(json_field) = {tag: "the.a" implied_by: "x"}];
            A b = 3;
          }
        }""")
    )
    assert shape.keys == ("n", "type")
    assert shape.union is shape.members[1]
    assert isinstance(shape.union, Oneof)
    assert not shape.union.by_type
    assert [(arm.tag, arm.implied_by) for arm in shape.union.arms] == [("the.a", "x"), ("b", "")]


def test_an_enums_strings_are_its_names_without_their_prefix() -> None:
    (member,) = plan(
        descriptor("""
        enum ImageDetail {
          IMAGE_DETAIL_UNSPECIFIED = 0;
          IMAGE_DETAIL_LOW = 1;
          IMAGE_DETAIL_VERY_HIGH = 2;
          IMAGE_DETAIL_ODD = 3 [(json_name) = "Odd-One"];
        }
        message M { ImageDetail detail = 1; }""")
    ).members
    assert isinstance(member, Field)
    assert member.strings == {1: "low", 2: "very_high", 3: "Odd-One"}


def test_a_field_may_accept_some_of_an_enums_values_only() -> None:
    (member,) = plan(
        descriptor("""
        enum E { E_UNSPECIFIED = 0; E_A = 1; E_B = 2; E_C = 3; }
        message M { E e = 1 [(rules).values = "a", (rules).values = "c"]; }""")
    ).members
    assert isinstance(member, Field)
    assert member.strings == {1: "a", 3: "c"}


def test_a_rule_that_is_zero_is_a_rule() -> None:
    (member,) = plan(
        descriptor("message M { int32 a = 1 [(rules).min = 0, (rules).max = 0]; }")
    ).members
    assert isinstance(member, Field)
    assert member.rules is not None
    assert (member.rules.min, member.rules.max, member.rules.max_length) == (0, 0, None)


@pytest.mark.parametrize(
    ("kind", "bounds"),
    [
        ("int32", (-(2**31), 2**31 - 1)),
        ("uint32", (0, 2**32 - 1)),
        ("int64", (-(2**63), 2**63 - 1)),
        ("uint64", (0, 2**64 - 1)),
    ],
)
def test_an_integer_has_the_bounds_of_its_type(kind: str, bounds: tuple[int, int]) -> None:
    (member,) = plan(descriptor(f"message M {{ {kind} a = 1; }}")).members
    assert isinstance(member, Field)
    assert member.bounds == bounds


def test_a_dump_has_a_line_for_every_fact() -> None:
    schema = compiled("""
        enum E { E_UNSPECIFIED = 0; E_A = 1; E_B = 2; }
        message A { string x = 1 [(json_field).required = true]; }
        message L { option (json_message).bare = true; repeated A a = 1; }
        message M {
          option (json_message).constants = {key: "object" value: "m"};
          E e = 1;
          optional string s = 2 [(json_field) = {name: "es" emit_null: true secret: true}];
          map<string, string> m = 3 [(json_field) = {raw: true omit_empty: true}];
          oneof kind {
            option (json_oneof).tag = "type";
            A a = 4 [(json_field) = {tag: "the.a" implied_by: "x"}];
            string rest = 5 [(json_field).raw = true];
          }
        }
        message N {
          oneof u {
            option (json_oneof) = {by_type: true emit_null: true required: true};
            string t = 1 [(rules).values = "p", (rules).values = "q"];
            L l = 2;
          }
          string other = 3 [(json_field).additional = true];
        }""")
    package = schema.M.DESCRIPTOR.file.package
    lines = [
        line.replace(f"{package}.", "")
        for message in (schema.L, schema.M, schema.N)
        for line in dump(message.DESCRIPTOR)
    ]
    assert lines == [
        "L bare",
        "L field a key=a repeated A",
        "M constant object=m",
        "M field e key=e E",
        "M value e 1=a",
        "M value e 2=b",
        "M field s key=es string presence emit_null secret",
        "M field m key=m map<raw> omit_empty",
        "M oneof kind tag=type",
        "M arm kind.a A tag=the.a implied_by=x",
        "M arm kind.rest raw",
        "N additional other",
        "N oneof u by_type emit_null required",
        "N arm u.t string",
        "N value t p",
        "N value t q",
        "N arm u.l L",
    ]
