"""The simulator's backend: puts an answer together, and paces it."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

import msgspec

from antiphon.backends.documents.job import MAX_SCHEMA, Job
from antiphon.backends.documents.maker import DocumentMaker
from antiphon.backends.documents.problem import Problem, SchemaProblem
from antiphon.backends.protocol import Call
from antiphon.backends.sim.answer import REFUSAL, answer_of
from antiphon.backends.sim.phrases import Phrases, read_phrases, without_phrases
from antiphon.backends.sim.reasoning import Thought, check_reasoning, thought_of
from antiphon.backends.sim.script import (
    Meter,
    batches,
    called,
    counted,
    cut_evenly,
    deltas_in,
    first_deltas,
    printed,
    produced,
    refused,
    singly,
    text_in,
    thought,
    with_logprobs,
    within,
    written,
)
from antiphon.backends.sim.tools import Choice, PlannedCall, SimTool, choose, tools_of
from antiphon.backends.sim.view import View, view_of
from antiphon.backends.sim.words import name_words, spoken, subjects
from antiphon.backends.text import last_user_text
from antiphon.core.errors import ApiError, ErrorKind
from antiphon.core.output import Accepted, Failed, Finished, Step
from antiphon.core.tokens import count_instructions, count_items, usage
from antiphon.json import InvalidValue, raw
from antiphon.v1.item_pb2 import Item
from antiphon.v1.responses_service_pb2 import CreateResponseRequest
from antiphon.v1.usage_pb2 import ResponseUsage

__all__ = ["SimBackend"]

_LOGPROBS: Final = "message.output_text.logprobs"
_FAILED: Final = "The model failed, as it was asked to."
_MOST_OUTPUTS: Final = 16
"""The answers of tools whose words go into a document."""
_INVALID_GRAMMAR: Final = "invalid_grammar"
_FORMAT: Final = ("text.format.schema", "invalid_json_schema")


class SimBackend:
    """Answers deterministically, by rules that a client can rely on in its tests.

    The README lists the phrases that make it do particular things.

    Args:
        documents: makes JSON documents.
        sleep: waits for a number of seconds.
    """

    def __init__(
        self,
        documents: DocumentMaker,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._documents = documents
        self._sleep = sleep

    async def check(self, request: CreateResponseRequest, items: Sequence[Item]) -> None:
        """Refuses a request as `respond` would, as far as that can be told without its history.

        Args:
            request: the request.
            items: its input.

        Raises:
            ApiError: the request is refused.
        """
        check_reasoning(items)
        phrases = read_phrases(last_user_text(items))
        if phrases.fail_before:
            raise _failure(phrases)
        await self._check_schemas(request, tools_of(request, items))

    async def respond(self, call: Call) -> AsyncIterator[Sequence[Step]]:
        """Yields the answer: at once, or delta by delta where it is to be slow."""
        request = call.request
        check_reasoning(call.input)
        view = await view_of(call)
        phrases = read_phrases(view.asked)
        if phrases.fail_before:
            raise _failure(phrases)
        thinking = thought_of(request, phrases, view.asked)
        # Nothing is accepted before all documents are made: what is wrong with a schema is an
        # error of the request.
        steps = await self._steps(call, view, phrases)
        if thinking is not None:
            steps = chain(thought(thinking), steps)
        script = chain([Accepted()], _ended(call, view, phrases, steps, thinking))
        if not phrases.delay:
            for batch in batches(script):
                yield batch
            return
        batch = []
        first = True
        for step, is_delta in singly(script):
            if is_delta and not first:
                yield batch
                batch = []
                await self._sleep(phrases.delay)
            first = first and not is_delta
            batch.append(step)
        yield batch

    async def _check_schemas(
        self, request: CreateResponseRequest, tools: Sequence[SimTool]
    ) -> None:
        """Refuses what is wrong with a schema, whether it is needed for the answer or not."""
        for tool in tools:
            if tool.schema is not None:
                await self._document(Job(tool.schema, check=True), *_place_of(tool))
            elif tool.grammar is not None:
                await self._document(Job(_grammar_schema(tool), check=True), *_place_of(tool))
        form = request.text.format if request.HasField("text") else None
        if form is not None and form.HasField("json_schema"):
            await self._document(Job(form.json_schema.schema, check=True), *_FORMAT)

    async def _steps(self, call: Call, view: View, phrases: Phrases) -> Iterable[Step]:
        """Returns what is written, reasoning aside and as if nothing cut it short."""
        request = call.request
        tools = tools_of(request, call.input)
        await self._check_schemas(request, tools)
        if phrases.refuse:
            return refused(REFUSAL)
        choice = Choice()
        if tools or request.WhichOneof("tool_choice"):
            choice = choose(request, tools, view.asked, view.since)
        if choice.calls:
            given = [(each, await self._given(each, choice, view)) for each in choice.calls]
            return called(given, call.response_id, interleaved=choice.interleaved)
        form = request.text.format if request.HasField("text") else None
        if form is not None and form.HasField("json_schema"):
            job = _job(form.json_schema.schema, view, without_phrases(view.asked))
            if phrases.repeat is not None and len(phrases.repeat) <= MAX_SCHEMA:
                job = msgspec.structs.replace(job, given=phrases.repeat)
            document = await self._document(job, *_FORMAT)
            if phrases.deltas is not None:
                return cut_evenly(document, phrases.deltas)
            return printed(document)
        steps: Iterable[Step]
        if phrases.repeat is not None and phrases.deltas is not None:
            steps = cut_evenly(phrases.repeat, phrases.deltas)
        elif phrases.deltas is not None:
            steps = produced(phrases.deltas)
        else:
            steps = written(await answer_of(call, view, phrases))
        if phrases.fail_after is not None:
            steps = list(first_deltas(steps, phrases.fail_after))
            if deltas_in(steps) < phrases.fail_after:
                steps = produced(phrases.fail_after)
        if form is not None and form.HasField("json_object"):
            text = text_in(steps)
            if not _is_object(text):
                text = raw.compact({"answer": text})
            return printed(text) if phrases.deltas is None else cut_evenly(text, phrases.deltas)
        return steps

    async def _given(self, call: PlannedCall, choice: Choice, view: View) -> str:
        """Returns the arguments or the input of a call."""
        tool = call.tool
        if call.given is not None:
            return call.given
        text = without_phrases(choice.text)
        if tool.custom and tool.grammar is None:
            return text.strip() or tool.name
        if tool.custom:
            job = _job(_grammar_schema(tool), view, text, call)
            return str(raw.parse(await self._document(job, *_place_of(tool))))
        if tool.schema is None:
            return "{}"
        return await self._document(_job(tool.schema, view, text, call), *_place_of(tool))

    async def _document(self, job: Job, param: str, code: str) -> str:
        try:
            return await self._documents.make(job)
        except SchemaProblem as error:
            told = error.problem.value
            if code == _INVALID_GRAMMAR and error.problem is not Problem.TOO_COMPLEX:
                told = "is a regular expression that is invalid or that no text was found for"
            message = f"'{param}' {told}."
            raise ApiError(ErrorKind.INVALID_VALUE, message, param, code) from None


def _is_object(text: str) -> bool:
    """Whether a text is a JSON object by itself, as one that is to be repeated may be."""
    try:
        return isinstance(raw.parse(text), dict)
    except InvalidValue:
        return False


def _place_of(tool: SimTool) -> tuple[str, str]:
    """Returns the parameter that a tool's input is described by, and the code of its errors."""
    if tool.custom:
        return f"{tool.param}.format.definition", _INVALID_GRAMMAR
    return f"{tool.param}.parameters", "invalid_function_parameters"


def _grammar_schema(tool: SimTool) -> str:
    """Returns the schema of the texts that a custom tool takes."""
    assert tool.grammar is not None
    return raw.compact({"type": "string", "pattern": f"^(?:{_in_ecma(tool.grammar)})$"})


_ESCAPES: Final = re.compile(r"\\.|\(\?P<", re.DOTALL)
_IN_ECMA: Final = {r"\A": "^", r"\z": "$", "(?P<": "(?<"}


def _in_ecma(pattern: str) -> str:
    """Returns a regular expression of Rust's dialect, that of grammars, in JSON Schema's."""
    return _ESCAPES.sub(lambda match: _IN_ECMA.get(match[0], match[0]), pattern)


def _job(schema: str, view: View, text: str, call: PlannedCall | None = None) -> Job:
    """Returns the job of a document that is about a message."""
    told = [said for _, said in view.outputs()]
    left_out = frozenset() if call is None else name_words(call.tool.name)
    named = dict.fromkeys(subjects(text, left_out))
    for said in told[:_MOST_OUTPUTS]:
        named.update(dict.fromkeys(subjects(said)))
    words = list(named)
    # The next call of the same tool is about the next thing that is named.
    turn = call.place % len(words) if call is not None and words else 0
    name = "" if call is None else f"{call.tool.namespace}.{call.tool.name}#{call.place}"
    return Job(
        schema,
        _seed(view.asked, schema, name),
        (*words[turn:], *words[:turn]),
        tuple(spoken(text)),
        object=call is not None and not call.tool.custom,
    )


def _seed(*texts: str) -> int:
    """Returns a number that follows from texts, in this process and in any other."""
    data = "\0".join(texts).encode(errors="replace")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest())


def _failure(phrases: Phrases) -> ApiError:
    if phrases.fail_code == "rate_limit_exceeded":
        return ApiError(ErrorKind.RATE_LIMIT, _FAILED, retry_after=1)
    return ApiError(ErrorKind.BAD_BACKEND, _FAILED, code=phrases.fail_code)


def _ended(
    call: Call, view: View, phrases: Phrases, steps: Iterable[Step], thinking: Thought | None
) -> Iterator[Step]:
    """Yields the steps as far as they are let go, and how they end."""
    request = call.request
    meter = Meter()
    reasoning_tokens = 0 if thinking is None else thinking.tokens
    if request.HasField("max_output_tokens"):
        most = request.max_output_tokens
        steps = within(steps, most - reasoning_tokens, meter)
        reasoning_tokens = min(reasoning_tokens, most)
    halved = phrases.fail_after is None and (phrases.stop or phrases.break_off)
    if phrases.fail_after is not None:
        steps = first_deltas(steps, phrases.fail_after)
    elif halved:
        whole = list(steps)
        steps = first_deltas(whole, -(-deltas_in(whole) // 2))
    steps = counted(steps, meter)
    if request.include and _LOGPROBS in request.include:
        steps = with_logprobs(steps, request.top_logprobs, _seed(view.asked))
    yield from steps
    spent = _usage(call, reasoning_tokens, meter.tokens)
    if phrases.fail_after is not None:
        yield Failed(phrases.fail_code, _FAILED, spent)
    elif not phrases.break_off:
        cut = "max_output_tokens" if meter.cut else ""
        yield Finished(spent, "content_filter" if halved else cut)


def _usage(call: Call, reasoning_tokens: int, written_tokens: int) -> ResponseUsage:
    return usage(
        call.context_tokens + count_instructions(call.request),
        reasoning_tokens + written_tokens,
        cached_tokens=max(0, call.context_tokens - count_items(call.input)),
        reasoning_tokens=reasoning_tokens,
    )
