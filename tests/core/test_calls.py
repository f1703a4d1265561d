import pytest

from antiphon.core.calls import check_calls, open_calls
from antiphon.core.errors import ApiError, ErrorKind
from antiphon.json import decode
from antiphon.v1.item_pb2 import Item, ItemList

CALL = '{"type":"function_call","call_id":"%s","name":"f","arguments":"{}"}'
ANSWER = '{"type":"function_call_output","call_id":"%s","output":"4"}'
MESSAGE = '{"role":"user","content":"hi"}'


def items(*texts: str) -> list[Item]:
    return list(decode(ItemList, f"[{','.join(texts)}]").items)


def refusal(given: list[Item], waiting: frozenset[str]) -> ApiError:
    with pytest.raises(ApiError) as caught:
        check_calls(given, waiting)
    assert caught.value.kind is ErrorKind.INVALID_VALUE
    assert caught.value.param == "input"
    return caught.value


# The calls that an output leaves open.


def test_an_output_without_calls_leaves_none_open() -> None:
    assert open_calls(items(MESSAGE)) == frozenset()


def test_a_call_waits_for_its_answer() -> None:
    assert open_calls(items(CALL % "call_1", MESSAGE, CALL % "call_2")) == {"call_1", "call_2"}


def test_a_call_that_is_answered_waits_no_more() -> None:
    given = items(CALL % "call_1", CALL % "call_2", ANSWER % "call_1")
    assert open_calls(given) == {"call_2"}


@pytest.mark.parametrize("status", ["in_progress", "incomplete"])
def test_a_call_that_was_cut_short_waits_for_nothing(status: str) -> None:
    call = CALL % "call_1"
    assert open_calls(items(call[:-1] + f',"status":"{status}"}}')) == frozenset()


def test_a_call_of_a_kind_with_states_of_its_own_that_goes_on_waits_for_nothing() -> None:
    call = '{"type":"apply_patch_call","call_id":"call_1","status":"in_progress",'
    assert open_calls(items(call + '"operation":{"type":"delete_file","path":"p"}}')) == frozenset()


def test_a_completed_call_waits_for_its_answer() -> None:
    call = CALL % "call_1"
    assert open_calls(items(call[:-1] + ',"status":"completed"}')) == {"call_1"}


@pytest.mark.parametrize(
    "kind",
    [
        '"custom_tool_call","name":"f","input":"x"',
        '"shell_call","action":{"commands":["ls"]}',
        '"apply_patch_call","status":"completed","operation":{"type":"delete_file","path":"p"}',
        '"tool_search_call","arguments":{},"execution":"client"',
    ],
    ids=lambda kind: kind[1:16],
)
def test_every_kind_of_call_that_the_client_runs_waits(kind: str) -> None:
    assert open_calls(items(f'{{"type":{kind},"call_id":"call_1"}}')) == {"call_1"}


def test_a_search_that_the_server_ran_waits_for_nothing() -> None:
    call = '{"type":"tool_search_call","arguments":{},"execution":"server","call_id":"call_1"}'
    assert open_calls(items(call)) == frozenset()


def test_an_item_of_an_unknown_kind_waits_for_nothing() -> None:
    assert open_calls(items('{"type":"x_invented_call","call_id":"call_1"}')) == frozenset()


# What a turn has to answer.


def test_a_turn_without_open_calls_may_say_anything() -> None:
    check_calls(items(MESSAGE), frozenset())
    check_calls([], frozenset())


def test_a_turn_answers_every_call_that_waits() -> None:
    check_calls(
        items(ANSWER % "call_2", MESSAGE, ANSWER % "call_1"), frozenset({"call_1", "call_2"})
    )


def test_a_turn_that_leaves_a_call_unanswered_is_refused() -> None:
    refusal(items(ANSWER % "call_1"), frozenset({"call_1", "call_2"}))
    refusal([], frozenset({"call_1"}))


def test_an_answer_without_its_call_is_refused_by_its_place() -> None:
    error = refusal(items(MESSAGE, ANSWER % "call_1"), frozenset())
    assert "input[1]" in error.message
    assert "call_1" not in error.message


def test_a_turn_may_repeat_a_call_with_its_answer() -> None:
    check_calls(items(CALL % "call_1", ANSWER % "call_1"), frozenset())


def test_an_answer_stands_after_its_call() -> None:
    refusal(items(ANSWER % "call_1", CALL % "call_1"), frozenset())


def test_the_output_of_a_local_shell_refers_to_its_call_by_the_items_id() -> None:
    told = '"status":"completed","action":{"type":"exec","command":["ls"],"env":{}}'
    call = f'{{"type":"local_shell_call","id":"lsh_1","call_id":"call_1",{told}}}'
    answer = '{"type":"local_shell_call_output","id":"call_1","output":"x"}'
    assert open_calls(items(call)) == {"call_1"}
    check_calls(items(call, answer), frozenset())
    check_calls(items(answer), frozenset({"call_1"}))
