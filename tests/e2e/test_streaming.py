"""The bytes of a stream, and what holds while many are read, or not read to their end."""

import asyncio
import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from antiphon.transports.rest.sse import HEADERS
from tests.e2e.server import (
    DONE,
    TERMINAL,
    Server,
    final,
    parse_frames,
    parse_stream,
    read_until,
    text_of,
)

RESPONSES = "/v1/responses"

LARGE = "Repeat exactly: " + "many words " * 5_000

TEXTS = {
    "nothing": "",
    "a_line_break": "one\ntwo\r\nthree\rfour\n",
    "frame_separators": "\n\ndata: [DONE]\n\nevent: response.failed\ndata: {}\n\n",
    "emoji": "👩‍👩‍👧‍👦 🇺🇳 e\u0301 \U0010ffff",
    "separators_beyond_ascii": "a\u2028b\u2029c\x85d",
    "nul": "a\x00b\x00",
    "controls": "".join(map(chr, range(0x20))) + "\x7f\x80\x9f",
    "json_escapes": '"\\ \\u0041 \\" / </script> {"a":[1]}',
    "noncharacters": "\ufeff\ufffe\uffff\ufffd",
    "spaces": "  \t \u3000 ",
}


def body(model: str, text: str, **members: Any) -> dict[str, Any]:
    return {"model": model, "input": text, **members}


def stream(client: httpx.Client, **members: Any) -> bytes:
    reply = client.post(RESPONSES, json={"stream": True, **members})
    assert reply.status_code == 200
    return reply.content


@pytest.fixture(scope="module", params=["http1", "http2"])
def client(server: Server, request: pytest.FixtureRequest) -> Iterator[httpx.Client]:
    http2 = request.param == "http2"
    with httpx.Client(
        base_url=server.url, http1=not http2, http2=http2, trust_env=False, timeout=60
    ) as client:
        yield client


def connection_of(server: Server, limit: int | None = None) -> httpx.AsyncClient:
    limits = httpx.Limits(max_connections=limit)
    return httpx.AsyncClient(base_url=server.url, limits=limits, trust_env=False, timeout=60)


class TestBytes:
    def test_a_stream_obeys_the_rules(self, client: httpx.Client) -> None:
        reply = client.post(RESPONSES, json=body("sim", "Hello there", stream=True))
        events = parse_stream(reply.content)
        assert text_of(final(events)) == "You said: Hello there"
        assert [event["type"] for event in events].count("response.output_text.delta") == 4

    def test_an_answer_that_is_given_whole_may_be_changed_on_its_way(
        self, client: httpx.Client
    ) -> None:
        reply = client.post(RESPONSES, json=body("sim", "Hello"))
        assert reply.headers["content-type"] == "application/json"
        assert not HEADERS.keys() & reply.headers.keys()

    def test_the_headers_ask_everybody_to_pass_it_on_at_once(self, client: httpx.Client) -> None:
        reply = client.post(RESPONSES, json=body("sim", "Hello", stream=True))
        assert reply.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert HEADERS.items() <= reply.headers.items()
        assert "content-length" not in reply.headers
        assert "content-encoding" not in reply.headers

    def test_every_event_has_the_members_of_its_kind(self, client: httpx.Client) -> None:
        events = parse_stream(stream(client, model="echo", input="Hello"))
        members = {event["type"]: set(event) - {"type", "sequence_number"} for event in events}
        place = {"item_id", "output_index", "content_index"}
        assert members == {
            "response.created": {"response"},
            "response.in_progress": {"response"},
            "response.output_item.added": {"output_index", "item"},
            "response.content_part.added": {*place, "part"},
            "response.output_text.delta": {*place, "delta", "logprobs"},
            "response.output_text.done": {*place, "text", "logprobs"},
            "response.content_part.done": {*place, "part"},
            "response.output_item.done": {"output_index", "item"},
            "response.completed": {"response"},
        }

    def test_snapshots_differ_only_in_what_the_run_changes(self, client: httpx.Client) -> None:
        events = parse_stream(stream(client, model="sim", input="Hello", metadata={"a": "b"}))
        created, in_progress, completed = events[0], events[1], events[-1]
        assert created["response"] == in_progress["response"]
        assert list(completed["response"]) == list(created["response"])
        changed = {
            name
            for name, value in created["response"].items()
            if completed["response"][name] != value
        }
        assert changed == {"status", "completed_at", "output", "usage"}

    def test_an_answer_without_text_has_no_item(self, client: httpx.Client) -> None:
        events = parse_stream(stream(client, model="echo", input=""))
        assert [event["type"] for event in events] == [
            "response.created",
            "response.in_progress",
            "response.completed",
        ]

    @pytest.mark.parametrize("count", [1, 33, 127, 128, 129, 255, 256, 257, 1000, 5000])
    def test_batches_lose_and_double_nothing(self, client: httpx.Client, count: int) -> None:
        words = " ".join(map(str, range(count)))
        events = parse_stream(stream(client, model="sim", input=f"Repeat exactly: {words}"))
        assert text_of(final(events)) == words
        assert len(events) == count + 8


class TestText:
    @pytest.mark.parametrize("escaped", [True, False], ids=["escaped", "verbatim"])
    @pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
    def test_it_comes_back_unchanged(self, client: httpx.Client, text: str, escaped: bool) -> None:
        asked = body("echo", text, stream=True, metadata={"text": text})
        content = json.dumps(asked, ensure_ascii=escaped).encode()
        response = final(parse_stream(client.post(RESPONSES, content=content).content))
        assert response["metadata"] == {"text": text}
        assert [text_of(response)] == [text] if text else response["output"] == []
        assert client.get(f"{RESPONSES}/{response['id']}").json() == response

    @pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
    def test_so_it_does_without_a_stream(self, client: httpx.Client, text: str) -> None:
        response = client.post(RESPONSES, json=body("echo", text)).json()
        assert [text_of(response)] == [text] if text else response["output"] == []
        assert client.get(f"{RESPONSES}/{response['id']}").json() == response

    @pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
    def test_it_is_cut_only_between_characters(self, client: httpx.Client, text: str) -> None:
        events = parse_stream(stream(client, model="sim", input=f"Repeat exactly: {text} {text}"))
        assert text_of(final(events)) == f"{text} {text}"


class TestSizes:
    """Bodies of about 64 KiB, where buffers and windows end."""

    SIZES = range(65_500, 65_561)

    @pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
    @pytest.mark.parametrize("measured", ["request", "reply", "text"])
    async def test_a_reply_is_whole(self, server: Server, measured: str, streamed: bool) -> None:
        async with connection_of(server, 8) as client:

            async def ask(text: str) -> dict[str, int]:
                reply = await client.post(RESPONSES, json=body("echo", text, stream=streamed))
                response = final(parse_stream(reply.content)) if streamed else reply.json()
                assert text_of(response) == text
                request = len(reply.request.content)
                return {"request": request, "reply": len(reply.content), "text": len(text)}

            # Streamed, the text is there five times.
            times = 5 if measured == "reply" and streamed else 1
            # With as many digits in its usage as the others have.
            probe = 64_000 // times
            overhead = (await ask("x" * probe))[measured] - probe * times
            sizes = await asyncio.gather(
                *(ask("x" * ((size - overhead) // times)) for size in self.SIZES)
            )
        assert [each[measured] for each in sizes] == [
            size - (size - overhead) % times for size in self.SIZES
        ]

    @pytest.mark.parametrize("size", [1 << 20, 4 << 20])
    def test_so_is_one_of_mebibytes(self, client: httpx.Client, size: int) -> None:
        text = "0123456789abcdef" * (size // 16)
        events = parse_stream(stream(client, model="echo", input=text))
        assert text_of(final(events)) == text


class TestContinuing:
    def test_a_response_can_be_continued_the_moment_its_end_is_read(self, server: Server) -> None:
        previous: str | None = None
        with httpx.Client(base_url=server.url, trust_env=False, timeout=60) as client:
            for turn in range(200):
                asked = body("echo", f"turn {turn}", stream=True, previous_response_id=previous)
                with client.stream("POST", RESPONSES, json=asked) as reply:
                    assert reply.status_code == 200
                    pieces = reply.iter_raw()
                    read = read_until(pieces, b"event: response.completed\n")
                    previous = re.findall(rb'"id":"(resp_\w+)"', read)[0].decode()
                    # Another connection, while this one has not been read to its end.
                    child = client.post(
                        RESPONSES, json=body("echo", "child", previous_response_id=previous)
                    )
                    assert child.status_code == 200
                    assert child.json()["previous_response_id"] == previous
                    for piece in pieces:
                        read += piece
                assert final(parse_stream(read))["id"] == previous

    def test_and_read_as_it_was_told(self, client: httpx.Client) -> None:
        response = final(parse_stream(stream(client, model="sim", input="Hello")))
        assert client.get(f"{RESPONSES}/{response['id']}").json() == response


class TestManyAtOnce:
    async def test_no_stream_has_anything_of_another(self, server: Server) -> None:
        async with connection_of(server) as client:

            async def ask(number: int) -> None:
                marker = f"marker-{number:03}-end"
                text = f"{marker} " * 200
                asked = body("sim", f"Repeat exactly: {text}", stream=True, user=marker)
                reply = await client.post(RESPONSES, json=asked)
                response = final(parse_stream(reply.content))
                assert text_of(response) == text
                assert response["user"] == marker
                assert set(re.findall(rb"marker-\d+-end", reply.content)) == {marker.encode()}

            await asyncio.gather(*map(ask, range(100)))

    async def test_every_response_has_an_id_of_its_own(self, server: Server) -> None:
        async with connection_of(server, 20) as client:

            async def ask() -> tuple[str, str]:
                reply = await client.post(RESPONSES, json=body("echo", "x"))
                response = reply.json()
                return response["id"], response["output"][0]["id"]

            ids = await asyncio.gather(*(ask() for _ in range(200)))
        assert len({each for pair in ids for each in pair}) == 400


class TestLeaving:
    @pytest.mark.parametrize("wanted", [b"event: response.created\n", b"output_text.delta"])
    def test_a_client_that_leaves_harms_nobody(self, server: Server, wanted: bytes) -> None:
        with httpx.Client(base_url=server.url, trust_env=False, timeout=60) as client:
            ids = []
            for _ in range(20):
                with client.stream(
                    "POST", RESPONSES, json=body("sim", LARGE, stream=True)
                ) as reply:
                    read = read_until(reply.iter_raw(), wanted)
                ids.append(re.findall(rb'"id":"(resp_\w+)"', read)[0].decode())
            assert client.get("/healthz").json() == {"status": "ok"}
            assert text_of(client.post(RESPONSES, json=body("echo", "still here")).json())
            for response_id in ids:
                response = until_ended(client, response_id)
                assert response["status"] in ("completed", "cancelled")

    def test_one_that_reads_nothing_stops_nobody(self, server: Server) -> None:
        asked = body("sim", LARGE, stream=True)
        with (
            httpx.Client(base_url=server.url, trust_env=False, timeout=60) as client,
            ExitStack() as stack,
        ):
            unread = [
                stack.enter_context(client.stream("POST", RESPONSES, json=asked)) for _ in range(3)
            ]
            for _ in range(20):
                parse_stream(stream(client, model="sim", input="Hello"))
            for reply in unread:
                assert text_of(final(parse_stream(reply.read()))) == LARGE.partition(": ")[2]


def until_ended(client: httpx.Client, response_id: str) -> dict[str, Any]:
    """Asks again until the response has ended; that it never does is for the time limit to tell."""
    while True:
        reply = client.get(f"{RESPONSES}/{response_id}")
        assert reply.status_code == 200
        response: dict[str, Any] = reply.json()
        if response["status"] != "in_progress":
            return response


def test_frames_leave_one_by_one(http: httpx.Client) -> None:
    """What is read first is whole frames, and not the whole answer."""
    with http.stream("POST", RESPONSES, json=body("sim", LARGE, stream=True)) as reply:
        pieces = reply.iter_raw()
        first = next(pieces)
        assert first.endswith(b"\n\n")
        assert TERMINAL.isdisjoint(event["type"] for event in parse_frames(first))
        rest = b"".join(pieces)
    assert rest.endswith(DONE)
