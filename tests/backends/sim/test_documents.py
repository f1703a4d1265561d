import json
from typing import Any, Final

import jsonschema
import pytest

from antiphon.backends.documents.job import MAX_SCHEMA
from antiphon.core.errors import ApiError
from antiphon.core.output import Finished
from tests.backends.sim.asking import WEATHER, ask, text_config

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer", "minimum": 0},
        "mail": {"type": "string", "format": "email"},
    },
    "required": ["name", "age", "mail"],
    "additionalProperties": False,
}


async def test_a_document_fits_the_schema_and_is_about_the_message() -> None:
    answer = await ask("A person named Ada Lovelace, aged 36", text=text_config(PERSON))
    value = json.loads(answer.text)
    jsonschema.validate(value, PERSON)
    assert (value["name"], value["age"]) == ("Ada Lovelace", 36)
    assert list(value) == ["name", "age", "mail"]


async def test_a_document_is_written_in_pieces() -> None:
    answer = await ask("A person", text=text_config(PERSON))
    assert len(answer.deltas) > 2
    assert max(map(len, answer.deltas)) <= 20


async def test_a_document_follows_the_calls_of_tools() -> None:
    first = await ask("The weather in Paris?", tools=[WEATHER], text=text_config(PERSON))
    assert first.names == ["get_weather"]
    call = first.items[0].function_call
    items = [
        {"role": "user", "content": "The weather in Paris?"},
        {
            "type": "function_call",
            "call_id": call.call_id,
            "name": call.name,
            "arguments": call.arguments,
        },
        {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"},
    ]
    second = await ask(items, tools=[WEATHER], text=text_config(PERSON))
    jsonschema.validate(json.loads(second.text), PERSON)


async def test_a_json_object_holds_the_answer() -> None:
    answer = await ask("Say it in JSON", text={"format": {"type": "json_object"}})
    assert json.loads(answer.text) == {"answer": "You said: Say it in JSON"}


async def test_a_refusal_wins_over_a_document() -> None:
    answer = await ask("Refuse to answer", text=text_config(PERSON))
    assert not answer.text
    assert answer.refusal


@pytest.mark.parametrize("schema", [{"type": "nope"}, {"type": "object", "not": {}}])
async def test_a_schema_without_documents_is_an_error_of_the_request(schema: object) -> None:
    with pytest.raises(ApiError) as caught:
        await ask("Hello", text=text_config(schema))
    error = caught.value
    assert (error.param, error.code) == ("text.format.schema", "invalid_json_schema")
    assert error.kind.value.http == 400


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ('{"a": [1, {"b": null}]}', '{"a": [1, {"b": null}]}'),
        ("[1]", '{"answer":"[1]"}'),
        ("{", '{"answer":"{"}'),
        ("9" * 5_000, f'{{"answer":"{"9" * 5_000}"}}'),
    ],
)
async def test_an_object_that_is_repeated_is_the_answer_itself(said: str, told: str) -> None:
    answer = await ask(f"Repeat exactly: {said}", text={"format": {"type": "json_object"}})
    assert answer.text == told


NOTED: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "note": {"type": "string", "maxLength": 9}},
    "required": ["a"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("said", ['{"a":1}', '{ "note": "Zoë",\n  "a": 18446744073709551617 }'])
async def test_a_document_that_is_repeated_and_fits_is_the_answer_itself(said: str) -> None:
    answer = await ask(f"Be slow: 0 ms\nRepeat exactly: {said}", text=text_config(NOTED))
    assert answer.text == said
    assert isinstance(answer.end, Finished)


@pytest.mark.parametrize(
    "said",
    [
        '{"a":"1"}',
        '{"a":1,"b":2}',
        '{"a":1} ok',
        "{",
        "",
        "[1]",
        "9" * 5_000,
        '{"a":1e999}',
        "[" * 100_000,
        # Longer than anything that is worked on.
        f'{{"a":1{" " * MAX_SCHEMA}}}',
    ],
    ids=lambda said: said[:12],
)
async def test_what_is_repeated_and_does_not_fit_is_not_the_answer(said: str) -> None:
    answer = await ask(f"Repeat exactly: {said}", text=text_config(NOTED))
    assert answer.text != said
    jsonschema.validate(json.loads(answer.text), NOTED)


async def test_a_document_can_be_cut_short() -> None:
    text = {"type": "string", "minLength": 99}
    long = {"type": "object", "properties": {"text": text}, "required": ["text"]}
    answer = await ask("A person", text=text_config(long), max_output_tokens=16)
    assert len(answer.text) == 64
    whole = await ask("A person", text=text_config(long))
    assert whole.text.startswith(answer.text)


async def test_the_same_request_gets_the_same_document() -> None:
    first = await ask("A person", text=text_config(PERSON))
    assert first.text == (await ask("A person", text=text_config(PERSON))).text
    assert first.text != (await ask("Another person", text=text_config(PERSON))).text
