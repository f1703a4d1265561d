import assert from "node:assert/strict";
import { test } from "node:test";

import OpenAI from "openai";
import type { ConversationItem } from "openai/resources/conversations/items";

import { all, refused } from "../harness.js";
import { conversations, modes, responses } from "./client.js";

const BLUE = "My favourite colour is blue";
const ASK = "Which colour did I name?";

function message(content: string) {
  return { type: "message", role: "user", content } as const;
}

function texts(items: ConversationItem[]): string[] {
  return items.map((item) => {
    assert.ok(item.type === "message");
    const [part] = item.content;
    assert.ok(part && "text" in part);
    return part.text!;
  });
}

test("a conversation from its beginning to its end", async () => {
  const created = await conversations.create({
    metadata: { topic: "colours" },
    items: [message(BLUE)],
  });
  const { id } = created;
  assert.deepEqual(created.metadata, { topic: "colours" });
  assert.deepEqual(await conversations.retrieve(id), created);
  const updated = await conversations.update(id, { metadata: { topic: "names" } });
  assert.deepEqual(updated, { ...created, metadata: { topic: "names" } });
  const deleted = await conversations.delete(id);
  assert.deepEqual([deleted.id, deleted.deleted], [id, true]);
  for (const ask of [
    () => conversations.retrieve(id),
    () => conversations.update(id, { metadata: {} }),
    () => conversations.delete(id),
    () => conversations.items.list(id),
    () => conversations.items.create(id, { items: [message("Hello")] }),
  ])
    await refused(ask(), OpenAI.NotFoundError);
});

for (const [mode, ask] of Object.entries(modes))
  test(`${mode} is part of a conversation`, async () => {
    const { id } = await conversations.create({ items: [message(BLUE)] });
    const response = await ask({ input: ASK, conversation: id });
    assert.equal(response.output_text, `Earlier you said: "${BLUE}"`);
    assert.equal(response.conversation?.id, id);
    const again = await ask({ input: ASK, conversation: { id } });
    assert.equal(again.output_text, `Earlier you said: "${ASK}"`);
    const said = [BLUE, ASK, response.output_text, ASK, again.output_text];
    assert.deepEqual(
      texts(await all(conversations.items.list(id, { order: "asc", limit: 2 }))),
      said,
    );
    const listed = await all(responses.inputItems.list(again.id, { order: "asc" }));
    assert.equal(listed.length, said.length - 1);
  });

test("the items of a conversation are made, listed, read and deleted", async () => {
  const { id } = await conversations.create();
  const said = Array.from({ length: 7 }, (_, number) => `text ${number}`);
  const made = await conversations.items.create(id, {
    items: said.map(message),
    include: ["message.output_text.logprobs"],
  });
  assert.deepEqual(texts(made.data), said);
  for (const order of ["asc", "desc"] as const) {
    const listed = await all(conversations.items.list(id, { order, limit: 3 }));
    assert.deepEqual(texts(listed), order === "asc" ? said : said.toReversed());
  }
  const page = await conversations.items.list(id, { limit: 4, order: "asc" });
  assert.deepEqual([page.getPaginatedItems().length, page.hasNextPage()], [4, true]);
  assert.notEqual(page.nextPageRequestOptions(), null);
  const next = await page.getNextPage();
  assert.deepEqual([texts(next.data), next.hasNextPage()], [said.slice(4), false]);
  assert.equal((await all(page.iterPages())).length, 2);

  const [first] = made.data;
  assert.ok(first?.type === "message");
  const where = { conversation_id: id };
  assert.deepEqual(await conversations.items.retrieve(first.id, where), first);
  assert.equal((await conversations.items.delete(first.id, where)).id, id);
  await refused(conversations.items.retrieve(first.id, where), OpenAI.NotFoundError);
  assert.deepEqual(texts(await all(conversations.items.list(id, { order: "asc" }))), said.slice(1));
});

test("a conversation excludes a previous response", async () => {
  const { id } = await conversations.create();
  const { id: previous_response_id } = await modes["create"]!({ input: "Hello" });
  for (const ask of Object.values(modes))
    await refused(
      ask({ input: "Hello", conversation: id, previous_response_id }),
      OpenAI.BadRequestError,
      { param: "previous_response_id", code: "mutually_exclusive_parameters" },
    );
});
