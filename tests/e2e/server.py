"""The server as its users run it: a child process, asked over the network."""

from __future__ import annotations

import http.client
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Final, Self

import httpx
import psutil

__all__ = [
    "TERMINAL",
    "Event",
    "Server",
    "check_error",
    "check_events",
    "dies",
    "final",
    "listening",
    "parse_frames",
    "parse_stream",
    "raw",
    "read_until",
    "run",
    "text_of",
]

Event = dict[str, Any]

DONE: Final = b"data: [DONE]\n\n"
TERMINAL: Final = frozenset({"response.completed", "response.failed", "response.incomplete"})

_PYTHON: Final = (sys.executable, "-m")
_COMMAND: Final = (*_PYTHON, "antiphon.cli", "serve")
_HANGING_SECONDS: Final = 60


def _environment(given: Mapping[str, str]) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("ANTIPHON_")}
    return {**own, **given}


class Server:
    """`antiphon serve` as a child process, killed on the way out if it still runs.

    Args:
        arguments: the arguments of the command.
        environment: variables on top of this process's, which lends none of its `ANTIPHON_*`.
        module: the module that is run.
    """

    def __init__(
        self,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        module: str = "antiphon.cli",
    ) -> None:
        self._log = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - see _end
        self.process = subprocess.Popen(
            (*_PYTHON, module, "serve", *arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=_environment(environment or {}),
            encoding="utf-8",
        )
        self.greeting = ""
        try:
            self.gateway, self.grpc = self._addresses()
        except BaseException:
            self._end()
            raise

    def _addresses(self) -> tuple[str, str]:
        gateway = grpc = ""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.greeting += line
            name, _, address = line.partition(": ")
            if name == "Gateway":
                gateway = address.split()[0].removeprefix("http://")
            elif name == "gRPC":
                grpc = address.strip()
            # With a gateway, an example is the end of what is said.
            if grpc and (not gateway or "curl" in line):
                return gateway, grpc
        raise AssertionError(f"the server did not start: {self.log}")

    @property
    def url(self) -> str:
        """The address of the gateway as a URL."""
        return f"http://{self.gateway}"

    @property
    def log(self) -> str:
        """What has been written to standard error so far."""
        self._log.seek(0)
        return self._log.read()

    @property
    def envoy(self) -> psutil.Process:
        """The one child of the server."""
        (envoy,) = psutil.Process(self.process.pid).children(recursive=True)
        return envoy

    def wait(self) -> int:
        """Waits for the server's end, and returns its exit code."""
        return self.process.wait(_HANGING_SECONDS)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Sends a signal, and returns the exit code."""
        self.process.send_signal(number)
        return self.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def _end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._log.close()


def run(
    *arguments: str, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs `antiphon serve` where it is expected to end by itself."""
    return subprocess.run(
        (*_COMMAND, *arguments),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=_environment(environment or {}),
        encoding="utf-8",
        timeout=_HANGING_SECONDS,
        check=False,
    )


@contextmanager
def dies(pid: int) -> Iterator[None]:
    """Checks that a process, running now and nobody's child here, ends because of the block."""
    descriptor = os.pidfd_open(pid)
    try:
        yield
        assert select.select([descriptor], [], [], _HANGING_SECONDS)[0], "the process lives on"
    finally:
        os.close(descriptor)


def listening(process: psutil.Process) -> set[tuple[str, int]]:
    """Returns the addresses and ports that a process listens on, IPv4 ones in their own form."""
    return {
        (each.laddr.ip.removeprefix("::ffff:"), each.laddr.port)
        for each in process.net_connections("inet")
        if each.status == psutil.CONN_LISTEN
    }


def raw(address: str, request: bytes, method: str = "GET") -> httpx.Response:
    """Sends a request as it is, however malformed, on a connection of its own.

    Args:
        address: host and port.
        request: every byte of the request.
        method: its method, on which it depends whether the answer has a body.
    """
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), _HANGING_SECONDS) as connection:
        connection.sendall(request)
        answer = http.client.HTTPResponse(connection, method=method)
        answer.begin()
        with answer:
            return httpx.Response(answer.status, headers=answer.getheaders(), content=answer.read())


def read_until(pieces: Iterator[bytes], wanted: bytes) -> bytes:
    """Reads pieces until something stands among them, and returns all of them."""
    read = b""
    while wanted not in read:
        read += next(pieces)
    return read


def check_error(
    reply: httpx.Response,
    status: int,
    *,
    param: str | None = None,
    code: str | None = None,
    type: str = "invalid_request_error",  # noqa: A002 - the name of the member
    secret: str | None = None,
) -> str:
    """Checks that a reply is an error as the API has them, and returns its message.

    Args:
        reply: the reply.
        status: its HTTP status.
        param: `error.param`.
        code: `error.code`.
        type: `error.type`.
        secret: a part of the request, which must not come back.
    """
    assert (reply.status_code, reply.headers["content-type"]) == (status, "application/json")
    body = reply.json()
    assert list(body) == ["error"]
    assert list(body["error"]) == ["message", "type", "param", "code"]
    message = body["error"]["message"]
    assert body["error"] == {"message": message, "type": type, "param": param, "code": code}
    assert isinstance(message, str)
    assert message.endswith(".")
    assert secret is None or secret not in reply.text
    return message


def parse_frames(body: bytes) -> list[Event]:
    """Returns the events of whole frames, held to the rules for their bytes."""
    # Neither line breaks of other kinds nor what some readers take for one.
    for separator in ("\r", "\x85", "\u2028", "\u2029"):
        assert separator.encode() not in body
    assert body.endswith(b"\n\n")
    events = []
    for frame in body[:-2].split(b"\n\n"):
        named, given = frame.split(b"\n")
        assert named.startswith(b"event: ")
        assert given.startswith(b"data: {")
        event: Event = json.loads(given.removeprefix(b"data: "))
        assert event["type"] == named.removeprefix(b"event: ").decode()
        events.append(event)
    return events


def parse_stream(body: bytes) -> list[Event]:
    """Returns the events of a whole stream, held to the rules for its bytes and its order."""
    assert body.endswith(DONE)
    events = parse_frames(body.removesuffix(DONE))
    check_events(events)
    return events


def check_events(events: list[Event]) -> None:
    """Checks the order and the numbers of a whole run that writes one message or none."""
    types = [event["type"] for event in events]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert types[:2] == ["response.created", "response.in_progress"]
    assert [name for name in types if name in TERMINAL] == types[-1:]
    shown = [events[0], events[1], events[-1]]
    assert len({event["response"]["id"] for event in shown}) == 1
    assert [event["response"]["status"] for event in shown[:2]] == ["in_progress"] * 2
    assert [event["response"]["output"] for event in shown[:2]] == [[], []]
    middle = types[2:-1]
    output = events[-1]["response"]["output"]
    if not middle:
        assert output == []
        return
    deltas = [event["delta"] for event in events if event["type"].endswith(".delta")]
    assert middle == [
        "response.output_item.added",
        "response.content_part.added",
        *["response.output_text.delta"] * len(deltas),
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
    ]
    added, part, *_, text_done, part_done, item_done = events[2:-1]
    (item,) = output
    assert item_done["item"] == item
    assert {**item, "content": [], "status": "in_progress"} == added["item"]
    assert item["content"] == [part_done["part"]]
    assert part["part"] == {**part_done["part"], "text": ""}
    assert "".join(deltas) == text_done["text"] == part_done["part"]["text"]
    assert {event["output_index"] for event in events[2:-1]} == {0}
    assert {event["content_index"] for event in events[3:-2]} == {0}
    assert {event["item_id"] for event in events[3:-2]} == {item["id"]}


def final(events: list[Event]) -> dict[str, Any]:
    """Returns the response that a run ended with."""
    response: dict[str, Any] = events[-1]["response"]
    return response


def text_of(response: dict[str, Any]) -> str:
    """Returns the text of a response that is one message."""
    (item,) = response["output"]
    (part,) = item["content"]
    text: str = part["text"]
    return text
