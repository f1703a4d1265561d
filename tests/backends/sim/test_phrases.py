import asyncio
from typing import Any

import pytest

from antiphon.backends.sim import SimBackend
from antiphon.core.errors import ApiError, ErrorKind
from antiphon.core.output import Accepted, Failed, Finished, ItemAdded, ItemDone
from tests.backends.sim.asking import WEATHER, ask, call_of, documents
from tests.support.call import steps_of
from tests.support.gate import Gate


class Sleeper:
    """Takes note of how long it was to sleep."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.slept.append(seconds)


# Many deltas.


@pytest.mark.parametrize(
    ("asked", "count"),
    [
        ("Produce 3 deltas", 3),
        ("please produce 1 DELTA", 1),
        ("Produce 0 deltas", 0),
        ("Produce 10000 deltas", 10_000),
        ("Produce 99999999 deltas", 10_000),
    ],
)
async def test_as_many_deltas_are_produced_as_are_asked_for(asked: str, count: int) -> None:
    answer = await ask(asked)
    assert len(answer.deltas) == count
    assert all(answer.deltas)
    assert answer.end == Finished(answer.end.usage)


# Failures.


@pytest.mark.parametrize(
    ("asked", "kind", "code"),
    [
        ("Fail before the first event", ErrorKind.BAD_BACKEND, "server_error"),
        ("fail BEFORE the first event with server_error", ErrorKind.BAD_BACKEND, "server_error"),
        (
            "Fail before the first event with rate_limit_exceeded",
            ErrorKind.RATE_LIMIT,
            "rate_limit_exceeded",
        ),
        ("Fail before the first event with other", ErrorKind.BAD_BACKEND, "server_error"),
    ],
)
async def test_a_failure_before_the_first_event_is_one_of_the_request(
    asked: str, kind: ErrorKind, code: str
) -> None:
    with pytest.raises(ApiError) as caught:
        await ask(asked)
    assert (caught.value.kind, caught.value.code) == (kind, code)
    assert (caught.value.retry_after is not None) is (kind is ErrorKind.RATE_LIMIT)


@pytest.mark.parametrize(
    ("asked", "deltas", "code"),
    [
        ("Fail after the first event", 0, "server_error"),
        ("Fail after the first event with rate_limit_exceeded", 0, "rate_limit_exceeded"),
        ("Fail after 2 deltas", 2, "server_error"),
        ("Fail after 1 delta with rate_limit_exceeded", 1, "rate_limit_exceeded"),
        ("Fail after 500 deltas", 500, "server_error"),
    ],
)
async def test_a_failure_after_some_deltas_ends_the_answer(
    asked: str, deltas: int, code: str
) -> None:
    answer = await ask(asked)
    assert answer.steps[0] == Accepted()
    assert len(answer.deltas) == deltas
    assert isinstance(answer.end, Failed)
    assert answer.end.code == code
    assert answer.end.usage is not None


async def test_a_failure_can_hit_a_call() -> None:
    answer = await ask("Call get_weather. Fail after 1 delta", tools=[WEATHER])
    assert [type(step) for step in answer.steps[1:2]] == [ItemAdded]
    assert len(answer.deltas) == 1
    assert not any(isinstance(step, ItemDone) for step in answer.steps)


# Ends in the middle.


async def test_an_answer_can_stop_in_the_middle() -> None:
    answer = await ask("Stop in the middle.\nRepeat exactly: one two three four")
    assert answer.text == "one two"
    assert answer.end == Finished(answer.end.usage, "content_filter")


async def test_an_answer_can_break_off_in_the_middle() -> None:
    answer = await ask("Break off in the middle\nRepeat exactly: one two three")
    assert answer.text == "one two"
    assert answer.deltas == ["one", " two"]
    assert not isinstance(answer.steps[-1], Finished | Failed)


async def test_a_call_can_stop_in_the_middle() -> None:
    whole = await ask("Call get_weather", tools=[WEATHER])
    half = await ask("Call get_weather. Stop in the middle", tools=[WEATHER])
    assert len(half.deltas) == -(-len(whole.deltas) // 2)
    assert not any(isinstance(step, ItemDone) for step in half.steps)


@pytest.mark.parametrize(
    ("most", "length", "incomplete"),
    [
        (16, 55, "max_output_tokens"),
        (17, 59, "max_output_tokens"),
        (19, 67, "max_output_tokens"),
        (28, 97, "max_output_tokens"),
        (29, 99, ""),
        (100, 99, ""),
    ],
)
async def test_no_more_is_written_than_may_be(most: int, length: int, incomplete: str) -> None:
    text = "one two three " * 7
    answer = await ask(f"Repeat exactly: {text}.", max_output_tokens=most)
    assert answer.text == f"{text}."[:length]
    assert answer.end == Finished(answer.end.usage, incomplete)
    assert answer.end.usage is not None
    assert answer.end.usage.output_tokens == min(most, 29)


async def test_calls_are_cut_where_they_are_too_long() -> None:
    first, second = (f'{{"city":"{name * 45}"}}' for name in "ab")  # 14 tokens each
    asked = f"Call get_weather with {first} and get_weather with {second}"
    answer = await ask(asked, tools=[WEATHER], max_output_tokens=16)
    assert answer.calls == [("get_weather", first), ("get_weather", '{"city":')]
    assert sum(isinstance(step, ItemDone) for step in answer.steps) == 1
    first, second = (f'{{"city":"{name * 53}"}}' for name in "ab")  # 16 tokens each
    asked = f"Call get_weather with {first} and get_weather with {second}"
    answer = await ask(asked, tools=[WEATHER], max_output_tokens=16)
    assert answer.calls == [("get_weather", first)]
    assert answer.end == Finished(answer.end.usage, "max_output_tokens")


# Slowness.


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [
        ("Be slow", 0.2),
        ("be SLOW.", 0.2),
        ("Be slow: 50 ms", 0.05),
        ("Be slow: 1.5 s", 1.5),
        ("Be slow:5ms", 0.005),
        ("Be slow: 999999 s", 60.0),
    ],
)
async def test_a_slow_answer_waits_between_its_deltas(asked: str, seconds: float) -> None:
    sleeper = Sleeper()
    answer = await ask(f"{asked}\nRepeat exactly: one two three", sleep=sleeper)
    assert answer.text == "one two three"
    assert sleeper.slept == [seconds] * 2


async def test_a_slow_delta_is_told_at_once() -> None:
    gate = Gate()

    async def sleep(_seconds: float) -> None:
        await gate.enter()

    batches = SimBackend(documents(), sleep).respond(call_of("Be slow\nRepeat exactly: one two"))
    first = await anext(batches)
    assert [getattr(step, "text", None) for step in first] == [None, "one"]
    waiting = asyncio.ensure_future(anext(batches))
    await gate.reached()
    assert not waiting.done()
    gate.open()
    assert [getattr(step, "text", None) for step in await waiting] == [" two", None]


async def test_a_slow_answer_can_be_cancelled() -> None:
    gate = Gate()

    async def sleep(_seconds: float) -> None:
        await gate.enter()

    running = asyncio.ensure_future(
        steps_of(SimBackend(documents(), sleep), call_of("Be slow: 60 s"))
    )
    await gate.reached()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_nobody_waits_without_being_told() -> None:
    sleeper = Sleeper()
    await ask("Produce 50 deltas", sleep=sleeper)
    assert not sleeper.slept


# Refusals, and who is obeyed.


async def test_an_answer_can_be_refused() -> None:
    answer = await ask("Please refuse to answer", tools=[WEATHER], tool_choice="required")
    assert answer.refusal == "I refuse to answer that."
    assert not answer.text
    assert not answer.names
    assert len(answer.deltas) > 1


@pytest.mark.parametrize(
    "phrase",
    ["Produce 5 deltas", "Fail after the first event", "Refuse to answer", "Stop in the middle"],
)
async def test_only_the_last_message_of_the_users_is_obeyed(phrase: str) -> None:
    items: list[dict[str, Any]] = [
        {"role": "user", "content": phrase},
        {"role": "assistant", "content": phrase},
        {"role": "developer", "content": phrase},
        {"role": "system", "content": phrase},
        {"role": "user", "content": "x"},
    ]
    answer = await ask(items, instructions=phrase)
    assert answer.text == "You said: x"


@pytest.mark.parametrize(
    "phrase",
    [
        "Produce 5 deltas",
        "Fail before the first event",
        "Fail after 1 delta",
        "Refuse to answer",
        "Be slow",
        "Stop in the middle",
        "Break off in the middle",
        "Think about it",
        "What did you think?",
    ],
)
async def test_what_is_to_be_repeated_is_not_obeyed(phrase: str) -> None:
    answer = await ask(f"Repeat exactly: {phrase}")
    assert answer.text == phrase
    assert answer.end == Finished(answer.end.usage)


async def test_phrases_add_up() -> None:
    sleeper = Sleeper()
    answer = await ask(
        "Think about it. Be slow: 1 s. Produce 10 deltas. Stop in the middle.", sleep=sleeper
    )
    assert len(answer.deltas) == 5
    assert sleeper.slept == [1.0] * 4
    assert answer.items[0].HasField("reasoning")


async def test_sampling_changes_nothing() -> None:
    plain = await ask("Hello")
    assert plain.steps == (await ask("Hello", temperature=0.1, top_p=0.2)).steps
