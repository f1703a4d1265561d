"""Where the files that come with the package are, in a checkout and in an installed wheel."""

from pathlib import Path

__all__ = ["descriptor_set", "gateway_dir", "proto_dir"]

_PACKAGE = Path(__file__).resolve().parent


def descriptor_set() -> Path:
    """Return the file of the schema's descriptors, imports and comments included."""
    return _PACKAGE / "v1" / "antiphon.binpb"


def proto_dir() -> Path:
    """Return the root of the schema's .proto files, the one that imports are relative to."""
    return _data("proto")


def gateway_dir() -> Path:
    """Return the directory of envoy.yaml and the files beside it."""
    return _data("gateway")


def _data(name: str) -> Path:
    """Return a directory that a wheel holds in `_data` and a checkout at its root."""
    packaged = _PACKAGE / "_data" / name
    return packaged if packaged.is_dir() else _PACKAGE.parents[1] / name
