"""The golden file of the schema's plans: what clients rely on, one fact a line.

`python -m tests.json.golden` adds to it what the schema has gained. A line that has gone is a
change that breaks clients; it has to be taken out by hand.
"""

import importlib
import pkgutil
from pathlib import Path

from google.protobuf.descriptor import Descriptor

import antiphon.v1
from antiphon.json.plan import dump

__all__ = ["GOLDEN", "descriptors", "lines", "read", "write"]

GOLDEN = Path(__file__).with_name("plans.golden")

# The options themselves, and the envelopes of REST methods, are never JSON.
_WITHOUT_JSON = {"json_pb2", "rest_service_pb2"}


def descriptors() -> list[Descriptor]:
    """Returns every message of the schema that has a JSON shape, by its name."""
    found: list[Descriptor] = []
    for module in pkgutil.iter_modules(antiphon.v1.__path__):
        if module.name.endswith("_pb2") and module.name not in _WITHOUT_JSON:
            file = importlib.import_module(f"antiphon.v1.{module.name}").DESCRIPTOR
            for message in file.message_types_by_name.values():
                found += _with_nested(message)
    return sorted(found, key=lambda message: message.full_name)


def _with_nested(message: Descriptor) -> list[Descriptor]:
    nested = [each for each in message.nested_types if not each.GetOptions().map_entry]
    return [message, *(inner for each in nested for inner in _with_nested(each))]


def lines() -> list[str]:
    """Returns the facts of the schema as it is now."""
    return sorted({line for message in descriptors() for line in dump(message)})


def read() -> list[str]:
    """Returns the facts that were recorded."""
    return GOLDEN.read_text(encoding="utf-8").splitlines()


def write(path: Path = GOLDEN) -> None:
    """Adds what is new to what was recorded.

    Args:
        path: the file.
    """
    recorded = set(path.read_text(encoding="utf-8").splitlines()) if path.exists() else set()
    path.write_text("".join(f"{line}\n" for line in sorted(recorded | {*lines()})), "utf-8")


if __name__ == "__main__":
    write()
