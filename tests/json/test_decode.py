import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.json import InvalidValue, check, decode, encode
from antiphon.json.raw import MAX_DEPTH
from antiphon.v1.responses_service_pb2 import CreateResponseRequest
from tests.support.schema import compiled

SCHEMA: Any = compiled("""
    enum Colour { COLOUR_UNSPECIFIED = 0; COLOUR_RED = 1; COLOUR_BLUE = 2; }
    message Inner { string a = 1; }
    message Open { string a = 1; string rest = 2 [(json_field).additional = true]; }
    message List { option (json_message).bare = true; repeated Inner items = 1; }

    message M {
      string s = 1;
      bool b = 2;
      int32 i32 = 3;
      int64 i64 = 4;
      uint32 u32 = 5;
      uint64 u64 = 6;
      double d = 7;
      optional Colour c = 8;
      optional string raw = 9 [(json_field).raw = true];
      optional string o = 10;
      Inner inner = 11;
      repeated string strings = 12;
      repeated Inner inners = 13;
      repeated int32 ints = 14;
      repeated double doubles = 15;
      map<string, string> map = 16;
      map<string, Inner> inner_map = 17;
      map<string, double> double_map = 18;
      List list = 19;
      Open open = 20;
      repeated string raws = 21 [(json_field).raw = true];
      map<string, string> raw_map = 22 [(json_field).raw = true];
      string named = 23 [(json_field).name = "the-key"];
      optional string object = 24 [(json_field).raw = true, (rules).object = true];
      optional Colour only_red = 25 [(rules).values = "red"];
      Unions unions = 26;
    }
    message Unions {
      oneof value {
        option (json_oneof).by_type = true;
        string text = 1;
        bool flag = 2;
        int64 number = 3;
        List list = 4;
      }
      oneof any {
        option (json_oneof).by_type = true;
        string word = 5;
        string rest = 6 [(json_field).raw = true];
      }
    }
    message Required {
      string s = 1 [(json_field).required = true];
      Inner inner = 2 [(json_field).required = true];
      oneof u { option (json_oneof) = {by_type: true required: true}; string text = 3; }
    }
    message Rules {
      optional int32 from_1_to_9 = 1 [(rules) = {min: 1 max: 9}];
      optional double from_0_to_half = 2 [(rules) = {min: 0 max: 0.5}];
      optional string length_2_to_3 = 3 [(rules) = {min_length: 2 max_length: 3}];
      optional string pattern = 4 [(rules).pattern = "[a-z]{1,3}"];
      optional string values = 5 [(rules).values = "x", (rules).values = "y"];
      repeated string list = 6 [(rules) = {min_length: 1 max_length: 2}];
      map<string, string> map = 7 [(rules) = {
        max_length: 1 max_key_length: 2 max_value_length: 3
      }];
      repeated string each = 8 [(rules).values = "x"];
      optional int64 large = 9 [(rules) = {min: 1234567 max: 12345678}];
    }
    message Thing {
      option (json_message).constants = {key: "object" value: "thing"};
      string a = 1;
    }
    message Holder { Thing thing = 1; Kind kind = 2; Closed closed = 3; Implied implied = 4; }
    message Kind {
      oneof kind {
        option (json_oneof).tag = "type";
        Inner inner = 1;
        Open open = 2 [(json_field).tag = "an.open"];
        string unknown = 3 [(json_field).raw = true];
      }
    }
    message Closed {
      oneof kind { option (json_oneof).tag = "type"; Inner one = 1; Inner two = 2; }
    }
    message Implied {
      oneof kind {
        option (json_oneof).tag = "type";
        Open message = 1 [(json_field).implied_by = "a"];
        Reference reference = 2 [(json_field).implied_by = "id"];
        string unknown = 3 [(json_field).raw = true];
      }
    }
    message Reference { string id = 1; string rest = 2 [(json_field).additional = true]; }
    message Common {
      int64 number = 1;
      oneof kind {
        option (json_oneof).tag = "type";
        Inner inner = 2;
        Open open = 3;
        string unknown = 4 [(json_field).raw = true];
      }
    }
    message CommonHolder { Common common = 1; }
""")

M = SCHEMA.M
SECRET = "hunter2"


def read(text: str, message: Any = M) -> Any:
    return decode(message, text)


def refusal(text: str | bytes, message: Any = M, *, strict: bool = False) -> InvalidValue:
    with pytest.raises(InvalidValue) as caught:
        decode(message, text, strict=strict)
    return caught.value


def told(error: InvalidValue) -> tuple[str | None, str, str]:
    return error.param, error.code, error.message


# Values.


def test_every_kind_of_value_is_read() -> None:
    assert read(
        '{"s":"x","b":true,"i32":-1,"i64":9223372036854775807,"u32":4294967295,'
        '"u64":18446744073709551615,"d":0.5,"c":"blue","raw":{"b" : 1.0},"o":"","inner":{"a":"y"},'
        '"strings":["x",""],"inners":[{},{"a":"z"}],"ints":[1,-1],"doubles":[1,0.5],'
        '"map":{"k":"v"},"inner_map":{"k":{"a":"x"}},"double_map":{"k":2},"list":[{"a":"x"}],'
        '"raws":[1,"x"],"raw_map":{"k":[ ]},"the-key":"n","object":{},"only_red":"red"}'
    ) == M(
        s="x",
        b=True,
        i32=-1,
        i64=2**63 - 1,
        u32=2**32 - 1,
        u64=2**64 - 1,
        d=0.5,
        c="COLOUR_BLUE",
        raw='{"b":1.0}',
        o="",
        inner={"a": "y"},
        strings=["x", ""],
        inners=[{}, {"a": "z"}],
        ints=[1, -1],
        doubles=[1, 0.5],
        map={"k": "v"},
        inner_map={"k": {"a": "x"}},
        double_map={"k": 2},
        list={"items": [{"a": "x"}]},
        raws=["1", '"x"'],
        raw_map={"k": "[]"},
        named="n",
        object="{}",
        only_red="COLOUR_RED",
    )


def test_text_and_bytes_are_read_alike() -> None:
    assert read('{"s":"é😀"}') == decode(M, '{"s":"é😀"}'.encode()) == M(s="é😀")


def test_escapes_are_read() -> None:
    assert read('{"s":"\\u00e9\\ud83d\\ude00\\n\\/"}') == M(s="é😀\n/")


def test_an_empty_object_sets_nothing() -> None:
    assert read("{}") == M()
    assert not read("{}").HasField("o")


def test_null_is_as_good_as_missing() -> None:
    keys = ("s", "b", "i32", "d", "c", "raw", "o", "inner", "strings", "map", "list", "object")
    assert read("{" + ",".join(f'"{key}":null' for key in keys) + "}") == M()


def test_an_empty_string_is_not_missing() -> None:
    assert read('{"o":""}').HasField("o")


def test_of_a_repeated_key_the_last_one_counts() -> None:
    assert read('{"s":"x","s":"y"}') == M(s="y")


@pytest.mark.parametrize(
    ("member", "value", "expected", "found"),
    [
        ("s", "1", "a string", "an integer"),
        ("s", "true", "a string", "a boolean"),
        ("s", "[]", "a string", "an array"),
        ("b", "1", "a boolean", "an integer"),
        ("b", '"true"', "a boolean", "a string"),
        ("i32", "true", "an integer", "a boolean"),
        ("i32", "1.0", "an integer", "a decimal number"),
        ("i32", '"1"', "an integer", "a string"),
        ("i64", "1e3", "an integer", "a decimal number"),
        ("d", "false", "a number", "a boolean"),
        ("d", '"1"', "a number", "a string"),
        ("c", "1", "a string", "an integer"),
        ("c", "{}", "a string", "an object"),
        ("inner", "[]", "an object", "an array"),
        ("inner", '"x"', "an object", "a string"),
        ("strings", '"x"', "an array", "a string"),
        ("strings", "{}", "an array", "an object"),
        ("map", "[]", "an object", "an array"),
        ("list", "{}", "an array", "an object"),
        ("object", "[]", "an object", "an array"),
        ("object", '"x"', "an object", "a string"),
        ("raws", "{}", "an array", "an object"),
        ("raw_map", "[]", "an object", "an array"),
    ],
)
def test_a_value_of_a_wrong_type_is_refused(
    member: str, value: str, expected: str, found: str
) -> None:
    assert told(refusal(f'{{"{member}":{value}}}')) == (
        member,
        "invalid_type",
        f"'{member}' must be {expected}, not {found}.",
    )


@pytest.mark.parametrize(
    ("text", "param", "expected"),
    [
        ('{"strings":["x",1]}', "strings[1]", "a string, not an integer"),
        ('{"strings":[null]}', "strings[0]", "a string, not null"),
        ('{"ints":[1,2,1.5]}', "ints[2]", "an integer, not a decimal number"),
        ('{"doubles":[true]}', "doubles[0]", "a number, not a boolean"),
        ('{"inners":[{},[]]}', "inners[1]", "an object, not an array"),
        ('{"inners":[null]}', "inners[0]", "an object, not null"),
        ('{"inners":[{},{"a":1}]}', "inners[1].a", "a string, not an integer"),
        ('{"map":{"k":1}}', "map.k", "a string, not an integer"),
        ('{"map":{"k":null}}', "map.k", "a string, not null"),
        ('{"inner_map":{"k":{"a":1}}}', "inner_map.k.a", "a string, not an integer"),
        ('{"double_map":{"k":"x"}}', "double_map.k", "a number, not a string"),
        ('{"list":[{"a":1}]}', "list[0].a", "a string, not an integer"),
        ('{"inner":{"a":1}}', "inner.a", "a string, not an integer"),
        ('{"open":{"a":1}}', "open.a", "a string, not an integer"),
        ('{"unions":{"value":[{"a":1}]}}', "unions.value[0].a", "a string, not an integer"),
    ],
)
def test_the_path_leads_to_the_value(text: str, param: str, expected: str) -> None:
    assert told(refusal(text)) == (param, "invalid_type", f"'{param}' must be {expected}.")


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("i32", str(2**31)),
        ("i32", str(-(2**31) - 1)),
        ("i64", str(2**63)),
        ("i64", str(2**64 + 1)),
        ("i64", "9" * 30),
        ("u32", "-1"),
        ("u32", str(2**32)),
        ("u64", "-1"),
        ("u64", str(2**64)),
        ("d", "9" * 400),
    ],
)
def test_a_number_beyond_its_type_is_refused(member: str, value: str) -> None:
    assert told(refusal(f'{{"{member}":{value}}}')) == (
        member,
        "invalid_value",
        f"'{member}' is out of range.",
    )


def test_numbers_in_lists_and_maps_are_bounded_too() -> None:
    assert told(refusal(f'{{"ints":[0,{2**31}]}}'))[:2] == ("ints[1]", "invalid_value")
    assert told(refusal(f'{{"doubles":[{"9" * 400}]}}'))[:2] == ("doubles[0]", "invalid_value")
    assert told(refusal(f'{{"double_map":{{"k":{"9" * 400}}}}}'))[:2] == (
        "double_map.k",
        "invalid_value",
    )


@pytest.mark.parametrize("number", [2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)])
def test_integers_of_64_bits_keep_every_digit(number: int) -> None:
    assert read(f'{{"i64":{number}}}').i64 == number


def test_a_string_that_an_enum_does_not_have_is_refused() -> None:
    assert told(refusal(f'{{"c":"{SECRET}"}}')) == (
        "c",
        "invalid_value",
        "'c' must be one of 'red', 'blue'.",
    )
    assert refusal('{"c":"COLOUR_RED"}').param == "c"
    assert refusal('{"c":"unspecified"}').param == "c"
    assert refusal('{"c":""}').param == "c"


def test_a_field_may_accept_some_of_an_enums_strings_only() -> None:
    assert refusal('{"only_red":"blue"}').message == "'only_red' must be one of 'red'."


# Missing members.


@pytest.mark.parametrize("null", ["", '"{0}":null,'], ids=["missing", "null"])
@pytest.mark.parametrize("member", ["s", "inner", "u"])
def test_a_required_member_that_is_missing_is_named(member: str, null: str) -> None:
    members = {"s": '"s":""', "inner": '"inner":{}', "u": '"u":"x"'}
    del members[member]
    text = "{" + null.format(member) + ",".join(members.values()) + "}"
    assert told(refusal(text, SCHEMA.Required)) == (
        member,
        "missing_required_parameter",
        f"Missing required parameter: '{member}'.",
    )


# Unknown members.


def test_unknown_members_of_the_outermost_object_are_ignored() -> None:
    assert read('{"s":"x","x_invented":{"a":[1]}}') == M(s="x")


def test_unknown_members_of_the_outermost_object_can_be_refused() -> None:
    assert told(refusal('{"s":"x","x_invented":1}', strict=True)) == (
        "x_invented",
        "unknown_parameter",
        "Unknown parameter: 'x_invented'.",
    )
    assert decode(M, '{"s":"x","o":null,"the-key":"n"}', strict=True) == M(s="x", named="n")


def test_unknown_members_of_an_outermost_union_can_be_refused() -> None:
    kind = SCHEMA.Kind
    assert decode(kind, '{"type":"inner","a":"x"}', strict=True) == kind(inner={"a": "x"})
    assert refusal('{"type":"inner","x_invented":1}', kind, strict=True).param == "x_invented"
    assert decode(kind, '{"type":"inner","x_invented":1}') == kind(inner={})


def test_the_name_of_a_field_is_no_key_if_it_has_another_one() -> None:
    assert refusal('{"named":"x"}', strict=True).param == "named"


def test_unknown_members_further_in_are_refused_where_they_have_no_place() -> None:
    assert told(refusal('{"inner":{"a":"x","x_invented":1}}')) == (
        "inner.x_invented",
        "unknown_parameter",
        "Unknown parameter: 'inner.x_invented'.",
    )
    assert refusal('{"inners":[{},{"x_invented":null}]}').param == "inners[1].x_invented"


def test_a_key_that_is_no_name_is_not_repeated() -> None:
    error = refusal('{"inner":{"' + SECRET + ' with \\n spaces":1}}')
    assert told(error) == ("inner", "unknown_parameter", "Unknown parameter in 'inner'.")
    error = refusal('{"' + SECRET + ' with spaces":1}', strict=True)
    assert told(error) == (None, "unknown_parameter", "Unknown parameter.")


def test_unknown_members_are_kept_where_they_have_a_place() -> None:
    text = '{"open":{"z":1.0,"a":"x","y":[2],"w":null}}'
    assert read(text) == M(open={"a": "x", "rest": '{"z":1.0,"y":[2],"w":null}'})


def test_null_members_of_the_schema_are_not_kept_as_unknown_ones() -> None:
    assert read('{"open":{"a":null}}') == M(open={})
    assert read('{"open":{"a":null,"z":1}}') == M(open={"rest": '{"z":1}'})


def test_constants_are_neither_unknown_nor_needed() -> None:
    assert read('{"thing":{"object":"thing","a":"x"}}', SCHEMA.Holder).thing.a == "x"
    assert read('{"thing":{"a":"x"}}', SCHEMA.Holder).thing.a == "x"
    assert decode(SCHEMA.Thing, '{"object":"thing"}', strict=True) == SCHEMA.Thing()


# Tagged unions.


def test_the_discriminator_chooses_the_arm() -> None:
    holder = read('{"kind":{"a":"x","type":"inner"}}', SCHEMA.Holder)
    assert holder.kind == SCHEMA.Kind(inner={"a": "x"})
    holder = read('{"kind":{"type":"an.open","z":1}}', SCHEMA.Holder)
    assert holder.kind == SCHEMA.Kind(open={"rest": '{"z":1}'})


def test_an_unknown_kind_is_kept_whole_and_in_its_order() -> None:
    text = '{"kind":{"z" : 1.0, "type":"x_invented", "a":[1, {"b":null}]}}'
    assert read(text, SCHEMA.Holder).kind.unknown == (
        '{"z":1.0,"type":"x_invented","a":[1,{"b":null}]}'
    )


def test_an_unknown_kind_is_refused_where_it_has_no_place() -> None:
    assert told(refusal('{"closed":{"type":"' + SECRET + '"}}', SCHEMA.Holder)) == (
        "closed.type",
        "invalid_value",
        "'closed.type' must be one of 'one', 'two'.",
    )


@pytest.mark.parametrize("null", ["", '"type":null'])
def test_an_object_without_a_discriminator_is_refused(null: str) -> None:
    assert told(refusal(f'{{"kind":{{{null}}}}}', SCHEMA.Holder)) == (
        "kind.type",
        "missing_required_parameter",
        "Missing required parameter: 'kind.type'.",
    )


def test_a_discriminator_is_a_string() -> None:
    assert told(refusal('{"kind":{"type":["inner"]}}', SCHEMA.Holder)) == (
        "kind.type",
        "invalid_type",
        "'kind.type' must be a string, not an array.",
    )


def test_a_union_is_an_object() -> None:
    assert refusal('{"kind":"inner"}', SCHEMA.Holder).message == (
        "'kind' must be an object, not a string."
    )


def test_an_arm_has_no_place_for_unknown_members_unless_it_says_so() -> None:
    error = refusal('{"kind":{"type":"inner","x_invented":1}}', SCHEMA.Holder)
    assert (error.param, error.code) == ("kind.x_invented", "unknown_parameter")


@pytest.mark.parametrize("null", ["", '"type":null,'], ids=["missing", "null"])
def test_a_member_can_stand_for_a_missing_discriminator(null: str) -> None:
    holder = read(f'{{"implied":{{{null}"a":"x","z":1}}}}', SCHEMA.Holder)
    assert holder.implied == SCHEMA.Implied(message={"a": "x", "rest": '{"z":1}'})
    holder = read(f'{{"implied":{{{null}"id":"x"}}}}', SCHEMA.Holder)
    assert holder.implied == SCHEMA.Implied(reference={"id": "x"})


def test_of_several_such_members_the_first_arms_counts() -> None:
    holder = read('{"implied":{"id":"1","a":"x"}}', SCHEMA.Holder)
    assert holder.implied == SCHEMA.Implied(message={"a": "x", "rest": '{"id":"1"}'})


def test_a_discriminator_stands_above_such_members() -> None:
    holder = read('{"implied":{"a":"x","type":"x_invented"}}', SCHEMA.Holder)
    assert holder.implied.unknown == '{"a":"x","type":"x_invented"}'
    holder = read('{"implied":{"id":"x","type":"reference"}}', SCHEMA.Holder)
    assert holder.implied.reference.id == "x"


def test_a_member_that_is_null_stands_for_no_discriminator() -> None:
    holder = read('{"implied":{"a":null,"id":"x"}}', SCHEMA.Holder)
    assert holder.implied == SCHEMA.Implied(reference={"id": "x", "rest": '{"a":null}'})


COMMON = {
    '{"type":"inner","number":3,"a":"x"}': {"number": 3, "inner": {"a": "x"}},
    '{"number":3,"type":"open","a":"x","z":1}': {
        "number": 3,
        "open": {"a": "x", "rest": '{"z":1}'},
    },
    '{"number":3,"type":"x_invented","z":1}': {
        "number": 3,
        "unknown": '{"type":"x_invented","z":1}',
    },
}


@pytest.mark.parametrize("text", COMMON)
def test_members_beside_a_union_are_read_with_any_of_its_arms(text: str) -> None:
    expected = SCHEMA.Common(**COMMON[text])
    assert read(text, SCHEMA.Common) == expected
    assert read(f'{{"common":{text}}}', SCHEMA.CommonHolder).common == expected
    assert json.loads(encode(expected)) == json.loads(text)


# Unions by type.


@pytest.mark.parametrize(
    ("value", "fields"),
    [
        ('"x"', {"text": "x"}),
        ("false", {"flag": False}),
        ("5", {"number": 5}),
        ('[{"a":"x"}]', {"list": {"items": [{"a": "x"}]}}),
        ("[]", {"list": {}}),
        ("null", {}),
    ],
)
def test_the_type_of_a_value_chooses_the_arm(value: str, fields: dict[str, Any]) -> None:
    assert read(f'{{"value":{value}}}', SCHEMA.Unions) == SCHEMA.Unions(**fields)


def test_a_value_that_no_arm_takes_is_refused() -> None:
    expected = "a string or a boolean or an integer or an array"
    assert told(refusal('{"value":{}}', SCHEMA.Unions)) == (
        "value",
        "invalid_type",
        f"'value' must be {expected}, not an object.",
    )


@pytest.mark.parametrize("value", ["1", "1.0", "true", "[1,1.0]", '{"b":{},"a":"x"}'])
def test_a_raw_arm_takes_what_no_other_takes(value: str) -> None:
    assert read(f'{{"any":{value}}}', SCHEMA.Unions) == SCHEMA.Unions(rest=value)


def test_a_raw_arm_leaves_the_other_arms_theirs() -> None:
    assert read('{"any":"x"}', SCHEMA.Unions) == SCHEMA.Unions(word="x")


# Rules.


@pytest.mark.parametrize(
    ("member", "value", "code", "reason"),
    [
        ("from_1_to_9", "0", "integer_below_min_value", "must be at least 1"),
        ("from_1_to_9", "10", "integer_above_max_value", "must be at most 9"),
        ("from_0_to_half", "-0.1", "decimal_below_min_value", "must be at least 0"),
        ("from_0_to_half", "1", "decimal_above_max_value", "must be at most 0.5"),
        ("length_2_to_3", '"a"', "string_below_min_length", "must have at least 2 characters"),
        ("length_2_to_3", '"abcd"', "string_above_max_length", "must have at most 3 characters"),
        ("pattern", '""', "invalid_value", "must match ^[a-z]{1,3}$"),
        ("pattern", '"abc\\n"', "invalid_value", "must match ^[a-z]{1,3}$"),
        ("pattern", '"1abc"', "invalid_value", "must match ^[a-z]{1,3}$"),
        ("values", '"z"', "invalid_value", "must be one of 'x', 'y'"),
        ("list", "[]", "array_below_min_length", "must have at least 1 elements"),
        ("list", '["","",""]', "array_above_max_length", "must have at most 2 elements"),
        (
            "map",
            '{"a":"","b":""}',
            "object_above_max_properties",
            "must have at most 1 members",
        ),
        ("map", '{"abc":""}', "string_above_max_length", "must have keys of at most 2 characters"),
        (
            "map",
            '{"a":"abcd"}',
            "string_above_max_length",
            "must have values of at most 3 characters",
        ),
        ("large", "1234566", "integer_below_min_value", "must be at least 1234567"),
        ("large", "12345679", "integer_above_max_value", "must be at most 12345678"),
    ],
)
def test_a_value_that_breaks_a_rule_is_refused(
    member: str, value: str, code: str, reason: str
) -> None:
    assert told(refusal(f'{{"{member}":{value}}}', SCHEMA.Rules)) == (
        member,
        code,
        f"'{member}' {reason}.",
    )


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("from_1_to_9", "1"),
        ("from_1_to_9", "9"),
        ("from_0_to_half", "0"),
        ("from_0_to_half", "0.5"),
        ("length_2_to_3", '"ab"'),
        ("length_2_to_3", '"😀😀😀"'),
        ("pattern", '"abc"'),
        ("values", '"y"'),
        ("list", '["",""]'),
        ("map", '{"ab":"abc"}'),
        ("each", '["x","x"]'),
        ("large", "1234567"),
        ("large", "12345678"),
    ],
)
def test_a_value_at_the_edge_of_a_rule_is_accepted(member: str, value: str) -> None:
    assert json.loads(encode(read(f'{{"{member}":{value}}}', SCHEMA.Rules)))[member] == json.loads(
        value
    )


def test_a_rule_of_a_list_holds_for_each_element() -> None:
    assert told(refusal('{"each":["x","' + SECRET + '"]}', SCHEMA.Rules)) == (
        "each[1]",
        "invalid_value",
        "'each[1]' must be 'x'.",
    )


# Raw documents.


@pytest.mark.parametrize(
    "document",
    [
        "9007199254740993",
        "18446744073709551617",
        "-123456789012345678901234567890",
        "1",
        "1.0",
        "[1,1.0,0.1]",
        '{"z":1,"a":{"c":2,"b":3}}',
        '{"":{}}',
        '"é😀"',
        "true",
        '[{"a":null}]',
    ],
)
def test_a_raw_document_keeps_its_numbers_and_the_order_of_its_keys(document: str) -> None:
    for text in (f'{{"raw":{document}}}', f'{{ "raw" : {document} }}'):
        assert read(text).raw == document
    assert encode(read(f'{{"raws":[{document}]}}')).count(document) == 1


def test_a_raw_document_is_compacted() -> None:
    assert read('{"raw": {\n "a" :\t[1 , 2]\r\n} }').raw == '{"a":[1,2]}'


def nested(depth: int, kind: str = "[]") -> str:
    head, tail = {"[]": ("[", "]"), "{}": ('{"a":', "}")}[kind]
    return head * (depth - 1) + kind + tail * (depth - 1)


@pytest.mark.parametrize("kind", ["[]", "{}"])
@pytest.mark.parametrize(
    "place",
    ['{{"raw":{}}}', '{{"raws":[{}]}}', '{{"raw_map":{{"k":{}}}}}', '{{"unions":{{"any":{}}}}}'],
)
def test_a_raw_document_may_be_nested_so_deep_and_no_deeper(place: str, kind: str) -> None:
    read(place.format(nested(MAX_DEPTH, kind)))
    error = refusal(place.format(nested(MAX_DEPTH + 1, kind)))
    assert error.code == "invalid_value"
    assert error.message == f"'{error.param}' is nested deeper than 128 levels."


@pytest.mark.parametrize("place", ['{{"open":{{"z":{}}}}}', '{{"z":{}}}'])
def test_unknown_members_may_be_nested_so_deep_and_no_deeper(place: str) -> None:
    # The object that has them counts too.
    read(place.format(nested(MAX_DEPTH - 1)))
    assert "nested deeper than 128 levels" in refusal(place.format(nested(MAX_DEPTH))).message


def test_an_unknown_kind_may_be_nested_so_deep_and_no_deeper() -> None:
    place = '{{"kind":{{"type":"x_invented","z":{}}}}}'
    read(place.format(nested(MAX_DEPTH - 1)), SCHEMA.Holder)
    error = refusal(place.format(nested(MAX_DEPTH)), SCHEMA.Holder)
    assert error.message == "'kind' is nested deeper than 128 levels."


def test_wide_is_not_deep() -> None:
    wide = "[" + ",".join(["[{}]"] * 1_000) + "]"
    assert read(f'{{"raw":{wide}}}').raw == wide


def test_brackets_in_strings_are_not_levels() -> None:
    document = json.dumps(['[{\\"' * 200, '"' * 3, "}]"] * 2, separators=(",", ":"))
    assert read(f'{{"raw":{document}}}').raw == document


@pytest.mark.parametrize("depth", [500, 1_000, 5_000, 100_000])
def test_a_body_nested_beyond_the_parser_is_refused(depth: int) -> None:
    for text in (nested(depth), f'{{"raw":{nested(depth)}}}', "[" * depth):
        error = refusal(text)
        assert error.code in ("invalid_value", "invalid_json", "invalid_type")


# What is not JSON.


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"{",
        b'{"s":"x"',
        b'{"s":"x"} {}',
        b'{"s":"x",}',
        b"{s:1}",
        b"{'s':'x'}",
        b'{"s":"a\nb"}',
        b'{"s":"\xff"}',
        b'{"s":"\xed\xa0\x80"}',
        b'\xef\xbb\xbf{"s":"x"}',
        '{"s":"x"}'.encode("utf-16"),
        b'{"i32":01}',
        b'{"i32":+1}',
        b'{"d":.5}',
        b'{"d":1.}',
        b'{"d":NaN}',
        b'{"d":Infinity}',
        b'{"d":-Infinity}',
        b'{"d":1e400}',
        b'{"raw":NaN}',
        b'{"raw":[1e400]}',
        b'{"raw":-1e999999999999}',
        b'{"raw":' + b"9" * 5_000 + b"}",
        b'{"s":"\\ud800"}',
        b'{"s":"\\udfff\\ud800"}',
        b'{"raw":"\\ud800"}',
        b'{"raw":{"\\ud800":1}}',
        b'{"\\ud800":1}',
        b'{"s":"\\x"}',
        b'{"s":"\\u12"}',
        b"nul",
    ],
    ids=lambda body: ascii(body[:30]),
)
def test_a_body_that_is_not_json_is_refused(body: bytes) -> None:
    assert told(refusal(body)) == (
        None,
        "invalid_json",
        "The request body is not valid JSON.",
    )


def test_a_lone_surrogate_in_text_is_refused() -> None:
    assert refusal('{"s":"\ud800"}').code == "invalid_json"


@pytest.mark.parametrize("body", ["[]", "null", '"x"', "1", "true"])
def test_a_body_is_an_object(body: str) -> None:
    error = refusal(body)
    assert (error.param, error.code) == (None, "invalid_type")
    assert error.message.startswith("The request body must be an object, not ")


@pytest.mark.parametrize("number", ["1e308", "1e-400", "0e999999", "-0.0"])
def test_a_large_exponent_that_is_a_number_is_accepted(number: str) -> None:
    assert read(f'{{"d":{number}}}').d == float(number)


# No error tells what was sent.


@pytest.mark.parametrize(
    "text",
    [
        '{{"s":["{0}"]}}',
        '{{"c":"{0}"}}',
        '{{"i32":"{0}"}}',
        '{{"map":{{"{0} {0}":1}}}}',
        '{{"inner":{{"{0}\\n":1}}}}',
        '{{"list":"{0}"}}',
        '{{"raw":"{0}',
        '{{"object":"{0}"}}',
        '{{"open":"{0}"}}',
        '{{"unions":{{"value":{{"{0}":1}}}}}}',
    ],
)
def test_no_error_repeats_a_value(text: str) -> None:
    error = refusal(text.format(SECRET))
    assert SECRET not in error.message
    assert SECRET not in (error.param or "")
    assert SECRET not in str(error)
    # Nor does the error that it came from, which a log would show.
    assert error.__cause__ is None
    assert (
        error.__context__ is None
        or error.__suppress_context__
        or SECRET not in str(error.__context__)
    )


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@settings(max_examples=40)
@given(st.dictionaries(st.sampled_from([*M.DESCRIPTOR.fields_by_name]), JSON))
def test_any_document_is_read_or_refused_by_name(document: dict[str, Any]) -> None:
    try:
        message = decode(M, json.dumps(document))
    except InvalidValue as error:
        refused = error
    else:
        assert decode(M, encode(message)) == message
        return
    assert refused.message.endswith(".")


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    try:
        request = decode(CreateResponseRequest, body)
    except InvalidValue as error:
        refused = error
    else:
        assert isinstance(json.loads(body), dict)
        check(request)
        return
    assert refused.code in ("invalid_json", "invalid_type", "invalid_value")
