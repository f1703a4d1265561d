"""What npm installs for the tests: clients of the server, a code generator and a compiler."""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tools.schema import ROOT

__all__ = ["Npm", "installed", "run"]

OLDEST_NODE: Final = 20
"""The oldest major version of Node that the tests were run with."""

_PACKAGES: Final = Path(__file__).parent / "packages"
_FILES: Final = ("package.json", "package-lock.json", ".npmrc")
_CACHE: Final = ROOT / "build" / "npm"
_HANGING_SECONDS: Final = 100
_OPTIONS: Final = (
    "--ignore-scripts",
    "--no-audit",
    "--no-fund",
    "--no-update-notifier",
    "--loglevel=error",
    # Where the registry cannot be reached, there is no point in waiting for it.
    "--fetch-retries=1",
    "--fetch-retry-mintimeout=1000",
)
# As it is when the tests are loaded: a test may take a proxy away that the registry needs.
_ENVIRONMENT: Final = dict(os.environ)


@dataclass(frozen=True)
class Npm:
    """Node, and the packages that were installed for it.

    Args:
        node: the interpreter.
        modules: the directory `node_modules` with the packages.
    """

    node: Path
    modules: Path

    def tool(self, name: str) -> Path:
        """Returns the command that a package brings."""
        return self.modules / ".bin" / name

    def link(self, directory: Path) -> None:
        """Lets the modules in a directory import the packages."""
        (directory / "node_modules").symlink_to(self.modules)
        (directory / "package.json").write_text('{ "private": true, "type": "module" }\n')


def run(
    *command: str | Path,
    directory: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> str:
    """Runs a command that must succeed, and returns what it says.

    Args:
        command: the command and its arguments.
        directory: where it runs; here, if left out.
        environment: its whole environment; this process's, if left out.
    """
    done = subprocess.run(
        command,
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=_HANGING_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def installed() -> Npm:
    """Returns the packages, which are installed if they are not there yet.

    They stay in `build`, in a directory that is named by what was to be installed. Skips the test
    where Node or npm is missing, and fails it where npm cannot install.
    """
    node, installer = shutil.which("node"), shutil.which("npm")
    if node is None or installer is None:
        pytest.skip(f"Node {OLDEST_NODE} or newer and npm are needed, and are not installed")
    version = run(node, "--version").strip()
    if int(version.removeprefix("v").split(".")[0]) < OLDEST_NODE:
        pytest.skip(f"Node {OLDEST_NODE} or newer is needed, and {version} is installed")
    wanted = hashlib.sha256(f"{platform.system()} {platform.machine()}".encode())
    for name in _FILES:
        wanted.update((_PACKAGES / name).read_bytes())
    directory = _CACHE / wanted.hexdigest()[:16]
    _CACHE.mkdir(parents=True, exist_ok=True)
    with (_CACHE / "lock").open("w") as lock:
        # Another run of the tests may want the same.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not directory.exists():
            _install(installer, directory)
    return Npm(Path(node), directory / "node_modules")


def _install(installer: str, directory: Path) -> None:
    """Installs into a directory, which appears when it is complete."""
    with tempfile.TemporaryDirectory(dir=_CACHE) as temporary:
        for name in _FILES:
            shutil.copy(_PACKAGES / name, temporary)
        try:
            run(*(installer, "ci", *_OPTIONS), directory=Path(temporary), environment=_ENVIRONMENT)
        except (AssertionError, subprocess.TimeoutExpired) as error:
            pytest.fail(f"npm cannot install the packages: {str(error)[:2000]}", pytrace=False)
        done = Path(temporary, "done")
        done.mkdir()
        Path(temporary, "node_modules").rename(done / "node_modules")
        done.rename(directory)
