import subprocess
from pathlib import Path

import pytest

from tools.schema import ROOT

# What the script needs besides Python.
COMMANDS = ("rm", "sh")


@pytest.fixture
def bin_folder(tmp_path: Path) -> Path:
    """A PATH of its own, on which the tests put the interpreters that a machine has."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in COMMANDS:
        found = next(p for p in (Path("/bin") / name, Path("/usr/bin") / name) if p.exists())
        (folder / name).symlink_to(found)
    return folder


def _install(folder: Path, name: str, *, lacks: str = "nothing", fails: bool = False) -> None:
    """Install a command that prints how it was called, and fails to import one module."""
    path = folder / name
    path.write_text(
        "#!/bin/sh\n"
        f'case "$*" in *"import"*"{lacks}"*) exit 1;; esac\n'
        f'echo "{name} $*"\n'
        f"exit {int(fails)}\n"
    )
    path.chmod(0o755)


def _make(bin_folder: Path, python: str = "python3") -> tuple[int, list[str], Path]:
    target = bin_folder.parent / "env"
    done = subprocess.run(
        ["sh", ROOT / "tools" / "venv.sh", target],
        env={"PATH": str(bin_folder), "PYTHON": python},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, (done.stdout + done.stderr).splitlines(), target


def test_a_whole_python_makes_it_alone(bin_folder: Path) -> None:
    _install(bin_folder, "python3")
    _install(bin_folder, "uv")
    code, output, target = _make(bin_folder)
    assert (code, output) == (0, [f"python3 -m venv {target}"])


def test_an_old_environment_is_replaced(bin_folder: Path) -> None:
    _install(bin_folder, "python3")
    left = bin_folder.parent / "env" / "left-over"
    left.parent.mkdir()
    left.touch()
    assert _make(bin_folder)[0] == 0
    assert not left.exists()


def test_no_python_is_one_clear_line(bin_folder: Path) -> None:
    code, output, _ = _make(bin_folder)
    assert code == 1
    assert len(output) == 1
    assert "Python 3.11 or newer is needed" in output[0]
    assert "PYTHON=" in output[0]


def test_an_old_python_is_passed_over(bin_folder: Path) -> None:
    _install(bin_folder, "python3", lacks="version_info")
    _install(bin_folder, "python3.12", fails=True)
    _install(bin_folder, "python3.11")
    code, output, target = _make(bin_folder)
    assert (code, output) == (0, [f"python3.11 -m venv {target}"])


def test_a_named_python_comes_first(bin_folder: Path) -> None:
    _install(bin_folder, "python3")
    _install(bin_folder, "mine")
    code, output, target = _make(bin_folder, python="mine")
    assert (code, output) == (0, [f"mine -m venv {target}"])


def test_without_ensurepip_uv_makes_it(bin_folder: Path) -> None:
    _install(bin_folder, "python3", lacks="ensurepip")
    _install(bin_folder, "uv")
    _install(bin_folder, "virtualenv")
    code, output, target = _make(bin_folder)
    assert (code, output) == (0, [f"uv venv --quiet --seed --python python3 {target}"])


def test_without_ensurepip_virtualenv_makes_it(bin_folder: Path) -> None:
    _install(bin_folder, "python3", lacks="ensurepip")
    _install(bin_folder, "virtualenv")
    code, output, target = _make(bin_folder)
    assert (code, output) == (0, [f"virtualenv --quiet --python python3 {target}"])


def test_without_ensurepip_the_pip_there_is_fills_it(bin_folder: Path) -> None:
    _install(bin_folder, "python3", lacks="ensurepip")
    code, output, target = _make(bin_folder)
    assert code == 0
    assert output == [
        f"python3 -m venv --without-pip {target}",
        f"python3 -m pip --quiet --python {target}/bin/python install pip",
    ]


def test_with_nothing_to_make_it_the_fix_is_named(bin_folder: Path) -> None:
    _install(bin_folder, "python3", lacks="pip")
    code, output, _ = _make(bin_folder)
    assert code == 1
    assert len(output) == 1
    assert "install python3-venv" in output[0]
