from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.architecture.imports import RULES, violations
from tools.schema import SERVER


def test_the_server_obeys_the_directions() -> None:
    assert violations(SERVER / "antiphon") == []


def test_every_area_of_the_design_is_seen() -> None:
    areas = {path.stem for path in (SERVER / "antiphon").iterdir()}
    assert {"v1", "json", "core", "engine", "backends", "stores", "transports", "app"} <= areas
    assert RULES.keys() - {""} <= areas


def test_the_directions_have_no_circle() -> None:
    areas = {
        area: {name.partition(".")[0] for name in rule.inside} & RULES.keys()
        for area, rule in RULES.items()
        if area != "app"
    }
    TopologicalSorter(areas).prepare()


@pytest.mark.parametrize(
    ("module", "source", "refused"),
    [
        ("core/ids.py", "from antiphon.engine.run import Run", "antiphon.engine.run.Run"),
        ("core/ids.py", "from antiphon import engine", "antiphon.engine"),
        ("core/ids.py", "from .. import engine", "antiphon.engine"),
        ("core/ids.py", "from ..engine import run", "antiphon.engine.run"),
        ("core/ids.py", "import antiphon.stores.memory as m", "antiphon.stores.memory"),
        ("core/ids.py", "def f():\n    import asyncio", "asyncio"),
        ("core/ids.py", "from grpc.aio import server", "grpc.aio"),
        ("core/ids.py", "import http.client", "http.client"),
        ("core/__init__.py", "from ..app import run", "antiphon.app.run"),
        ("json/plan.py", "from antiphon.core import ids", "antiphon.core.ids"),
        ("json/plan.py", "import asyncio.queues", "asyncio.queues"),
        ("engine/run.py", "from antiphon.stores.memory import M", "antiphon.stores.memory.M"),
        ("engine/run.py", "from antiphon.backends import sim", "antiphon.backends.sim"),
        ("engine/run.py", "import grpc", "grpc"),
        ("stores/memory.py", "from antiphon.engine import run", "antiphon.engine.run"),
        ("transports/rest.py", "from antiphon.stores.memory import M", "antiphon.stores.memory.M"),
        ("transports/rest.py", "from antiphon.app import run", "antiphon.app.run"),
        ("transports/rest.py", "from antiphon import app", "antiphon.app"),
        ("settings.py", "from antiphon.app import run", "antiphon.app.run"),
        ("v1/x_pb2.py", "from antiphon.core import ids", "antiphon.core.ids"),
        ("__init__.py", "from antiphon.core import ids", "antiphon.core.ids"),
    ],
)
def test_a_forbidden_import_is_found(
    tmp_path: Path, module: str, source: str, refused: str
) -> None:
    _write(tmp_path, module, source)
    found = violations(tmp_path)
    assert len(found) == 1
    assert found[0].endswith(f"imports {refused}")


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("core/ids.py", "from antiphon.core.errors import E\nfrom antiphon.v1 import item_pb2"),
        ("core/ids.py", "import httplib2, asyncio_like"),
        ("json/plan.py", "from json import loads\nfrom antiphon.json.raw import R"),
        ("engine/run.py", "import asyncio\nfrom antiphon.stores.protocol import Store"),
        ("transports/rest.py", "import grpc\nfrom antiphon.engine.run import Run"),
        ("app.py", "import grpc\nfrom antiphon.stores.memory import M\nimport antiphon"),
    ],
)
def test_an_import_of_the_rules_passes(tmp_path: Path, module: str, source: str) -> None:
    _write(tmp_path, module, source)
    assert violations(tmp_path) == []


def test_a_module_without_a_rule_is_found(tmp_path: Path) -> None:
    _write(tmp_path, "helpers/text.py", "")
    assert violations(tmp_path) == ["helpers.text: the area 'helpers' has no rule"]


def _write(root: Path, module: str, source: str) -> None:
    path = root / module
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)
