import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from antiphon.core.keys import hash_key
from tests.clients.node.script import KEY, Project
from tests.e2e.server import Server
from tests.support.npm import Npm

HERE = Path(__file__).parent

BROKEN_OFF = "backend ended without finishing"
"""What is logged of a run that is asked to break off."""

GUARDED = """\
[[api_keys]]
hash = "{hash}"

[limits]
requests_per_minute = 1

[models]
sim = "sim"
"""


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """The server as it is without a configuration."""
    with Server("--port", "0", "--grpc-port", "0") as server:
        yield server
        assert server.stop() == 0
        # Whatever clients did, nothing failed inside but what they asked to.
        others = [line for line in server.log.splitlines() if BROKEN_OFF not in line]
        assert others == []


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that asks for a key, knows one model and lets one request in."""
    config = tmp_path_factory.mktemp("guarded") / "antiphon.toml"
    config.write_text(GUARDED.format(hash=hash_key(KEY)))
    with Server("--port", "0", "--grpc-port", "0", "--config", str(config)) as server:
        yield server
        assert server.stop() == 0
        assert not server.log, server.log


@pytest.fixture(scope="session")
def project(npm: Npm, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The scripts of this folder, compiled beside the packages that they import."""
    directory = tmp_path_factory.mktemp("clients") / "node"
    shutil.copytree(HERE, directory, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    npm.link(directory)
    project = Project(npm, directory)
    project.compile()
    return project
