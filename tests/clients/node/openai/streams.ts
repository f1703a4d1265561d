import assert from "node:assert/strict";
import { test } from "node:test";

import OpenAI from "openai";
import { ResponseStream } from "openai/lib/responses/ResponseStream";
import type { ResponseStreamEvent } from "openai/resources/responses/responses";
import { Stream } from "openai/streaming";

import { watchKind } from "../coverage.js";
import { all, refused, until } from "../harness.js";
import { client, responses } from "./client.js";

watchKind("ResponseStream", ResponseStream);

const asked = { model: "sim", input: "Produce 12 deltas" } as const;

function types(events: ResponseStreamEvent[]): string[] {
  return events.map((event) => event.type);
}

test("the events of a stream are those of the API, in their order", async () => {
  const events = await all(await responses.create({ ...asked, stream: true }));
  assert.deepEqual(types(events), [
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.content_part.added",
    ...Array<string>(12).fill("response.output_text.delta"),
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.completed",
  ]);
  assert.deepEqual(
    events.map((event) => event.sequence_number),
    events.map((_, index) => index),
  );
});

test("the answer to a streaming request is an event stream", async () => {
  const { data, response } = await responses.create({ ...asked, stream: true }).withResponse();
  assert.equal(response.headers.get("content-type"), "text/event-stream; charset=utf-8");
  assert.equal((await all(data)).length, 20);
});

test("obfuscation may be left out", async () => {
  for (const include_obfuscation of [true, false]) {
    const stream = await responses.create({
      ...asked,
      stream: true,
      stream_options: { include_obfuscation },
    });
    assert.equal((await all(stream)).length, 20);
  }
});

test("a stream is split in two", async () => {
  const [one, other] = (await responses.create({ ...asked, stream: true })).tee();
  const [first, second] = await Promise.all([all(one), all(other)]);
  assert.equal(first.length, 20);
  assert.deepEqual(first, second);
});

test("a stream is handed on as lines of JSON", async () => {
  const direct = (await responses.create({ ...asked, stream: true })).toReadableStream();
  const handed = Stream.fromReadableStream<ResponseStreamEvent>(direct, new AbortController());
  assert.equal((await all(handed)).length, 20);
  const again = (await responses.create({ ...asked, stream: true })).toReadableStream();
  const final = await ResponseStream.fromReadableStream(again).finalResponse();
  assert.equal(final.status, "completed");
});

test("the helper tells each event, and what there is so far", async () => {
  const seen: ResponseStreamEvent[] = [];
  const snapshots: string[] = [];
  let connected = 0;
  let ended = 0;
  const never = () => assert.fail("it was taken off");
  const stream = responses
    .stream(asked)
    .on("event", (event) => seen.push(event))
    .on("response.output_text.delta", never)
    .off("response.output_text.delta", never)
    .on("response.output_text.delta", (event) => snapshots.push(event.snapshot))
    .once("connect", () => (connected += 1))
    .once("end", () => (ended += 1));
  const done = stream.emitted("response.output_text.done");
  const final = await stream.finalResponse();
  await stream.done();
  assert.deepEqual([connected, ended, seen.length, snapshots.length], [1, 1, 20, 12]);
  assert.equal(snapshots.at(-1), final.output_text);
  assert.equal((await done).text, final.output_text);
  assert.deepEqual([stream.ended, stream.errored, stream.aborted], [true, false, false]);
});

test("the helper is iterated over", async () => {
  assert.equal((await all(responses.stream(asked))).length, 20);
  const deltas = await all(responses.stream(asked).events("response.output_text.delta"));
  assert.equal(deltas.length, 12);
});

/** Answers whose next part would come after a minute. */
const slow = { model: "sim", input: "Be slow: 60 s" } as const;

/** Checks that the server has ended a run itself, whose reader has gone. */
async function isCancelled(id: string): Promise<void> {
  const ended = await until(
    () => client.responses.retrieve(id),
    ({ status }) => status !== "in_progress",
  );
  assert.equal(ended.status, "cancelled");
}

test("a run ends when its stream is aborted", async () => {
  const stream = await responses.create({ ...slow, stream: true });
  let id = "";
  for await (const event of stream)
    if (event.type === "response.created") {
      id = event.response.id;
      stream.controller.abort();
    }
  await isCancelled(id);
});

test("a run ends when its reader stops reading", async () => {
  let id = "";
  for await (const event of await responses.create({ ...slow, stream: true }))
    if (event.type === "response.created") {
      id = event.response.id;
      break;
    }
  await isCancelled(id);
});

test("a run ends when the helper is aborted", async () => {
  const stream = responses.stream(slow);
  let id = "";
  stream.on("response.created", (event) => {
    id = event.response.id;
    stream.abort();
  });
  await refused(stream.done(), OpenAI.APIUserAbortError);
  assert.deepEqual([stream.aborted, stream.ended], [true, true]);
  await isCancelled(id);
});

test("a request without a stream is aborted", async () => {
  const controller = new AbortController();
  const response = responses.create(slow, { signal: controller.signal });
  controller.abort();
  await refused(response, OpenAI.APIUserAbortError);
});

test("a run that fails on its way is told as failed", async () => {
  const failing = { model: "sim", input: "Fail after 3 deltas" } as const;
  const events = await all(await responses.create({ ...failing, stream: true }));
  const last = events.at(-1)!;
  assert.ok(last.type === "response.failed");
  assert.deepEqual([last.response.status, last.response.error?.code], ["failed", "server_error"]);
  assert.equal(types(events).filter((type) => type === "response.output_text.delta").length, 3);
  const final = await responses.stream(failing).finalResponse();
  assert.equal(final.status, "failed");
  const whole = await responses.create(failing);
  assert.deepEqual([whole.status, whole.error?.code], ["failed", "server_error"]);
});

test("a run whose backend breaks off is told as failed", async () => {
  const events = await all(
    await responses.create({ model: "sim", input: "Break off in the middle", stream: true }),
  );
  const last = events.at(-1)!;
  assert.ok(last.type === "response.failed");
  assert.equal(last.response.error?.code, "server_error");
});

test("what is cut is told as incomplete", async () => {
  for (const [more, reason] of [
    [{ input: "Produce 90 deltas", max_output_tokens: 16 }, "max_output_tokens"],
    [{ input: "Stop in the middle" }, "content_filter"],
  ] as const) {
    const events = await all(await responses.create({ model: "sim", ...more, stream: true }));
    const last = events.at(-1)!;
    assert.ok(last.type === "response.incomplete");
    assert.equal(last.response.incomplete_details?.reason, reason);
    const deltas = events.flatMap((event) =>
      event.type === "response.output_text.delta" ? [event.delta] : [],
    );
    const final = await responses.stream({ model: "sim", ...more }).finalResponse();
    assert.deepEqual(
      [final.status, final.incomplete_details?.reason, final.output_text],
      ["incomplete", reason, deltas.join("")],
    );
  }
});

test("a refusal is streamed", async () => {
  const stream = responses.stream({ model: "sim", input: "Refuse to answer" });
  const deltas: string[] = [];
  stream.on("response.refusal.delta", (event) => deltas.push(event.delta));
  const [item] = (await stream.finalResponse()).output;
  assert.ok(item?.type === "message");
  const [part] = item.content;
  assert.ok(part?.type === "refusal");
  assert.equal(deltas.join(""), part.refusal);
});

test("reasoning is streamed before the answer", async () => {
  const events = await all(
    await responses.create({
      model: "sim",
      input: "Hello",
      reasoning: { effort: "low", summary: "auto" },
      include: ["reasoning.encrypted_content"],
      stream: true,
    }),
  );
  const summary = events.flatMap((event) =>
    event.type === "response.reasoning_summary_text.delta" ? [event.delta] : [],
  );
  const last = events.at(-1)!;
  assert.ok(last.type === "response.completed");
  const [reasoning, message] = last.response.output;
  assert.ok(reasoning?.type === "reasoning" && message?.type === "message");
  assert.ok(reasoning.encrypted_content);
  assert.equal(summary.join(""), reasoning.summary.map((part) => part.text).join(""));
  assert.ok(last.response.usage!.output_tokens_details.reasoning_tokens > 0);
  // What was thought comes back, also where nothing is stored.
  const next = await responses.create({
    model: "sim",
    store: false,
    input: [
      { role: "user", content: "Hello" },
      { ...reasoning, summary: [] },
      message,
      { role: "user", content: "What did you think?" },
    ],
  });
  assert.match(next.output_text, /I thought: "The user says: "Hello"/);
});

test("log probabilities come with the text", async () => {
  const stream = responses.stream({
    model: "sim",
    input: "Hello",
    include: ["message.output_text.logprobs"],
    top_logprobs: 2,
  });
  const told: string[] = [];
  stream.on("response.output_text.delta", (event) => {
    for (const { token, logprob } of event.logprobs) {
      assert.ok(logprob <= 0);
      told.push(token);
    }
  });
  const final = await stream.finalResponse();
  const [item] = final.output;
  assert.ok(item?.type === "message");
  const [part] = item.content;
  assert.ok(part?.type === "output_text");
  assert.deepEqual(
    part.logprobs?.map(({ token }) => token),
    told,
  );
  assert.equal(told.join(""), final.output_text);
  for (const { top_logprobs } of part.logprobs!) assert.equal(top_logprobs.length, 2);
});
