"""Scripts of tests for Node, and what they report."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.server import Server
from tests.support.npm import Npm, run

__all__ = ["KEY", "Project", "Result"]

KEY: Final = "sk-of-a-test"

_HANGING_SECONDS: Final = 100


@dataclass(frozen=True)
class Result:
    """What became of one test of a script.

    Args:
        name: the name of the test.
        error: what is wrong, with the place in the script; or None.
        skipped: whether it was passed over.
    """

    name: str
    error: str | None
    skipped: bool


@dataclass(frozen=True)
class Project:
    """A directory of scripts in TypeScript.

    Args:
        npm: Node and the packages.
        directory: where the scripts are.
    """

    npm: Npm
    directory: Path

    def compile(self) -> None:
        """Checks the types of every script, as the users of a client do, and compiles it."""
        try:
            run(self.npm.tool("tsc"), "--project", self.directory)
        except AssertionError as error:
            pytest.fail(f"the scripts do not compile: {error}", pytrace=False)

    def run(self, name: str, server: Server, guarded: Server) -> list[Result]:
        """Runs a script in a process of its own.

        Args:
            name: the name of the script.
            server: what its clients ask.
            guarded: a server that asks for a key.
        """
        out = self.directory / "out"
        with subprocess.Popen(
            (
                self.npm.node,
                "--enable-source-maps",
                f"--test-reporter={out / 'reporter.js'}",
                "--test-reporter-destination=stdout",
                out / f"{name}.js",
            ),
            cwd=self.directory,
            # Nothing of this process's, which may steer a client or send it through a proxy.
            env={
                "PATH": os.environ["PATH"],
                "ANTIPHON_URL": server.url,
                "ANTIPHON_GUARDED_URL": guarded.url,
                "ANTIPHON_GUARDED_KEY": KEY,
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        ) as process:
            try:
                out_text, error_text = process.communicate(timeout=_HANGING_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                out_text, error_text = process.communicate()
                raise AssertionError(f"{name} hangs: {_last(out_text)}{error_text}") from None
        results = [Result(**json.loads(line)) for line in out_text.split("\n")[:-1]]
        failed = any(result.error is not None for result in results)
        assert process.returncode == int(failed), f"{name} broke off: {error_text}"
        # A test that fails may leave something behind that is told there.
        assert failed or not error_text, error_text
        return results


def _last(told: str) -> str:
    """Returns the last line, in words: what was still in order."""
    *lines, _ = told.split("\n")
    return f"the last test to end was {lines[-1]}\n" if lines else "no test ended\n"
