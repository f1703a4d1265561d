"""Generate the code of the schema, and check the schema.

    python -m tools.schema generate    write the code and the descriptor set anew
    python -m tools.schema check       committed code is current; buf lint, format and breaking
    python -m tools.schema baseline    record the schema as the one that must not break

Nothing here asks a schema registry: the imported `google/api` files are the ones that the
`googleapis-common-protos` package installs, and buf reads a descriptor set instead of modules.
"""

import argparse
import importlib.util
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

__all__ = [
    "BASELINE",
    "DESCRIPTOR_SET",
    "PROTO",
    "ROOT",
    "SERVER",
    "SchemaError",
    "build_descriptor_set",
    "check_breaking",
    "check_format",
    "check_generated",
    "check_lint",
    "generate",
    "outdated",
]

ROOT = Path(__file__).resolve().parent.parent
PROTO = ROOT / "proto"
SERVER = ROOT / "server"
DESCRIPTOR_SET = Path("antiphon/v1/antiphon.binpb")
"""Where the descriptor set is, below the root of the generated code."""
BASELINE = ROOT / "tests" / "architecture" / "baseline.binpb"
"""The schema of the last release, which later ones must not break."""

_GENERATED = ("*_pb2.py", "*_pb2.pyi", "*_pb2_grpc.py", "*_pb2_grpc.pyi", DESCRIPTOR_SET.name)


class SchemaError(Exception):
    """A check or a generator did not pass; the message is what it printed."""


def generate(destination: Path, proto: Path = PROTO) -> None:
    """Write the code of the schema, and its descriptor set with source info.

    Args:
        destination: the folder that gets `antiphon/v1/…`; generated files there that no longer
            belong to the schema are removed.
        proto: the root of the schema.

    Raises:
        SchemaError: the compiler refused the schema.
    """
    folder = destination / DESCRIPTOR_SET.parent
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        fresh = Path(name)
        _protoc(
            proto,
            f"--python_out={fresh}",
            f"--plugin=protoc-gen-mypy={_script('protoc-gen-mypy')}",
            f"--mypy_out=quiet:{fresh}",
        )
        _protoc(
            proto,
            f"--grpc_python_out={fresh}",
            f"--plugin=protoc-gen-mypy_grpc={_script('protoc-gen-mypy_grpc')}",
            f"--mypy_grpc_out=quiet:{fresh}",
            pattern="*_service.proto",
        )
        build_descriptor_set(fresh / DESCRIPTOR_SET, proto)
        for old in _generated_files(destination).values():
            old.unlink()
        for path in _generated_files(fresh).values():
            shutil.copyfile(path, destination / path.relative_to(fresh))


def build_descriptor_set(path: Path, proto: Path = PROTO, *, source_info: bool = True) -> None:
    """Write the descriptor set of the schema, with its imports.

    Args:
        path: the file to write.
        proto: the root of the schema.
        source_info: whether comments and positions are in the set; lint needs them.

    Raises:
        SchemaError: the compiler refused the schema.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    options = ["--include_imports", f"--descriptor_set_out={path}"]
    if source_info:
        options.append("--include_source_info")
    _protoc(proto, *options)


def outdated(committed: Path = SERVER, proto: Path = PROTO) -> list[str]:
    """Compare the committed generated code with what the schema gives now.

    Args:
        committed: the root of the generated code.
        proto: the root of the schema.

    Returns:
        The files, as paths below `committed`, that are stale, missing or left over.
    """
    with tempfile.TemporaryDirectory() as name:
        fresh = Path(name)
        generate(fresh, proto)
        ours, theirs = _generated_files(committed), _generated_files(fresh)
        return sorted(
            key
            for key in ours.keys() | theirs.keys()
            if key not in ours
            or key not in theirs
            or ours[key].read_bytes() != theirs[key].read_bytes()
        )


def check_generated(committed: Path = SERVER, proto: Path = PROTO) -> None:
    """Refuse generated code that differs from what the schema gives.

    Args:
        committed: the root of the generated code.
        proto: the root of the schema.

    Raises:
        SchemaError: files differ; the message names them.
    """
    if files := outdated(committed, proto):
        raise SchemaError(f"generated code is not current, run `make gen`: {', '.join(files)}")


def check_lint(descriptor_set: Path) -> None:
    """Lint a descriptor set by the rules of `buf.yaml`.

    Args:
        descriptor_set: a set with source info.

    Raises:
        SchemaError: a rule is broken.
    """
    _buf("lint", str(descriptor_set), "--config", str(ROOT / "buf.yaml"))


def check_breaking(descriptor_set: Path, baseline: Path = BASELINE) -> None:
    """Refuse a schema that breaks clients of the baseline.

    Args:
        descriptor_set: the schema as it is.
        baseline: the schema that clients have.

    Raises:
        SchemaError: a change breaks the baseline by the rules of `buf.yaml`.
    """
    config = str(ROOT / "buf.yaml")
    _buf("breaking", str(descriptor_set), "--against", str(baseline), "--config", config)


def check_format(proto: Path = PROTO) -> None:
    """Refuse schema files that `buf format` would change.

    Args:
        proto: the root of the schema.

    Raises:
        SchemaError: a file is not formatted; the message is the difference.
    """
    _buf("format", "--diff", "--exit-code", str(proto))


def _generated_files(root: Path) -> dict[str, Path]:
    folder = root / DESCRIPTOR_SET.parent
    return {
        path.relative_to(root).as_posix(): path
        for pattern in _GENERATED
        for path in folder.glob(pattern)
    }


def _protoc(proto: Path, *arguments: str, pattern: str = "*.proto") -> None:
    # Sorted, because the order of the files is the order in the descriptor set.
    files = sorted(path.relative_to(proto).as_posix() for path in proto.rglob(pattern))
    includes = [f"--proto_path={proto}", f"--proto_path={_googleapis()}"]
    _run(sys.executable, "-m", "grpc_tools.protoc", *includes, *arguments, *files)


def _googleapis() -> Path:
    spec = importlib.util.find_spec("google.api.http_pb2")
    if spec is None or spec.origin is None:
        raise SchemaError("googleapis-common-protos is not installed")
    return Path(spec.origin).parents[2]


def _buf(*arguments: str) -> None:
    _run(_script("buf"), *arguments)


def _script(name: str) -> str:
    return str(Path(sysconfig.get_path("scripts")) / name)


def _run(*command: str) -> None:
    done = subprocess.run(
        command,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise SchemaError(done.stdout.strip() or f"{command[0]} exited with {done.returncode}")


def _check() -> None:
    check_generated()
    check_format()
    check_lint(SERVER / DESCRIPTOR_SET)
    check_breaking(SERVER / DESCRIPTOR_SET)


def _main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.schema", description=__doc__)
    parser.add_argument("command", choices=["generate", "check", "baseline"])
    try:
        match parser.parse_args().command:
            case "generate":
                generate(SERVER)
            case "check":
                _check()
            case "baseline":
                build_descriptor_set(BASELINE, source_info=False)
    except SchemaError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_main())
