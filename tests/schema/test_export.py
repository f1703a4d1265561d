"""Other languages can live with what `antiphon schema export` writes."""

import base64
import filecmp
import importlib.util
import json
import sys
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from antiphon import resources
from antiphon.backends.documents.maker import DocumentMaker
from antiphon.backends.sim import SimBackend
from antiphon.cli import main
from antiphon.json import decode, encode
from antiphon.transports.rest.document import openapi_document
from antiphon.transports.rest.message import RestRequest
from antiphon.v1.event_pb2 import ResponseStreamEvent
from antiphon.v1.responses_service_pb2 import CreateResponseRequest
from tests.schema.served import MODEL, Served
from tests.support.npm import Npm, run

TSCONFIG = {
    "compilerOptions": {
        "strict": True,
        "target": "es2022",
        "module": "nodenext",
        "noUncheckedIndexedAccess": True,
        "exactOptionalPropertyTypes": True,
        "noImplicitReturns": True,
        "noFallthroughCasesInSwitch": True,
        "rootDir": ".",
        "outDir": "out",
        "types": [],
    },
    "include": ["client.ts", "gen"],
}

CLIENT = """\
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { base64Decode, base64Encode } from "@bufbuild/protobuf/wire";
import { ResponseStreamEventSchema, type ResponseStreamEvent } from "./gen/antiphon/v1/event_pb.js";
import { Role } from "./gen/antiphon/v1/message_pb.js";
import { CreateResponseRequestSchema } from "./gen/antiphon/v1/responses_service_pb.js";

declare const process: { argv: string[] };
declare const console: { log(text: string): void };

const request = create(CreateResponseRequestSchema, {
  model: "m",
  temperature: 0,
  metadata: { language: "TypeScript" },
  input: {
    case: "inputList",
    value: {
      items: [
        {
          kind: {
            case: "message",
            value: { role: Role.USER, content: { case: "contentText", value: "hi" } },
          },
        },
      ],
    },
  },
  tools: [{ kind: { case: "function", value: { name: "f", parameters: '{"type":"object"}' } } }],
});

function told(event: ResponseStreamEvent): string {
  switch (event.event.case) {
    case "outputTextDelta":
      return event.event.value.delta;
    case "completed": {
      const response = event.event.value.response;
      const item = response?.output[0];
      return `${response?.id} ${item?.kind.case} ${event.sequenceNumber}`;
    }
    default:
      return "?";
  }
}

console.log(base64Encode(toBinary(CreateResponseRequestSchema, request)));
for (const text of process.argv.slice(2)) {
  console.log(told(fromBinary(ResponseStreamEventSchema, base64Decode(text))));
}
"""

MISUSE = """\
import { create } from "@bufbuild/protobuf";
import { CreateResponseRequestSchema } from "./gen/antiphon/v1/responses_service_pb.js";

export const request = create(CreateResponseRequestSchema, { temperature: "hot" });
"""


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("export") / "new" / "schema"
    result = CliRunner().invoke(main, ["schema", "export", str(directory)])
    assert result.exit_code == 0, result.output
    assert result.output == f"{directory}: proto/, antiphon.binpb, openapi.json\n"
    return directory


def descriptor_set(path: Path) -> FileDescriptorSet:
    return FileDescriptorSet.FromString(path.read_bytes())


def ours(directory: Path) -> list[str]:
    proto = directory / "proto"
    return sorted(path.relative_to(proto).as_posix() for path in proto.rglob("*.proto"))


def test_the_files_of_the_schema_are_exported(exported: Path) -> None:
    assert {path.name for path in exported.iterdir()} == {
        "proto",
        "antiphon.binpb",
        "openapi.json",
    }
    source = resources.proto_dir()
    files = sorted(path.relative_to(source).as_posix() for path in source.rglob("*.proto"))
    assert ours(exported) == files
    _, different, failed = filecmp.cmpfiles(source, exported / "proto", files, shallow=False)
    assert (different, failed) == ([], [])


def test_the_descriptor_set_needs_nothing_else(exported: Path) -> None:
    pool = DescriptorPool()
    for file in descriptor_set(exported / "antiphon.binpb").file:
        # A file comes after those that it imports, or this would fail.
        pool.AddSerializedFile(file.SerializeToString())
    assert {*ours(exported)} <= {
        file.name for file in descriptor_set(exported / "antiphon.binpb").file
    }
    event = GetMessageClass(pool.FindMessageTypeByName("antiphon.v1.ResponseStreamEvent"))
    message = ResponseStreamEvent(sequence_number=3)
    message.output_text_delta.delta = "é"
    read = event.FromString(message.SerializeToString())
    assert str(read) == str(message)
    commented = [
        location
        for file in descriptor_set(exported / "antiphon.binpb").file
        for location in file.source_code_info.location
        if location.leading_comments
    ]
    assert len(commented) > 1000


def test_the_sources_compile_to_the_descriptor_set(exported: Path, tmp_path: Path) -> None:
    spec = importlib.util.find_spec("google.api.http_pb2")
    assert spec is not None
    assert spec.origin is not None
    compiled = tmp_path / "compiled.binpb"
    protoc(
        f"--proto_path={exported / 'proto'}",
        f"--proto_path={Path(spec.origin).parents[2]}",
        "--include_imports",
        "--include_source_info",
        f"--descriptor_set_out={compiled}",
        *ours(exported),
    )
    assert descriptor_set(compiled) == descriptor_set(exported / "antiphon.binpb")


async def test_the_document_is_the_one_that_is_served(exported: Path) -> None:
    document = partial(openapi_document, resources.descriptor_set().read_bytes())
    reply = await Served(SimBackend(DocumentMaker()), document=document).rest.handle(
        RestRequest("GetOpenApi")
    )
    assert reply.body == (exported / "openapi.json").read_bytes()


def test_exporting_again_replaces_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "openapi.json").write_text("old")
    for _ in range(2):
        assert CliRunner().invoke(main, ["schema", "export", str(tmp_path)]).exit_code == 0
    assert json.loads((tmp_path / "openapi.json").read_bytes())["openapi"] == "3.1.0"


def test_what_cannot_be_written_is_told_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in ("file", "file/schema"):
        result = CliRunner().invoke(main, ["schema", "export", str(tmp_path / place)])
        assert result.exit_code in (1, 2)
        assert str(tmp_path / "file") in result.output
        assert "Traceback" not in result.output
        assert isinstance(result.exception, SystemExit)


# TypeScript.


def protoc(*arguments: str) -> None:
    run(sys.executable, "-m", "grpc_tools.protoc", *arguments)


@pytest.fixture(scope="module")
def project(exported: Path, npm: Npm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A TypeScript project with the code that is generated from the exported descriptor set."""
    directory = tmp_path_factory.mktemp("typescript")
    npm.link(directory)
    (directory / "tsconfig.json").write_text(json.dumps(TSCONFIG))
    (directory / "gen").mkdir()
    files = [file.name for file in descriptor_set(exported / "antiphon.binpb").file]
    protoc(
        f"--descriptor_set_in={exported / 'antiphon.binpb'}",
        f"--plugin=protoc-gen-es={npm.tool('protoc-gen-es')}",
        f"--es_out={directory / 'gen'}",
        "--es_opt=target=ts,import_extension=js",
        # Those of `google/protobuf` come with the package.
        *(name for name in files if not name.startswith("google/protobuf/")),
    )
    return directory


def test_typescript_types_are_made_of_it_and_speak_the_same(project: Path, npm: Npm) -> None:
    (project / "client.ts").write_text(CLIENT)
    run(npm.tool("tsc"), "--project", project)
    delta = ResponseStreamEvent(sequence_number=1)
    delta.output_text_delta.delta = "héllo"
    completed = decode(
        ResponseStreamEvent,
        '{"type":"response.completed","sequence_number":7,"response":'
        '{"id":"resp_1","output":[{"type":"function_call","call_id":"c","name":"f",'
        '"arguments":"{}"}]}}',
    )
    events = [base64.b64encode(each.SerializeToString()).decode() for each in (delta, completed)]
    built, *told = run(npm.node, project / "out" / "client.js", *events).splitlines()
    assert told == ["héllo", "resp_1 functionCall 7"]
    request = CreateResponseRequest.FromString(base64.b64decode(built))
    assert json.loads(encode(request)) == {
        "model": MODEL,
        "input": [{"type": "message", "role": "user", "content": "hi"}],
        "metadata": {"language": "TypeScript"},
        "temperature": 0,
        "tools": [
            {
                "type": "function",
                "name": "f",
                "description": None,
                "parameters": {"type": "object"},
                "strict": None,
            }
        ],
    }


def test_typescript_refuses_what_the_schema_does(project: Path, npm: Npm) -> None:
    misuse = project / "misuse.ts"
    misuse.write_text(MISUSE)
    config = {**TSCONFIG, "include": ["misuse.ts"]}
    (project / "misuse.json").write_text(json.dumps(config))
    with pytest.raises(AssertionError, match=r"misuse\.ts.*'string' is not assignable"):
        run(npm.tool("tsc"), "--project", project / "misuse.json", "--noEmit")
