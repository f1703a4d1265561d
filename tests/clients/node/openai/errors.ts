import assert from "node:assert/strict";
import { test } from "node:test";

import OpenAI from "openai";

import { guarded, refused, unknown, url } from "../harness.js";
import { client, modes, responses } from "./client.js";

/** What is wrong with a request, and how the client is told. */
const wrong = {
  "an unknown response": [
    { previous_response_id: unknown },
    { status: 400, code: "previous_response_not_found", param: "previous_response_id" },
  ],
  "an unknown conversation": [{ conversation: `conv_${"0".repeat(32)}` }, { status: 404 }],
  "a value out of bounds": [{ temperature: 3 }, { status: 400, param: "temperature" }],
  "a value of another type": [
    { metadata: { a: 1 } as unknown as Record<string, string> },
    { status: 400, param: "metadata.a" },
  ],
  "a malformed tool": [
    { tools: [{ type: "function", name: "no such name!", parameters: {}, strict: false }] },
    { status: 400, param: "tools[0].name" },
  ],
  "a malformed item": [
    { input: [{ role: "user", content: [{ type: "input_text" }] }] as never },
    { status: 400, param: "input[0].content[0].text" },
  ],
  "no input": [{ input: [] }, { status: 400, param: "input", code: "empty_array" }],
} as const;

const kinds = { 400: OpenAI.BadRequestError, 404: OpenAI.NotFoundError } as Record<
  number,
  new (...args: never[]) => InstanceType<typeof OpenAI.APIError>
>;

for (const [mode, ask] of Object.entries(modes)) {
  for (const [name, [given, told]] of Object.entries(wrong))
    test(`${mode} is refused for ${name}`, async () => {
      const error = await refused(
        ask({ input: "Hello", ...(given as object) }),
        kinds[told.status]!,
        { type: "invalid_request_error", ...told },
      );
      assert.ok(error.requestID);
    });

  test(`${mode} is told of a failure before the answer`, async () => {
    await refused(
      ask({ input: "Fail before the first event with rate_limit_exceeded" }),
      OpenAI.RateLimitError,
      { status: 429, code: "rate_limit_exceeded", type: "rate_limit_exceeded" },
    );
    await refused(
      ask({ input: "Fail before the first event with server_error" }),
      OpenAI.InternalServerError,
      { status: 502, type: "server_error" },
    );
  });
}

for (const ask of ["retrieve", "delete", "cancel"] as const)
  test(`${ask} of an unknown response is refused`, async () => {
    await refused(responses[ask](unknown), OpenAI.NotFoundError, {
      status: 404,
      type: "invalid_request_error",
    });
  });

test("a request is tried again as often as the client is told", async () => {
  for (const maxRetries of [0, 1]) {
    const counts: (string | null)[] = [];
    const counting = client.withOptions({
      maxRetries,
      fetch: (input, init) => {
        counts.push(new Headers(init?.headers).get("x-stainless-retry-count"));
        return fetch(input, init);
      },
    });
    await refused(
      counting.responses.create({
        model: "sim",
        input: "Fail before the first event with server_error",
      }),
      OpenAI.InternalServerError,
    );
    assert.deepEqual(counts, maxRetries ? ["0", "1"] : ["0"]);
  }
});

test("what is refused is not tried again", async () => {
  let asked = 0;
  const counting = client.withOptions({
    maxRetries: 3,
    fetch: (input, init) => {
      asked += 1;
      return fetch(input, init);
    },
  });
  await refused(counting.responses.retrieve(unknown), OpenAI.NotFoundError);
  assert.equal(asked, 1);
});

test("a server that takes too long is not waited for", async () => {
  await refused(
    client.withOptions({ timeout: 50 }).responses.create({ model: "sim", input: "Be slow: 60 s" }),
    OpenAI.APIConnectionTimeoutError,
  );
});

test("a path that is not served is not found", async () => {
  const elsewhere = new OpenAI({ apiKey: "unused", baseURL: `${url}/nowhere`, maxRetries: 0 });
  await refused(elsewhere.responses.retrieve(unknown), OpenAI.NotFoundError, {
    type: "invalid_request_error",
  });
});

test("a wrong key, an unknown model and a full quota are told apart", async () => {
  const asked = { model: "sim", input: "Hello" };
  const wrong = new OpenAI({ ...guarded, apiKey: "sk-wrong", maxRetries: 0 });
  await refused(wrong.responses.create(asked), OpenAI.AuthenticationError, {
    status: 401,
    code: "invalid_api_key",
    type: "invalid_request_error",
  });
  const right = new OpenAI({ ...guarded, maxRetries: 0 });
  await refused(right.responses.create({ ...asked, model: "nobody" }), OpenAI.NotFoundError, {
    status: 404,
    code: "model_not_found",
    param: "model",
  });
  const full = await refused(right.responses.create(asked), OpenAI.RateLimitError, {
    status: 429,
    code: "rate_limit_exceeded",
    type: "rate_limit_exceeded",
  });
  assert.ok(Number(full.headers.get("retry-after")) > 0);
});

test("the models are listed", async () => {
  const models = await client.models.list();
  assert.ok(models.data.some(({ id }) => id === "sim"));
  assert.equal((await client.models.retrieve("sim")).object, "model");
});
