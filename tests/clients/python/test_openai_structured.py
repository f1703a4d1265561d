"""Answers of a given shape through the official SDK: JSON schemas from pydantic models."""

import datetime
import enum
import json
import uuid
from typing import Annotated, Any, Final, Literal

import jsonschema
import openai
import pydantic
import pytest

from tests.clients.python.sdk import Sdk

in_session = pytest.mark.asyncio(loop_scope="session")


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Point(pydantic.BaseModel):
    x: float
    y: int


class Enums(pydantic.BaseModel):
    colour: Colour
    size: Literal["small", "large"]
    fixed: Literal[7]


class Optionals(pydantic.BaseModel):
    name: str | None
    point: Point | None
    number: float | None


class Lists(pydantic.BaseModel):
    names: list[str]
    points: list[Point]
    table: list[list[int]]
    few: Annotated[list[int], pydantic.Field(min_length=2, max_length=3)]


class Cat(pydantic.BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(pydantic.BaseModel):
    kind: Literal["dog"]
    friend: Cat | None


class Unions(pydantic.BaseModel):
    pet: Cat | Dog
    id: int | str
    pets: list[Cat | Dog]


class Tree(pydantic.BaseModel):
    value: int
    children: list["Tree"]


class Limits(pydantic.BaseModel):
    age: int = pydantic.Field(ge=18, lt=21)
    share: float = pydantic.Field(gt=0, le=1)
    code: str = pydantic.Field(pattern=r"^[A-Z]{3}-\d{2}$")
    even: int = pydantic.Field(multiple_of=2)


class Formats(pydantic.BaseModel):
    at: datetime.datetime
    on: datetime.date
    id: uuid.UUID
    mail: str = pydantic.Field(json_schema_extra={"format": "email"})


MODELS: Final[list[type[pydantic.BaseModel]]] = [
    Point,
    Enums,
    Optionals,
    Lists,
    Unions,
    Tree,
    Limits,
    Formats,
]
each_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)


@in_session
@each_model
async def test_an_answer_is_a_model(sdk: Sdk, model: type[pydantic.BaseModel]) -> None:
    response = await sdk("responses.parse", model="sim", input="Make one.", text_format=model)
    assert isinstance(response.output_parsed, model)
    assert response.output_parsed == model.model_validate_json(response.output_text)
    assert response.text.format.type == "json_schema"


@in_session
@each_model
async def test_a_stream_is_a_model(sdk: Sdk, model: type[pydantic.BaseModel]) -> None:
    events, response = await sdk(
        "responses.stream", model="sim", input="Make one.", text_format=model
    )
    assert isinstance(response.output_parsed, model)
    (done,) = [event for event in events if event.type == "response.output_text.done"]
    assert done.parsed == response.output_parsed
    last = [event for event in events if event.type == "response.output_text.delta"][-1]
    assert last.snapshot == done.text == response.output_text


@in_session
async def test_a_type_that_is_no_model_will_do(sdk: Sdk) -> None:
    @pydantic.dataclasses.dataclass
    class Size:
        width: int
        height: int

    response = await sdk("responses.parse", model="sim", input="Make one.", text_format=Size)
    assert isinstance(response.output_parsed, Size)


SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"b": {"type": "integer"}, "a": {"enum": ["x", "y"]}},
    "required": ["b", "a"],
    "additionalProperties": False,
}


@in_session
async def test_a_schema_can_be_given_as_it_is(sdk: Sdk) -> None:
    given = {"type": "json_schema", "name": "pair", "schema": SCHEMA, "strict": True}
    response = await sdk("responses.create", model="sim", input="Make one.", text={"format": given})
    answer = json.loads(response.output_text)
    jsonschema.validate(answer, SCHEMA)
    assert list(answer) == ["b", "a"]
    told = response.text.format.to_dict()
    assert {name: told[name] for name in given} == given


@in_session
async def test_any_object_can_be_asked_for(sdk: Sdk) -> None:
    response = await sdk(
        "responses.create",
        model="sim",
        input="Make some JSON.",
        text={"format": {"type": "json_object"}},
    )
    assert isinstance(json.loads(response.output_text), dict)


@in_session
async def test_a_refusal_is_no_model(sdk: Sdk) -> None:
    asked = {"model": "sim", "input": "Refuse to answer", "text_format": Point}
    for response in (
        await sdk("responses.parse", **asked),
        (await sdk("responses.stream", **asked))[1],
    ):
        assert response.output_parsed is None
        assert response.output[0].content[0].type == "refusal"
        assert response.output[0].content[0].refusal


@in_session
async def test_a_schema_that_nothing_fits_is_refused(sdk: Sdk) -> None:
    given = {
        "type": "json_schema",
        "name": "none",
        "schema": {"type": "object", "properties": {"a": False}, "required": ["a"]},
    }
    with pytest.raises(openai.BadRequestError) as caught:
        await sdk("responses.create", model="sim", input="Make one.", text={"format": given})
    assert caught.value.param == "text.format.schema"


@in_session
async def test_tools_and_a_format_go_together(sdk: Sdk) -> None:
    asked: dict[str, Any] = {
        "model": "sim",
        "tools": [openai.pydantic_function_tool(Point, name="draw")],
        "text_format": Limits,
    }
    first = await sdk("responses.parse", input="Please draw", **asked)
    (call,) = first.output
    assert isinstance(call.parsed_arguments, Point)
    output = {"type": "function_call_output", "call_id": call.call_id, "output": "done"}
    second = await sdk("responses.parse", input=[output], previous_response_id=first.id, **asked)
    assert isinstance(second.output_parsed, Limits)
