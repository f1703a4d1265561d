"""The Agents SDK: agents with tools over several turns, however their history is kept."""

import dataclasses
import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final, Literal

import agents
import openai
import pydantic
import pytest
from openai.types.shared import Reasoning

from tests.clients.python.sdk import connect_async
from tests.clients.python.test_openai_responses import IMAGE
from tests.e2e.server import Server

pytestmark = pytest.mark.asyncio(loop_scope="session")

Mode = Literal["run", "streamed"]
each_mode = pytest.mark.parametrize("mode", ["run", "streamed"])

BLUE: Final = "My favourite colour is blue"
WEATHER: Final = "What is the weather in Paris?"
ASK: Final = "Which colour did I name?"
SETTINGS: Final = agents.RunConfig(tracing_disabled=True)


@pytest.fixture(scope="module", autouse=True)
def _no_tracing() -> Iterator[None]:
    agents.set_tracing_disabled(True)
    yield
    agents.set_tracing_disabled(False)


@pytest.fixture
def model(async_openai: openai.AsyncOpenAI) -> agents.Model:
    return agents.OpenAIResponsesModel("sim", async_openai)


@agents.function_tool
def get_weather(city: str) -> str:
    """Tells the weather in a city."""
    return f"{city} is sunny"


@agents.function_tool
async def get_time(zone: Literal["UTC", "CET"]) -> str:
    """Tells the time in a zone."""
    return f"noon in {zone}"


def an_agent(model: agents.Model, **options: Any) -> agents.Agent[None]:
    return agents.Agent(
        **{
            "name": "Assistant",
            "instructions": "Be brief.",
            "model": model,
            "tools": [get_weather, get_time],
            **options,
        }
    )


async def run(mode: Mode, agent: agents.Agent[None], given: Any, **options: Any) -> Any:
    """Runs an agent in one of the two ways, and returns the result."""
    options = {"run_config": SETTINGS, **options}
    if mode == "run":
        return await agents.Runner.run(agent, given, **options)
    result = agents.Runner.run_streamed(agent, given, **options)
    names = [
        event.name
        async for event in result.stream_events()
        if event.type == "run_item_stream_event"
    ]
    if isinstance(given, agents.RunState):
        # What was called before is not told again.
        return result
    made = {"tool_call_item": "tool_called", "tool_call_output_item": "tool_output"}
    expected = [made[item.type] for item in result.new_items if item.type in made]
    assert sorted(name for name in names if name in made.values()) == sorted(expected)
    return result


# The ways to keep a history: each returns a function that takes a turn.

Turn = Callable[[str], Awaitable[Any]]
Keeper = Callable[[Mode, agents.Agent[None], openai.AsyncOpenAI], Awaitable[Turn]]


async def by_the_client(mode: Mode, agent: agents.Agent[None], _: openai.AsyncOpenAI) -> Turn:
    history: list[Any] = []

    async def turn(text: str) -> Any:
        result = await run(mode, agent, [*history, {"role": "user", "content": text}])
        history[:] = result.to_input_list()
        return result

    return turn


async def in_a_session(mode: Mode, agent: agents.Agent[None], _: openai.AsyncOpenAI) -> Turn:
    session = agents.SQLiteSession("tests")
    return lambda text: run(mode, agent, text, session=session)


async def in_a_session_of_the_server(
    mode: Mode, agent: agents.Agent[None], client: openai.AsyncOpenAI
) -> Turn:
    session = agents.OpenAIConversationsSession(openai_client=client)
    return lambda text: run(mode, agent, text, session=session)


async def in_a_conversation(
    mode: Mode, agent: agents.Agent[None], client: openai.AsyncOpenAI
) -> Turn:
    conversation = await client.conversations.create()
    return lambda text: run(mode, agent, text, conversation_id=conversation.id)


async def by_the_last_response(
    mode: Mode, agent: agents.Agent[None], _: openai.AsyncOpenAI
) -> Turn:
    last: list[str | None] = [None]

    async def turn(text: str) -> Any:
        result = await run(
            mode, agent, text, previous_response_id=last[0], auto_previous_response_id=True
        )
        last[0] = result.last_response_id
        return result

    return turn


KEEPERS: Final[list[Keeper]] = [
    by_the_client,
    in_a_session,
    in_a_session_of_the_server,
    in_a_conversation,
    by_the_last_response,
]


@each_mode
@pytest.mark.parametrize("keeper", KEEPERS, ids=lambda keeper: keeper.__name__)
async def test_an_agent_remembers_and_uses_its_tool(
    model: agents.Model, async_openai: openai.AsyncOpenAI, mode: Mode, keeper: Keeper
) -> None:
    turn = await keeper(mode, an_agent(model), async_openai)
    assert (await turn(BLUE)).final_output == f"You said: {BLUE}"
    told = await turn(WEATHER)
    assert told.final_output == 'get_weather said: "Paris is sunny"'
    assert [item.type for item in told.new_items] == [
        "tool_call_item",
        "tool_call_output_item",
        "message_output_item",
    ]
    assert (await turn(ASK)).final_output == f'Earlier you said: "{BLUE}"'


@each_mode
async def test_tools_are_called_at_once(model: agents.Model, mode: Mode) -> None:
    result = await run(mode, an_agent(model), "Call get_weather and get_time interleaved")
    assert len(result.raw_responses) == 2
    for name in ("get_weather", "get_time"):
        assert f"{name} said: " in result.final_output


@each_mode
async def test_tools_are_called_one_by_one(model: agents.Model, mode: Mode) -> None:
    settings = agents.ModelSettings(parallel_tool_calls=False)
    agent = an_agent(model, model_settings=settings)
    result = await run(mode, agent, "Call get_weather and get_time")
    assert len(result.raw_responses) == 3


@each_mode
async def test_a_tool_that_fails_is_told(model: agents.Model, mode: Mode) -> None:
    @agents.function_tool
    def break_down(reason: str) -> str:
        """Fails."""
        raise ValueError(reason)

    result = await run(mode, an_agent(model, tools=[break_down]), "Call break_down")
    assert result.final_output.startswith('break_down said: "')


class Report(pydantic.BaseModel):
    city: str
    degrees: list[float]
    wind: Literal["weak", "strong"] | None


@dataclasses.dataclass
class Sight:
    name: str
    height: int


@each_mode
@pytest.mark.parametrize("kind", [Report, Sight, list[int]], ids=str)
async def test_the_output_has_its_type(model: agents.Model, mode: Mode, kind: Any) -> None:
    result = await run(mode, an_agent(model, output_type=kind), "Make a report.")
    assert isinstance(result.final_output, kind if isinstance(kind, type) else list)


@each_mode
async def test_a_tool_and_then_the_type(model: agents.Model, mode: Mode) -> None:
    result = await run(mode, an_agent(model, output_type=Report), WEATHER)
    assert isinstance(result.final_output, Report)
    assert [item.type for item in result.new_items][:2] == [
        "tool_call_item",
        "tool_call_output_item",
    ]


@each_mode
async def test_an_agent_hands_over(model: agents.Model, mode: Mode) -> None:
    expert = an_agent(model, name="Expert")
    desk = an_agent(model, name="Desk", tools=[], handoffs=[expert])
    result = await run(mode, desk, "Call transfer_to_expert")
    assert result.last_agent is expert
    assert result.final_output.startswith("transfer_to_expert said: ")


@each_mode
async def test_a_tool_that_must_be_used(model: agents.Model, mode: Mode) -> None:
    for choice in ("required", "get_time"):
        agent = an_agent(model, model_settings=agents.ModelSettings(tool_choice=choice))
        result = await run(mode, agent, "Hello")
        called = [item.raw_item.name for item in result.new_items if item.type == "tool_call_item"]
        assert len(called) == 1
        assert choice in ("required", called[0])
        stubborn = agent.clone(reset_tool_choice=False)
        with pytest.raises(agents.MaxTurnsExceeded):
            await run(mode, stubborn, "Hello", max_turns=3)


@each_mode
async def test_reasoning_is_sent_back(model: agents.Model, mode: Mode) -> None:
    """Without a store, what was thought comes back encrypted."""
    settings = agents.ModelSettings(
        store=False,
        reasoning=Reasoning(effort="high", summary="auto"),
        response_include=["reasoning.encrypted_content"],
    )
    agent = an_agent(model, model_settings=settings)
    session = agents.SQLiteSession("tests")
    result = await run(mode, agent, WEATHER, session=session)
    thought = [item.raw_item for item in result.new_items if item.type == "reasoning_item"]
    assert thought
    assert all(item.summary and item.encrypted_content for item in thought)
    assert result.final_output == 'get_weather said: "Paris is sunny"'
    assert result.context_wrapper.usage.output_tokens_details.reasoning_tokens > 0
    again = await run(mode, agent, "What did you think?", session=session)
    assert again.final_output


@each_mode
async def test_a_tool_waits_for_approval(
    model: agents.Model, async_openai: openai.AsyncOpenAI, mode: Mode
) -> None:
    @agents.function_tool(needs_approval=True)
    def delete_all(what: str) -> str:
        """Deletes everything."""
        return "gone"

    agent = an_agent(model, tools=[delete_all])
    conversation = await async_openai.conversations.create()
    for options in ({}, {"conversation_id": conversation.id}):
        asked = await run(mode, agent, "Call delete_all", **options)
        state = asked.to_state()
        (interruption,) = asked.interruptions
        state.approve(interruption)
        assert (await run(mode, agent, state)).final_output == 'delete_all said: "gone"'


@each_mode
async def test_an_agent_is_a_tool(model: agents.Model, mode: Mode) -> None:
    expert = an_agent(model, name="Expert", tools=[])
    desk = an_agent(model, tools=[expert.as_tool("ask_expert", "Asks an expert.")])
    result = await run(mode, desk, 'Call ask_expert with {"input":"Repeat exactly: yes"}')
    assert result.final_output == 'ask_expert said: "yes"'


@each_mode
async def test_a_tool_is_found_in_a_namespace(model: agents.Model, mode: Mode) -> None:
    @agents.function_tool(defer_loading=True)
    def find_customer(name: str) -> str:
        """Finds a customer."""
        return f"{name} was found"

    crm = agents.tool_namespace(name="crm", description="Customers.", tools=[find_customer])
    agent = an_agent(model, tools=[*crm, agents.ToolSearchTool()])
    result = await run(mode, agent, 'Call find_customer with {"name":"Ada"}')
    assert result.final_output == 'find_customer said: "Ada was found"'


@each_mode
async def test_a_tool_returns_an_image(model: agents.Model, mode: Mode) -> None:
    @agents.function_tool
    def draw(what: str) -> agents.ToolOutputImage:
        """Draws."""
        return agents.ToolOutputImage(image_url=IMAGE)

    result = await run(mode, an_agent(model, tools=[draw]), "Call draw")
    assert "image/png" in result.final_output


@each_mode
async def test_tools_of_the_server_may_be_offered(model: agents.Model, mode: Mode) -> None:
    """The simulator has none of them, and leaves them alone."""
    agent = an_agent(
        model,
        tools=[
            agents.WebSearchTool(),
            agents.FileSearchTool(vector_store_ids=["vs_1"]),
            agents.CodeInterpreterTool({"type": "code_interpreter", "container": {"type": "auto"}}),
            agents.ImageGenerationTool({"type": "image_generation"}),
        ],
    )
    assert (await run(mode, agent, "Hello")).final_output == "You said: Hello"


@each_mode
async def test_every_setting_is_accepted(model: agents.Model, mode: Mode) -> None:
    settings = agents.ModelSettings(
        temperature=0.5,
        top_p=0.5,
        truncation="auto",
        max_tokens=100,
        verbosity="low",
        metadata={"topic": "tests"},
        store=True,
        prompt_cache_retention="24h",
        top_logprobs=2,
        extra_headers={"x-test": "yes"},
        extra_query={"more": "yes"},
        extra_body={"user": "somebody"},
    )
    result = await run(mode, an_agent(model, model_settings=settings), "Hello")
    assert result.final_output == "You said: Hello"


async def test_a_compacting_session_waits_for_its_operation(
    model: agents.Model, async_openai: openai.AsyncOpenAI
) -> None:
    session = agents.OpenAIResponsesCompactionSession(
        "tests",
        agents.SQLiteSession("tests"),
        client=async_openai,
        model="gpt-5",
        should_trigger_compaction=lambda _: True,
    )
    with pytest.raises(openai.InternalServerError) as caught:
        await run("run", an_agent(model), "Hello", session=session)
    assert caught.value.status_code == 501


@each_mode
async def test_a_failure_is_an_exception(model: agents.Model, mode: Mode) -> None:
    agent = an_agent(model)
    with pytest.raises(openai.RateLimitError):
        await run(mode, agent, "Fail before the first event with rate_limit_exceeded")
    with pytest.raises(openai.BadRequestError):
        await run(mode, agent, "Hello", previous_response_id="resp_" + "0" * 32)


async def test_the_default_client_will_do(server: Server) -> None:
    """As the documentation has it: one client for all agents, models by their names."""
    async with connect_async(server) as client:
        agents.set_default_openai_client(client, use_for_tracing=False)
        agent = agents.Agent(name="Assistant", model="gpt-5", tools=[get_weather])
        result = await run("run", agent, WEATHER)
    assert result.final_output == 'get_weather said: "Paris is sunny"'
    # Of a model of this name, the SDK asks for reasoning by itself.
    thought, call = result.raw_responses[0].output
    assert (thought.type, call.type) == ("reasoning", "function_call")
    assert json.loads(call.arguments) == {"city": "Paris"}
