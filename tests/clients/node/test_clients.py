"""Clients from npm, as they are, through the gateway."""

import pytest

from tests.clients.node.conftest import HERE
from tests.clients.node.script import Project
from tests.e2e.server import Server
from tests.support.npm import Npm, run


@pytest.mark.parametrize("script", ["openai", "ai"])
def test_it_is_served(
    script: str, project: Project, server: Server, guarded: Server, subtests: pytest.Subtests
) -> None:
    results = project.run(script, server, guarded)
    assert results
    for result in results:
        with subtests.test(result.name):
            assert not result.skipped
            if result.error is not None:
                pytest.fail(result.error, pytrace=False)


def test_the_scripts_are_formatted(npm: Npm) -> None:
    run(npm.tool("prettier"), "--check", "--log-level=warn", HERE)
