"""How the official SDK tells what goes wrong, before an answer begins and after."""

from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

import openai
import pytest
from openai._base_client import BaseClient

from antiphon.core.keys import hash_key
from tests.clients.python.sdk import Sdk, connect, connect_async
from tests.e2e.server import Server

in_session = pytest.mark.asyncio(loop_scope="session")

KEY: Final = "sk-of-the-tests"
UNKNOWN: Final = "resp_" + "0" * 32
NOBODY: Final = "conv_" + "0" * 32

MESSAGE: Final = {"type": "message", "role": "user", "content": "Hello"}


def made(**asked: Any) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    return ("responses.create", (), {"model": "sim", "input": "Hello", **asked})


def asked(path: str, *args: Any, **options: Any) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    return (path, args, options)


BAD: Final[dict[str, tuple[Any, type[openai.APIStatusError], str | None, str | None]]] = {
    "a number out of range": (
        made(temperature=5),
        openai.BadRequestError,
        "temperature",
        "decimal_above_max_value",
    ),
    "a value of another type": (
        made(max_output_tokens="many"),
        openai.BadRequestError,
        "max_output_tokens",
        "invalid_type",
    ),
    "a wrong role": (
        made(input=[MESSAGE, {**MESSAGE, "role": "king"}]),
        openai.BadRequestError,
        "input[1].role",
        "invalid_value",
    ),
    "a tool without a name": (
        made(tools=[{"type": "custom", "name": "a"}, {"type": "function", "parameters": {}}]),
        openai.BadRequestError,
        "tools[1].name",
        "missing_required_parameter",
    ),
    "what may not be included": (
        made(include=["everything"]),
        openai.BadRequestError,
        "include[0]",
        "invalid_value",
    ),
    "an unknown parent": (
        made(previous_response_id=UNKNOWN),
        openai.BadRequestError,
        "previous_response_id",
        "previous_response_not_found",
    ),
    "an unknown conversation": (
        made(conversation=NOBODY),
        openai.NotFoundError,
        "conversation",
        None,
    ),
    "two contexts": (
        made(conversation=NOBODY, previous_response_id=UNKNOWN),
        openai.BadRequestError,
        "previous_response_id",
        "mutually_exclusive_parameters",
    ),
    "background without store": (
        made(background=True, store=False),
        openai.BadRequestError,
        "background",
        "invalid_value",
    ),
    "options of no stream": (
        made(stream_options={"include_obfuscation": True}),
        openai.BadRequestError,
        "stream_options",
        "invalid_value",
    ),
    "an unknown response": (
        asked("responses.retrieve", UNKNOWN),
        openai.NotFoundError,
        "response_id",
        None,
    ),
    "a delete of it": (
        asked("responses.delete", UNKNOWN),
        openai.NotFoundError,
        "response_id",
        None,
    ),
    "a cancel of it": (
        asked("responses.cancel", UNKNOWN),
        openai.NotFoundError,
        "response_id",
        None,
    ),
    "items of it": (
        asked("responses.input_items.list", UNKNOWN),
        openai.NotFoundError,
        "response_id",
        None,
    ),
    "too many at once": (
        asked("responses.input_items.list", UNKNOWN, limit=1000),
        openai.BadRequestError,
        "limit",
        "integer_above_max_value",
    ),
    "a retrieve of no conversation": (
        asked("conversations.retrieve", NOBODY),
        openai.NotFoundError,
        "conversation_id",
        None,
    ),
    "items of no conversation": (
        asked("conversations.items.list", NOBODY),
        openai.NotFoundError,
        "conversation_id",
        None,
    ),
    "a conversation with a wrong item": (
        asked("conversations.create", items=[{"type": "message", "role": "user"}]),
        openai.BadRequestError,
        "items[0].content",
        "missing_required_parameter",
    ),
}


@in_session
@pytest.mark.parametrize(("call", "kind", "param", "code"), BAD.values(), ids=BAD)
async def test_an_error_is_the_exception_of_its_kind(
    sdk: Sdk,
    call: tuple[str, tuple[Any, ...], dict[str, Any]],
    kind: type[openai.APIStatusError],
    param: str | None,
    code: str | None,
) -> None:
    path, args, options = call
    for stream in [{}, {"stream": True}] if path == "responses.create" else [{}]:
        if "stream_options" in options and stream:
            continue
        with pytest.raises(openai.APIStatusError) as caught:
            await sdk(path, *args, **options, **stream)
        error = caught.value
        assert (type(error), error.param, error.code) == (kind, param, code)
        assert error.type == "invalid_request_error"
        assert error.request_id


@in_session
async def test_what_is_there_already_is_a_conflict(sdk: Sdk) -> None:
    name = f"conv_{type(sdk.client).__name__}"
    await sdk("conversations.create", extra_body={"id": name})
    with pytest.raises(openai.ConflictError):
        await sdk("conversations.create", extra_body={"id": name})


# What a backend does to a request.

FAILURES: Final[dict[str, tuple[str, type[openai.APIStatusError], int, str]]] = {
    "plain": ("", openai.InternalServerError, 502, "server_error"),
    "server_error": (" with server_error", openai.InternalServerError, 502, "server_error"),
    "rate limit": (
        " with rate_limit_exceeded",
        openai.RateLimitError,
        429,
        "rate_limit_exceeded",
    ),
}


@in_session
@pytest.mark.parametrize("stream", [False, True], ids=["create", "stream"])
@pytest.mark.parametrize(("how", "kind", "status", "type_"), FAILURES.values(), ids=FAILURES)
async def test_a_failure_before_the_answer_is_an_exception(
    sdk: Sdk, how: str, kind: type[openai.APIStatusError], status: int, type_: str, stream: bool
) -> None:
    text = f"Fail before the first event{how}"
    with pytest.raises(openai.APIStatusError) as caught:
        await sdk("responses.create", model="sim", input=text, stream=stream)
    assert (type(caught.value), caught.value.status_code) == (kind, status)
    assert caught.value.type == type_


@in_session
async def test_a_failure_within_the_answer_is_its_end(sdk: Sdk) -> None:
    asked = {"model": "sim", "input": "Fail after 2 deltas"}
    response = await sdk("responses.create", **asked)
    assert response.status == "failed"
    assert response.error.code == "server_error"
    *before, last = await sdk("responses.create", **asked, stream=True)
    assert last.type == "response.failed"
    assert last.response.error.code == "server_error"
    assert [event.type for event in before].count("response.output_text.delta") == 2
    with pytest.raises(RuntimeError, match=r"response\.completed"):
        await sdk("responses.stream", **asked)


@in_session
async def test_an_answer_can_be_cut(sdk: Sdk) -> None:
    for given, reason in (
        ({"input": "Stop in the middle"}, "content_filter"),
        ({"input": "Produce 100 deltas", "max_output_tokens": 16}, "max_output_tokens"),
    ):
        response = await sdk("responses.create", model="sim", **given)
        assert (response.status, response.incomplete_details.reason) == ("incomplete", reason)
        *_, last = await sdk("responses.create", model="sim", **given, stream=True)
        assert last.type == "response.incomplete"
        assert last.response.incomplete_details.reason == reason
        assert last.response.output_text == response.output_text
        with pytest.raises(RuntimeError, match=r"response\.completed"):
            await sdk("responses.stream", model="sim", **given)


# What the client does by itself.


@in_session
async def test_the_client_asks_again(sdk: Sdk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BaseClient, "_calculate_retry_timeout", lambda *_: 0)
    patient = Sdk(sdk.client.with_options(max_retries=2))
    with pytest.raises(openai.InternalServerError) as caught:
        await patient("responses.create", model="sim", input="Fail before the first event")
    assert caught.value.request.headers["x-stainless-retry-count"] == "2"
    # What is wrong stays wrong.
    with pytest.raises(openai.BadRequestError) as wrong:
        await patient("responses.create", model="sim", input="Hello", temperature=5)
    assert wrong.value.request.headers["x-stainless-retry-count"] == "0"


@in_session
async def test_the_client_waits_no_longer_than_it_wants(sdk: Sdk) -> None:
    asked = {"model": "sim", "input": "Be slow: 60000 ms"}
    hasty = Sdk(sdk.client.with_options(timeout=0.2))
    with pytest.raises(openai.APITimeoutError):
        await hasty("responses.create", **asked)
    with pytest.raises(openai.APITimeoutError):
        await sdk("responses.create", **asked, timeout=0.2)


@in_session
async def test_a_server_that_is_not_there_is_no_connection(sdk: Sdk) -> None:
    # A port that nothing can listen on.
    lost = Sdk(sdk.client.with_options(base_url="http://127.0.0.1:0/v1"))
    with pytest.raises(openai.APIConnectionError):
        await lost("responses.create", model="sim", input="Hello")


# Keys and limits.


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that wants a key, knows one model and takes few requests."""
    config = tmp_path_factory.mktemp("guarded") / "antiphon.toml"
    config.write_text(
        f'[models]\nsim = "sim"\n\n[[api_keys]]\nhash = "{hash_key(KEY)}"\n\n'
        "[limits]\nrequests_per_minute = 5\n"
    )
    with Server("--port", "0", "--grpc-port", "0", "--config", str(config)) as server:
        yield server
        assert server.stop() == 0
        assert not server.log, server.log


@pytest.fixture(params=["sync", "async"])
async def strangers(request: pytest.FixtureRequest, guarded: Server) -> AsyncIterator[Sdk]:
    """A client without the key."""
    if request.param == "sync":
        with connect(guarded) as client:
            yield Sdk(client)
    else:
        async with connect_async(guarded) as asynchronous:
            yield Sdk(asynchronous)


async def test_a_guarded_server(strangers: Sdk) -> None:
    for path, given in (
        ("responses.create", {"model": "sim", "input": "Hello"}),
        ("conversations.create", {}),
    ):
        with pytest.raises(openai.AuthenticationError) as caught:
            await strangers(path, **given)
        assert caught.value.code == "invalid_api_key"
    friend = Sdk(strangers.client.with_options(api_key=KEY))

    async def ask_until_refused() -> None:
        while True:
            response = await friend("responses.create", model="sim", input="Hello")
            assert response.output_text == "You said: Hello"

    with pytest.raises(openai.RateLimitError) as limited:
        await ask_until_refused()
    assert (limited.value.code, limited.value.type) == ("rate_limit_exceeded",) * 2
    assert int(limited.value.response.headers["retry-after"]) > 0
    assert limited.value.response.headers["x-ratelimit-remaining-requests"] == "0"
