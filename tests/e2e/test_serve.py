"""The command `antiphon serve`: how it starts, what it refuses, and how it ends."""

import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import grpc
import httpx
import psutil
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.e2e.server import (
    TERMINAL,
    Server,
    check_error,
    dies,
    final,
    listening,
    parse_stream,
    read_until,
    run,
    text_of,
)

ANY_PORTS = ("--port", "0", "--grpc-port", "0")

RESPONSES = "/v1/responses"
HELLO = {"model": "sim", "input": "Hello"}
LARGE = {"model": "sim", "input": "Repeat exactly: " + "many words " * 20_000, "stream": True}


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Server]:
    """A server that a test may end, with a folder of its own for what is temporary."""
    with Server(*ANY_PORTS, environment={"TMPDIR": str(tmp_path)}) as server:
        yield server


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that somebody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def asked(server: Server) -> str:
    """Asks through the gateway, and returns the text."""
    with httpx.Client(base_url=server.url, trust_env=False, timeout=60) as http:
        return text_of(http.post(RESPONSES, json=HELLO).json())


def serves_grpc(server: Server) -> bool:
    with grpc.insecure_channel(server.grpc, [("grpc.enable_http_proxy", 0)]) as channel:
        health: Any = health_pb2_grpc.HealthStub(channel)
        answer: health_pb2.HealthCheckResponse = health.Check(health_pb2.HealthCheckRequest())
    return answer.status == health_pb2.HealthCheckResponse.SERVING


def refused(
    *arguments: str, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs a command that fails to start, and checks that it says why in words."""
    done = run(*arguments, environment=environment)
    assert done.returncode != 0
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("Error: ")
    return done


class TestStart:
    def test_the_addresses_are_printed(self, server: Server) -> None:
        assert re.match(
            r"Gateway: http://127\.0\.0\.1:\d+ .*\ngRPC:    127\.0\.0\.1:\d+\n", server.greeting
        )
        assert ":0 " not in server.greeting
        assert server.gateway != server.grpc

    def test_the_printed_command_works(self, server: Server) -> None:
        command = re.search(r"curl -N (\S+) -H '(.*?): (.*?)' -d '(.*?)'\n", server.greeting)
        assert command is not None
        url, name, value, body = command.groups()
        reply = httpx.post(url, headers={name: value}, content=body, trust_env=False)
        assert text_of(final(parse_stream(reply.content))) == "You said: Hello"

    def test_nobody_else_can_connect(self, server: Server) -> None:
        process = psutil.Process(server.process.pid)
        (envoy,) = process.children()
        assert listening(process) == {("127.0.0.1", int(server.grpc.rpartition(":")[2]))}
        assert listening(envoy) == {("127.0.0.1", int(server.gateway.rpartition(":")[2]))}

    def test_chosen_ports_are_used_even_if_they_were_in_use_just_now(self, own: Server) -> None:
        assert asked(own) == "You said: Hello"
        assert own.stop() == 0
        ports = [each.rpartition(":")[2] for each in (own.gateway, own.grpc)]
        with Server("--port", ports[0], "--grpc-port", ports[1]) as again:
            assert (again.gateway, again.grpc) == (own.gateway, own.grpc)
            assert asked(again) == "You said: Hello"
            assert serves_grpc(again)

    def test_a_host_can_be_chosen(self) -> None:
        with Server("--host", "127.0.0.2", *ANY_PORTS) as server:
            assert server.gateway.startswith("127.0.0.2:")
            assert server.grpc.startswith("127.0.0.2:")
            assert asked(server) == "You said: Hello"
            assert serves_grpc(server)
            assert {host for host, _ in listening(server.envoy)} == {"127.0.0.2"}

    @pytest.mark.parametrize("by", ["argument", "environment"])
    def test_the_gateway_can_be_left_out(self, by: str) -> None:
        arguments = ["--no-gateway"] if by == "argument" else []
        environment = {"ANTIPHON_NO_GATEWAY": "1"} if by == "environment" else {}
        with Server("--grpc-port", "0", *arguments, environment=environment) as server:
            assert server.gateway == ""
            assert serves_grpc(server)
            assert psutil.Process(server.process.pid).children() == []
            assert server.stop() == 0
            assert not server.log, server.log


class TestSettings:
    def test_they_come_from_the_environment(self) -> None:
        environment = {
            "ANTIPHON_GRPC_PORT": "0",
            "ANTIPHON_PORT": "0",
            "ANTIPHON_HOST": "127.0.0.3",
        }
        with Server(environment=environment) as server:
            assert server.gateway.startswith("127.0.0.3:")
            assert asked(server) == "You said: Hello"

    def test_arguments_stand_above_the_environment_and_that_above_the_file(
        self, tmp_path: Path, taken: int
    ) -> None:
        config = tmp_path / "antiphon.toml"
        config.write_text(f'host = "127.0.0.4"\nport = {taken}\ngrpc_port = {taken}\n')
        environment = {"ANTIPHON_CONFIG": str(config), "ANTIPHON_PORT": str(taken)}
        with Server(*ANY_PORTS, environment=environment) as server:
            assert server.gateway.startswith("127.0.0.4:")
            assert str(taken) not in server.greeting

    def test_a_file_says_which_models_there_are(self, small_server: Server) -> None:
        with httpx.Client(base_url=small_server.url, trust_env=False, timeout=60) as http:
            assert [each["id"] for each in http.get("/v1/models").json()["data"]] == ["parrot"]
            check_error(
                http.post(RESPONSES, json=HELLO), 404, param="model", code="model_not_found"
            )

    @pytest.mark.parametrize(
        ("text", "key"),
        [
            ("prot = 8080", "prot"),
            ('port = "8080"', "port"),
            ("grpc_port = 65536", "grpc_port"),
            ("[store]\nmax = 0", "store.max"),
            ('[models]\nsim = "gpt"', "models"),
        ],
    )
    def test_a_wrong_key_is_named(self, tmp_path: Path, text: str, key: str) -> None:
        config = tmp_path / "antiphon.toml"
        config.write_text(text)
        done = refused("--config", str(config))
        assert f"{config}: {key}" in done.stderr

    def test_so_is_a_file_that_is_not_toml(self, tmp_path: Path) -> None:
        config = tmp_path / "antiphon.toml"
        config.write_text("port = = 1")
        done = refused(*ANY_PORTS, "--config", str(config))
        assert f"{config}: not valid TOML" in done.stderr

    def test_and_one_that_is_not_there(self, tmp_path: Path) -> None:
        missing = tmp_path / "missing.toml"
        done = refused(*ANY_PORTS, environment={"ANTIPHON_CONFIG": str(missing)})
        assert f"{missing}: No such file" in done.stderr

    def test_a_wrong_value_of_the_command_line_is_named(self) -> None:
        assert "port" in refused("--port", "65536", "--grpc-port", "0").stderr
        assert "ANTIPHON_PORT" in refused(environment={"ANTIPHON_PORT": "http"}).stderr

    def test_a_host_that_is_none_is_named(self) -> None:
        assert "nowhere.invalid" in refused("--host", "nowhere.invalid", *ANY_PORTS).stderr

    def test_an_unknown_flag_is_named(self) -> None:
        done = refused("--prot", "8080")
        assert done.returncode == 2
        assert "--prot" in done.stderr

    def test_help_says_what_there_is(self) -> None:
        done = run("--help")
        assert done.returncode == 0
        for name in ("PORT", "GRPC_PORT", "HOST", "CONFIG", "NO_GATEWAY"):
            assert f"ANTIPHON_{name}" in done.stdout
            assert f"--{name.lower().replace('_', '-')}" in done.stdout


class TestTakenPort:
    def test_the_gateways_is_named(self, taken: int) -> None:
        done = refused("--port", str(taken), "--grpc-port", "0")
        assert str(taken) in done.stderr
        assert "in use" in done.stderr
        assert len(done.stderr.splitlines()) == 1

    def test_so_is_that_of_grpc(self, taken: int) -> None:
        done = refused("--port", "0", "--grpc-port", str(taken))
        assert str(taken) in done.stderr
        assert "in use" in done.stderr

    @pytest.mark.parametrize("option", ["--port", "--grpc-port"])
    def test_a_second_server_does_not_share_it(self, server: Server, option: str) -> None:
        address = server.gateway if option == "--port" else server.grpc
        port = address.rpartition(":")[2]
        done = refused(*ANY_PORTS, option, port)
        assert port in done.stderr
        assert asked(server) == "You said: Hello"

    def test_one_port_cannot_be_both(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = str(listener.getsockname()[1])
        assert port in refused("--port", port, "--grpc-port", port).stderr


class TestEnd:
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_a_signal_stops_it_cleanly(
        self, own: Server, tmp_path: Path, number: signal.Signals
    ) -> None:
        assert asked(own)
        assert list(tmp_path.iterdir())
        envoy = own.envoy
        with dies(envoy.pid):
            assert own.stop(number) == 0
        assert not envoy.is_running()
        assert list(tmp_path.iterdir()) == []
        assert not own.log, own.log

    def test_a_signal_sent_twice_does_too(self, own: Server) -> None:
        with dies(own.envoy.pid):
            own.process.send_signal(signal.SIGINT)
            assert own.stop(signal.SIGINT) == 0

    def test_an_interrupt_from_the_terminal_is_for_the_server_alone(self, server: Server) -> None:
        """Envoy is in another session, so that streams can end before it does."""
        assert os.getsid(server.envoy.pid) != os.getsid(server.process.pid)

    @pytest.mark.parametrize(
        ("number", "http2"),
        [(signal.SIGINT, False), (signal.SIGTERM, True)],
        ids=["http1", "http2"],
    )
    def test_a_stream_is_told_its_end(
        self, own: Server, number: signal.Signals, http2: bool
    ) -> None:
        with (
            httpx.Client(
                base_url=own.url, http1=not http2, http2=http2, trust_env=False, timeout=60
            ) as http,
            http.stream("POST", RESPONSES, json=LARGE) as reply,
        ):
            pieces = reply.iter_raw()
            read = next(pieces)
            own.process.send_signal(number)
            read += b"".join(pieces)
        events = parse_stream(read)
        assert events[-1]["type"] in TERMINAL
        assert own.wait() == 0

    def test_so_is_one_that_has_been_written_and_not_yet_read(self, own: Server) -> None:
        """The rest is on its way through the gateway, which must not end before."""
        text = "0123456789" * 400_000
        with (
            httpx.Client(base_url=own.url, trust_env=False, timeout=60) as http,
            http.stream(
                "POST", RESPONSES, json={"model": "echo", "input": text, "stream": True}
            ) as reply,
        ):
            pieces = reply.iter_raw()
            read = read_until(pieces, b"event: response.output_text.delta\n")
            own.process.terminate()
            read += b"".join(pieces)
        assert text_of(final(parse_stream(read))) == text
        assert own.wait() == 0

    def test_whoever_watches_the_health_is_told(self, own: Server) -> None:
        with grpc.insecure_channel(own.grpc, [("grpc.enable_http_proxy", 0)]) as channel:
            health: Any = health_pb2_grpc.HealthStub(channel)
            watch = health.Watch(health_pb2.HealthCheckRequest())
            answers = iter(watch)
            assert next(answers).status == health_pb2.HealthCheckResponse.SERVING
            own.process.terminate()
            assert next(answers).status == health_pb2.HealthCheckResponse.NOT_SERVING
            watch.cancel()
            assert own.wait() == 0

    def test_a_client_that_stays_connected_does_not_keep_it(self, own: Server) -> None:
        with httpx.Client(base_url=own.url, trust_env=False, timeout=60) as http:
            assert http.get("/healthz").status_code == 200
            assert own.stop() == 0
            with pytest.raises(httpx.TransportError):
                http.get("/healthz")

    @pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
    def test_without_its_gateway_it_stops_and_says_why(
        self, own: Server, tmp_path: Path, number: signal.Signals
    ) -> None:
        assert asked(own)
        own.envoy.send_signal(number)
        assert own.wait() == 1
        (line,) = own.log.splitlines()
        assert line.startswith("Error: the gateway ")
        assert list(tmp_path.iterdir()) == []

    def test_the_gateway_does_not_outlive_it(self, own: Server) -> None:
        with dies(own.envoy.pid):
            own.process.kill()
            assert own.wait() == -signal.SIGKILL


def test_two_servers_do_not_know_each_other(server: Server, small_server: Server) -> None:
    with (
        httpx.Client(base_url=server.url, trust_env=False, timeout=60) as one,
        httpx.Client(base_url=small_server.url, trust_env=False, timeout=60) as other,
    ):
        response = one.post(RESPONSES, json=HELLO).json()
        assert one.get(f"{RESPONSES}/{response['id']}").status_code == 200
        check_error(other.get(f"{RESPONSES}/{response['id']}"), 404, param="response_id")
