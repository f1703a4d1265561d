"""The modes of a run and the state around it, through the official SDK and a real gateway."""

import os
import signal
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import grpc
import httpx
import openai
import pytest
from openai.types.responses import Response, ResponseStreamEvent

from antiphon.v1.responses_service_pb2 import CreateResponseRequest
from antiphon.v1.responses_service_pb2_grpc import ResponsesServiceStub
from tests.e2e.held import PIPE
from tests.e2e.server import TERMINAL, Server, check_error, final, parse_stream, text_of

INCLUDE: Any = ["message.output_text.logprobs", "reasoning.encrypted_content"]
ORDERS: tuple[Literal["asc", "desc"], ...] = ("asc", "desc")


class Held(Server):
    """A server whose answers wait until they are released.

    Args:
        folder: an empty folder.
        grace_seconds: how long runs may go on when it is stopped.
    """

    def __init__(self, folder: Path, grace_seconds: float) -> None:
        self._pipe = folder / "pipe"
        os.mkfifo(self._pipe)
        config = folder / "antiphon.toml"
        config.write_text(f"grace_seconds = {grace_seconds}\n")
        super().__init__(
            *("--port", "0", "--grpc-port", "0", "--config", str(config)),
            environment={PIPE: str(self._pipe), "GRPC_ENABLE_FORK_SUPPORT": "0"},
            module="tests.e2e.held",
        )

    def release(self, *names: str) -> None:
        """Lets answers go on."""
        self._pipe.write_text("".join(f"{name}\n" for name in names))


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Held]:
    with Held(tmp_path_factory.mktemp("held"), 0) as server:
        yield server
        assert server.stop() == 0
        assert not server.log, server.log


@pytest.fixture(scope="module")
def sdk(held: Held) -> Iterator[openai.OpenAI]:
    with connect(held) as client:
        yield client


def connect(server: Server) -> openai.OpenAI:
    # Strict: whatever does not fit the SDK's types is an error.
    return openai.OpenAI(
        base_url=f"{server.url}/v1",
        api_key="unused",
        max_retries=0,
        http_client=openai.DefaultHttpxClient(trust_env=False),
        _strict_response_validation=True,
    )


def told(events: Sequence[ResponseStreamEvent]) -> list[dict[str, Any]]:
    """Returns events as they were told."""
    return [event.to_dict() for event in events]


def until_held(stream: Iterator[ResponseStreamEvent]) -> list[ResponseStreamEvent]:
    """Reads until a held answer has written its first word."""
    events = []
    for event in stream:
        events.append(event)
        if event.type == "response.output_text.delta":
            return events
    raise AssertionError("the stream ended")


def texts_of(items: Iterable[Any]) -> list[str]:
    """Returns the texts of messages."""
    return [item.content[0].text for item in items]


def wait_for(sdk: openai.OpenAI, response_id: str) -> Response:
    """Asks for a response until it has ended, as its clients are told to do."""
    while True:
        response = sdk.responses.retrieve(response_id)
        if response.status not in ("queued", "in_progress"):
            return response


# The background.


def test_a_background_response_is_asked_for_until_it_has_ended(
    held: Held, sdk: openai.OpenAI
) -> None:
    response = sdk.responses.create(model="sim", input="hold poll", background=True)
    assert response.status in ("queued", "in_progress")
    assert response.background
    assert sdk.responses.retrieve(response.id).status in ("queued", "in_progress")
    held.release("poll")
    done = wait_for(sdk, response.id)
    assert (done.status, done.output_text) == ("completed", "held and released")
    assert sdk.responses.cancel(response.id).to_dict() == done.to_dict()


def test_a_background_response_can_be_cancelled(sdk: openai.OpenAI) -> None:
    stream = sdk.responses.create(model="sim", input="hold cancel", background=True, stream=True)
    response_id = until_held(stream)[0].response.id  # type: ignore[union-attr]
    cancelled = sdk.responses.cancel(response_id)
    assert (cancelled.status, cancelled.output_text) == ("cancelled", "held")
    # Everybody is told the same, at once and afterwards.
    rest = list(stream)
    assert rest[-1].type == "response.failed"
    assert rest[-1].response.to_dict() == cancelled.to_dict()
    assert sdk.responses.retrieve(response_id).to_dict() == cancelled.to_dict()
    assert sdk.responses.cancel(response_id).to_dict() == cancelled.to_dict()


def test_a_foreground_response_cannot_be_cancelled(sdk: openai.OpenAI) -> None:
    response = sdk.responses.create(model="sim", input="Hello")
    with pytest.raises(openai.BadRequestError) as caught:
        sdk.responses.cancel(response.id)
    assert caught.value.type == "invalid_request_error"


def test_a_deleted_run_is_gone_and_its_reader_told(sdk: openai.OpenAI) -> None:
    stream = sdk.responses.create(model="sim", input="hold delete", background=True, stream=True)
    response_id = until_held(stream)[0].response.id  # type: ignore[union-attr]
    sdk.responses.delete(response_id)
    assert list(stream)[-1].type == "response.failed"
    for call in (sdk.responses.retrieve, sdk.responses.cancel, sdk.responses.delete):
        with pytest.raises(openai.NotFoundError):
            call(response_id)


def test_a_stream_is_taken_up_again(held: Held, sdk: openai.OpenAI) -> None:
    stream = sdk.responses.create(model="sim", input="hold resume", background=True, stream=True)
    events = until_held(stream)
    response_id = events[0].response.id  # type: ignore[union-attr]
    stream.close()
    resumed = sdk.responses.retrieve(
        response_id, stream=True, starting_after=events[-1].sequence_number
    )
    held.release("resume")
    events += resumed
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[-1].type == "response.completed"
    assert events[-1].response.output_text == "held and released"
    # The same again, from the beginning and from every place in it.
    for after in range(-1, len(events)):
        how: dict[str, Any] = {} if after < 0 else {"starting_after": after}
        again = sdk.responses.retrieve(response_id, stream=True, **how)
        assert told(list(again)) == told(events[after + 1 :])
    assert sdk.responses.retrieve(response_id).to_dict() == events[-1].response.to_dict()


def test_the_helper_takes_a_stream_up_too(held: Held, sdk: openai.OpenAI) -> None:
    response = sdk.responses.create(model="sim", input="hold helper", background=True, stream=True)
    events = until_held(response)
    held.release("helper")
    list(response)
    with sdk.responses.stream(
        response_id=events[0].response.id,  # type: ignore[union-attr]
        starting_after=events[1].sequence_number,
    ) as stream:
        types = [event.type for event in stream]
    assert types[-1] == "response.completed"


def test_the_bytes_of_a_replay_are_those_of_the_stream(held: Held) -> None:
    body = {"model": "sim", "input": "hold bytes", "background": True, "stream": True}
    with httpx.Client(base_url=held.url, trust_env=False, timeout=60) as http:
        held.release("bytes")
        live = http.post("/v1/responses", json=body).content
        path = f"/v1/responses/{final(parse_background(live))['id']}?stream=true"
        assert http.get(path).content == live
        frames = live.split(b"\n\n")
        for after in (0, 4, len(frames)):
            again = http.get(f"{path}&starting_after={after}").content
            assert again == b"\n\n".join(frames[min(after + 1, len(frames) - 2) :])
        for bad in ("-1", "x", "1.5"):
            reply = http.get(f"{path}&starting_after={bad}")
            assert bad not in check_error(reply, 400, param="starting_after", **_code(reply))


def _code(reply: httpx.Response) -> dict[str, str]:
    return {"code": reply.json()["error"]["code"]}


def parse_background(body: bytes) -> list[dict[str, Any]]:
    """Returns the events of a stream in the background, which is queued first."""
    events = [
        httpx.Response(200, content=frame.split(b"\ndata: ", 1)[1]).json()
        for frame in body.split(b"\n\n")
        if frame.startswith(b"event: ")
    ]
    assert [event["type"] for event in events[:3]] == [
        "response.created",
        "response.queued",
        "response.in_progress",
    ]
    return events


# Input items.


@pytest.mark.parametrize("order", ORDERS)
def test_input_items_are_paged_by_the_sdk(
    sdk: openai.OpenAI, order: Literal["asc", "desc"]
) -> None:
    texts: list[str] = []
    previous = ""
    for turn in range(4):
        texts += [f"{turn} {number}" for number in range(7)]
        given: Any = [{"role": "user", "content": text} for text in texts[-7:]]
        how: dict[str, Any] = {"previous_response_id": previous} if previous else {}
        response = sdk.responses.create(model="sim", input=given, **how)
        previous = response.id
        texts.append(response.output_text)
    del texts[-1]
    pages = sdk.responses.input_items.list(previous, order=order, limit=5, include=INCLUDE)
    items = list(pages)
    found = texts_of(items)
    assert found == (texts if order == "asc" else texts[::-1])
    assert len({item.id for item in items}) == len(texts)


@pytest.mark.parametrize("name", ["include", "include[]", "include%5B%5D"])
def test_include_may_be_written_in_every_way(held: Held, sdk: openai.OpenAI, name: str) -> None:
    response = sdk.responses.create(model="sim", input="Hello")
    with httpx.Client(base_url=held.url, trust_env=False, timeout=60) as http:
        path = f"/v1/responses/{response.id}/input_items"
        plain = http.get(path).json()
        query = "&".join(f"{name}={value}" for value in INCLUDE)
        assert http.get(f"{path}?{query}&limit=3").json() == plain
        # It is read, not passed over.
        reply = http.get(f"{path}?{name}={INCLUDE[0]}&{name}=everything")
        check_error(reply, 400, param="include[1]", **_code(reply))


# Conversations.


def test_a_conversation_from_its_beginning_to_its_end(sdk: openai.OpenAI) -> None:
    conversation = sdk.conversations.create(
        metadata={"topic": "colours"},
        items=[{"role": "user", "type": "message", "content": "My favourite colour is blue"}],
    )
    assert conversation.metadata == {"topic": "colours"}
    assert sdk.conversations.retrieve(conversation.id).to_dict() == conversation.to_dict()
    updated = sdk.conversations.update(conversation.id, metadata={"topic": "names"})
    assert updated.metadata == {"topic": "names"}

    first = sdk.responses.create(
        model="sim", input="Which colour did I name?", conversation=conversation.id
    )
    assert first.output_text == 'Earlier you said: "My favourite colour is blue"'
    assert first.conversation is not None
    assert first.conversation.id == conversation.id
    second = sdk.responses.create(
        model="sim", input="Hello", conversation={"id": conversation.id}, stream=True
    )
    assert list(second)[-1].type == "response.completed"
    added = sdk.conversations.items.create(
        conversation.id,
        items=[{"role": "user", "type": "message", "content": "And more"}],
        include=INCLUDE,
    )
    texts = [
        "My favourite colour is blue",
        "Which colour did I name?",
        'Earlier you said: "My favourite colour is blue"',
        "Hello",
        "You said: Hello",
        "And more",
    ]
    for order in ORDERS:
        items = list(
            sdk.conversations.items.list(conversation.id, order=order, limit=2, include=INCLUDE)
        )
        found = texts_of(items)
        assert found == (texts if order == "asc" else texts[::-1])
    newest = sdk.conversations.items.list(conversation.id, limit=1).data[0]
    assert newest.to_dict() == added.data[0].to_dict()
    item_id = newest.id
    assert item_id is not None
    kept = sdk.conversations.items.retrieve(item_id, conversation_id=conversation.id)
    assert kept.to_dict() == newest.to_dict()
    after = sdk.conversations.items.delete(item_id, conversation_id=conversation.id)
    assert after.to_dict() == updated.to_dict()
    with pytest.raises(openai.NotFoundError):
        sdk.conversations.items.retrieve(item_id, conversation_id=conversation.id)

    sdk.responses.delete(first.id)
    left = sdk.conversations.items.list(conversation.id, order="asc")
    found = texts_of(left)
    assert found == [texts[0], *texts[3:5]]

    deleted = sdk.conversations.delete(conversation.id)
    assert (deleted.id, deleted.deleted) == (conversation.id, True)
    with pytest.raises(openai.NotFoundError):
        sdk.conversations.retrieve(conversation.id)


def test_responses_of_one_conversation_wait_for_each_other(held: Held, sdk: openai.OpenAI) -> None:
    conversation = sdk.conversations.create(extra_body={"id": "chosen:1"})
    assert conversation.id == "chosen:1"
    with pytest.raises(openai.ConflictError):
        sdk.conversations.create(extra_body={"id": "chosen:1"})
    names = ["first", "second", "third"]
    asked = [
        sdk.responses.create(
            model="sim", input=f"hold {name}", conversation=conversation.id, background=True
        )
        for name in names
    ]
    # Released from the last one to the first, they end in the order in which they were asked.
    held.release(*reversed(names))
    for response in asked:
        assert wait_for(sdk, response.id).status == "completed"
    items = sdk.conversations.items.list(conversation.id, order="asc")
    found = texts_of(items)
    assert found == [text for name in names for text in (f"hold {name}", "held and released")]


# The end of the server.


def streamed(server: Server, name: str, ready: threading.Barrier) -> list[dict[str, Any]]:
    """Reads a held stream to its end, over REST."""
    body = {"model": "sim", "input": f"hold {name}", "stream": True}
    with (
        httpx.Client(base_url=server.url, trust_env=False, timeout=60) as http,
        http.stream("POST", "/v1/responses", json=body) as reply,
    ):
        pieces = reply.iter_raw()
        read = b""
        while b"response.output_text.delta" not in read:
            read += next(pieces)
        ready.wait()
        return parse_stream(read + b"".join(pieces))


def streamed_by_grpc(server: Server, name: str, ready: threading.Barrier) -> list[Any]:
    """Reads a held stream to its end, over gRPC."""
    with grpc.insecure_channel(server.grpc, [("grpc.enable_http_proxy", 0)]) as channel:
        stub: Any = ResponsesServiceStub(channel)
        events = []
        for event in stub.StreamResponse(
            CreateResponseRequest(model="sim", input_text=f"hold {name}")
        ):
            events.append(event)
            if event.HasField("output_text_delta") and len(events) < 6:
                ready.wait()
        return events


def test_new_work_is_refused_while_what_runs_comes_to_its_end(tmp_path: Path) -> None:
    names = [f"n{number}" for number in range(5)]
    ready = threading.Barrier(len(names) + 2)
    with (
        Held(tmp_path, 3_600) as server,
        ThreadPoolExecutor(len(names) + 1) as threads,
        httpx.Client(base_url=server.url, trust_env=False, timeout=60) as http,
    ):
        reading = [threads.submit(streamed, server, name, ready) for name in names]
        typed = threads.submit(streamed_by_grpc, server, "typed", ready)
        ready.wait()
        body = {"model": "sim", "input": "hold on", "background": True}
        waiting = http.post("/v1/responses", json=body).json()["id"]
        server.process.send_signal(signal.SIGTERM)
        # The signal arrives some time, and from then on everything new is refused.
        while (reply := http.post("/v1/responses", json={**body, "input": "Hello"})).is_success:
            pass
        check_error(reply, 503, type="server_error")
        assert int(reply.headers["retry-after"]) > 0
        for more in ({"stream": True}, {"background": False}):
            reply = http.post("/v1/responses", json={**body, "input": "Hello", **more})
            check_error(reply, 503, type="server_error")
        # What is there can still be asked for.
        assert http.get(f"/v1/responses/{waiting}").status_code == 200
        server.release(*names, "typed", "on")
        for read in reading:
            response = final(read.result())
            assert (response["status"], text_of(response)) == ("completed", "held and released")
        assert typed.result()[-1].HasField("completed")
        assert server.wait() == 0


def test_what_does_not_come_to_its_end_is_told_so(tmp_path: Path) -> None:
    names = [f"n{number}" for number in range(5)]
    ready = threading.Barrier(len(names) + 2)
    with (
        Held(tmp_path, 0) as server,
        ThreadPoolExecutor(len(names) + 1) as threads,
    ):
        reading = [threads.submit(streamed, server, name, ready) for name in names]
        typed = threads.submit(streamed_by_grpc, server, "typed", ready)
        ready.wait()
        server.process.send_signal(signal.SIGTERM)
        for read in reading:
            events = read.result()
            assert events[-1]["type"] == "response.failed"
            assert events[-1]["type"] in TERMINAL
            response = final(events)
            assert (response["status"], text_of(response)) == ("failed", "held")
            assert response["error"]["code"] == "server_error"
        last = typed.result()[-1]
        assert last.failed.response.error.code == "server_error"
        assert server.wait() == 0
