import pytest

from antiphon.core.parameters import FIRST, OWN, Parameters, ParametersTable
from antiphon.core.request import new_response
from antiphon.json import decode, encode
from antiphon.json.plan import descriptor_of
from antiphon.transports.rest.sse import snapshot_json
from antiphon.v1.response_pb2 import Response
from antiphon.v1.responses_service_pb2 import CreateResponseRequest

OWN_PARAMETERS = (
    '"previous_response_id":"resp_0","instructions":"be brief","metadata":{"a":"b"},"user":"u",'
    '"safety_identifier":"s","prompt_cache_key":"k"'
)


def test_a_responses_own_fields_and_its_parameters_are_all_its_fields() -> None:
    names = {field.name for field in descriptor_of(Response).fields}
    assert names >= OWN
    assert FIRST in names - OWN
    assert {"id", "status", "output", "usage", "error", "metadata"} <= OWN
    assert {"model", "tools", "text", "temperature", "store"} <= names - OWN


def parameters_of(table: ParametersTable, json: str) -> Parameters:
    request = decode(CreateResponseRequest, json)
    begin = new_response(request, table, response_id="resp_1", created_at=7, store=True)
    # Printed by whoever asks first: the others have to be told their own.
    assert snapshot_json(begin) == encode(begin.response)
    return begin.parameters


@pytest.mark.parametrize(
    "member",
    [
        '"model":"other"',
        '"temperature":0.5',
        '"tools":[{"type":"function","name":"f"}]',
        '"text":{"verbosity":"low"}',
        '"background":true',
        '"max_output_tokens":20',
        '"tool_choice":"none"',
        '"reasoning":{"effort":"low"}',
    ],
)
def test_requests_with_other_parameters_are_told_their_own(member: str) -> None:
    table = ParametersTable()
    plain = parameters_of(table, '{"model":"m"}' if "model" not in member else '{"model":"n"}')
    model = "" if "model" in member else '"model":"m",'
    assert parameters_of(table, f"{{{model}{member}}}") is not plain
    assert parameters_of(table, f"{{{model}{member},{OWN_PARAMETERS}}}") is not plain


def test_requests_with_the_same_parameters_share_them() -> None:
    table = ParametersTable()
    plain = parameters_of(table, '{"model":"m","temperature":0.5}')
    assert plain.text is not None
    shared = parameters_of(table, f'{{"model":"m","temperature":0.5,"input":"a",{OWN_PARAMETERS}}}')
    assert shared is plain


def test_only_the_last_parameters_are_kept_and_only_those_that_are_not_large() -> None:
    table = ParametersTable()
    first, _, third, *_ = [table.of(Response(model=f"m{number}")) for number in range(128)]
    assert table.of(Response(model="m0")) is first
    second = table.of(Response(model="m1"))
    table.of(Response(model="m128"))
    assert table.of(Response(model="m0")) is first
    assert table.of(Response(model="m1")) is second
    # It had been asked for longest ago.
    assert table.of(Response(model="m2")) is not third
    large = Response(model="m" * 33_000)
    assert table.of(large) is not table.of(large)
