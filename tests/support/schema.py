"""Schemas for one test: messages compiled from proto source when the test runs."""

import itertools
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc_tools  # type: ignore[import-untyped]
from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from grpc_tools import protoc

from antiphon.resources import proto_dir
from antiphon.v1 import json_pb2

__all__ = ["compiled", "descriptor"]

_numbers = itertools.count()
_BUILT_IN = Path(grpc_tools.__file__).parent / "_proto"


def compiled(source: str) -> Any:
    """Compiles proto source whose options are those of `json.proto`.

    Args:
        source: the messages and enums, without the head of the file.

    Returns:
        An object with the classes of the messages as its attributes.
    """
    # A package below the options' own sees them by their short names; each source has another
    # package, since a pool knows a name once.
    package = f"antiphon.v1.test{next(_numbers)}"
    name = f"{package}.proto"
    head = f'syntax = "proto3"; package {package}; import "{json_pb2.DESCRIPTOR.name}";\n'
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_text(head + source, encoding="utf-8")
        output = Path(folder) / "set"
        failed = protoc.main(
            [
                "protoc",
                *(f"-I{include}" for include in (folder, proto_dir(), _BUILT_IN)),
                f"--descriptor_set_out={output}",
                str(path),
            ]
        )
        assert not failed, f"the source of a test is not valid proto:\n{source}"
        files = FileDescriptorSet.FromString(output.read_bytes())
    pool = descriptor_pool.Default()
    pool.AddSerializedFile(files.file[0].SerializeToString())
    found = pool.FindFileByName(name).message_types_by_name
    classes = {key: message_factory.GetMessageClass(found[key]) for key in found}
    return SimpleNamespace(**classes)


def descriptor(source: str) -> Descriptor:
    """Compiles proto source, and returns the descriptor of its message `M`."""
    found: Descriptor = compiled(source).M.DESCRIPTOR
    return found
