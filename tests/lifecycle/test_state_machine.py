"""Everything that clients can do, in any order, against a plain model of the rules."""

import asyncio
import json
import re
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from antiphon.core.output import Finished
from antiphon.transports.rest.sse import KEEP_ALIVE
from tests.lifecycle.desk import Asked, Desk
from tests.lifecycle.house import MODEL, House, Json, settled, texts_of
from tests.schema.served import Answer, parse_frames

T = TypeVar("T")

USERS = st.sampled_from(["owner", "owner", "owner", "owner", "ann", "ben"])
"""Who asks for something: mostly the one whose it is."""
SELDOM = st.sampled_from([False, False, False, True])
WHICH = st.integers(0, 30)
FLAGS = st.booleans()
UNKNOWN = "resp_0123456789abcdef"
IN_FLIGHT = {"queued", "in_progress"}
DONE = b"data: [DONE]\n\n"
Mode = tuple[bool, bool, bool]
"""Whether a response is asked for in the background, as a stream, and to be stored."""
MODES = st.tuples(FLAGS, FLAGS, st.sampled_from([True, True, True, True, True, False]))
_ID = re.compile(rb'"id":"(resp_\w+)"')


@dataclass(eq=False)
class Entry:
    """An item of a conversation, as the model has it."""

    text: str
    owner: "Run | None" = None


@dataclass(eq=False)
class Talk:
    """A conversation, as the model has it."""

    user: str
    id: str
    items: list[Entry] = field(default_factory=list)
    line: "list[Run]" = field(default_factory=list)
    """The runs that are in it or wait to be, in their order."""
    gone: bool = False


@dataclass(eq=False)
class Run:
    """A response, as the model has it."""

    user: str
    text: str
    background: bool
    stream: bool
    store: bool
    talk: Talk | None
    before: list[str]
    """What was said before it in its chain."""
    status: str = "queued"
    """`queued` until it is asked; `refused` if it ends in an error before it begins."""
    said: str = ""
    seen: list[Entry] = field(default_factory=list)
    """What was in its conversation when it was asked."""
    gone: bool = False
    listening: bool = True
    """Whether its client is still there."""
    call: Asked | None = None
    id: str = ""
    answer: Answer | None = None
    live: bytes = b""
    """What its client was sent of the stream."""
    task: "asyncio.Task[None] | None" = None
    followers: "list[tuple[int, asyncio.Task[bytes]]]" = field(default_factory=list)

    @property
    def begun(self) -> bool:
        """Whether there is an answer: in the background at once, otherwise when it is asked."""
        return self.status != "refused" and (self.background or self.status != "queued")

    @property
    def output(self) -> list[str]:
        return [self.said] if self.said else []

    @property
    def context(self) -> list[str]:
        """The texts that it is made from."""
        seen = self.seen
        if self.talk is not None and self.status == "queued":
            seen = self.talk.items
        kept = [each.text for each in seen if self.talk and each in self.talk.items]
        return [*self.before, *kept, self.text]


class Lifecycle(RuleBasedStateMachine):
    """Clients of two scopes, and the model of what they are told."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.runs: list[Run] = []
        self.talks: list[Talk] = []
        self.count = 0

    @initialize(stubborn=FLAGS)
    def start(self, stubborn: bool) -> None:
        self.desk = Desk(stubborn=stubborn)
        self.house = self.run(self._house())
        for user in ("ann", "ben"):
            self.create_talk(user, 0, 1)

    async def _house(self) -> House:
        return House(self.desk)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Does something, and lets everything come to rest."""

        async def to_rest() -> T:
            found = await work
            await settled()
            return found

        return self.runner.run(to_rest())

    def teardown(self) -> None:
        async def end() -> None:
            await self.house.engine.close()
            for run in self.runs:
                tasks = [run.task, *(task for _, task in run.followers)]
                for task in tasks:
                    if task is not None:
                        await task
            assert self.house.engine.running == 0
            for call in self.desk.asked:
                call.stop()
            await settled()

        if hasattr(self, "house"):
            self.run(end())
        self.runner.close()

    # What the rules say.

    def visible(self, user: str, run: Run) -> bool:
        return run.begun and run.store and not run.gone and run.user == user

    def ask(self, operation: str, body: Json | None = None, **how: Any) -> Answer:
        return self.run(self.house.ask(operation, body, **how))

    def pick(self, which: int) -> Run:
        return self.runs[which % len(self.runs)]

    def end(self, run: Run, status: str) -> None:
        """Ends a run, and lets those that wait behind it go on."""
        waited = run.status == "queued"
        run.status = status
        if waited and not run.background:
            run.status = "refused"
        talk = run.talk
        if talk is None:
            return
        first = talk.line[0] is run
        talk.line.remove(run)
        if status in ("completed", "incomplete") and run.store and not run.gone and not talk.gone:
            talk.items += [Entry(run.text, run), *(Entry(text, run) for text in run.output)]
        while first and talk.line:
            run = talk.line[0]
            if not talk.gone:
                run.seen = list(talk.items)
                run.status = "in_progress"
                return
            run.status = "failed" if run.background else "refused"
            talk.line.pop(0)

    def in_turn(self, run: Run) -> bool:
        return run.status == "in_progress"

    # Creating.

    @rule(user=USERS, mode=MODES)
    def create(self, user: str, mode: Mode) -> None:
        self._create(user, mode)

    @precondition(lambda self: self.runs)
    @rule(user=USERS, mode=MODES, which=WHICH)
    def create_onto(self, user: str, mode: Mode, which: int) -> None:
        self._create(user, mode, self.pick(which))

    @rule(user=USERS, mode=MODES, which=WHICH)
    def create_in(self, user: str, mode: Mode, which: int) -> None:
        self._create(user, mode, None, self.talk(which))

    @rule(mode=MODES, which=WHICH)
    def create_two_more_in(self, mode: Mode, which: int) -> None:
        for _ in range(2):
            self._create("owner", mode, None, self.talk(which))
            self.look()

    @precondition(lambda self: self.runs)
    @rule(user=USERS, mode=MODES, which=WHICH, other=WHICH)
    def create_onto_both(self, user: str, mode: Mode, which: int, other: int) -> None:
        self._create(user, mode, self.pick(which), self.talk(other))

    def _create(
        self, user: str, mode: Mode, parent: Run | None = None, talk: Talk | None = None
    ) -> None:
        background, stream, store = mode
        if user == "owner":
            owner = parent or talk
            user = "ann" if owner is None else owner.user
        self.count += 1
        text = f"t{self.count}"
        body: Json = {
            "model": MODEL,
            "input": text,
            "background": background,
            "stream": stream,
            "store": store,
        }
        if parent is not None:
            body["previous_response_id"] = parent.id or UNKNOWN
        if talk is not None:
            body["conversation"] = talk.id

        refused: tuple[int, str | None] | None = None
        if parent is not None and talk is not None:
            refused = (400, "previous_response_id")
        elif background and not store:
            refused = (400, "background")
        elif parent is not None and (
            not parent.id or not self.visible(user, parent) or parent.status in IN_FLIGHT
        ):
            refused = (400, "previous_response_id")
        elif talk is not None:
            talk = self.known_talk(user, talk.id)
            if talk is None:
                refused = (404, "conversation")
        if refused is not None:
            answer = self.ask("CreateResponse", body, user=user)
            assert (answer.status, answer.refusal.param) == refused
            return

        before: list[str] = []
        if parent is not None:
            # A chain that leaves a conversation takes the turn along, not the conversation.
            before = [*parent.before, parent.text, *parent.output]
        run = Run(user, text, background, stream, store, talk, before)
        if talk is None or not talk.line:
            run.status = "in_progress"
            run.seen = list(talk.items) if talk is not None else []
        if talk is not None:
            talk.line.append(run)
        self.runs.append(run)
        self.run(self._begin(run, body))

    async def _begin(self, run: Run, body: Json) -> None:
        run.task = asyncio.create_task(self._listen(run, body))

    async def _listen(self, run: Run, body: Json) -> None:
        reply = await self.house.reply("CreateResponse", body, user=run.user)
        if isinstance(reply.body, bytes):
            run.answer = Answer(reply.status, reply.body)
            return
        assert reply.status == 200
        pieces: Any = reply.body
        try:
            async for piece in pieces:
                run.live += piece
        finally:
            await pieces.aclose()

    @invariant()
    def calls_reach_the_backend(self) -> None:
        self.look()

    def look(self) -> None:
        """Every run whose turn it is has been asked, with the history of the model."""
        calls = {call.text: call for call in getattr(self, "desk", Desk()).asked}
        for run in self.runs:
            if run.call is None and run.text in calls:
                run.call = calls[run.text]
                history = [*run.before, *(each.text for each in run.seen)]
                assert self.run(self._history(run.call)) == history
            if self.in_turn(run):
                assert run.call is not None
            if run.status == "queued":
                assert run.call is None
            if not run.id:
                found = _ID.search(run.live or (run.answer.body if run.answer else b""))
                if found is not None:
                    run.id = found[1].decode()
                elif run.call is not None:
                    run.id = run.call.call.response_id

    async def _history(self, call: Asked) -> list[str]:
        return [
            part.input_text.text + part.output_text.text
            for item in await call.call.history()
            for part in item.message.content_list.parts
        ]

    @invariant()
    def clients_are_told(self) -> None:
        """Whoever waits for an answer has it when there is one."""
        for run in self.runs:
            assert run.task is not None
            if not run.listening:
                continue
            waits = run.status in IN_FLIGHT and (run.stream or not run.background)
            assert run.task.done() is not waits
            if waits:
                continue
            if run.status == "refused":
                assert run.answer is not None
                assert run.answer.status == (404 if run.talk is not None else 503)
            elif run.stream:
                self._check_stream(run)
            elif not run.background:
                assert run.answer is not None
                self._check(run, run.answer.json)

    def _check(self, run: Run, response: Json) -> None:
        assert response["status"] == run.status
        assert response["id"] == run.id
        assert texts_of(response["output"]) == run.output
        assert (response["error"] is None) is (run.status != "failed")
        assert (response["background"], response["store"]) == (run.background, run.store)

    def _check_stream(self, run: Run) -> None:
        events = [json.loads(data) for data in parse_frames(run.live)]
        assert [event["sequence_number"] for event in events] == list(range(len(events)))
        types = [event["type"] for event in events]
        last = {"completed": "completed", "incomplete": "incomplete"}.get(run.status, "failed")
        terminal = {f"response.{name}" for name in ("completed", "failed", "incomplete")}
        assert [name for name in types if name in terminal] == types[-1:] == [f"response.{last}"]
        deltas = [event["delta"] for event in events if event["type"].endswith(".delta")]
        assert "".join(deltas) == run.said
        self._check(run, events[-1]["response"])

    @invariant()
    def followers_are_told(self) -> None:
        for run in self.runs:
            for after, task in run.followers:
                assert task.done() is (run.status not in IN_FLIGHT)
                if task.done() and run.listening:
                    assert task.result() == self._after(run, after)

    def _after(self, run: Run, after: int) -> bytes:
        frames = run.live.removesuffix(DONE).split(b"\n\n")[:-1]
        return b"".join(frame + b"\n\n" for frame in frames[after + 1 :]) + DONE

    @invariant()
    def as_many_run_as_should(self) -> None:
        if hasattr(self, "house"):
            running = sum(run.status in IN_FLIGHT for run in self.runs)
            assert self.house.engine.running == running

    # What backends do.

    def active(self, which: int) -> Run | None:
        active = [run for run in self.runs if self.in_turn(run)]
        return active[which % len(active)] if active else None

    @precondition(lambda self: self.active(0))
    @rule(which=WHICH)
    def write(self, which: int) -> None:
        run = self.active(which)
        assert run is not None
        assert run.call is not None
        self.count += 1
        run.call.say(f"s{self.count} ")
        run.said += f"s{self.count} "
        self.run(settled())

    @precondition(lambda self: self.active(0))
    @rule(
        which=WHICH,
        how=st.sampled_from(["finish", "finish", "finish", "incomplete", "fail", "break", "stop"]),
    )
    def answer(self, which: int, how: str) -> None:
        run = self.active(which)
        assert run is not None
        assert run.call is not None
        if how == "finish":
            run.call.finish()
        elif how == "incomplete":
            run.call.give(Finished(incomplete="max_output_tokens"))
        elif how == "fail":
            run.call.fail()
        elif how == "break":
            run.call.break_down()
        else:
            run.call.stop()
        self.end(run, {"finish": "completed", "incomplete": "incomplete"}.get(how, "failed"))
        self.run(settled())

    @precondition(lambda self: self.active(0))
    @rule(which=WHICH)
    def complete(self, which: int) -> None:
        self.write(which)
        self.answer(which, "finish")

    @precondition(lambda self: any(run.call and not self.in_turn(run) for run in self.runs))
    @rule(which=WHICH)
    def write_too_late(self, which: int) -> None:
        ended = [run for run in self.runs if run.call and not self.in_turn(run)]
        call = ended[which % len(ended)].call
        assert call is not None
        call.say("late")
        self.run(settled())

    # What clients do with a response.

    @precondition(lambda self: self.runs)
    @rule(which=WHICH)
    def leave(self, which: int) -> None:
        run = self.pick(which)
        assert run.task is not None
        if run.task.done():
            return
        run.listening = False
        run.task.cancel()
        if not run.background:
            self.end(run, "cancelled")
        with suppress(asyncio.CancelledError):
            self.run(self._gone(run))
        run.task = asyncio.Task(settled(), loop=self.runner.get_loop())
        self.run(settled())

    async def _gone(self, run: Run) -> None:
        assert run.task is not None
        with suppress(asyncio.CancelledError):
            await run.task

    @precondition(lambda self: self.runs)
    @rule(user=USERS, which=WHICH)
    def get(self, user: str, which: int) -> None:
        run = self.pick(which)
        user = run.user if user == "owner" else user
        answer = self.ask("GetResponse", user=user, response_id=run.id or UNKNOWN)
        if not self.visible(user, run):
            self._check_unknown(answer, run)
            return
        assert answer.status == 200
        self._check(run, answer.json)
        if run.listening and run.status not in IN_FLIGHT:
            if run.stream:
                told = json.loads(parse_frames(run.live)[-1])["response"]
                assert answer.json == told
            elif not run.background:
                assert run.answer is not None
                assert answer.body == run.answer.body

    def _check_unknown(self, answer: Answer, run: Run) -> None:
        mine = run.id or UNKNOWN
        unknown = self.ask("GetResponse", response_id=UNKNOWN)
        assert (answer.status, answer.body) == (
            404,
            unknown.body.replace(UNKNOWN.encode(), mine.encode()),
        )

    @precondition(lambda self: self.runs)
    @rule(user=USERS, which=WHICH)
    def cancel(self, user: str, which: int) -> None:
        run = self.pick(which)
        user = run.user if user == "owner" else user
        answer = self.ask("CancelResponse", user=user, response_id=run.id or UNKNOWN)
        if not self.visible(user, run):
            self._check_unknown(answer, run)
        elif not run.background:
            assert answer.status == 400
        else:
            if run.status in IN_FLIGHT:
                self.end(run, "cancelled")
            assert answer.status == 200
            self._check(run, answer.json)

    @precondition(lambda self: self.runs)
    @rule(user=USERS, which=WHICH)
    def delete(self, user: str, which: int) -> None:
        run = self.pick(which)
        user = run.user if user == "owner" else user
        answer = self.ask("DeleteResponse", user=user, response_id=run.id or UNKNOWN)
        if not self.visible(user, run):
            self._check_unknown(answer, run)
            return
        assert (answer.status, answer.json["deleted"]) == (200, True)
        run.gone = True
        if run.status in IN_FLIGHT:
            self.end(run, "cancelled")
        elif run.talk is not None:
            run.talk.items = [each for each in run.talk.items if each.owner is not run]

    @precondition(lambda self: self.runs)
    @rule(user=USERS, which=WHICH, after=st.none() | st.integers(0, 20) | st.just(2**53))
    def follow(self, user: str, which: int, after: int | None) -> None:
        run = self.pick(which)
        user = run.user if user == "owner" else user
        query = {"stream": "true"} | ({} if after is None else {"starting_after": str(after)})
        how: Json = {"query": query, "user": user, "response_id": run.id or UNKNOWN}
        if not self.visible(user, run):
            self._check_unknown(self.ask("GetResponse", **how), run)
        elif not (run.background and run.stream):
            answer = self.ask("GetResponse", **how)
            assert (answer.status, answer.refusal.param) == (400, "stream")
        else:
            task = self.run(self._follow(how))
            run.followers.append((-1 if after is None else after, task))

    async def _follow(self, how: Json) -> "asyncio.Task[bytes]":
        async def read() -> bytes:
            body = (await self.house.ask("GetResponse", **how)).body
            return body.removeprefix(KEEP_ALIVE)

        return asyncio.create_task(read())

    @precondition(lambda self: self.runs)
    @rule(user=USERS, which=WHICH, order=st.sampled_from(["asc", "desc"]), limit=st.integers(1, 9))
    def list_input(self, user: str, which: int, order: str, limit: int) -> None:
        run = self.pick(which)
        user = run.user if user == "owner" else user
        query = {"order": order, "limit": str(limit)}
        found: list[Json] = []
        while True:
            answer = self.ask(
                "ListInputItems", query=query, user=user, response_id=run.id or UNKNOWN
            )
            if not self.visible(user, run):
                self._check_unknown(answer, run)
                return
            assert answer.status == 200
            found += answer.json["data"]
            if not answer.json["has_more"]:
                break
            query["after"] = answer.json["last_id"]
        assert len({item["id"] for item in found}) == len(found)
        assert texts_of(found) == (run.context if order == "asc" else run.context[::-1])

    # What clients do with a conversation.

    def talk(self, which: int) -> Talk:
        return self.talks[which % len(self.talks)]

    def known_talk(self, user: str, talk_id: str) -> Talk | None:
        """Returns the conversation that an id is of in a scope."""
        found = [t for t in self.talks if t.id == talk_id and t.user == user and not t.gone]
        return found[0] if found else None

    @rule(user=st.sampled_from(["ann", "ben"]), which=st.integers(0, 2), items=st.integers(0, 3))
    def create_talk(self, user: str, which: int, items: int) -> None:
        texts = [f"i{self.count + number}" for number in range(items)]
        self.count += items
        body = {
            "id": f"talk_{which}",
            "items": [{"role": "user", "content": text} for text in texts],
        }
        known = self.known_talk(user, f"talk_{which}")
        answer = self.ask("CreateConversation", body, user=user)
        assert answer.status == (200 if known is None else 409)
        if known is None:
            self.talks.append(Talk(user, f"talk_{which}", [Entry(text) for text in texts]))

    @rule(user=USERS, which=WHICH)
    def list_talk(self, user: str, which: int) -> None:
        asked = self.talk(which)
        user = asked.user if user == "owner" else user
        talk = self.known_talk(user, asked.id)
        query = {"order": "asc", "limit": "100"}
        answer = self.ask("ListConversationItems", query=query, user=user, conversation_id=asked.id)
        if talk is None:
            assert answer.status == 404
        else:
            assert texts_of(answer.json["data"]) == [each.text for each in talk.items][:100]

    @rule(user=USERS, which=WHICH)
    def add_item(self, user: str, which: int) -> None:
        asked = self.talk(which)
        user = asked.user if user == "owner" else user
        talk = self.known_talk(user, asked.id)
        # Otherwise it would wait for the run whose turn it is.
        if talk is None or not talk.line:
            self.count += 1
            body = {"items": [{"role": "user", "content": f"i{self.count}"}]}
            answer = self.ask("CreateConversationItems", body, user=user, conversation_id=asked.id)
            assert answer.status == (404 if talk is None else 200)
            if talk is not None:
                talk.items.append(Entry(f"i{self.count}"))

    @precondition(lambda self: any(talk.items and not talk.line for talk in self.talks))
    @rule(which=WHICH, place=WHICH)
    def delete_item(self, which: int, place: int) -> None:
        idle = [talk for talk in self.talks if talk.items and not talk.line]
        talk = idle[which % len(idle)]
        place %= min(100, len(talk.items))
        query = {"order": "asc", "limit": "100"}
        how: Json = {"user": talk.user, "conversation_id": talk.id}
        item = self.ask("ListConversationItems", query=query, **how).json["data"][place]
        assert self.ask("DeleteConversationItem", item_id=item["id"], **how).status == 200
        del talk.items[place]

    @rule(user=USERS, which=WHICH, sure=SELDOM)
    def delete_talk(self, user: str, which: int, sure: bool) -> None:
        asked = self.talk(which)
        user = asked.user if user == "owner" else user
        talk = self.known_talk(user, asked.id)
        if talk is not None and not sure:
            return
        answer = self.ask("DeleteConversation", user=user, conversation_id=asked.id)
        assert answer.status == (404 if talk is None else 200)
        if talk is not None:
            talk.gone = True
            talk.items = []


TestLifecycle = Lifecycle.TestCase
TestLifecycle.settings = settings(
    max_examples=80,
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
