import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.json import encode, one_line, quote, sections
from antiphon.json.plan import descriptor_of
from antiphon.v1.event_pb2 import ResponseStreamEvent
from antiphon.v1.message_pb2 import Message as ItemMessage
from antiphon.v1.message_pb2 import Role
from antiphon.v1.response_pb2 import Response
from tests.support.schema import compiled
from tests.support.strategies import messages

# Characters that break a line in some reader, or mean something to one, and lone signs of JSON.
AWKWARD = "\u2028\u2029\x85\n\r\t\x0b\x0c\x1c\x00\x1f\x7f\"\\/<>&'é😀\ufeff\u200b{}[],:"

SCHEMA: Any = compiled("""
    enum Colour { COLOUR_UNSPECIFIED = 0; COLOUR_RED = 1; COLOUR_DARK_BLUE = 2; }
    message Inner { string a = 1; }
    message List { option (json_message).bare = true; repeated Inner items = 1; }
    message Strings { option (json_message).bare = true; repeated string items = 1; }
    message Either {
      option (json_message).bare = true;
      oneof value { option (json_oneof).by_type = true; string text = 1; Inner inner = 2; }
    }

    message Scalars {
      string s = 1;
      bool b = 2;
      int64 i = 3;
      uint64 u = 4;
      double d = 5;
      Colour c = 6;
      string raw = 7 [(json_field).raw = true];
    }
    message Presence {
      optional string left_out = 1;
      optional string told = 2 [(json_field).emit_null = true];
      Inner inner_left_out = 3;
      Inner inner_told = 4 [(json_field).emit_null = true];
      optional Colour colour = 5 [(json_field).emit_null = true];
    }
    message Empty {
      repeated string list = 1;
      map<string, string> map = 2;
      repeated string list_left_out = 3 [(json_field).omit_empty = true];
      map<string, string> map_left_out = 4 [(json_field).omit_empty = true];
    }
    message Maps {
      map<string, int64> numbers = 1 [(json_field).omit_empty = true];
      map<string, Inner> inners = 2 [(json_field).omit_empty = true];
      map<string, string> raws = 3 [(json_field) = {raw: true omit_empty: true}];
    }
    message Lists {
      repeated Inner inners = 1 [(json_field).omit_empty = true];
      repeated double doubles = 2 [(json_field).omit_empty = true];
      repeated Colour colours = 3 [(json_field).omit_empty = true];
      repeated string raws = 4 [(json_field) = {raw: true omit_empty: true}];
    }
    message Ordered {
      option (json_message).constants = {key: "object" value: "thing"};
      option (json_message).constants = {key: "another" value: "x"};
      string id = 1;
      string z = 2;
      string a = 3;
    }
    message NoId {
      option (json_message).constants = {key: "object" value: "thing"};
      string z = 1;
    }
    message Named { string field = 1 [(json_field).name = "the-key"]; }
    message Additional {
      string a = 1;
      string rest = 2 [(json_field).additional = true];
    }
    message OnlyAdditional { string rest = 1 [(json_field).additional = true]; }
    message Secret {
      string name = 1;
      optional string token = 2 [(json_field).secret = true];
      map<string, string> headers = 3 [(json_field).secret = true];
    }
    message Tagged {
      int64 number = 1;
      oneof kind {
        option (json_oneof).tag = "type";
        Inner inner = 2;
        Inner other = 3 [(json_field).tag = "an.other"];
        Additional open = 4;
        string unknown = 5 [(json_field).raw = true];
      }
    }
    message ByType {
      oneof value {
        option (json_oneof).by_type = true;
        string text = 1;
        bool flag = 2;
        double number = 3;
        List list = 4;
        Inner inner = 5;
        string rest = 6 [(json_field).raw = true];
      }
      oneof told {
        option (json_oneof) = {by_type: true emit_null: true};
        string word = 7;
      }
    }
""")


def test_a_document_is_one_line_without_spaces() -> None:
    message = SCHEMA.Lists(inners=[{"a": "x"}, {"a": "y"}], doubles=[1, 2.5])
    assert encode(message) == '{"inners":[{"a":"x"},{"a":"y"}],"doubles":[1,2.5]}'


def test_scalars_without_presence_are_always_printed() -> None:
    message = SCHEMA.Scalars(c="COLOUR_RED", raw="[]")
    assert encode(message) == '{"s":"","b":false,"i":0,"u":0,"d":0,"c":"red","raw":[]}'


def test_scalars_are_printed_as_json_has_them() -> None:
    message = SCHEMA.Scalars(
        s="x", b=True, i=-5, u=2**64 - 1, d=0.5, c="COLOUR_DARK_BLUE", raw='{"b":1.0,"a":2}'
    )
    assert encode(message) == (
        '{"s":"x","b":true,"i":-5,"u":18446744073709551615,"d":0.5,"c":"dark_blue",'
        '"raw":{"b":1.0,"a":2}}'
    )


@pytest.mark.parametrize("number", [2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)])
def test_integers_of_64_bits_keep_every_digit(number: int) -> None:
    assert f'"i":{number},' in encode(SCHEMA.Scalars(i=number, c=1, raw="0"))


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1.0, "1"),
        (0.0, "0"),
        (-0.0, "0"),
        (-3.0, "-3"),
        (0.1, "0.1"),
        (1e-7, "1e-07"),
        (123456789.0, "123456789"),
        (1e14, "100000000000000"),
        (1e300, "1e+300"),
        (5e-324, "5e-324"),
    ],
)
def test_a_whole_number_is_printed_as_an_integer(number: float, text: str) -> None:
    printed = encode(SCHEMA.Lists(doubles=[number]))
    assert printed == f'{{"doubles":[{text}]}}'
    assert json.loads(printed)["doubles"][0] == number


@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan])
def test_a_number_that_json_does_not_have_is_an_error(number: float) -> None:
    with pytest.raises(ValueError, match="not finite"):
        encode(SCHEMA.Lists(doubles=[number]))


@pytest.mark.parametrize("number", [0, 99])
def test_an_enum_without_a_string_is_an_error(number: int) -> None:
    with pytest.raises(ValueError, match="no value"):
        encode(SCHEMA.Lists(colours=[number]))


def test_what_is_not_set_is_left_out_or_null() -> None:
    assert encode(SCHEMA.Presence()) == '{"told":null,"inner_told":null,"colour":null}'


def test_what_is_set_is_printed_even_when_it_is_empty() -> None:
    message = SCHEMA.Presence(
        left_out="", told="", inner_left_out={}, inner_told={}, colour="COLOUR_RED"
    )
    assert encode(message) == (
        '{"left_out":"","told":"","inner_left_out":{"a":""},"inner_told":{"a":""},"colour":"red"}'
    )


def test_an_empty_list_and_map_are_printed_unless_they_are_left_out() -> None:
    assert encode(SCHEMA.Empty()) == '{"list":[],"map":{}}'


def test_members_of_a_map_come_in_the_order_of_their_keys() -> None:
    message = SCHEMA.Maps(numbers={"b": 2, "a": 1, "B": 3, "": 0, "é": 4})
    assert encode(message) == '{"numbers":{"":0,"B":3,"a":1,"b":2,"é":4}}'


def test_maps_hold_objects_and_documents_too() -> None:
    message = SCHEMA.Maps(inners={"y": {"a": "1"}, "x": {}}, raws={"b": "[1,1.0]", "a": "null"})
    assert encode(message) == (
        '{"inners":{"x":{"a":""},"y":{"a":"1"}},"raws":{"a":null,"b":[1,1.0]}}'
    )


def test_a_key_of_a_map_is_a_string_like_any_other() -> None:
    printed = encode(SCHEMA.Maps(numbers={AWKWARD: 1}))
    assert json.loads(printed) == {"numbers": {AWKWARD: 1}}
    assert printed.splitlines() == [printed]


def test_lists_hold_enums_and_documents_too() -> None:
    message = SCHEMA.Lists(colours=[1, 2], raws=["{}", "1.0", '"x"'])
    assert encode(message) == '{"colours":["red","dark_blue"],"raws":[{},1.0,"x"]}'


def test_the_id_comes_first_then_the_constants_then_the_members_in_their_order() -> None:
    assert encode(SCHEMA.Ordered(id="1", z="2", a="3")) == (
        '{"id":"1","another":"x","object":"thing","z":"2","a":"3"}'
    )
    assert encode(SCHEMA.NoId(z="2")) == '{"object":"thing","z":"2"}'


def test_a_member_has_the_key_that_its_options_say() -> None:
    assert encode(SCHEMA.Named(field="x")) == '{"the-key":"x"}'


def test_a_bare_message_is_its_only_value() -> None:
    assert encode(SCHEMA.List(items=[{"a": "x"}])) == '[{"a":"x"}]'
    assert encode(SCHEMA.List()) == "[]"
    assert encode(SCHEMA.Strings(items=["x", "y"])) == '["x","y"]'
    assert encode(SCHEMA.Either(text="x")) == '"x"'
    assert encode(SCHEMA.Either(inner={"a": "x"})) == '{"a":"x"}'
    assert encode(SCHEMA.Either()) == "null"


def test_unknown_members_follow_those_of_the_schema() -> None:
    message = SCHEMA.Additional(a="x", rest='{"z":1.0,"y":[2]}')
    assert encode(message) == '{"a":"x","z":1.0,"y":[2]}'
    assert encode(SCHEMA.OnlyAdditional(rest='{"z":1}')) == '{"z":1}'


@pytest.mark.parametrize("rest", ["", "{}"])
def test_no_unknown_members_leave_no_trace(rest: str) -> None:
    assert encode(SCHEMA.Additional(a="x", rest=rest)) == '{"a":"x"}'
    assert encode(SCHEMA.OnlyAdditional(rest=rest)) == "{}"


def test_a_secret_is_not_printed() -> None:
    message = SCHEMA.Secret(name="x", token="hunter2", headers={"key": "hunter2"})
    assert encode(message) == '{"name":"x"}'


def test_a_tagged_arm_stands_in_its_object_after_the_common_members() -> None:
    assert encode(SCHEMA.Tagged(number=7, inner={"a": "x"})) == (
        '{"type":"inner","number":7,"a":"x"}'
    )


def test_an_arm_has_the_discriminator_that_its_options_say() -> None:
    assert encode(SCHEMA.Tagged(other={"a": "x"})) == '{"type":"an.other","number":0,"a":"x"}'


def test_an_arm_can_have_unknown_members() -> None:
    message = SCHEMA.Tagged(open={"a": "x", "rest": '{"b":1}'})
    assert encode(message) == '{"type":"open","number":0,"a":"x","b":1}'


def test_an_unknown_arm_is_its_own_object() -> None:
    message = SCHEMA.Tagged(number=7, unknown='{"x":[1.0],"type":"x_invented"}')
    assert json.loads(encode(message)) == {"type": "x_invented", "number": 7, "x": [1.0]}


@pytest.mark.parametrize(
    ("arm", "value", "text"),
    [
        ("text", "x", '"x"'),
        ("text", "", '""'),
        ("flag", False, "false"),
        ("number", 2.0, "2"),
        ("list", {"items": [{"a": "x"}]}, '[{"a":"x"}]'),
        ("list", {}, "[]"),
        ("inner", {"a": "x"}, '{"a":"x"}'),
        ("rest", "[1,1.0]", "[1,1.0]"),
    ],
)
def test_a_union_by_type_is_the_value_of_its_arm(arm: str, value: Any, text: str) -> None:
    assert encode(SCHEMA.ByType(**{arm: value})) == f'{{"value":{text},"told":null}}'


def test_a_union_without_an_arm_is_left_out_or_null() -> None:
    assert encode(SCHEMA.ByType()) == '{"told":null}'
    assert encode(SCHEMA.ByType(word="x")) == '{"told":"x"}'


# Strings.


@pytest.mark.parametrize("character", AWKWARD, ids=ascii)
def test_no_character_breaks_the_line_of_an_event_stream(character: str) -> None:
    for printed in (one_line(quote(character)), encode(SCHEMA.Inner(a=character))):
        assert len(f"{printed}.".splitlines()) == 1


@pytest.mark.parametrize(
    ("character", "escape"),
    [("\u2028", "\\u2028"), ("\u2029", "\\u2029"), ("\x85", "\\u0085"), ("\n", "\\n")],
    ids=ascii,
)
def test_a_line_separator_is_escaped_in_strings_and_documents_and_keys(
    character: str, escape: str
) -> None:
    assert one_line(quote(f"a{character}b")) == f'"a{escape}b"'
    raw = f'{{"x{character}":"{character}"}}' if character != "\n" else '{"x\\n":"\\n"}'
    message = SCHEMA.Tagged(open={"a": character, "rest": raw})
    printed = encode(message)
    assert printed.count(escape) == 3
    assert character not in printed


def test_characters_beyond_ascii_stay_as_they_are() -> None:
    assert quote("é😀") == '"é😀"'
    assert encode(SCHEMA.Inner(a="é😀")) == '{"a":"é😀"}'


@given(st.text())
def test_a_quoted_text_reads_as_the_same_text(text: str) -> None:
    assert json.loads(quote(text)) == text
    assert encode(SCHEMA.Inner(a=text)) == f'{{"a":{one_line(quote(text))}}}'


# What is printed does not depend on what was printed before.


def test_a_message_is_printed_the_same_way_every_time() -> None:
    message = SCHEMA.Tagged(inner={"a": "x"})
    assert encode(message) == encode(message)
    assert encode(SCHEMA.Tagged(other={"a": "x"})) == '{"type":"an.other","number":0,"a":"x"}'


def test_printing_changes_nothing() -> None:
    message = SCHEMA.Presence()
    encode(message)
    assert message == SCHEMA.Presence()
    assert not message.HasField("inner_told")


def test_messages_of_the_schema_are_printed_too() -> None:
    message = ItemMessage(id="msg_1", role=Role.ROLE_USER, content_text="hi")
    assert encode(message) == '{"id":"msg_1","role":"user","content":"hi"}'
    event = ResponseStreamEvent(sequence_number=3)
    event.output_text_done.text = "x"
    assert encode(event).startswith('{"type":"response.output_text.done","sequence_number":3,')


@given(st.data())
def test_a_message_is_its_sections(data: st.DataObject) -> None:
    message = data.draw(messages(descriptor_of(Response), depth=2))
    assert isinstance(message, Response)
    printed = [section(message) for section in sections(Response, ["output", "background"])]
    assert "".join(printed) == encode(message)
    assert printed[0].startswith('{"id":')
    assert printed[1].startswith(',"output":[')
    assert printed[2].startswith(',"background":')
