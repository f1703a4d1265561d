"""Every method that the official SDK has for responses and conversations, found by reflection.

A method is driven as it is, with its raw response, and with its raw response streamed, by both
clients. What the SDK gains is named by a test that fails.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import openai
import pydantic
import pytest
from websockets.exceptions import InvalidStatus

from tests.clients.python.sdk import RAW, STREAMING, Sdk, operations, resolve, told

ROOTS: Final = ("responses", "conversations", "beta.responses")
BLUE: Final = "My favourite colour is blue"
ASK: Final = "Which colour did I name?"
QUOTED: Final = f'Earlier you said: "{BLUE}"'

Call = Callable[..., Awaitable[Any]]
Driver = Callable[[Sdk, Call], Awaitable[None]]

DRIVERS: dict[str, Driver] = {}


def drives(path: str) -> Callable[[Driver], Driver]:
    def register(driver: Driver) -> Driver:
        DRIVERS[path] = driver
        return driver

    return register


def message(text: str) -> dict[str, str]:
    return {"type": "message", "role": "user", "content": text}


async def said(sdk: Sdk, text: str = BLUE, **asked: Any) -> Any:
    return await sdk("responses.create", model="sim", input=text, **asked)


async def talk(sdk: Sdk, *texts: str) -> str:
    created = await sdk("conversations.create", items=[message(text) for text in texts])
    found: str = created.id
    return found


def texts(items: list[Any]) -> list[str]:
    return ["".join(part.text for part in item.content) for item in items]


@drives("responses.create")
async def _create(sdk: Sdk, call: Call) -> None:
    first = await call(model="sim", input=BLUE)
    assert texts(first.output) == [f"You said: {BLUE}"]
    *_, last = await call(model="sim", input=ASK, previous_response_id=first.id, stream=True)
    assert last.type == "response.completed"
    assert texts(last.response.output) == [QUOTED]


@drives("responses.retrieve")
async def _retrieve(sdk: Sdk, call: Call) -> None:
    events = await said(sdk, background=True, stream=True)
    got = await call(events[0].response.id, include=["reasoning.encrypted_content"])
    assert told(got) == told(events[-1].response)
    again = await call(got.id, stream=True)
    assert [told(each) for each in again] == [told(each) for each in events]
    rest = await call(got.id, stream=True, starting_after=3, include_obfuscation=False)
    assert [each.sequence_number for each in rest] == list(range(4, len(events)))


@drives("responses.delete")
async def _delete(sdk: Sdk, call: Call) -> None:
    response = await said(sdk)
    await call(response.id)
    with pytest.raises(openai.NotFoundError):
        await call(response.id)


@drives("responses.cancel")
async def _cancel(sdk: Sdk, call: Call) -> None:
    response = await said(sdk, "Be slow: 60000 ms", background=True)
    cancelled = await call(response.id)
    assert (cancelled.id, cancelled.status) == (response.id, "cancelled")
    assert told(await call(response.id)) == told(cancelled)


@drives("responses.parse")
async def _parse(sdk: Sdk, call: Call) -> None:
    response = await call(model="sim", input="Name a city.", text_format=City, verbosity="low")
    assert isinstance(response.output_parsed, City)
    assert response.output_text == response.output_parsed.model_dump_json()


@drives("responses.stream")
async def _stream(sdk: Sdk, call: Call) -> None:
    events, response = await call(model="sim", input=BLUE, background=True)
    assert response.output_text == f"You said: {BLUE}"
    # The helper has events of its own, with what came so far.
    assert [each.snapshot for each in events if each.type == "response.output_text.delta"] == [
        "You", "You said:", "You said: My", "You said: My favourite",
        "You said: My favourite colour", "You said: My favourite colour is",
        "You said: My favourite colour is blue",
    ]  # fmt: skip
    rest, same = await call(response_id=response.id, starting_after=4)
    assert [told(each) for each in rest] == [told(each) for each in events[5:]]
    assert told(same) == told(response)


class City(pydantic.BaseModel):
    name: str
    people: int


@drives("responses.input_items.list")
async def _input_items(sdk: Sdk, call: Call) -> None:
    first = await said(sdk)
    second = await said(sdk, ASK, previous_response_id=first.id)
    order = [BLUE, f"You said: {BLUE}", ASK]
    assert texts(await call(second.id)) == order[::-1]
    items = await call(second.id, order="asc", limit=1, include=["message.output_text.logprobs"])
    assert texts(items) == order
    assert texts(await call(second.id, order="asc", after=items[0].id)) == order[1:]


@drives("conversations.create")
async def _create_conversation(sdk: Sdk, call: Call) -> None:
    empty = await call()
    assert (empty.object, empty.metadata) == ("conversation", {})
    made = await call(items=[message(BLUE)], metadata={"topic": "colours"})
    assert made.metadata == {"topic": "colours"}
    assert (await said(sdk, ASK, conversation=made.id)).output_text == QUOTED


@drives("conversations.retrieve")
async def _retrieve_conversation(sdk: Sdk, call: Call) -> None:
    made = await sdk("conversations.create", metadata={"topic": "colours"})
    assert told(await call(made.id)) == told(made)


@drives("conversations.update")
async def _update_conversation(sdk: Sdk, call: Call) -> None:
    made = await sdk("conversations.create", metadata={"topic": "colours"})
    updated = await call(made.id, metadata={"subject": "names"})
    assert told(updated) == {**told(made), "metadata": {"subject": "names"}}
    assert told(await sdk("conversations.retrieve", made.id)) == told(updated)


@drives("conversations.delete")
async def _delete_conversation(sdk: Sdk, call: Call) -> None:
    conversation = await talk(sdk)
    gone = await call(conversation)
    assert told(gone) == {
        "id": conversation,
        "object": "conversation.deleted",
        "deleted": True,
    }
    with pytest.raises(openai.NotFoundError):
        await call(conversation)


@drives("conversations.items.create")
async def _create_items(sdk: Sdk, call: Call) -> None:
    conversation = await talk(sdk)
    include = ["message.output_text.logprobs"]
    made = await call(conversation, items=[message(BLUE), message("Hello")], include=include)
    assert texts(made.data) == [BLUE, "Hello"]
    assert (made.first_id, made.last_id) == (made.data[0].id, made.data[1].id)
    assert (await said(sdk, ASK, conversation=conversation)).output_text == QUOTED


@drives("conversations.items.list")
async def _list_items(sdk: Sdk, call: Call) -> None:
    names = [f"name {number}" for number in range(7)]
    conversation = await talk(sdk, *names)
    assert texts(await call(conversation)) == names[::-1]
    items = await call(conversation, order="asc", limit=2)
    assert texts(items) == names
    assert texts(await call(conversation, order="desc", after=items[3].id)) == names[2::-1]


@drives("conversations.items.retrieve")
async def _retrieve_item(sdk: Sdk, call: Call) -> None:
    conversation = await talk(sdk, BLUE)
    (item,) = await sdk("conversations.items.list", conversation)
    got = await call(item.id, conversation_id=conversation, include=["reasoning.encrypted_content"])
    assert told(got) == told(item)


@drives("conversations.items.delete")
async def _delete_item(sdk: Sdk, call: Call) -> None:
    conversation = await talk(sdk, BLUE, "Hello")
    item, _ = await sdk("conversations.items.list", conversation, order="asc")
    left = await call(item.id, conversation_id=conversation)
    assert left.id == conversation
    assert texts(await sdk("conversations.items.list", conversation)) == ["Hello"]


# What is declared and not built yet says so.


async def not_built(call: Call, **asked: Any) -> None:
    with pytest.raises(openai.InternalServerError) as caught:
        await call(**asked)
    error = caught.value
    assert (error.status_code, error.type, error.param, error.code) == (
        501,
        "server_error",
        None,
        None,
    )
    assert isinstance(error.body, dict)
    assert error.body["message"] == "This operation is not built yet."


@drives("responses.compact")
async def _compact(sdk: Sdk, call: Call) -> None:
    await not_built(call, model="sim", input=[message(BLUE)])


@drives("responses.input_tokens.count")
async def _count(sdk: Sdk, call: Call) -> None:
    await not_built(call, model="sim", input=BLUE)


@drives("responses.connect")
async def _connect(sdk: Sdk, call: Call) -> None:
    with pytest.raises(InvalidStatus) as caught:
        await call()
    assert caught.value.response.status_code == 501
    assert caught.value.response.headers["content-type"] == "application/json"


def found() -> list[str]:
    client = openai.OpenAI(api_key="unused")
    return [path for root in ROOTS for path in operations(resolve(client, root), root)]


def driver(path: str) -> Driver:
    """Returns what drives a method: the wrappers and the preview have the methods of the plain."""
    names = [name for name in path.split(".") if name not in ("beta", RAW, STREAMING)]
    plain = ".".join(names)
    assert plain in DRIVERS, f"nobody drives {path}"
    return DRIVERS[plain]


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("path", found())
async def test_every_method_works(sdk: Sdk, path: str) -> None:
    calls = 0

    async def call(*args: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        return await sdk(path, *args, **options)

    await driver(path)(sdk, call)
    assert calls


def test_both_clients_have_the_same_methods() -> None:
    client = openai.AsyncOpenAI(api_key="unused")
    assert [path for root in ROOTS for path in operations(resolve(client, root), root)] == found()


def test_a_method_that_nobody_drives_is_named() -> None:
    with pytest.raises(AssertionError, match=r"nobody drives responses\.with_raw_response\.steer"):
        driver("responses.with_raw_response.steer")


def test_no_driver_is_left_over() -> None:
    plain = {path for path in found() if not path.startswith("beta.")}
    assert set(DRIVERS) == {path for path in plain if RAW not in path and STREAMING not in path}
