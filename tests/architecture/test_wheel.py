import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tools.schema import DESCRIPTOR_SET, PROTO, ROOT, SERVER

# Installing may have to fetch the dependencies.
pytestmark = pytest.mark.timeout(600)

ADDRESS = re.compile(rb"http://[\w.:]+")

# Nothing of this checkout may help the installed package.
ENVIRONMENT = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("PYTHON", "ANTIPHON_", "VIRTUAL_ENV"))
}


def _run(*command: str | Path, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        command,
        cwd=cwd,
        env=ENVIRONMENT | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    _run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=ROOT)
    (path,) = folder.iterdir()
    return path


@pytest.fixture(scope="module")
def scripts(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripts of an environment that holds the wheel and its dependencies alone."""
    folder = tmp_path_factory.mktemp("installed")
    _run("sh", ROOT / "tools" / "venv.sh", "env", cwd=folder, PYTHON=sys.executable)
    scripts = folder / "env" / "bin"
    options = ["--quiet", "--disable-pip-version-check", f"--constraint={ROOT}/constraints.txt"]
    _run(scripts / "python", "-m", "pip", "install", *options, wheel, cwd=folder)
    return scripts


@pytest.fixture
def address(scripts: Path, tmp_path: Path) -> Iterator[str]:
    """The address of the gateway of a server that the installed command started."""
    command = [f"{scripts}/antiphon", "serve", "--port", "0", "--grpc-port", "0"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    ) as server:
        try:
            assert server.stdout is not None
            found = next(filter(None, map(ADDRESS.search, server.stdout)), None)
            assert found is not None, "the server ended without saying its address"
            yield found.group().decode()
        finally:
            server.terminate()
    assert server.returncode == 0


def test_the_wheel_holds_the_package_and_its_data(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        licences = [name for name in archive.namelist() if name.endswith("/licenses/LICENSE")]
    expected = {
        path.relative_to(SERVER).as_posix()
        for path in (SERVER / "antiphon").rglob("*")
        if path.suffix in {".py", ".pyi", ".binpb", ".typed"}
    }
    expected |= {
        f"antiphon/_data/{path.relative_to(ROOT).as_posix()}"
        for root in (PROTO, ROOT / "gateway")
        for path in root.rglob("*")
        if path.is_file()
    }
    assert names == expected
    assert {"antiphon/py.typed", "antiphon/_data/gateway/envoy.yaml", str(DESCRIPTOR_SET)} <= names
    assert len(licences) == 1


def test_the_installed_command_explains_itself(scripts: Path, tmp_path: Path) -> None:
    help_text = _run(scripts / "antiphon", "--help", cwd=tmp_path)
    assert "serve" in help_text
    assert "0.1.0" in _run(scripts / "antiphon", "--version", cwd=tmp_path)


def test_the_installed_package_is_whole(scripts: Path, tmp_path: Path) -> None:
    assert "No broken" in _run(scripts / "python", "-m", "pip", "check", cwd=tmp_path)
    origin = _run(
        scripts / "python", "-c", "import antiphon; print(antiphon.__file__)", cwd=tmp_path
    )
    assert Path(origin).is_relative_to(scripts.parent)


def test_the_installed_server_answers_through_its_gateway(address: str) -> None:
    body = {"model": "sim", "input": "Hello"}
    answer = httpx.post(f"{address}/v1/responses", json=body, timeout=60)
    assert answer.status_code == 200
    response = answer.json()
    assert response["object"] == "response"
    assert response["status"] == "completed"
    again = httpx.get(f"{address}/v1/responses/{response['id']}", timeout=60)
    assert again.json() == response
