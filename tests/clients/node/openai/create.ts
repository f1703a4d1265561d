import assert from "node:assert/strict";
import { test } from "node:test";

import OpenAI from "openai";
import type {
  ResponseCreateParamsBase,
  ResponseInput,
  Tool,
} from "openai/resources/responses/responses";

import { refused } from "../harness.js";
import { client, modes, responses, told } from "./client.js";

const BLUE = "My favourite colour is blue";
const ASK = "Which colour did I name?";

const tools: Tool[] = [
  {
    type: "function",
    name: "look_up",
    description: "Looks something up.",
    parameters: { type: "object", properties: { z: { type: "string" }, a: { type: "number" } } },
    strict: false,
  },
  { type: "custom", name: "run", description: "Runs a line.", format: { type: "text" } },
];

/** The parameters that are not echoed, and those that have tests of their own. */
type Apart =
  | "background"
  | "conversation"
  | "include"
  | "input"
  | "model"
  | "previous_response_id"
  | "store"
  | "stream"
  | "stream_options"
  | keyof typeof notBuilt;

/** The parameters that are refused by name. */
const notBuilt = {
  background_options: { completion_window: "soonest" },
  context_management: [{ type: "compaction", compact_threshold: 1000 }],
  moderation: { model: "omni-moderation-latest" },
  prompt: { id: "pmpt_1", variables: { name: "Ann" } },
} satisfies Partial<ResponseCreateParamsBase>;

// Every other parameter that the client has: what is missing here does not compile.
const echoed = {
  access_programs: { cyber: "standard" },
  image: { context_compression: "disabled" },
  instructions: "Answer briefly.",
  max_output_tokens: 4096,
  max_tool_calls: 7,
  metadata: { empty: "", topic: "tests" },
  parallel_tool_calls: false,
  prompt_cache_key: "cache-me",
  prompt_cache_options: { mode: "explicit", ttl: "30m" },
  prompt_cache_retention: "24h",
  reasoning: { context: "auto", effort: "none", mode: "standard", summary: "auto" },
  safety_identifier: "somebody",
  service_tier: "flex",
  temperature: 0.25,
  text: { format: { type: "text" }, verbosity: "low" },
  tool_choice: "none",
  tools,
  top_logprobs: 3,
  top_p: 0.5,
  truncation: "auto",
  user: "somebody else",
} satisfies Required<Omit<ResponseCreateParamsBase, Apart>>;

const input: ResponseInput = [
  { role: "user", content: BLUE },
  { role: "assistant", content: "Noted." },
  { type: "message", role: "user", content: [{ type: "input_text", text: ASK }] },
];

for (const [mode, ask] of Object.entries(modes)) {
  test(`${mode} answers a text`, async () => {
    const response = await ask({ input: "Repeat exactly: Grüße 👋 \u2028!" });
    assert.equal(response.output_text, "Grüße 👋 \u2028!");
    assert.deepEqual(
      [response.status, response.error, response.incomplete_details],
      ["completed", null, null],
    );
    const { input_tokens, output_tokens, total_tokens } = response.usage!;
    assert.equal(total_tokens, input_tokens + output_tokens);
  });

  test(`${mode} answers items`, async () => {
    assert.equal((await ask({ input })).output_text, `Earlier you said: "${BLUE}"`);
  });

  test(`${mode} echoes every parameter`, async () => {
    const response = await ask({ input: "Hello", ...echoed });
    const found = Object.fromEntries(
      Object.keys(echoed).map((name) => [name, response[name as keyof typeof response]]),
    );
    assert.deepEqual(found, echoed);
    // The order of the keys of a schema is part of it.
    const [tool] = response.tools;
    assert.equal(
      JSON.stringify((tool as typeof tool & { parameters: unknown }).parameters),
      JSON.stringify((tools[0] as { parameters: unknown }).parameters),
    );
  });

  test(`${mode} gives what is retrieved`, async () => {
    const response = await ask({ input: "Hello", ...echoed });
    assert.deepEqual(told(await responses.retrieve(response.id)), told(response));
  });

  test(`${mode} continues a response`, async () => {
    const first = await ask({ input: BLUE });
    const second = await ask({ input: "Fine.", previous_response_id: first.id });
    const third = await ask({ input: ASK, previous_response_id: second.id });
    assert.equal(third.output_text, `Earlier you said: "${BLUE}"`);
    assert.equal(third.previous_response_id, second.id);
  });

  test(`${mode} leaves no trace where it is asked not to`, async () => {
    const response = await ask({ input: "Hello", store: false });
    await refused(responses.retrieve(response.id), OpenAI.NotFoundError);
  });

  for (const [name, value] of Object.entries(notBuilt))
    test(`${mode} is told that ${name} is not built`, async () => {
      await refused(ask({ input: "Hello", [name]: value }), OpenAI.InternalServerError, {
        status: 501,
        param: name,
        type: "server_error",
      });
    });
}

test("a response of the API is known by what the server tells", async () => {
  const { data, response, request_id } = await responses
    .create({ model: "sim", input: "Hello" })
    .withResponse();
  assert.equal(response.status, 200);
  assert.equal(response.headers.get("content-type"), "application/json");
  assert.equal(request_id, response.headers.get("x-request-id"));
  assert.ok(request_id);
  assert.equal((data as { _request_id?: unknown })._request_id, request_id);
});

test("the raw answer is the JSON that is stored", async () => {
  const raw = await responses.create({ model: "sim", input: "Hello", ...echoed }).asResponse();
  const created = await raw.text();
  const { id } = JSON.parse(created) as { id: string };
  const again = await responses.retrieve(id).asResponse();
  assert.equal(await again.text(), created);
});

test("a promise of a response is one", async () => {
  let settled = 0;
  const response = await responses
    .create({ model: "sim", input: "Hello" })
    .finally(() => (settled += 1));
  assert.equal(response.status, "completed");
  const caught = await responses
    .create({ model: "sim", input: "Hello", top_p: 2 })
    .catch((error: unknown) => error);
  assert.ok(caught instanceof OpenAI.APIError);
  assert.equal(settled, 1);
});

test("other headers, queries and members may be sent along", async () => {
  const response = await client
    .withOptions({ timeout: 60_000 })
    .responses.create(
      { model: "sim", input: "Hello", ...{ nobody_knows: [1, { a: null }] } },
      { headers: { "x-custom": "1" }, query: { more: "1" }, idempotencyKey: "once" },
    );
  assert.equal(response.status, "completed");
  assert.ok(!("nobody_knows" in response));
});

test("images and files are taken", async () => {
  const pixel =
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  const response = await responses.create({
    model: "sim",
    input: [
      {
        role: "user",
        content: [
          { type: "input_text", text: "What is this?" },
          { type: "input_image", image_url: pixel, detail: "low" },
          { type: "input_file", filename: "a.txt", file_data: "data:text/plain;base64,aGVsbG8=" },
        ],
      },
    ],
  });
  assert.match(response.output_text, /image\/png.*detail low/);
  assert.match(response.output_text, /a\.txt.*text\/plain.*5 bytes/);
  assert.ok(!response.output_text.includes("aGVsbG8"));
  const items = await responses.inputItems.list(response.id);
  const [item] = items.data;
  assert.ok(item?.type === "message" && item.content[1]?.type === "input_image");
  assert.equal(item.content[1].image_url, pixel);
});
