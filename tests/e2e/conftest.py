from collections.abc import Iterator

import httpx
import pytest

from tests.e2e.server import Server

SMALL_BODY_BYTES = 1024 * 1024

SMALL = f"""\
max_body_bytes = {SMALL_BODY_BYTES}

[models]
parrot = "echo"

[store]
default = false
"""


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """The server as it is without a configuration."""
    with Server("--port", "0", "--grpc-port", "0") as server:
        yield server
        assert server.stop() == 0
        # Whatever clients did, nothing failed inside.
        assert not server.log, server.log


@pytest.fixture(scope="session")
def small_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that takes little, stores nothing unasked and knows one model."""
    config = tmp_path_factory.mktemp("small") / "antiphon.toml"
    config.write_text(SMALL)
    with Server("--port", "0", "--grpc-port", "0", "--config", str(config)) as server:
        yield server
        assert server.stop() == 0
        assert not server.log, server.log


@pytest.fixture(scope="session")
def http(server: Server) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, trust_env=False, timeout=60) as client:
        yield client
