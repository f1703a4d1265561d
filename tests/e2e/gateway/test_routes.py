import json
from collections import defaultdict
from collections.abc import Iterator

import httpx
import pytest
from google.api import annotations_pb2, http_pb2

from tests.e2e.gateway.answers import check_error, check_headers
from tests.e2e.gateway.upstream import REST
from tests.e2e.gateway.wire import Reply, http1, http2

pytestmark = pytest.mark.asyncio(loop_scope="session")

VERBS = {"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"}


def _rules() -> Iterator[tuple[str, str, str]]:
    """Yield every verb, path template and method of the schema."""
    for method in REST.methods:
        rule: http_pb2.HttpRule = method.GetOptions().Extensions[annotations_pb2.http]  # type: ignore[index]
        for binding in (rule, *rule.additional_bindings):
            verb = binding.WhichOneof("pattern")
            assert verb is not None
            yield verb.upper(), getattr(binding, verb), method.name


def _variables(template: str) -> dict[str, str]:
    """Return a value for each variable of a path template."""
    parts = [part.split("}")[0] for part in template.split("{")[1:]]
    return {part.partition("=")[0]: f"{part.partition('=')[0]}_1" for part in parts}


def _path(template: str) -> str:
    for name, value in _variables(template).items():
        for variable in (f"{{{name}}}", f"{{{name}=**}}"):
            template = template.replace(variable, value)
    assert "{" not in template
    return template


def _without_body(reply: Reply) -> dict[str, object]:
    """Return the fields of the request, but for the body that many have."""
    return {k: v for k, v in reply.json()["request"].items() if k != "body"}


RULES = list(_rules())

ALLOWED: defaultdict[str, set[str]] = defaultdict(set)
for _verb, _template, _ in RULES:
    ALLOWED[_path(_template)].add(_verb)


@pytest.mark.parametrize(("verb", "template", "method"), RULES)
async def test_every_rule_of_the_schema_has_a_route(
    client: httpx.AsyncClient, verb: str, template: str, method: str
) -> None:
    response = await client.request(verb, _path(template))
    assert response.status_code == 200, f"envoy.yaml has no route for {verb} {template}"
    check_headers(response.headers)
    answer = response.json()
    assert answer["method"] == method
    assert {k: v for k, v in answer["request"].items() if k != "body"} == _variables(template)


@pytest.mark.parametrize("path", sorted(ALLOWED))
async def test_other_verbs_are_refused(port: int, path: str) -> None:
    async with http2(port) as h2:
        for verb in VERBS - ALLOWED[path]:
            reply = await h2.until_end(h2.send(verb, path))
            assert reply.headers["allow"] == ", ".join(sorted(ALLOWED[path])), verb
            if verb == "HEAD":
                assert reply.status == 405
                assert reply.body == b""
                check_headers(reply.headers)
            else:
                check_error(reply, 405)


async def test_other_verbs_are_refused_over_http1(port: int) -> None:
    async with http1(port) as h1:
        h1.send("PUT", "/v1/responses")
        check_error(await h1.reply(), 405)


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/v1",
        "/v1/",
        "/nothing",
        "/v2/responses",
        "/api/responses",
        "/v1/responsesx",
        "/v1/responses/",
        "/v1/responses/resp_1/",
        "/v1/responses/resp_1/nothing",
        "/V1/responses",
        "/healthz/x",
        "/antiphon.v1.RestService/GetHealth",
        "/antiphon.v1.ResponsesService/CreateResponse",
        "/grpc.health.v1.Health/Check",
    ],
)
@pytest.mark.parametrize("verb", ["GET", "POST"])
async def test_other_paths_are_unknown(port: int, path: str, verb: str) -> None:
    async with http2(port) as h2:
        reply = await h2.until_end(h2.send(verb, path, [("content-type", "application/json")]))
    check_error(reply, 404)


@pytest.mark.parametrize(
    ("verb", "template"),
    [(verb, template) for verb, template, _ in RULES if _variables(template)],
)
async def test_the_query_does_not_overwrite_the_path(port: int, verb: str, template: str) -> None:
    async with http2(port) as h2:
        for name in _variables(template):
            first, *others = name.split("_")
            for spelling in {name, first + "".join(map(str.title, others))}:
                for key in (spelling, f"{spelling}[]", f"{spelling}%5B%5D", f"{spelling}[0]"):
                    url = f"{_path(template)}?{key}=evil"
                    reply = await h2.until_end(h2.send(verb, url))
                    assert reply.status == 200
                    assert _without_body(reply) == _variables(template)


@pytest.mark.parametrize(
    ("verb", "template"),
    [(verb, template) for verb, template, _ in RULES if _variables(template)],
)
async def test_the_body_does_not_overwrite_the_path(port: int, verb: str, template: str) -> None:
    headers = [("content-type", "application/json")]
    async with http2(port) as h2:
        for name in _variables(template):
            body = json.dumps({name: "evil"}).encode()
            reply = await h2.until_end(h2.send(verb, _path(template), headers, body))
            assert reply.status == 200
            assert _without_body(reply) == _variables(template)


@pytest.mark.parametrize(
    ("query", "bound"),
    [
        ("include=a&include=b", {"include": ["a", "b"]}),
        ("include[]=a&include[]=b", {"include": ["a", "b"]}),
        ("include%5B%5D=a&include%5b%5d=b", {"include": ["a", "b"]}),
        ("include[0]=a&include%5B1%5D=b&include=c", {"include": ["a", "b", "c"]}),
        ("include[]=[]&include=a%5B%5D", {"include": ["[]", "a[]"]}),
        ("include[]&include", {}),
        ("include=a=b[]=c", {"include": ["a=b[]=c"]}),
        ("include=%C3%A9%E2%82%AC%F0%9F%98%80", {"include": ["é€😀"]}),
        ("include=a%26b%3Dc%25", {"include": ["a&b=c%"]}),
        ("include=a+b%2Bc", {"include": ["a b+c"]}),
        ("stream=maybe&starting_after=x", {"stream": "maybe", "starting_after": "x"}),
        (
            "startingAfter=1&includeObfuscation=no",
            {
                "starting_after": "1",
                "include_obfuscation": "no",
            },
        ),
        ("stream=true&stream=false", {"stream": "false"}),
        ("unknown=1&stream=true&un.known=2&=3&&", {"stream": "true"}),
        ("stream.x=1&include.y=2", {}),
        ("", {}),
        ("?", {}),
    ],
)
async def test_query(port: int, query: str, bound: dict[str, object]) -> None:
    async with http2(port) as h2:
        reply = await h2.until_end(h2.send("GET", f"/v1/responses/resp_1?{query}"))
    assert reply.status == 200
    assert reply.json()["request"] == {"response_id": "resp_1", **bound}


@pytest.mark.parametrize(
    "query",
    ["data=aGk=", "body=aGk=", "body.data=aGk=", "body.contentType=x", "body.content_type=x"],
)
async def test_the_query_does_not_overwrite_the_body(port: int, query: str) -> None:
    async with http2(port) as h2:
        headers = [("content-type", "application/json")]
        plain = await h2.until_end(h2.send("POST", "/v1/responses", headers, b'{"a":1}'))
        reply = await h2.until_end(h2.send("POST", f"/v1/responses?{query}", headers, b'{"a":1}'))
    assert plain.json()["request"]["body"]["length"] == 7
    assert reply.json()["request"] == plain.json()["request"]


async def test_a_post_has_query_parameters_too(client: httpx.AsyncClient) -> None:
    for name in ("request_context", "requestContext"):
        response = await client.post("/v1/responses", params={name: '{"a": "b c"}'}, content=b"{}")
        assert response.json()["request"]["request_context"] == '{"a": "b c"}'


@pytest.mark.parametrize(
    ("path", "model"),
    [
        ("openai/gpt", "openai/gpt"),
        ("openai%2Fgpt", "openai/gpt"),
        ("a/b:c@d", "a/b:c@d"),
        ("a%3Fb%23c%25", "a?b#c%"),
        ("a+b", "a+b"),
        ("caf%C3%A9", "café"),
        ("x/../../models/y", "y"),
    ],
)
async def test_a_model_has_any_name(port: int, path: str, model: str) -> None:
    async with http2(port) as h2:
        reply = await h2.until_end(h2.send("GET", f"/v1/models/{path}"))
    assert reply.status == 200
    assert reply.json()["request"] == {"model": model}


async def test_an_escaped_slash_is_part_of_an_id(port: int) -> None:
    async with http2(port) as h2:
        reply = await h2.until_end(h2.send("GET", "/v1/responses/a%2F..%2Fb:c"))
    assert reply.json()["request"] == {"response_id": "a/../b:c"}


@pytest.mark.parametrize(
    "text",
    [
        "%FF",
        "%C3",
        "%C3%28",
        "%C0%80",
        "%E0%80%80",
        "%ED%A0%80",
        "%F0%80%80%80",
        "%F4%90%80%80",
        "%E2%82",
        "%C3%C3%A9%A9",
    ],
)
@pytest.mark.parametrize("url", ["/v1/responses/{}", "/v1/models/a{}b", "/v1/models/a?x={}"])
async def test_what_is_not_utf8_is_refused(port: int, url: str, text: str) -> None:
    async with http2(port) as h2:
        reply = await h2.until_end(h2.send("GET", url.format(text)))
    check_error(reply, 400)


@pytest.mark.parametrize("path", ["/v1/responses/a%00b", "/v1/responses/x#fragment"])
async def test_what_no_url_holds_is_refused(port: int, path: str) -> None:
    async with http2(port) as h2:
        reply = await h2.until_end(h2.send("GET", path))
    check_error(reply, 400)
