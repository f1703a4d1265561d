import subprocess
import sys

from tools.schema import SERVER


def test_the_server_does_not_load_what_only_a_worker_needs() -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import antiphon.app; "
        "print([name for name in sys.modules if name.startswith('jsonschema')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(SERVER)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
