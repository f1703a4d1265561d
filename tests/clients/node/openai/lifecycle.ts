import assert from "node:assert/strict";
import { test } from "node:test";

import OpenAI from "openai";

import { all, refused, unknown, until } from "../harness.js";
import { beta, responses } from "./client.js";

const running = ["queued", "in_progress"];

/** Answers that would come after a minute: a test ends them before. */
const slow = { model: "sim", input: "Be slow: 60 s" } as const;

test("a response in the background is polled until it has ended", async () => {
  const { id, background } = await responses.create({
    model: "sim",
    input: "Repeat exactly: at last",
    background: true,
  });
  assert.equal(background, true);
  const done = await until(
    () => responses.retrieve(id),
    ({ status }) => !running.includes(status!),
  );
  assert.deepEqual([done.status, done.output_text], ["completed", "at last"]);
});

test("a response in the background is cancelled", async () => {
  const { id } = await responses.create({ ...slow, background: true });
  assert.ok(running.includes((await responses.retrieve(id)).status!));
  const cancelled = await responses.cancel(id);
  assert.equal(cancelled.status, "cancelled");
  assert.deepEqual(await responses.cancel(id), cancelled);
  assert.equal((await responses.retrieve(id)).status, "cancelled");
});

test("the readers of a cancelled response are told", async () => {
  const stream = await responses.create({ ...slow, background: true, stream: true });
  const events = [];
  for await (const event of stream) {
    events.push(event);
    if (event.type === "response.created") await responses.cancel(event.response.id);
  }
  const last = events.at(-1)!;
  assert.ok(last.type === "response.failed");
  assert.equal(last.response.status, "cancelled");
});

test("a response in the foreground cannot be cancelled", async () => {
  const { id } = await responses.create({ model: "sim", input: "Hello" });
  await refused(responses.cancel(id), OpenAI.BadRequestError, { type: "invalid_request_error" });
});

test("a deleted response is gone", async () => {
  const { id } = await responses.create({ model: "sim", input: "Hello" });
  await responses.delete(id);
  for (const ask of [
    () => responses.retrieve(id),
    () => responses.delete(id),
    () => responses.cancel(id),
    () => responses.inputItems.list(id),
  ])
    await refused(ask(), OpenAI.NotFoundError, { status: 404, type: "invalid_request_error" });
});

test("a stream that was left is taken up again where it was left", async () => {
  const asked = {
    model: "sim",
    input: "Produce 60 deltas",
    background: true,
    stream: true,
  } as const;
  const events = [];
  for await (const event of await responses.create(asked)) {
    events.push(event);
    if (events.length === 20) break;
  }
  assert.ok(events[0]?.type === "response.created");
  const { id } = events[0].response;
  const from = { stream: true, starting_after: events.at(-1)!.sequence_number } as const;
  events.push(...(await all(await responses.retrieve(id, from))));
  assert.deepEqual(
    events.map((event) => event.sequence_number),
    events.map((_, index) => index),
  );
  const deltas = events.filter((event) => event.type === "response.output_text.delta");
  assert.equal(deltas.length, 60);
  const last = events.at(-1)!;
  assert.ok(last.type === "response.completed");
  const whole = await responses.retrieve(id);
  assert.equal(deltas.map((event) => event.delta).join(""), whole.output_text);
  // The whole again, and the whole by the helper, which leaves the beginning out by itself.
  assert.deepEqual(await all(await responses.retrieve(id, { stream: true })), events);
  const helper = responses.stream({ response_id: id, starting_after: 19 });
  const seen = await all(helper);
  assert.deepEqual(
    seen.map((event) => event.sequence_number),
    events.slice(20).map((event) => event.sequence_number),
  );
  assert.equal((await helper.finalResponse()).output_text, whole.output_text);
});

test("what was not in the background is not streamed again", async () => {
  const { id } = await responses.create({ model: "sim", input: "Hello" });
  await refused(responses.retrieve(id, { stream: true }), OpenAI.BadRequestError);
});

test("input items are listed page by page", async () => {
  const first = await responses.create({
    model: "sim",
    input: Array.from({ length: 5 }, (_, n) => ({ role: "user" as const, content: `one ${n}` })),
  });
  const second = await responses.create({
    model: "sim",
    previous_response_id: first.id,
    input: Array.from({ length: 5 }, (_, n) => ({ role: "user" as const, content: `two ${n}` })),
  });
  const wanted = [0, 1, 2, 3, 4].map((n) => `one ${n}`);
  wanted.push(first.output_text, ...[0, 1, 2, 3, 4].map((n) => `two ${n}`));
  for (const order of ["asc", "desc"] as const) {
    const pages = responses.inputItems.list(second.id, { limit: 3, order });
    const texts = [];
    for await (const item of pages) {
      assert.ok(item.type === "message");
      const [part] = item.content;
      assert.ok(part && "text" in part);
      texts.push(part.text);
    }
    assert.deepEqual(texts, order === "asc" ? wanted : wanted.toReversed());
  }
  const page = await responses.inputItems.list(second.id, { limit: 6, order: "asc" });
  assert.deepEqual([page.getPaginatedItems().length, page.hasNextPage()], [6, true]);
  assert.equal(page.nextPageRequestOptions()?.query !== undefined, true);
  const next = await page.getNextPage();
  assert.deepEqual([next.data.length, next.hasNextPage()], [5, false]);
  assert.equal((await all(page.iterPages())).length, 2);
  const after = await responses.inputItems.list(second.id, {
    after: page.data.at(-1)!.id!,
    order: "asc",
  });
  assert.deepEqual(after.data, next.data);
});

test("what a list may include is asked for as the client writes it", async () => {
  const { id } = await responses.create({ model: "sim", input: "Hello" });
  const include = ["message.input_image.image_url", "reasoning.encrypted_content"] as const;
  const page = await responses.inputItems.list(id, { include: [...include] });
  assert.equal(page.data.length, 1);
  assert.equal((await responses.retrieve(id, { include: [...include] })).id, id);
  await refused(
    responses.inputItems.list(id, { include: ["everything" as (typeof include)[number]] }),
    OpenAI.BadRequestError,
    { param: "include[0]" },
  );
});

/** What the server does not do yet. */
const notBuilt: Record<string, () => PromiseLike<unknown>> = {
  compact: () => responses.compact({ model: "gpt-6-astra", input: "Hello" }),
  "inputTokens.count": () => responses.inputTokens.count({ model: "sim", input: "Hello" }),
  "beta compact": () => beta.compact({ model: "gpt-6-astra", input: "Hello" }),
  "beta inputTokens.count": () => beta.inputTokens.count({ model: "sim", input: "Hello" }),
};

for (const [name, ask] of Object.entries(notBuilt))
  test(`${name} is told that it is not built`, async () => {
    const error = await refused(ask(), OpenAI.InternalServerError, {
      status: 501,
      type: "server_error",
    });
    assert.match(error.message, /not built yet/);
  });

test("the client of the beta is served alike", async () => {
  const created = await beta.create({ model: "sim", input: "Repeat exactly: beta", betas: [] });
  assert.equal(created.status, "completed");
  const { id } = created;
  assert.equal((await beta.retrieve(id)).id, id);
  assert.equal((await beta.inputItems.list(id)).data.length, 1);
  const events = await all(await beta.create({ model: "sim", input: "Hello", stream: true }));
  assert.equal(events.at(-1)?.type, "response.completed");
  await beta.delete(id);
  await refused(beta.cancel(unknown), OpenAI.NotFoundError);
  await refused(beta.retrieve(id), OpenAI.NotFoundError);
});
