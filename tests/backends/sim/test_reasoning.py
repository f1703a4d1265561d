import base64
from typing import Any

import pytest

from antiphon.core.errors import ApiError
from antiphon.core.output import Finished, ItemAdded, ItemDone, ReasoningDelta, SummaryDelta
from tests.backends.sim.asking import Answer, ask, call_of

ENCRYPTED = ["reasoning.encrypted_content"]


def summary(answer: Answer) -> list[str]:
    parts: dict[int, str] = {}
    for step in answer.steps:
        if isinstance(step, SummaryDelta):
            parts[step.index] = parts.get(step.index, "") + step.text
    return list(parts.values())


def thinks(answer: Answer) -> bool:
    return any(item.HasField("reasoning") for item in answer.items)


def encrypted(answer: Answer) -> str:
    for step in answer.steps:
        if isinstance(step, ItemDone) and step.item is not None:
            return step.item.reasoning.encrypted_content
    return ""


def reasoning_tokens(answer: Answer) -> int:
    end = answer.end
    assert end.usage is not None
    return end.usage.output_tokens_details.reasoning_tokens


@pytest.mark.parametrize(
    ("text", "settings", "expected"),
    [
        ("Hello", {}, False),
        ("Think about it", {}, True),
        ("think ABOUT it, please", {}, True),
        ("Think aloud", {}, True),
        ("Hello", {"reasoning": {"effort": "low"}}, True),
        ("Hello", {"reasoning": {"summary": "auto"}}, True),
        ("Hello", {"reasoning": {"effort": "none", "summary": "auto"}}, False),
        ("Hello", {"reasoning": {"effort": None}}, False),
        ("Think about it", {"reasoning": {"effort": "none"}}, True),
        ("Repeat exactly: Think about it", {}, False),
    ],
)
async def test_who_asks_for_reasoning_gets_it_first(
    text: str, settings: dict[str, Any], expected: bool
) -> None:
    answer = await ask(text, **settings)
    assert thinks(answer) is expected
    if expected:
        added = answer.steps[1]
        assert isinstance(added, ItemAdded)
        assert added.item.HasField("reasoning")
    assert (reasoning_tokens(answer) > 0) is expected


async def test_more_effort_costs_more() -> None:
    efforts = ["none", "minimal", "low", "medium", "high", "xhigh", "max"]
    costs = [
        reasoning_tokens(await ask("Hello", reasoning={"effort": effort})) for effort in efforts
    ]
    assert costs == sorted(set(costs))
    assert costs[0] == 0


async def test_reasoning_is_part_of_the_output() -> None:
    without, with_it = await ask("Hello"), await ask("Hello", reasoning={"effort": "low"})
    assert isinstance(without.end, Finished)
    assert without.end.usage is not None
    assert with_it.end.usage is not None
    assert with_it.end.usage.output_tokens == without.end.usage.output_tokens + 64
    assert with_it.end.usage.total_tokens == 100 + with_it.end.usage.output_tokens


@pytest.mark.parametrize(("kind", "parts"), [("auto", 1), ("concise", 1), ("detailed", 2)])
async def test_a_summary_is_told_where_it_is_wanted(kind: str, parts: int) -> None:
    told = summary(await ask("Hello you", reasoning={"effort": "low", "summary": kind}))
    assert len(told) == parts
    assert "Hello you" in told[0]
    assert told == summary(await ask("Hello you", reasoning={"generate_summary": kind}))


async def test_without_asking_neither_summary_nor_text_is_told() -> None:
    answer = await ask("Hello", reasoning={"effort": "low"})
    assert not summary(answer)
    assert not any(isinstance(step, ReasoningDelta) for step in answer.steps)
    assert not encrypted(answer)


async def test_thinking_aloud_tells_the_text() -> None:
    answer = await ask("Think aloud")
    told = [step.text for step in answer.steps if isinstance(step, ReasoningDelta)]
    assert "Think aloud" in "".join(told)


async def test_encrypted_reasoning_is_understood_when_it_is_sent_back() -> None:
    first = await ask("Think about it", include=ENCRYPTED)
    content = encrypted(first)
    assert content
    assert "Think" not in content
    items = [
        {"role": "user", "content": "Think about it"},
        {"type": "reasoning", "summary": [], "encrypted_content": content},
        {"role": "user", "content": "What did you think?"},
    ]
    second = await ask(items)
    assert second.text.startswith('I thought: "The user says: "Think about it"')
    assert content == encrypted(await ask("Think about it", include=ENCRYPTED))


@pytest.mark.parametrize(
    "item",
    [
        {"summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]},
        {"summary": [{"type": "summary_text", "text": "hm"}]},
    ],
)
async def test_what_was_thought_in_the_history_is_quoted(item: dict[str, Any]) -> None:
    before = call_of([{"type": "reasoning", **item}]).input
    assert (await ask("What did you think?", before=before)).text == 'I thought: "hm"'


async def test_who_did_not_think_says_so() -> None:
    assert (await ask("What did you think?")).text == "I have not thought before."


@pytest.mark.parametrize(
    "content",
    [
        "x",
        "sim1",
        "sim1.",
        "sim1.AAAA",
        "sim1.@",
        "sim2.AAAA",
        "gAAAAABo",
        "é",
        "sim1." + base64.b64encode(b"12345678hello").decode(),
    ],
)
async def test_reasoning_that_is_not_ours_is_refused(content: str) -> None:
    items = [
        {"role": "user", "content": "Hello"},
        {"type": "reasoning", "summary": [], "encrypted_content": content},
    ]
    with pytest.raises(ApiError) as caught:
        await ask(items)
    error = caught.value
    assert (error.param, error.code) == (
        "input[1].encrypted_content",
        "invalid_encrypted_content",
    )


async def test_reasoning_uses_up_what_may_be_written() -> None:
    reasoning = {"effort": "low", "summary": "auto"}
    answer = await ask("Hello", reasoning=reasoning, max_output_tokens=16)
    assert isinstance(answer.end, Finished)
    assert answer.end.incomplete == "max_output_tokens"
    assert answer.end.usage is not None
    assert answer.end.usage.output_tokens == reasoning_tokens(answer) == 16
    assert not answer.text
    assert not any(isinstance(step, ItemDone) for step in answer.steps)


async def test_what_reasoning_leaves_is_for_the_answer() -> None:
    answer = await ask("Hello", reasoning={"effort": "low"}, max_output_tokens=66)
    assert answer.text == "You sai"
    assert any(isinstance(step, ItemDone) for step in answer.steps)
