import math

import pytest

from antiphon.core.output import TextDelta
from tests.backends.sim.asking import WEATHER, ask

INCLUDE = ["message.output_text.logprobs"]


@pytest.mark.parametrize("top", [0, 1, 5, 20])
async def test_every_token_has_its_probability(top: int) -> None:
    answer = await ask("Grüße, 世界! 😀", include=INCLUDE, top_logprobs=top)
    deltas = [step for step in answer.steps if isinstance(step, TextDelta)]
    assert deltas
    for delta in deltas:
        assert "".join(each.token for each in delta.logprobs) == delta.text
        for each in delta.logprobs:
            assert bytes(each.bytes) == each.token.encode()
            assert len(each.top_logprobs) == top
            likely = [other.logprob for other in each.top_logprobs] or [each.logprob]
            assert likely == sorted(likely, reverse=True)
            assert likely[0] == each.logprob
            assert sum(map(math.exp, likely)) <= 1
            tokens = [other.token for other in each.top_logprobs]
            assert len(set(tokens)) == top
            assert tokens[:1] == [each.token][:top]
            assert all(bytes(other.bytes) == other.token.encode() for other in each.top_logprobs)


async def test_without_asking_there_are_none() -> None:
    answer = await ask("Hello", top_logprobs=5)
    assert not any(step.logprobs for step in answer.steps if isinstance(step, TextDelta))


async def test_the_same_request_has_the_same_ones() -> None:
    first = await ask("Hello", include=INCLUDE, top_logprobs=3)
    assert first.steps == (await ask("Hello", include=INCLUDE, top_logprobs=3)).steps


async def test_what_is_cut_has_those_of_what_is_left() -> None:
    answer = await ask(f"Repeat exactly: {'abcdefgh' * 9}", include=INCLUDE, max_output_tokens=16)
    (delta,) = [step for step in answer.steps if isinstance(step, TextDelta)]
    assert [each.token for each in delta.logprobs] == ["abcd", "efgh"] * 8


async def test_calls_have_none() -> None:
    answer = await ask("Call get_weather", tools=[WEATHER], include=INCLUDE)
    assert answer.names
