"""LangChain's model for the Responses API: text, streams, tools, structures."""

from typing import Any, Final, Literal

import openai
import pydantic
import pytest
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
)
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, custom_tool

from tests.clients.python.test_openai_responses import IMAGE
from tests.e2e.server import Server

in_session = pytest.mark.asyncio(loop_scope="session")

Mode = Literal["invoke", "stream", "ainvoke", "astream"]
MODES: Final[list[Mode]] = ["invoke", "stream", "ainvoke", "astream"]
each_mode = pytest.mark.parametrize("mode", MODES)

BLUE: Final = "My favourite colour is blue"
WEATHER: Final = "What is the weather in Paris?"
ASK: Final = "Which colour did I name?"
QUOTED: Final = f'Earlier you said: "{BLUE}"'


def a_model(server: Server, **options: Any) -> ChatOpenAI:
    return ChatOpenAI(
        model="sim",
        base_url=f"{server.url}/v1",
        api_key=pydantic.SecretStr("unused"),
        use_responses_api=True,
        **{"max_retries": 0, **options},
    )


@pytest.fixture(scope="module")
def model(server: Server) -> ChatOpenAI:
    return a_model(server)


async def ask(runnable: Any, mode: Mode, given: Any, **options: Any) -> Any:
    """Asks in one of the four ways, and returns the whole message."""
    if mode == "invoke":
        return runnable.invoke(given, **options)
    if mode == "ainvoke":
        return await runnable.ainvoke(given, **options)
    if mode == "stream":
        chunks = list(runnable.stream(given, **options))
    else:
        chunks = [chunk async for chunk in runnable.astream(given, **options)]
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole += chunk
    return whole


@tool
def get_weather(city: str) -> str:
    """Tells the weather in a city."""
    return f"{city} is sunny"


@tool
def get_time(zone: Literal["UTC", "CET"]) -> str:
    """Tells the time in a zone."""
    return f"noon in {zone}"


@custom_tool
def run_sql(query: str) -> str:
    """Runs a query."""
    return f"ran {query}"


TOOLS: Final = {"get_weather": get_weather, "get_time": get_time, "run_sql": run_sql}


def answered(message: AIMessage) -> list[BaseMessage]:
    """Returns a message with the outputs of the tools that it calls."""
    return [message, *(TOOLS[call["name"]].invoke(call) for call in message.tool_calls)]


@in_session
@each_mode
async def test_a_model_answers(model: ChatOpenAI, mode: Mode) -> None:
    message = await ask(model, mode, "Hello there")
    assert message.text == "You said: Hello there"
    assert message.response_metadata["id"].startswith("resp_")
    assert message.response_metadata["status"] == "completed"
    usage = message.usage_metadata
    assert usage["input_tokens"] > 0
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]


@in_session
@each_mode
@pytest.mark.parametrize("version", ["v0", "responses/v1", "v1"])
async def test_a_history_is_read(server: Server, mode: Mode, version: str) -> None:
    model = a_model(server, output_version=version)
    messages: list[BaseMessage] = [SystemMessage("Be brief."), HumanMessage(BLUE)]
    messages.append(await ask(model, mode, messages))
    messages.append(HumanMessage(ASK))
    assert (await ask(model, mode, messages)).text == QUOTED


@in_session
@each_mode
async def test_a_chain_of_responses_is_followed(server: Server, mode: Mode) -> None:
    model = a_model(server)
    first = await ask(model, mode, BLUE)
    parent = first.response_metadata["id"]
    second = await ask(model, mode, ASK, previous_response_id=parent)
    assert second.text == QUOTED
    # Or the model finds it among the messages, and sends what comes after.
    finding = a_model(server, use_previous_response_id=True)
    messages = [HumanMessage(BLUE), first, HumanMessage(ASK)]
    third = await ask(finding, mode, messages)
    assert third.text == QUOTED


@in_session
@each_mode
async def test_tools_are_called_and_their_outputs_told(model: ChatOpenAI, mode: Mode) -> None:
    bound = model.bind_tools(list(TOOLS.values()))
    messages: list[BaseMessage] = [HumanMessage(WEATHER)]
    first = await ask(bound, mode, messages)
    (call,) = first.tool_calls
    assert (call["name"], call["args"]) == ("get_weather", {"city": "Paris"})
    assert first.invalid_tool_calls == []
    messages += answered(first)
    last = await ask(bound, mode, messages)
    assert last.text == 'get_weather said: "Paris is sunny"'
    # And once more, with only what is new.
    shorter = await ask(
        bound, mode, messages[2:], previous_response_id=first.response_metadata["id"]
    )
    assert shorter.text == last.text


@in_session
@each_mode
async def test_several_tools_are_called_at_once(model: ChatOpenAI, mode: Mode) -> None:
    bound = model.bind_tools(list(TOOLS.values()))
    # One after the other: LangChain takes each change of the item for a new call.
    messages: list[BaseMessage] = [HumanMessage("Call get_weather and get_time")]
    first = await ask(bound, mode, messages)
    assert [call["name"] for call in first.tool_calls] == ["get_weather", "get_time"]
    last = await ask(bound, mode, messages + answered(first))
    assert "get_weather said: " in last.text
    assert "get_time said: " in last.text


@in_session
@each_mode
async def test_one_tool_at_a_time(model: ChatOpenAI, mode: Mode) -> None:
    bound = model.bind_tools(list(TOOLS.values()), parallel_tool_calls=False)
    first = await ask(bound, mode, "Call get_weather and get_time")
    assert [call["name"] for call in first.tool_calls] == ["get_weather"]


@in_session
@each_mode
async def test_a_custom_tool_gets_raw_input(model: ChatOpenAI, mode: Mode) -> None:
    bound = model.bind_tools([run_sql])
    messages: list[BaseMessage] = [HumanMessage("Call run_sql with SELECT 1")]
    first = await ask(bound, mode, messages)
    (call,) = first.tool_calls
    assert call["name"] == "run_sql"
    assert "SELECT 1" in str(call["args"])
    last = await ask(bound, mode, messages + answered(first))
    assert last.text == 'run_sql said: "ran SELECT 1"'


@in_session
@each_mode
@pytest.mark.parametrize("choice", ["any", "get_time", "none"])
async def test_the_choice_is_obeyed(model: ChatOpenAI, mode: Mode, choice: str) -> None:
    bound = model.bind_tools([get_weather, get_time], tool_choice=choice)
    message = await ask(bound, mode, WEATHER)
    names = {"any": ["get_weather"], "get_time": ["get_time"], "none": []}
    assert [call["name"] for call in message.tool_calls] == names[choice]


class Country(pydantic.BaseModel):
    name: str
    code: str = pydantic.Field(pattern="^[A-Z]{2}$")


class Town(pydantic.BaseModel):
    """A town."""

    name: str = pydantic.Field(description="its name")
    people: int = pydantic.Field(ge=1)
    country: Country
    twin: Country | None


METHODS: Final[list[Literal["json_schema", "function_calling"]]] = [
    "json_schema",
    "function_calling",
]


@in_session
@pytest.mark.parametrize("method", METHODS)
async def test_the_output_has_its_structure(
    model: ChatOpenAI, method: Literal["json_schema", "function_calling"]
) -> None:
    shaped = model.with_structured_output(Town, method=method, strict=True)
    for made in (
        shaped.invoke("Make a town."),
        await shaped.ainvoke("Make a town."),
        list(shaped.stream("Make a town."))[-1],
        [each async for each in shaped.astream("Make a town.")][-1],
    ):
        assert isinstance(made, Town)


@in_session
async def test_json_of_no_schema(model: ChatOpenAI) -> None:
    shaped = model.with_structured_output(method="json_mode", include_raw=True)
    made: Any = await shaped.ainvoke("Make some JSON.")
    assert made["parsing_error"] is None
    assert isinstance(made["parsed"], dict)


@in_session
@each_mode
async def test_a_structure_and_a_tool(model: ChatOpenAI, mode: Mode) -> None:
    bound = model.bind_tools([get_weather], response_format=Town, strict=True)
    messages: list[BaseMessage] = [HumanMessage(WEATHER)]
    first = await ask(bound, mode, messages)
    assert [call["name"] for call in first.tool_calls] == ["get_weather"]
    last = await ask(bound, mode, messages + answered(first))
    assert isinstance(Town.model_validate_json(last.text), Town)


@in_session
@each_mode
async def test_reasoning_is_told_and_sent_back(server: Server, mode: Mode) -> None:
    model = a_model(
        server,
        reasoning={"effort": "high", "summary": "auto"},
        include=["reasoning.encrypted_content"],
        store=False,
        output_version="responses/v1",
    )
    messages: list[BaseMessage] = [HumanMessage("What is love?")]
    first = await ask(model, mode, messages)
    thought, *_ = first.content
    assert thought["type"] == "reasoning"
    assert thought["summary"]
    assert thought["encrypted_content"]
    assert first.usage_metadata["output_token_details"]["reasoning"] > 0
    messages += [first, HumanMessage("What did you think?")]
    again = await ask(model, mode, messages)
    assert again.text
    assert not again.text.startswith("You said")


@in_session
@each_mode
async def test_a_refusal_is_told(model: ChatOpenAI, mode: Mode) -> None:
    message = await ask(model, mode, "Refuse to answer")
    assert message.additional_kwargs.get("refusal") or message.content[0]["type"] == "refusal"


@in_session
@each_mode
async def test_an_answer_that_is_cut_says_so(server: Server, mode: Mode) -> None:
    message = await ask(a_model(server, max_tokens=16), mode, "Produce 100 deltas")
    metadata = message.response_metadata
    assert metadata["status"] == "incomplete"
    assert metadata["incomplete_details"] == {"reason": "max_output_tokens"}


CONTENT: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "an image by URL": ({"type": "image_url", "image_url": {"url": IMAGE}}, "image/png"),
    "an image": (
        {"type": "image", "base64": "YWJj", "mime_type": "image/png"},
        "image/png, 3 bytes",
    ),
    "a file": (
        {
            "type": "file",
            "base64": "YWJj",
            "mime_type": "application/pdf",
            "filename": "a.pdf",
        },
        "a.pdf, application/pdf, 3 bytes",
    ),
}


@in_session
@each_mode
@pytest.mark.parametrize(("block", "seen"), CONTENT.values(), ids=CONTENT)
async def test_the_input_can_be(
    model: ChatOpenAI, mode: Mode, block: dict[str, Any], seen: str
) -> None:
    content: list[str | dict[Any, Any]] = [{"type": "text", "text": "What is this?"}, block]
    message = await ask(model, mode, [HumanMessage(content)])
    assert seen in message.text


@in_session
@each_mode
async def test_a_tool_returns_an_image(model: ChatOpenAI, mode: Mode) -> None:
    @tool
    def draw(what: str) -> list[dict[str, str]]:
        """Draws."""
        return [{"type": "image", "base64": "YWJj", "mime_type": "image/png"}]

    bound = model.bind_tools([draw])
    first = await ask(bound, mode, "Call draw")
    given = [HumanMessage("Call draw"), first, draw.invoke(first.tool_calls[0])]
    assert "image/png, 3 bytes" in (await ask(bound, mode, given)).text


@in_session
@each_mode
async def test_tools_of_the_server_may_be_offered(model: ChatOpenAI, mode: Mode) -> None:
    """The simulator has none of them, and leaves them alone."""
    tools: list[dict[str, Any]] = [
        {"type": "web_search"},
        {"type": "image_generation"},
        {"type": "code_interpreter", "container": {"type": "auto"}},
        {"type": "file_search", "vector_store_ids": ["vs_1"]},
    ]
    assert (await ask(model.bind_tools(tools), mode, "Hello")).text == "You said: Hello"


@in_session
@each_mode
async def test_a_failure_is_an_exception(model: ChatOpenAI, mode: Mode) -> None:
    with pytest.raises(openai.RateLimitError):
        await ask(model, mode, "Fail before the first event with rate_limit_exceeded")
    with pytest.raises(ValueError, match="server_error"):
        await ask(model, mode, "Fail after 2 deltas")
    with pytest.raises(openai.BadRequestError):
        await ask(model, mode, "Hello", previous_response_id="resp_" + "0" * 32)


@in_session
async def test_a_batch_keeps_its_order(model: ChatOpenAI) -> None:
    texts = [f"Repeat exactly: {number}" for number in range(8)]
    assert [each.text for each in model.batch(list(texts))] == [str(each) for each in range(8)]
    assert [each.text for each in await model.abatch(list(texts))] == [
        str(each) for each in range(8)
    ]
