"""Requests that are wrong, odd or too large."""

import gzip
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
import zstandard

from tests.e2e.conftest import SMALL_BODY_BYTES
from tests.e2e.server import Server, check_error, final, parse_stream, raw, text_of

RESPONSES = "/v1/responses"
UNKNOWN = "resp_" + "0" * 32
SECRET = "s3cret-of-the-payload"

MISSING = "missing_required_parameter"

MALFORMED: dict[str, bytes] = {
    "empty": b"",
    "space": b" \n ",
    "a_word": SECRET.encode(),
    "half_an_object": b'{"model":"sim","input":"' + SECRET.encode(),
    "two_objects": b'{"model":"sim","input":"x"}{"model":"sim","input":"x"}',
    "a_comma_too_many": b'{"model":"sim","input":"x",}',
    "single_quotes": b"{'model':'sim','input':'x'}",
    "a_comment": b'{"model":"sim","input":"x"/*' + SECRET.encode() + b"*/}",
    "not_a_number": b'{"model":"sim","input":"x","temperature":NaN}',
    "latin_1": '{"model":"sim","input":"ü"}'.encode("latin-1"),
    "utf_16": '{"model":"sim","input":"x"}'.encode("utf-16"),
    "half_a_surrogate": b'{"model":"sim","input":"\\ud800"}',
    "a_raw_line_break": b'{"model":"sim","input":"a\nb"}',
    "a_raw_nul": b'{"model":"sim","input":"a\x00b"}',
    "a_form": b"model=sim&input=" + SECRET.encode(),
    "zeros": b"\x00" * 1000,
}

NOT_OBJECTS: dict[str, Any] = {
    "array": [{"model": "sim", "input": SECRET}],
    "empty_array": [],
    "string": SECRET,
    "number": 12345,
    "true": True,
    "null": None,
}

DEEP: dict[str, bytes] = {
    "arrays": b'{"model":"sim","input":' + b"[" * 10_000 + b"]" * 10_000 + b"}",
    "objects": b'{"model":"sim","input":' + b'{"a":' * 10_000 + b"1" + b"}" * 10_000 + b"}",
    "an_unknown_member": b'{"model":"sim","input":"x","x":' + b"[" * 10_000 + b"]" * 10_000 + b"}",
    "nothing_else": b"[" * 10_000,
}

WRONG: dict[str, tuple[dict[str, Any], str, str]] = {
    # The input.
    "input_missing": ({}, "input", MISSING),
    "input_null": ({"input": None}, "input", MISSING),
    "input_number": ({"input": 12345}, "input", "invalid_type"),
    "input_true": ({"input": True}, "input", "invalid_type"),
    "input_object": ({"input": {}}, "input", "invalid_type"),
    "input_empty": ({"input": []}, "input", "empty_array"),
    "item_null": ({"input": [None]}, "input[0]", "invalid_type"),
    "item_text": ({"input": [SECRET]}, "input[0]", "invalid_type"),
    "item_empty": ({"input": [{}]}, "input[0].type", MISSING),
    "item_array": ({"input": [[]]}, "input[0]", "invalid_type"),
    "type_number": ({"input": [{"type": 7}]}, "input[0].type", "invalid_type"),
    "type_null": ({"input": [{"type": None, "content": "x"}]}, "input[0].type", MISSING),
    "role_missing": (
        {"input": [{"type": "message", "content": SECRET}]},
        "input[0].role",
        MISSING,
    ),
    "role_wrong": (
        {"input": [{"role": SECRET, "content": "x"}]},
        "input[0].role",
        "invalid_value",
    ),
    "role_of_nobody": (
        {"input": [{"role": "", "content": "x"}]},
        "input[0].role",
        "invalid_value",
    ),
    "content_missing": ({"input": [{"role": "user"}]}, "input[0].content", MISSING),
    "content_null": (
        {"input": [{"role": "user", "content": None}]},
        "input[0].content",
        MISSING,
    ),
    "content_number": (
        {"input": [{"role": "user", "content": 1}]},
        "input[0].content",
        "invalid_type",
    ),
    "part_without_text": (
        {"input": [{"role": "user", "content": [{"type": "input_text"}]}]},
        "input[0].content[0].text",
        MISSING,
    ),
    "part_of_wrong_text": (
        {"input": [{"role": "user", "content": [{"type": "input_text", "text": [SECRET]}]}]},
        "input[0].content[0].text",
        "invalid_type",
    ),
    # The parent.
    "parent_unknown": (
        {"input": "x", "previous_response_id": UNKNOWN},
        "previous_response_id",
        "previous_response_not_found",
    ),
    "parent_number": (
        {"input": "x", "previous_response_id": 7},
        "previous_response_id",
        "invalid_type",
    ),
    "parent_array": (
        {"input": "x", "previous_response_id": [SECRET]},
        "previous_response_id",
        "invalid_type",
    ),
    "parent_empty": (
        {"input": "x", "previous_response_id": ""},
        "previous_response_id",
        "invalid_value",
    ),
    "parent_long": (
        {"input": "x", "previous_response_id": SECRET + "x" * 10_000},
        "previous_response_id",
        "invalid_value",
    ),
    "parent_odd": (
        {"input": "x", "previous_response_id": f"../{SECRET}\x00\n"},
        "previous_response_id",
        "invalid_value",
    ),
    # Other parameters.
    "model_missing": ({"model": None, "input": "x"}, "model", MISSING),
    "model_number": ({"model": 7, "input": "x"}, "model", "invalid_type"),
    "stream_text": ({"input": "x", "stream": "true"}, "stream", "invalid_type"),
    "stream_number": ({"input": "x", "stream": 1}, "stream", "invalid_type"),
    "store_text": ({"input": "x", "store": SECRET}, "store", "invalid_type"),
    "temperature_text": ({"input": "x", "temperature": "1"}, "temperature", "invalid_type"),
    "temperature_true": ({"input": "x", "temperature": True}, "temperature", "invalid_type"),
    "temperature_high": (
        {"input": "x", "temperature": 2.1},
        "temperature",
        "decimal_above_max_value",
    ),
    "temperature_huge": (
        {"input": "x", "temperature": 10**400},
        "temperature",
        "invalid_value",
    ),
    "tokens_decimal": (
        {"input": "x", "max_output_tokens": 1.5},
        "max_output_tokens",
        "invalid_type",
    ),
    "tokens_none": (
        {"input": "x", "max_output_tokens": 15},
        "max_output_tokens",
        "integer_below_min_value",
    ),
    "tokens_beyond_64_bits": (
        {"input": "x", "max_output_tokens": 2**63},
        "max_output_tokens",
        "invalid_value",
    ),
    "metadata_array": ({"input": "x", "metadata": []}, "metadata", "invalid_type"),
    "metadata_number": ({"input": "x", "metadata": {"a": 1}}, "metadata.a", "invalid_type"),
    "metadata_null": ({"input": "x", "metadata": {"a": None}}, "metadata.a", "invalid_type"),
    "metadata_many": (
        {"input": "x", "metadata": {str(number): SECRET for number in range(17)}},
        "metadata",
        "object_above_max_properties",
    ),
    "metadata_long": (
        {"input": "x", "metadata": {"a": SECRET * 100}},
        "metadata",
        "string_above_max_length",
    ),
    "tools_object": ({"input": "x", "tools": {}}, "tools", "invalid_type"),
    "tools_null": ({"input": "x", "tools": [None]}, "tools[0]", "invalid_type"),
    "tool_choice_wrong": (
        {"input": "x", "tool_choice": SECRET},
        "tool_choice",
        "invalid_value",
    ),
    "truncation_wrong": ({"input": "x", "truncation": SECRET}, "truncation", "invalid_value"),
    "options_without_a_stream": (
        {"input": "x", "stream_options": {}},
        "stream_options",
        "invalid_value",
    ),
}

OPTIONAL = (
    "background",
    "include",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "parallel_tool_calls",
    "previous_response_id",
    "prompt_cache_key",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
)

# What stands in the path for an id, and the status and the code of the answer.
IDS: dict[str, tuple[str, int, str | None]] = {
    "unknown": (UNKNOWN, 404, None),
    "another_kind": ("conv_1", 404, None),
    "a_slash": ("a%2Fb", 400, "invalid_value"),
    "a_slash_in_lower_case": ("a%2fb", 400, "invalid_value"),
    "a_backslash": ("a%5Cb", 400, "invalid_value"),
    "a_parent_folder": ("%2E%2E%2Fmodels", 400, "invalid_value"),
    "a_space": ("a%20b", 400, "invalid_value"),
    "a_plus": ("a+b", 400, "invalid_value"),
    "a_line_break": ("a%0D%0Ax-injected:%201", 400, "invalid_value"),
    "unicode": ("%E2%82%AC", 400, "invalid_value"),
    "an_emoji": ("%F0%9F%92%A9", 400, "invalid_value"),
    "a_quote": ("%22%7B%22", 400, "invalid_value"),
    "a_template": ("%25s%7B0%7D", 400, "invalid_value"),
    "a_question_mark": ("a%3Fb", 400, "invalid_value"),
    "a_hash": ("a%23b", 400, "invalid_value"),
    "a_bare_percent": ("100%", 400, "invalid_value"),
    "a_wrong_escape": ("a%zzb", 400, "invalid_value"),
    "a_leading_dash": ("-rf", 400, "invalid_value"),
    "semicolons": ("a;b;c", 400, "invalid_value"),
    "as_long_as_can_be": ("a" * 128, 404, None),
    "too_long": ("a" * 129, 400, "invalid_value"),
    "very_long": (SECRET + "x" * 10_000, 400, "invalid_value"),
    # What the gateway answers itself.
    "nul": ("a%00b", 400, None),
    "not_utf_8": ("%FF%FE", 400, None),
    "an_overlong_slash": ("a%C0%AFb", 400, None),
    "half_a_surrogate": ("%ED%A0%80", 400, None),
    "nothing": ("", 404, None),
    "a_folder": ("a/b", 404, None),
    "dots": ("..", 404, None),
    "escaped_dots": ("%2e%2e", 404, None),
    "longer_than_headers_may_be": ("x" * 100_000, 431, None),
}

QUERIES = {
    "lists": "include=file_search_call.results&include=reasoning.encrypted_content",
    "brackets": "include[]=file_search_call.results&include%5B0%5D=reasoning.encrypted_content",
    "no_names": "&&=&=1&",
    "question_marks": "??a=?",
    "unknown_names": "unknown=1&unknown=2&Unknown",
    "the_path_again": f"response_id={UNKNOWN}&responseId={UNKNOWN}&response_id={UNKNOWN}",
    "the_path_of_others": "model=x&conversation_id=y&item_id=z",
    "brackets_around_the_path": f"response_id[]={UNKNOWN}&response_id[a]={UNKNOWN}",
    "a_nested_path": f"response_id.x={UNKNOWN}&body.data=x",
    "no_stream": "stream=false&stream=false",
    "unicode": "%E2%82%AC=%F0%9F%92%A9",
    "odd_escapes": "a=%zz&b=%&c=%2",
    "nul": "a=%00&%00",
    "a_lot": "&".join(f"name{number}={number}" for number in range(1000)),
}

METHODS = {
    RESPONSES: ("POST", ["DELETE", "HEAD", "OPTIONS", "PATCH", "PUT"]),
    f"{RESPONSES}/{UNKNOWN}": ("DELETE, GET", ["HEAD", "OPTIONS", "PATCH", "PUT"]),
    "/v1/models": ("GET", ["DELETE", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"]),
    "/v1/models/sim": ("GET", ["DELETE", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"]),
    "/healthz": ("GET", ["DELETE", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"]),
}

CONTENT_TYPES = {
    "json": "application/json",
    "json_in_capitals": "Application/JSON; Charset=UTF-8",
    "text": "text/plain",
    "a_form": "application/x-www-form-urlencoded",
    "a_multipart_form": "multipart/form-data; boundary=x",
    "bytes": "application/octet-stream",
    "xml": "application/xml",
    "nonsense": "??",
    "empty": "",
}


def post(http: httpx.Client, content: bytes, path: str = RESPONSES) -> httpx.Response:
    return http.post(path, content=content, headers={"content-type": "application/json"})


def request(method: str, path: str, *headers: str, body: bytes = b"") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "host: test", "connection: close", *headers]
    if body:
        lines.append(f"content-length: {len(body)}")
    return "\r\n".join((*lines, "", "")).encode() + body


@pytest.fixture(scope="module")
def response_id(http: httpx.Client) -> str:
    """The id of a response that is stored."""
    reply = http.post(RESPONSES, json={"model": "sim", "input": "Hello"})
    found: str = reply.json()["id"]
    return found


@pytest.fixture(autouse=True)
def healthy(http: httpx.Client) -> Iterator[None]:
    """Whatever a request was, the next one is answered."""
    yield
    reply = http.post(RESPONSES, json={"model": "echo", "input": "still here", "store": False})
    assert text_of(reply.json()) == "still here"


class TestBody:
    @pytest.mark.parametrize("content", MALFORMED.values(), ids=MALFORMED)
    def test_one_that_is_not_json_is_refused(self, http: httpx.Client, content: bytes) -> None:
        check_error(post(http, content), 400, code="invalid_json", secret=SECRET)

    @pytest.mark.parametrize("value", NOT_OBJECTS.values(), ids=NOT_OBJECTS)
    def test_one_that_is_no_object_is_refused(self, http: httpx.Client, value: Any) -> None:
        content = json.dumps(value).encode()
        check_error(post(http, content), 400, code="invalid_type", secret=SECRET)

    @pytest.mark.parametrize("content", DEEP.values(), ids=DEEP)
    def test_one_that_is_too_deep_is_refused(self, http: httpx.Client, content: bytes) -> None:
        message = check_error(post(http, content), 400, code="invalid_value")
        assert message == "The request body is nested deeper than 128 levels."

    def test_an_item_that_is_too_deep_is_named(self, http: httpx.Client) -> None:
        deep = b"[" * 128 + b"]" * 128
        items = b'{"role":"user","content":"x"},{"type":"new","x":' + deep + b"}"
        content = b'{"model":"sim","input":[' + items + b"]}"
        check_error(post(http, content), 400, param="input[1]", code="invalid_value")

    def test_a_byte_order_mark_is_refused(self, http: httpx.Client) -> None:
        content = b'\xef\xbb\xbf{"model":"sim","input":"x"}'
        check_error(post(http, content), 400, code="invalid_json")

    def test_of_two_members_of_one_name_the_last_counts(self, http: httpx.Client) -> None:
        content = b'{"model":"sim","model":"echo","input":"x","input":"y"}'
        assert text_of(post(http, content).json()) == "y"

    def test_an_integer_of_thousands_of_digits_is_refused(self, http: httpx.Client) -> None:
        content = b'{"model":"sim","input":"x","seed":' + b"9" * 10_000 + b"}"
        check_error(post(http, content), 400, code="invalid_json")

    @pytest.mark.parametrize("streamed", [True, False], ids=["stream", "create"])
    @pytest.mark.parametrize(("members", "param", "code"), WRONG.values(), ids=WRONG)
    def test_a_wrong_member_is_named(
        self, http: httpx.Client, members: dict[str, Any], param: str, code: str, streamed: bool
    ) -> None:
        if param in ("stream", "stream_options"):
            streamed = False
        asked = {"model": "sim", **({"stream": True} if streamed else {}), **members}
        message = check_error(
            http.post(RESPONSES, json=asked), 400, param=param, code=code, secret=SECRET
        )
        if code != "previous_response_not_found":
            assert f"'{param}'" in message

    @pytest.mark.parametrize("name", OPTIONAL)
    def test_null_is_the_same_as_absence(self, http: httpx.Client, name: str) -> None:
        asked = {"model": "sim", "input": "Hello"}
        bare = http.post(RESPONSES, json=asked).json()
        null = http.post(RESPONSES, json={**asked, name: None})
        assert null.status_code == 200
        own = {"id", "created_at", "completed_at", "output"}
        assert null.json().keys() == bare.keys()
        assert {k: v for k, v in null.json().items() if k not in own} == {
            k: v for k, v in bare.items() if k not in own
        }

    def test_every_optional_member_may_be_null_at_once(self, http: httpx.Client) -> None:
        asked = {"model": "sim", "input": "Hello", **dict.fromkeys(OPTIONAL)}
        assert text_of(http.post(RESPONSES, json=asked).json()) == "You said: Hello"

    def test_a_message_needs_no_type(self, http: httpx.Client) -> None:
        items = [{"role": "user", "content": "Hello"}]
        reply = http.post(RESPONSES, json={"model": "sim", "input": items})
        assert text_of(reply.json()) == "You said: Hello"

    def test_an_unknown_member_is_ignored_and_not_told(self, http: httpx.Client) -> None:
        asked = {"model": "sim", "input": "Hello", "x": {"y": [SECRET]}, "object": "evil"}
        reply = http.post(RESPONSES, json=asked)
        assert reply.json()["object"] == "response"
        assert SECRET not in reply.text

    @pytest.mark.parametrize("name", ["id", "status", "output", "created_at", "usage", "error"])
    def test_a_client_cannot_say_what_is_the_servers(self, http: httpx.Client, name: str) -> None:
        asked = {"model": "sim", "input": "Hello", name: SECRET}
        reply = http.post(RESPONSES, json=asked)
        assert reply.status_code == 200
        assert SECRET not in reply.text

    @pytest.mark.parametrize("content_type", CONTENT_TYPES.values(), ids=CONTENT_TYPES)
    def test_it_is_read_as_json_whatever_its_type_says(
        self, server: Server, content_type: str
    ) -> None:
        asked = b'{"model":"sim","input":"Hello"}'
        sent = request("POST", RESPONSES, f"content-type: {content_type}", body=asked)
        assert text_of(raw(server.gateway, sent).json()) == "You said: Hello"

    def test_so_it_is_without_a_type(self, server: Server) -> None:
        sent = request("POST", RESPONSES, body=b'{"model":"sim","input":"Hello"}')
        assert text_of(raw(server.gateway, sent).json()) == "You said: Hello"


class TestCoding:
    ASKED = json.dumps({"model": "echo", "input": "Hello " * 1000}).encode()

    @staticmethod
    def send(http: httpx.Client, content: bytes, coding: str) -> httpx.Response:
        headers = {"content-type": "application/json", "content-encoding": coding}
        return http.post(RESPONSES, content=content, headers=headers)

    @pytest.mark.parametrize(
        ("coding", "compress"), [("gzip", gzip.compress), ("zstd", zstandard.compress)]
    )
    def test_a_compressed_body_is_read(
        self, http: httpx.Client, coding: str, compress: Callable[[bytes], bytes]
    ) -> None:
        whole = compress(self.ASKED)
        assert text_of(self.send(http, whole, coding).json()) == "Hello " * 1000
        for broken in (b"", SECRET.encode(), whole[:-5]):
            check_error(self.send(http, broken, coding), 400, code="invalid_body", secret=SECRET)

    def test_another_coding_is_refused(self, http: httpx.Client) -> None:
        check_error(self.send(http, self.ASKED, "br"), 415, code="unsupported_media_type")

    @pytest.mark.parametrize(
        ("coding", "compress"), [("gzip", gzip.compress), ("zstd", zstandard.compress)]
    )
    def test_one_that_becomes_too_large_is_refused(
        self, small_server: Server, coding: str, compress: Callable[[bytes], bytes]
    ) -> None:
        bomb = compress(b" " * (SMALL_BODY_BYTES + 1))
        with httpx.Client(base_url=small_server.url, trust_env=False, timeout=60) as http:
            check_error(self.send(http, bomb, coding), 413, code="request_too_large")


class TestSize:
    def test_a_body_of_20_megabytes_is_answered(self, http: httpx.Client) -> None:
        texts = ["0123456789" * 2_000_000, "Hello"]
        items = [{"role": "user", "content": text} for text in texts]
        reply = http.post(RESPONSES, json={"model": "echo", "input": items, "store": False})
        assert text_of(reply.json()) == "Hello"

    def test_so_is_one_of_which_10_come_back(self, http: httpx.Client) -> None:
        text = "0123456789" * 1_000_000
        reply = http.post(RESPONSES, json={"model": "echo", "input": text, "store": False})
        assert text_of(reply.json()) == text

    def test_what_does_not_come_back_is_read_too(self, http: httpx.Client) -> None:
        asked = {"model": "echo", "input": "x", "unknown": "y" * 20_000_000}
        assert text_of(http.post(RESPONSES, json=asked).json()) == "x"

    def test_many_small_items_are(self, http: httpx.Client) -> None:
        items = [{"role": "user", "content": str(number)} for number in range(20_000)]
        reply = http.post(RESPONSES, json={"model": "echo", "input": items, "store": False})
        assert text_of(reply.json()) == "19999"

    def test_one_over_the_limit_is_refused(self, server: Server) -> None:
        size = 64 * 1024 * 1024 + 1
        reply = raw(
            server.gateway,
            request("POST", RESPONSES, body=SECRET.encode() + b"x" * (size - len(SECRET))),
            "POST",
        )
        check_error(reply, 413, code="request_too_large", secret=SECRET)

    @pytest.mark.parametrize("streamed", [True, False], ids=["stream", "create"])
    def test_the_limit_is_exact(self, small_server: Server, streamed: bool) -> None:
        with httpx.Client(base_url=small_server.url, trust_env=False, timeout=60) as http:
            asked = {"model": "parrot", "input": "", "stream": streamed}
            rest = SMALL_BODY_BYTES - len(json.dumps(asked))
            for more, status in ((0, 200), (1, 413), (100_000, 413), (0, 200)):
                content = json.dumps({**asked, "input": "x" * (rest + more)}).encode()
                assert len(content) == SMALL_BODY_BYTES + more
                reply = post(http, content)
                if status == 200:
                    response = final(parse_stream(reply.content)) if streamed else reply.json()
                    assert len(text_of(response)) == rest
                else:
                    check_error(reply, status, code="request_too_large", secret="xxxx")

    def test_a_body_without_a_length_has_the_same_limit(self, small_server: Server) -> None:
        chunk = b"x" * 65_536
        with httpx.Client(base_url=small_server.url, trust_env=False, timeout=60) as http:
            reply = http.post(RESPONSES, content=iter([chunk] * 20))
        check_error(reply, 413, code="request_too_large", secret="xxxx")

    def test_a_body_that_never_ends_stops_nobody(self, server: Server, http: httpx.Client) -> None:
        asked = b'{"model":"echo","input":"x"}'
        sending = threading.Event()
        waiting = threading.Event()

        def pieces() -> Iterator[bytes]:
            yield asked[:10]
            sending.set()
            assert waiting.wait(60)
            yield asked[10:]

        replies = []

        def send() -> None:
            with httpx.Client(base_url=server.url, trust_env=False, timeout=60) as slow:
                replies.append(slow.post(RESPONSES, content=pieces()))

        thread = threading.Thread(target=send)
        thread.start()
        try:
            assert sending.wait(60)
            assert text_of(post(http, asked).json()) == "x"
        finally:
            waiting.set()
            thread.join()
        assert text_of(replies[0].json()) == "x"


class TestPath:
    @pytest.mark.parametrize("method", ["GET", "DELETE"])
    @pytest.mark.parametrize(("given", "status", "code"), IDS.values(), ids=IDS)
    def test_an_odd_id_is_refused(
        self, server: Server, method: str, given: str, status: int, code: str | None
    ) -> None:
        reply = raw(server.gateway, request(method, f"{RESPONSES}/{given}"), method)
        param = "response_id" if code or given in (UNKNOWN, "conv_1", "a" * 128) else None
        check_error(reply, status, param=param, code=code, secret=SECRET)
        assert "x-injected" not in reply.headers

    @pytest.mark.parametrize("path", ["/", "/v1", "/v2/responses", "/v1/responsesx", "/v1//"])
    def test_a_path_that_is_nothing_is_not_found(self, server: Server, path: str) -> None:
        for method in ("GET", "POST"):
            check_error(raw(server.gateway, request(method, path)), 404)

    @pytest.mark.parametrize("escaped", ["resp%5F{}", "%72esp_{}"])
    def test_an_escaped_id_is_the_same_id(
        self, server: Server, response_id: str, escaped: str
    ) -> None:
        path = f"{RESPONSES}/{escaped.format(response_id.removeprefix('resp_'))}"
        assert raw(server.gateway, request("GET", path)).json()["id"] == response_id


class TestQuery:
    @pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
    def test_it_changes_nothing_that_it_should_not(
        self, server: Server, http: httpx.Client, response_id: str, query: str
    ) -> None:
        plain = http.get(f"{RESPONSES}/{response_id}").json()
        reply = raw(server.gateway, request("GET", f"{RESPONSES}/{response_id}?{query}"))
        assert (reply.status_code, reply.json()) == (200, plain)

    @pytest.mark.parametrize(
        "query",
        [
            "model=evil&input=evil",
            "body=x&body.data=eA%3D%3D&data=x&content_type=text/plain&contentType=text/plain",
            "stream=true&stream=true",
            "extensions=x&body.extensions=x",
            "a[]=b&a[0]=c",
        ],
    )
    def test_the_body_alone_says_what_is_asked(self, server: Server, query: str) -> None:
        asked = b'{"model":"sim","input":"Hello"}'
        sent = request("POST", f"{RESPONSES}?{query}", "content-type: application/json", body=asked)
        response = raw(server.gateway, sent).json()
        assert response["model"] == "sim"
        assert text_of(response) == "You said: Hello"

    @pytest.mark.parametrize(
        ("query", "param"),
        [
            (f"include=file_search_call.results&include={SECRET}", "include[1]"),
            (f"include[]=file_search_call.results&include%5B%5D={SECRET}", "include[1]"),
            (f"stream={SECRET}", "stream"),
            (f"stream=true&stream={SECRET}", "stream"),
        ],
    )
    def test_a_wrong_value_is_named(
        self, server: Server, response_id: str, query: str, param: str
    ) -> None:
        reply = raw(server.gateway, request("GET", f"{RESPONSES}/{response_id}?{query}"))
        check_error(reply, 400, param=param, code="invalid_value", secret=SECRET)

    @pytest.mark.parametrize("value", ["x", "e30", "%00", "eyJhIjoK"])
    def test_a_context_is_a_document_in_base64(self, server: Server, value: str) -> None:
        asked = b'{"model":"sim","input":"Hello"}'
        sent = request("POST", f"{RESPONSES}?requestContext={value}", body=asked)
        reply = raw(server.gateway, sent)
        if value == "e30":
            assert text_of(reply.json()) == "You said: Hello"
        else:
            check_error(reply, 400, param="requestContext", code="invalid_value")

    @pytest.mark.parametrize("query", ["a=%FF", "%C0%AF", "a=%ED%A0%80"])
    def test_one_that_is_not_text_is_refused(
        self, server: Server, response_id: str, query: str
    ) -> None:
        reply = raw(server.gateway, request("GET", f"{RESPONSES}/{response_id}?{query}"))
        check_error(reply, 400)


class TestMethod:
    @pytest.mark.parametrize(
        ("method", "path", "allowed"),
        [
            (method, path, allowed)
            for path, (allowed, methods) in METHODS.items()
            for method in methods
        ],
    )
    def test_another_one_is_not_allowed(
        self, server: Server, method: str, path: str, allowed: str
    ) -> None:
        body = b'{"model":"sim","input":"x"}' if method in ("PATCH", "POST", "PUT") else b""
        reply = raw(server.gateway, request(method, path, body=body), method)
        assert reply.headers["allow"] == allowed
        if method == "HEAD":
            assert (reply.status_code, reply.content) == (405, b"")
            assert reply.headers["content-type"] == "application/json"
        else:
            check_error(reply, 405)

    @pytest.mark.parametrize("method", ["BREW", "get", "TRACE"])
    def test_neither_is_one_that_does_not_exist(self, server: Server, method: str) -> None:
        reply = raw(server.gateway, request(method, RESPONSES))
        assert reply.status_code in (400, 405)
        check_error(reply, reply.status_code)
