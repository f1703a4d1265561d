import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)

from tools import schema

DESCRIPTOR_SET = schema.SERVER / schema.DESCRIPTOR_SET


def test_generated_code_is_current() -> None:
    schema.check_generated()


def test_the_schema_is_formatted() -> None:
    schema.check_format()


def test_the_schema_is_lint_free() -> None:
    schema.check_lint(DESCRIPTOR_SET)


def test_the_schema_breaks_no_client_of_the_baseline() -> None:
    schema.check_breaking(DESCRIPTOR_SET)


def test_stale_missing_and_left_over_code_is_found(tmp_path: Path) -> None:
    shutil.copytree(schema.SERVER / "antiphon" / "v1", tmp_path / "antiphon" / "v1")
    folder = tmp_path / "antiphon" / "v1"
    with (folder / "item_pb2.py").open("a") as file:
        file.write("# edited\n")
    (folder / "event_pb2.pyi").unlink()
    (folder / "gone_service_pb2_grpc.py").touch()
    assert schema.outdated(tmp_path) == [
        "antiphon/v1/event_pb2.pyi",
        "antiphon/v1/gone_service_pb2_grpc.py",
        "antiphon/v1/item_pb2.py",
    ]
    with pytest.raises(schema.SchemaError, match=r"make gen.*item_pb2\.py"):
        schema.check_generated(tmp_path)


def test_generating_removes_left_over_code(tmp_path: Path) -> None:
    folder = tmp_path / "antiphon" / "v1"
    folder.mkdir(parents=True)
    (folder / "gone_pb2.py").touch()
    (folder / "__init__.py").touch()
    schema.generate(tmp_path)
    assert not (folder / "gone_pb2.py").exists()
    assert (folder / "__init__.py").exists()
    assert schema.outdated(tmp_path) == []


def test_only_services_have_service_code(tmp_path: Path) -> None:
    services = {path.stem for path in schema.PROTO.rglob("*_service.proto")}
    generated = {path.name for path in (schema.SERVER / "antiphon" / "v1").glob("*_pb2_grpc.py")}
    assert generated == {f"{service}_pb2_grpc.py" for service in services}
    declared = {
        file.name
        for file in _read(DESCRIPTOR_SET).file
        if file.service and file.name.startswith("antiphon/")
    }
    assert declared == {f"antiphon/v1/{service}.proto" for service in services}


def test_a_refused_schema_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "bad.proto").write_text('syntax = "proto3";\nmessage M { Missing m = 1; }\n')
    with pytest.raises(schema.SchemaError, match=r'bad\.proto.*"Missing" is not defined'):
        schema.build_descriptor_set(tmp_path / "set.binpb", tmp_path)


def test_unformatted_schema_is_found(tmp_path: Path) -> None:
    (tmp_path / "bad.proto").write_text('syntax = "proto3";\nmessage M { string m=1; }\n')
    with pytest.raises(schema.SchemaError, match=r"string m = 1;"):
        schema.check_format(tmp_path)


def _change_a_type(message: DescriptorProto) -> None:
    field = next(f for f in message.field if f.type != FieldDescriptorProto.TYPE_BYTES)
    field.type = FieldDescriptorProto.TYPE_BYTES
    field.ClearField("type_name")


def _delete_a_field(message: DescriptorProto) -> None:
    del message.field[0]


def _rename_a_field(message: DescriptorProto) -> None:
    message.field[0].name = "renamed"
    message.field[0].json_name = "renamed"


@pytest.mark.parametrize("change", [_change_a_type, _delete_a_field, _rename_a_field])
def test_a_change_that_breaks_clients_is_found(
    tmp_path: Path, change: Callable[[DescriptorProto], None]
) -> None:
    descriptors = _read(schema.BASELINE)
    change(_plain_message(descriptors))
    with pytest.raises(schema.SchemaError, match=r"(?i)field"):
        schema.check_breaking(_write(tmp_path, descriptors))


def test_a_new_field_breaks_nobody(tmp_path: Path) -> None:
    descriptors = _read(schema.BASELINE)
    _plain_message(descriptors).field.add(
        name="added",
        json_name="added",
        number=20_000,
        type=FieldDescriptorProto.TYPE_STRING,
        label=FieldDescriptorProto.LABEL_OPTIONAL,
    )
    schema.check_breaking(_write(tmp_path, descriptors))


def test_the_lint_rules_are_in_force(tmp_path: Path) -> None:
    descriptors = _read(DESCRIPTOR_SET)
    _plain_message(descriptors).field[0].name = "notSnakeCase"
    with pytest.raises(schema.SchemaError, match=r"lower_snake_case"):
        schema.check_lint(_write(tmp_path, descriptors))


def test_comments_are_required(tmp_path: Path) -> None:
    descriptors = _read(DESCRIPTOR_SET)
    for location in _ours(descriptors)[0].source_code_info.location:
        location.ClearField("leading_comments")
    with pytest.raises(schema.SchemaError, match=r"should have a non-empty comment"):
        schema.check_lint(_write(tmp_path, descriptors))


def _ours(descriptors: FileDescriptorSet) -> list[FileDescriptorProto]:
    return [file for file in descriptors.file if file.package == "antiphon.v1"]


def _plain_message(descriptors: FileDescriptorSet) -> DescriptorProto:
    """Find a message whose fields are in no oneof, so that any of them can be changed."""
    return next(
        message
        for file in _ours(descriptors)
        for message in file.message_type
        if message.field and not message.oneof_decl
    )


def _read(path: Path) -> FileDescriptorSet:
    return FileDescriptorSet.FromString(path.read_bytes())


def _write(folder: Path, descriptors: FileDescriptorSet) -> Path:
    path = folder / "changed.binpb"
    path.write_bytes(descriptors.SerializeToString())
    return path
