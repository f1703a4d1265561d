"""What is told where the packages of npm cannot be had."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support import npm


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(npm, "_CACHE", tmp_path / "build")


def command(folder: Path, name: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_without_node_it_is_skipped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(pytest.skip.Exception, match="Node 20 or newer and npm are needed"):
        npm.installed()


def test_with_an_old_node_it_is_skipped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    command(tmp_path / "bin", "node", "echo v18.19.0")
    command(tmp_path / "bin", "npm", "exit 1")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(pytest.skip.Exception, match=r"and v18\.19\.0 is installed"):
        npm.installed()


def test_without_the_registry_it_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    command(tmp_path / "bin", "node", "echo v22.0.0")
    command(tmp_path / "bin", "npm", "echo nobody answers; exit 1")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(pytest.fail.Exception, match=r"npm cannot install .*: nobody"):
        npm.installed()
    # Nothing is left that could be taken for what was to be installed.
    assert [path.name for path in (tmp_path / "build").iterdir()] == ["lock"]


def test_it_is_installed_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told = tmp_path / "told"
    command(tmp_path / "bin", "node", "echo v22.0.0")
    command(tmp_path / "bin", "npm", f"echo installs >> {told}; /bin/mkdir node_modules")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with ThreadPoolExecutor(4) as threads:
        found = set(threads.map(lambda _: npm.installed().modules, range(8)))
    (modules,) = found
    assert modules.is_dir()
    assert told.read_text() == "installs\n"


def test_every_version_is_exact() -> None:
    package = json.loads((Path(npm.__file__).parent / "packages" / "package.json").read_text())
    for version in {**package["dependencies"], **package["devDependencies"]}.values():
        assert version[0].isdigit()
