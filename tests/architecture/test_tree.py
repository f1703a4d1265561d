import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tools.schema import ROOT, SERVER

SKIPPED = {".git", ".venv", ".venv-lock", "build", "dist", "gen", "node_modules", "__pycache__"}
CACHES = {".hypothesis", ".mypy_cache", ".pytest_cache", ".ruff_cache"}

# Folders of one machine: a home, or where somebody happened to work.
MACHINE = re.compile(
    r"(?<![\w./~$}-])/(?:root|work|home/\w+|Users/\w+|var/folders)/[\w.]", re.IGNORECASE
)
# Whoever installs chooses the registry; a name in the tree would override the choice.
REGISTRY = re.compile(
    r"pypi\.org|pythonhosted\.org|npmjs\.(?:org|com)|yarnpkg\.com|crates\.io"
    r"|proxy\.golang\.org|maven\.(?:apache\.)?org|deb\.debian\.org",
    re.IGNORECASE,
)

LONGEST_MODULE = 700
NO_NOUNS = {"common", "helper", "helpers", "misc", "util", "utils"}


def _files(root: Path = ROOT) -> Iterator[Path]:
    folders = [root]
    while folders:
        for path in folders.pop().iterdir():
            if path.is_dir():
                if path.name not in SKIPPED | CACHES:
                    folders.append(path)
            elif path.name != ".git":
                # A file in a worktree of git: it says where the repository is.
                yield path


def _mentions(pattern: re.Pattern[str], text: str) -> list[str]:
    return [match.group() for match in pattern.finditer(text)]


@pytest.mark.parametrize("pattern", [MACHINE, REGISTRY], ids=["machine", "registry"])
def test_no_file_mentions_it(pattern: re.Pattern[str]) -> None:
    found = {
        path.relative_to(ROOT).as_posix(): mentions
        for path in _files()
        if (mentions := _mentions(pattern, path.read_text(encoding="utf-8", errors="replace")))
    }
    assert found == {}


@pytest.mark.parametrize("make", [Path.mkdir, Path.touch], ids=["folder", "file"])
def test_what_git_keeps_is_no_part_of_the_tree(tmp_path: Path, make: Any) -> None:
    make(tmp_path / ".git")
    (tmp_path / ".gitignore").touch()
    (tmp_path / "module").mkdir()
    (tmp_path / "module" / "a.py").touch()
    assert sorted(path.name for path in _files(tmp_path)) == [".gitignore", "a.py"]


@pytest.mark.parametrize(
    "text",
    ["see " + "/ro" + "ot/x", "cd '/ho" + "me/ann/src'", "in=/wo" + "rk/main"],
)
def test_a_path_of_a_machine_is_seen(text: str) -> None:
    assert _mentions(MACHINE, text)


@pytest.mark.parametrize(
    "text", ["/usr/bin/env", "a/home/b/c", "/etc/envoy/envoy.yaml", "/tmp", "$HOME/root/x"]
)
def test_another_path_is_not(text: str) -> None:
    assert not _mentions(MACHINE, text)


@pytest.mark.parametrize(
    "text", ["https://pypi" + ".org/simple", "registry.npmjs" + ".org", "static.crates" + ".io"]
)
def test_a_registry_is_seen(text: str) -> None:
    assert _mentions(REGISTRY, text)


def test_modules_are_nouns_of_a_readable_length() -> None:
    modules = [path for path in SERVER.rglob("*.py") if path.parent.name != "v1"]
    assert modules
    assert [path.name for path in modules if path.stem in NO_NOUNS] == []
    lengths = {path.name: len(path.read_text().splitlines()) for path in modules}
    assert {name: lines for name, lines in lengths.items() if lines > LONGEST_MODULE} == {}
