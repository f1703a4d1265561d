import json
from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message as ProtoMessage
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.json import check, decode, encode, redact
from antiphon.v1 import json_pb2
from tests.json.golden import descriptors
from tests.support.mapping import value_of
from tests.support.strategies import messages

# Every message has its own test, so that a few examples of each are many of the schema.
EXAMPLES = 6


def whole(value: Any) -> Any:
    """Makes typed decimals that are whole the integers that they are printed as."""
    return json.loads(json.dumps(value), parse_float=_number)


def _number(text: str) -> float:
    number = float(text)
    return int(number) if number.is_integer() else number


def copy_of(message: ProtoMessage) -> ProtoMessage:
    copy = type(message)()
    copy.CopyFrom(message)
    return copy


@pytest.mark.parametrize("kind", descriptors(), ids=lambda kind: kind.name)
@settings(max_examples=EXAMPLES)
@given(st.data())
def test_a_message_goes_to_json_and_back(kind: Descriptor, data: st.DataObject) -> None:
    message = data.draw(messages(kind))
    text = encode(message)
    assert text.splitlines() == [text]
    value = value_of(message)
    assert whole(json.loads(text)) == whole(value)

    checked = copy_of(message)
    check(checked)
    assert checked == message

    open_one = copy_of(message)
    redact(open_one)
    assert encode(open_one) == text
    if open_one == message:
        read = decode(GetMessageClass(kind), text)
        assert read == message
        assert encode(read) == text
        # Spaces, escapes and decimals that are whole change nothing.
        assert decode(GetMessageClass(kind), json.dumps(value, indent=1)) == message


def holds_secrets(kind: Descriptor) -> bool:
    """Whether a field of a message, or of one that it holds itself, is secret."""
    fields = [
        *kind.fields,
        *(f for each in kind.fields if each.message_type for f in each.message_type.fields),
    ]
    return any(field.GetOptions().Extensions[json_pb2.json_field].secret for field in fields)


@pytest.mark.parametrize(
    "kind", [*filter(holds_secrets, descriptors())], ids=lambda kind: kind.name
)
@settings(max_examples=20)
@given(st.data())
def test_a_secret_is_nowhere(kind: Descriptor, data: st.DataObject) -> None:
    message = data.draw(messages(kind, secrets=True))
    assert whole(json.loads(encode(message))) == whole(value_of(message))
    redact(message)
    assert [*secrets_in(message)] == []


def secrets_in(message: ProtoMessage) -> Iterator[str]:
    """Yields the names of the secret fields that are set, at any depth."""
    for field, value in message.ListFields():
        if field.GetOptions().Extensions[json_pb2.json_field].secret:
            yield field.full_name
        elif field.message_type is not None:
            is_map = field.message_type.GetOptions().map_entry
            if is_map and field.message_type.fields_by_name["value"].message_type is None:
                continue
            inside = value.values() if is_map else value if field.is_repeated else (value,)
            for each in inside:
                yield from secrets_in(each)
