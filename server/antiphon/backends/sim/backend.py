"""The simulator's backend: puts an answer together, and paces it."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final

import msgspec

from antiphon.backends.documents.job import MAX_SCHEMA, Job
from antiphon.backends.documents.maker import DocumentMaker
from antiphon.backends.documents.problem import SchemaProblem
from antiphon.backends.protocol import Call
from antiphon.backends.sim.answer import REFUSAL, answer_of
from antiphon.backends.sim.phrases import Phrases, read_phrases, without_phrases
from antiphon.backends.sim.reasoning import Thought, check_reasoning, thought_of
from antiphon.backends.sim.script import (
    DELTAS,
    called,
    deltas_in,
    first_deltas,
    output_tokens,
    printed,
    produced,
    refused,
    thought,
    with_logprobs,
    within,
    written,
)
from antiphon.backends.sim.tools import Choice, PlannedCall, SimTool, choose, tools_of
from antiphon.backends.sim.view import View, view_of
from antiphon.backends.sim.words import name_words, spoken, subjects
from antiphon.core.errors import ApiError, ErrorKind
from antiphon.core.output import Accepted, Failed, Finished, Step
from antiphon.core.tokens import count_items, usage
from antiphon.v1.usage_pb2 import ResponseUsage

__all__ = ["SimBackend"]

_LOGPROBS: Final = "message.output_text.logprobs"
_FAILED: Final = "The model failed, as it was asked to."

_documents: DocumentMaker | None = None


def _is_object(text: str) -> bool:
    """Whether a text is a JSON object by itself, as one that is to be repeated may be."""
    try:
        return isinstance(msgspec.json.decode(text), dict)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return False


def _shared_documents() -> DocumentMaker:
    """Returns the maker of documents of this process: its workers are started when needed."""
    global _documents
    if _documents is None:
        _documents = DocumentMaker()
    return _documents


class SimBackend:
    """Answers deterministically, by rules that a client can rely on in its tests.

    The README lists the phrases that make it do particular things.

    Args:
        sleep: waits for a number of seconds.
        documents: makes JSON documents; one for all simulators of this process if None.
    """

    def __init__(
        self,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        documents: DocumentMaker | None = None,
    ) -> None:
        self._sleep = sleep
        self._documents = documents

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
            steps = [*thought(thinking), *steps]
        script = _ended(call, view, phrases, steps, thinking)
        if not phrases.delay:
            yield [Accepted(), *script]
            return
        batch: list[Step] = [Accepted()]
        first = True
        for step in script:
            if isinstance(step, DELTAS) and not first:
                yield batch
                batch = []
                await self._sleep(phrases.delay)
            first = first and not isinstance(step, DELTAS)
            batch.append(step)
        yield batch

    async def _steps(self, call: Call, view: View, phrases: Phrases) -> list[Step]:
        """Returns what is written, reasoning aside and as if nothing cut it short."""
        request = call.request
        tools = tools_of(request, call.input)
        for tool in tools:
            if tool.schema is not None:
                await self._document(Job(tool.schema, check=True), *_place_of(tool))
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
            return printed(await self._document(job, "text.format.schema", "invalid_json_schema"))
        if phrases.deltas is not None:
            steps = produced(phrases.deltas)
        else:
            steps = written(await answer_of(call, view, phrases))
        if phrases.fail_after is not None and deltas_in(steps) < phrases.fail_after:
            steps = produced(phrases.fail_after)
        if form is not None and form.HasField("json_object"):
            text = "".join(step.text for step in steps if isinstance(step, DELTAS))
            if not _is_object(text):
                text = msgspec.json.encode({"answer": text}).decode()
            return printed(text)
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
            schema = msgspec.json.encode({"type": "string", "pattern": f"^(?:{tool.grammar})$"})
            job = _job(schema.decode(), view, text, call)
            document = await self._document(
                job, f"{tool.param}.format.definition", "invalid_grammar"
            )
            made: str = msgspec.json.decode(document, type=str)
            return made
        if tool.schema is None:
            return "{}"
        return await self._document(_job(tool.schema, view, text, call), *_place_of(tool))

    async def _document(self, job: Job, param: str, code: str) -> str:
        maker = self._documents if self._documents is not None else _shared_documents()
        try:
            return await maker.make(job)
        except SchemaProblem as error:
            message = f"'{param}' {error.problem.value}."
            raise ApiError(ErrorKind.INVALID_VALUE, message, param, code) from None


def _place_of(tool: SimTool) -> tuple[str, str]:
    return f"{tool.param}.parameters", "invalid_function_parameters"


def _job(schema: str, view: View, text: str, call: PlannedCall | None = None) -> Job:
    """Returns the job of a document that is about a message."""
    told = [said for _, said in view.outputs()]
    left_out = frozenset() if call is None else name_words(call.tool.name)
    words = [*subjects(text, left_out)]
    for said in told:
        words += (word for word in subjects(said) if word not in words)
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
    call: Call, view: View, phrases: Phrases, steps: list[Step], thinking: Thought | None
) -> list[Step]:
    """Returns the steps as far as they are let go, and how they end."""
    request = call.request
    most = request.max_output_tokens if request.HasField("max_output_tokens") else None
    reasoning_tokens = 0 if thinking is None else thinking.tokens
    incomplete = ""
    if most is not None:
        steps, cut = within(steps, reasoning_tokens, most)
        reasoning_tokens = min(reasoning_tokens, most)
        incomplete = "max_output_tokens" if cut else ""
    if phrases.fail_after is not None:
        steps = first_deltas(steps, phrases.fail_after)
    elif phrases.stop or phrases.break_off:
        steps = first_deltas(steps, -(-deltas_in(steps) // 2))
        incomplete = "content_filter"
    spent = _usage(call, reasoning_tokens, output_tokens(steps))
    if request.include and _LOGPROBS in request.include:
        steps = with_logprobs(steps, request.top_logprobs, _seed(view.asked))
    if phrases.fail_after is not None:
        return [*steps, Failed(phrases.fail_code, _FAILED, spent)]
    return steps if phrases.break_off else [*steps, Finished(spent, incomplete)]


def _usage(call: Call, reasoning_tokens: int, written_tokens: int) -> ResponseUsage:
    return usage(
        call.context_tokens,
        reasoning_tokens + written_tokens,
        cached_tokens=max(0, call.context_tokens - count_items(call.input)),
        reasoning_tokens=reasoning_tokens,
    )
