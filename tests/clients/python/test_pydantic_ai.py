"""Pydantic AI's model for the Responses API: agents with tools, histories and typed outputs."""

from collections.abc import AsyncIterable
from typing import Any, Final, Literal

import openai
import pydantic
import pydantic_ai
import pytest
from pydantic_ai.models.openai import OpenAIResponsesModel, OpenAIResponsesModelSettings
from pydantic_ai.providers.openai import OpenAIProvider

from tests.clients.python.test_openai_responses import PNG

pytestmark = pytest.mark.asyncio(loop_scope="session")

Mode = Literal["run", "stream"]
each_mode = pytest.mark.parametrize("mode", ["run", "stream"])

BLUE: Final = "My favourite colour is blue"
WEATHER: Final = "What is the weather in Paris?"
ASK: Final = "Which colour did I name?"
QUOTED: Final = f'Earlier you said: "{BLUE}"'


@pytest.fixture
def model(async_openai: openai.AsyncOpenAI) -> OpenAIResponsesModel:
    return OpenAIResponsesModel("sim", provider=OpenAIProvider(openai_client=async_openai))


def get_weather(city: str) -> str:
    """Tells the weather in a city."""
    return f"{city} is sunny"


async def get_time(zone: Literal["UTC", "CET"]) -> str:
    """Tells the time in a zone."""
    return f"noon in {zone}"


def an_agent(model: OpenAIResponsesModel, **options: Any) -> pydantic_ai.Agent[None, Any]:
    return pydantic_ai.Agent(
        model, **{"instructions": "Be brief.", "tools": [get_weather, get_time], **options}
    )


class Told:
    """What a run came to."""

    def __init__(self, output: Any, run: Any) -> None:
        self.output = output
        self.messages: list[pydantic_ai.ModelMessage] = run.all_messages()
        self.usage = run.usage

    @property
    def last(self) -> pydantic_ai.ModelResponse:
        found = [each for each in self.messages if isinstance(each, pydantic_ai.ModelResponse)]
        return found[-1]

    @property
    def parts(self) -> list[str]:
        return [part.part_kind for message in self.messages for part in message.parts]


async def ask(agent: pydantic_ai.Agent[None, Any], mode: Mode, given: Any, **options: Any) -> Told:
    """Runs an agent in one of the two ways."""
    if mode == "run":
        result = await agent.run(given, **options)
        return Told(result.output, result)
    async with agent.run_stream(given, **options) as stream:
        output = await stream.get_output()
        return Told(output, stream)


@each_mode
async def test_an_agent_answers(model: OpenAIResponsesModel, mode: Mode) -> None:
    told = await ask(an_agent(model), mode, "Hello there")
    assert told.output == "You said: Hello there"
    assert told.last.finish_reason == "stop"
    assert str(told.last.provider_response_id).startswith("resp_")
    assert told.usage.input_tokens > 0
    assert told.usage.output_tokens > 0


async def test_a_stream_is_told_piece_by_piece(model: OpenAIResponsesModel) -> None:
    async with an_agent(model).run_stream("Repeat exactly: one two three") as stream:
        pieces = [piece async for piece in stream.stream_text(delta=True, debounce_by=None)]
    assert pieces == ["one", " two", " three"]


@each_mode
async def test_a_history_is_read(model: OpenAIResponsesModel, mode: Mode) -> None:
    agent = an_agent(model)
    first = await ask(agent, mode, BLUE)
    second = await ask(agent, mode, WEATHER, message_history=first.messages)
    assert second.output == 'get_weather said: "Paris is sunny"'
    third = await ask(agent, mode, ASK, message_history=second.messages)
    assert third.output == QUOTED
    assert third.parts.count("tool-call") == third.parts.count("tool-return") == 1


@each_mode
async def test_a_chain_of_responses_is_followed(model: OpenAIResponsesModel, mode: Mode) -> None:
    agent = an_agent(model)
    first = await ask(agent, mode, BLUE)
    settings = OpenAIResponsesModelSettings(
        openai_previous_response_id=str(first.last.provider_response_id)
    )
    assert (await ask(agent, mode, ASK, model_settings=settings)).output == QUOTED
    # Or the model finds the last response in the history.
    finding = OpenAIResponsesModelSettings(openai_previous_response_id="auto")
    second = await ask(agent, mode, WEATHER, message_history=first.messages, model_settings=finding)
    assert second.output == 'get_weather said: "Paris is sunny"'
    third = await ask(agent, mode, ASK, message_history=second.messages, model_settings=finding)
    assert third.output == QUOTED


@each_mode
async def test_a_conversation_is_followed(
    model: OpenAIResponsesModel, async_openai: openai.AsyncOpenAI, mode: Mode
) -> None:
    conversation = await async_openai.conversations.create()
    settings = OpenAIResponsesModelSettings(openai_conversation_id=conversation.id)
    agent = an_agent(model, model_settings=settings)
    await ask(agent, mode, BLUE)
    assert (await ask(agent, mode, ASK)).output == QUOTED


async def test_a_run_can_be_in_the_background(
    model: OpenAIResponsesModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It would wait for two seconds before each look.
    monkeypatch.setattr(model, "continuation_delay", lambda _: 0.0)
    settings = OpenAIResponsesModelSettings(openai_background=True)
    told = await ask(an_agent(model), "run", WEATHER, model_settings=settings)
    assert told.output == 'get_weather said: "Paris is sunny"'


@each_mode
async def test_several_tools_are_called_at_once(model: OpenAIResponsesModel, mode: Mode) -> None:
    told = await ask(an_agent(model), mode, "Call get_weather and get_time interleaved")
    assert told.parts.count("tool-call") == 2
    assert told.usage.requests == 2
    assert told.usage.tool_calls == 2
    for name in ("get_weather", "get_time"):
        assert f"{name} said: " in told.output


@each_mode
async def test_one_tool_at_a_time(model: OpenAIResponsesModel, mode: Mode) -> None:
    settings = OpenAIResponsesModelSettings(parallel_tool_calls=False)
    told = await ask(
        an_agent(model), mode, "Call get_weather and get_time", model_settings=settings
    )
    assert told.usage.requests == 3


class Town(pydantic.BaseModel):
    """A town."""

    name: str
    people: int = pydantic.Field(ge=1)
    twin: "Town | None" = None


class Village(pydantic.BaseModel):
    """A village."""

    houses: list[int] = pydantic.Field(min_length=1)


KINDS: Final[dict[str, Any]] = {
    "by a tool": Town,
    "by one of the tools": [Town, Village],
    "by a schema": pydantic_ai.NativeOutput(Town),
    "by one of the schemas": pydantic_ai.NativeOutput([Town, Village]),
}


@each_mode
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
async def test_the_output_has_its_type(model: OpenAIResponsesModel, mode: Mode, kind: Any) -> None:
    agent = an_agent(model, tools=[], output_type=kind)
    told = await ask(agent, mode, "Make one.")
    assert isinstance(told.output, Town | Village)


@each_mode
@pytest.mark.parametrize("kind", [Town, pydantic_ai.NativeOutput(Town)], ids=["tool", "schema"])
async def test_a_tool_and_then_the_type(model: OpenAIResponsesModel, mode: Mode, kind: Any) -> None:
    agent = an_agent(model, output_type=kind)
    told = await ask(agent, mode, WEATHER)
    assert isinstance(told.output, Town)
    assert "tool-return" in told.parts
    assert "city" in str(told.messages)


@each_mode
async def test_a_tool_may_ask_again(model: OpenAIResponsesModel, mode: Mode) -> None:
    def find_town(name: str) -> str:
        """Finds a town."""
        raise pydantic_ai.ModelRetry(f"There is no {name}.")

    agent = an_agent(model, tools=[find_town])
    told = await ask(agent, mode, 'Call find_town with {"name":"Atlantis"}')
    assert "There is no Atlantis." in told.output


@each_mode
async def test_a_tool_waits_for_approval(model: OpenAIResponsesModel, mode: Mode) -> None:
    def delete_all(what: str) -> str:
        """Deletes everything."""
        return "gone"

    tool = pydantic_ai.Tool(delete_all, requires_approval=True)
    agent = an_agent(model, tools=[tool], output_type=[str, pydantic_ai.DeferredToolRequests])
    asked = await ask(agent, mode, "Call delete_all")
    (call,) = asked.output.approvals
    results = pydantic_ai.DeferredToolResults(approvals={call.tool_call_id: True})
    told = await ask(
        agent, mode, None, message_history=asked.messages, deferred_tool_results=results
    )
    assert told.output == 'delete_all said: "gone"'


@each_mode
async def test_tools_of_the_server_may_be_offered(model: OpenAIResponsesModel, mode: Mode) -> None:
    """The simulator has none of them, and leaves them alone."""
    settings = OpenAIResponsesModelSettings(openai_native_tools=[{"type": "web_search"}])
    told = await ask(an_agent(model), mode, "Hello", model_settings=settings)
    assert told.output == "You said: Hello"


@each_mode
async def test_reasoning_is_sent_back(async_openai: openai.AsyncOpenAI, mode: Mode) -> None:
    # Pydantic AI asks for encrypted reasoning where it knows the model to have it.
    provider = OpenAIProvider(openai_client=async_openai)
    model = OpenAIResponsesModel("gpt-5", provider=provider)
    settings = OpenAIResponsesModelSettings(
        openai_reasoning_effort="high",
        openai_reasoning_summary="detailed",
        openai_store=False,
    )
    agent = an_agent(model, model_settings=settings)
    first = await ask(agent, mode, WEATHER)
    assert "thinking" in first.parts
    thought = [
        part
        for message in first.messages
        for part in message.parts
        if isinstance(part, pydantic_ai.ThinkingPart)
    ]
    assert thought[0].content
    assert thought[0].signature
    assert first.output == 'get_weather said: "Paris is sunny"'
    assert first.usage.details["reasoning_tokens"] > 0
    again = await ask(agent, mode, "What did you think?", message_history=first.messages)
    assert not again.output.startswith("You said")


@each_mode
async def test_media_are_seen(model: OpenAIResponsesModel, mode: Mode) -> None:
    content = [
        "What is this?",
        pydantic_ai.BinaryContent(PNG, media_type="image/png"),
        pydantic_ai.BinaryContent(b"%PDF", media_type="application/pdf"),
        pydantic_ai.ImageUrl("https://example.com/a.png"),
    ]
    told = await ask(an_agent(model, tools=[]), mode, content)
    for seen in (f"image/png, {len(PNG)} bytes", "application/pdf, 4 bytes", "by URL"):
        assert seen in told.output


@each_mode
async def test_an_answer_that_is_cut_says_so(model: OpenAIResponsesModel, mode: Mode) -> None:
    settings = OpenAIResponsesModelSettings(max_tokens=16)
    told = await ask(an_agent(model), mode, "Produce 100 deltas", model_settings=settings)
    assert told.last.finish_reason == "length"


@each_mode
async def test_a_failure_is_an_exception(model: OpenAIResponsesModel, mode: Mode) -> None:
    agent = an_agent(model)
    with pytest.raises(pydantic_ai.ModelHTTPError) as caught:
        await ask(agent, mode, "Fail before the first event with rate_limit_exceeded")
    assert caught.value.status_code == 429
    with pytest.raises(pydantic_ai.ModelHTTPError) as wrong:
        await ask(agent, mode, "Hello", model_settings={"temperature": 5})
    assert wrong.value.status_code == 400


async def test_counting_tokens_first_waits_for_its_operation(model: OpenAIResponsesModel) -> None:
    limits = pydantic_ai.UsageLimits(count_tokens_before_request=True, input_tokens_limit=1000)
    with pytest.raises(pydantic_ai.ModelHTTPError) as caught:
        await ask(an_agent(model), "run", "Hello", usage_limits=limits)
    assert caught.value.status_code == 501


async def test_the_events_of_a_run_are_told(model: OpenAIResponsesModel) -> None:
    kinds: list[str] = []

    async def listen(_: Any, events: AsyncIterable[pydantic_ai.AgentStreamEvent]) -> None:
        kinds.extend([event.event_kind async for event in events])

    await an_agent(model).run(WEATHER, event_stream_handler=listen)
    for kind in ("part_start", "part_delta", "function_tool_call", "function_tool_result"):
        assert kind in kinds
