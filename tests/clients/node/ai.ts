// The AI SDK, with its provider for the Responses API.

import assert from "node:assert/strict";
import { test } from "node:test";

import { createOpenAI } from "@ai-sdk/openai";
import type { OpenAILanguageModelResponsesOptions } from "@ai-sdk/openai";
import {
  APICallError,
  generateObject,
  generateText,
  hasToolCall,
  isStepCount,
  NoObjectGeneratedError,
  Output,
  streamObject,
  streamText,
  tool,
  ToolLoopAgent,
} from "ai";
import type { ModelMessage, Warning } from "ai";
import { z } from "zod";

import { all, guarded, lookedUp, refused, until, url } from "./harness.js";

const warnings: Warning[] = [];
globalThis.AI_SDK_LOG_WARNINGS = (told) => void warnings.push(...told.warnings);

const openai = createOpenAI({ apiKey: "unused", baseURL: `${url}/v1` });
const model = openai("sim");

/** What holds for every request: nothing is tried again. */
const once = { model, maxRetries: 0 } as const;

function options(openai: OpenAILanguageModelResponsesOptions) {
  return { providerOptions: { openai } };
}

/** Returns what the server has of a response. */
async function stored(id: unknown): Promise<Record<string, unknown>> {
  const reply = await fetch(`${url}/v1/responses/${String(id)}`);
  assert.equal(reply.status, 200);
  return (await reply.json()) as Record<string, unknown>;
}

const called: string[] = [];
const tools = {
  get_weather: tool({
    description: "Tells the weather.",
    inputSchema: z.object({ city: z.string() }),
    execute: ({ city }) => {
      called.push(city);
      return { city, degrees: 18 };
    },
  }),
  get_time: tool({
    description: "Tells the time.",
    inputSchema: z.object({ zone: z.enum(["UTC", "CET"]) }),
    execute: ({ zone }) => `noon in ${zone}`,
  }),
};

const thinking = { forceReasoning: true, reasoningEffort: "low", reasoningSummary: "auto" };

const Recipe = z.object({
  name: z.string(),
  minutes: z.number().int().min(1).max(240),
  difficulty: z.enum(["easy", "hard"]),
  steps: z.array(z.object({ text: z.string(), optional: z.boolean() })).min(1),
  source: z.string().nullable(),
});

// Text.

test("text is generated", async () => {
  const result = await generateText({ ...once, prompt: "Repeat exactly: Grüße 👋" });
  assert.equal(result.text, "Grüße 👋");
  assert.equal(result.finishReason, "stop");
  assert.equal(result.usage.totalTokens, result.usage.inputTokens! + result.usage.outputTokens!);
  assert.match(result.finalStep.response.id, /^resp_/);
  assert.equal(result.finalStep.response.modelId, "sim");
});

test("text is streamed", async () => {
  const result = streamText({ ...once, prompt: "Produce 12 deltas" });
  const deltas = await all(result.textStream);
  assert.equal(deltas.length, 12);
  assert.equal(deltas.join(""), await result.text);
  assert.equal(await result.finishReason, "stop");
});

test("the parts of a stream come in their order", async () => {
  const { stream } = streamText({ ...once, prompt: "Produce 2 deltas" });
  assert.deepEqual(
    (await all(stream)).map((part) => part.type),
    [
      "start",
      "start-step",
      "text-start",
      "text-delta",
      "text-delta",
      "text-end",
      "finish-step",
      "finish",
    ],
  );
});

test("instructions, settings and provider options reach the server", async () => {
  const result = await generateText({
    ...once,
    instructions: "Answer briefly.",
    prompt: "Hello",
    temperature: 0.25,
    topP: 0.5,
    maxOutputTokens: 4096,
    ...options({
      metadata: { topic: "tests" },
      parallelToolCalls: false,
      maxToolCalls: 3,
      user: "somebody",
      safetyIdentifier: "somebody",
      serviceTier: "default",
      textVerbosity: "low",
      truncation: "auto",
      promptCacheKey: "cache-me",
    }),
  });
  const told = await stored(result.finalStep.response.id);
  assert.deepEqual(
    [told["temperature"], told["top_p"], told["max_output_tokens"], told["max_tool_calls"]],
    [0.25, 0.5, 4096, 3],
  );
  assert.deepEqual(told["metadata"], { topic: "tests" });
  assert.deepEqual(
    [told["parallel_tool_calls"], told["user"], told["safety_identifier"], told["truncation"]],
    [false, "somebody", "somebody", "auto"],
  );
  assert.deepEqual(
    [told["prompt_cache_key"], (told["text"] as { verbosity: string }).verbosity],
    ["cache-me", "low"],
  );
});

test("messages are sent along", async () => {
  const messages: ModelMessage[] = [
    { role: "user", content: "My favourite colour is blue" },
    { role: "assistant", content: "Noted." },
    { role: "user", content: "Which colour did I name?" },
  ];
  const { text } = await generateText({ ...once, messages });
  assert.equal(text, 'Earlier you said: "My favourite colour is blue"');
});

test("a response is continued by its id", async () => {
  const first = await generateText({ ...once, prompt: "My favourite colour is blue" });
  const previousResponseId = first.finalStep.providerMetadata?.["openai"]?.["responseId"];
  assert.equal(typeof previousResponseId, "string");
  const asked = {
    ...once,
    prompt: "Which colour did I name?",
    ...options({ previousResponseId: previousResponseId as string }),
  };
  const second = await generateText(asked);
  assert.equal(second.text, 'Earlier you said: "My favourite colour is blue"');
  assert.equal(await streamText(asked).text, second.text);
});

test("a conversation is continued by its id", async () => {
  const reply = await fetch(`${url}/v1/conversations`, { method: "POST", body: "{}" });
  const { id } = (await reply.json()) as { id: string };
  const conversation = options({ conversation: id });
  await generateText({ ...once, prompt: "My favourite colour is blue", ...conversation });
  const { text } = await generateText({
    ...once,
    prompt: "Which colour did I name?",
    ...conversation,
  });
  assert.equal(text, 'Earlier you said: "My favourite colour is blue"');
});

test("what is cut is told to be", async () => {
  const cut = { ...once, prompt: "Produce 90 deltas", maxOutputTokens: 16 };
  assert.equal((await generateText(cut)).finishReason, "length");
  assert.equal(await streamText(cut).finishReason, "length");
  const filtered = { ...once, prompt: "Stop in the middle" };
  assert.equal((await generateText(filtered)).finishReason, "content-filter");
});

test("images and files are taken", async () => {
  const pixel =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  const { text } = await generateText({
    ...once,
    messages: [
      {
        role: "user",
        content: [
          { type: "text", text: "What is this?" },
          { type: "file", data: Buffer.from(pixel, "base64"), mediaType: "image/png" },
          {
            type: "file",
            data: Buffer.from("%PDF-1.4"),
            mediaType: "application/pdf",
            filename: "a.pdf",
          },
        ],
      },
    ],
  });
  assert.match(text, /image\/png/);
  assert.match(text, /a\.pdf/);
});

// Tools.

test("a tool is called, and its result answered, in steps", async () => {
  called.length = 0;
  const result = await generateText({
    ...once,
    prompt: "What is the weather in Paris?",
    tools,
    stopWhen: isStepCount(5),
  });
  assert.deepEqual(called, ["Paris"]);
  assert.deepEqual(
    result.steps.map((step) => step.finishReason),
    ["tool-calls", "stop"],
  );
  assert.match(result.text, /get_weather said: .*18/);
});

for (const store of [true, false])
  test(`a stream goes through a tool ${store ? "and is stored" : "where nothing is stored"}`, async () => {
    called.length = 0;
    const result = streamText({
      ...once,
      prompt: "What is the weather in Paris?",
      tools,
      stopWhen: isStepCount(5),
      ...options({ store }),
    });
    const parts = await all(result.stream);
    const inputs = parts.flatMap((part) => (part.type === "tool-input-delta" ? [part.delta] : []));
    assert.deepEqual(JSON.parse(inputs.join("")), { city: "Paris" });
    const order = parts
      .map((part) => part.type)
      .filter((type) => ["tool-call", "tool-result", "text-start", "finish"].includes(type));
    assert.deepEqual(order, ["tool-call", "tool-result", "text-start", "finish"]);
    assert.deepEqual(called, ["Paris"]);
    assert.match(await result.text, /get_weather said: .*18/);
    assert.equal((await result.steps).length, 2);
  });

test("what is stored is referred to, and not sent again", async () => {
  const bodies: { input: { type?: string }[] }[] = [];
  const seen = createOpenAI({
    apiKey: "unused",
    baseURL: `${url}/v1`,
    fetch: (input, init) => {
      bodies.push(JSON.parse(String(init?.body)) as (typeof bodies)[number]);
      return fetch(input, init);
    },
  });
  const { text } = await generateText({
    model: seen("sim"),
    maxRetries: 0,
    prompt: "What is the weather in Paris?",
    tools,
    stopWhen: isStepCount(5),
    ...options(thinking),
  });
  assert.match(text, /get_weather said/);
  assert.deepEqual(
    bodies.map(({ input }) => input.map(({ type }) => type)),
    [[undefined], [undefined, "item_reference", "function_call", "function_call_output"]],
  );
});

test("the steps of a tool go on from one response to the next", async () => {
  const first = await generateText({
    ...once,
    prompt: "What is the weather in Paris?",
    tools,
    stopWhen: isStepCount(5),
  });
  const previousResponseId = first.finalStep.response.id;
  const second = await generateText({
    ...once,
    prompt: "Call get_time",
    tools,
    stopWhen: isStepCount(5),
    ...options({ previousResponseId }),
    // Each step sends what is new, and goes on from the one before.
    prepareStep: ({ steps, responseMessages }) =>
      steps.length === 0
        ? undefined
        : {
            messages: responseMessages.slice(-1),
            ...options({ previousResponseId: steps.at(-1)!.response.id }),
          },
  });
  assert.match(second.text, /get_time said: "noon in (UTC|CET)"/);
});

test("two tools are called at once", async () => {
  const result = streamText({
    ...once,
    prompt: "Call get_weather and get_time interleaved",
    tools,
    stopWhen: isStepCount(3),
  });
  const parts = await all(result.stream);
  const inputs = new Map<string, string>();
  for (const part of parts)
    if (part.type === "tool-input-delta")
      inputs.set(part.id, (inputs.get(part.id) ?? "") + part.delta);
  const calls = parts.flatMap((part) => (part.type === "tool-call" ? [part] : []));
  assert.deepEqual(calls.map((call) => call.toolName).toSorted(), ["get_time", "get_weather"]);
  for (const call of calls) assert.deepEqual(JSON.parse(inputs.get(call.toolCallId)!), call.input);
  assert.match(await result.text, /get_weather said/);
  assert.match(await result.text, /get_time said/);
});

test("a tool may be chosen, required, allowed or none", async () => {
  const prompt = "What is the weather in Paris?";
  for (const [more, wanted] of [
    [{ toolChoice: "auto" }, ["get_weather"]],
    [{ toolChoice: "none" }, []],
    [{ toolChoice: "required" }, ["get_weather"]],
    [{ toolChoice: { type: "tool", toolName: "get_time" } }, ["get_time"]],
    [options({ allowedTools: { toolNames: ["get_time"], mode: "required" } }), ["get_time"]],
    [options({ allowedTools: { toolNames: ["get_time"] } }), []],
  ] as const) {
    const { toolCalls } = await generateText({ ...once, prompt, tools, ...more });
    assert.deepEqual(
      toolCalls.map((call) => call.toolName),
      wanted,
    );
  }
});

test("an agent loops until a tool has been called", async () => {
  const agent = new ToolLoopAgent({ ...once, tools, stopWhen: hasToolCall("get_time") });
  const { steps, toolResults } = await agent.generate({ prompt: "Call get_time" });
  assert.equal(steps.length, 1);
  assert.match(String(toolResults[0]?.output), /noon in/);
});

test("a custom tool is given its text", async () => {
  const run = openai.tools.customTool({ description: "Runs a line." });
  const { toolCalls } = await generateText({
    ...once,
    prompt: "Call run with ls -l | wc",
    tools: { run },
  });
  assert.deepEqual(
    toolCalls.map(({ toolName, input }) => [toolName, input]),
    [["run", "ls -l | wc"]],
  );
});

test("tools that the API itself would run are taken", async () => {
  const { text, toolCalls } = await generateText({
    ...once,
    prompt: "Repeat exactly: Hello",
    tools: {
      web_search: openai.tools.webSearch({ searchContextSize: "low" }),
      file_search: openai.tools.fileSearch({ vectorStoreIds: ["vs_1"] }),
      code_interpreter: openai.tools.codeInterpreter(),
      image_generation: openai.tools.imageGeneration(),
      mcp: openai.tools.mcp({ serverLabel: "docs", serverUrl: "https://mcp.example.com/sse" }),
      apply_patch: openai.tools.applyPatch({}),
    },
  });
  assert.deepEqual([text, toolCalls], ["Hello", []]);
});

test("any model of the provider's is answered, as it is asked", async () => {
  for (const name of ["gpt-4o", "o3", "gpt-5.1", "gpt-5.6-sol", "gpt-6-astra"]) {
    const asked = {
      model: openai(name),
      maxRetries: 0,
      instructions: "Answer briefly.",
      prompt: "What is the weather in Paris?",
      tools,
      stopWhen: isStepCount(5),
    };
    const { text, finalStep } = await generateText(asked);
    assert.match(text, /get_weather said: .*18/);
    assert.equal(finalStep.response.modelId, name);
    assert.match(await streamText(asked).text, /get_weather said: .*18/);
  }
});

// Objects.

test("an object is generated that fits its schema", async () => {
  const { object } = await generateObject({ ...once, schema: Recipe, prompt: "A recipe for soup" });
  assert.deepEqual(Recipe.parse(object), object);
});

test("an object is streamed in parts", async () => {
  const result = streamObject({ ...once, schema: Recipe, prompt: "A recipe for soup" });
  const parts = await all(result.partialObjectStream);
  const object = await result.object;
  assert.ok(parts.length > 1);
  assert.deepEqual(parts.at(-1), object);
  assert.deepEqual(Recipe.parse(object), object);
});

test("an output that fits its schema comes as text does", async () => {
  const asked = { ...once, prompt: "A recipe for soup" };
  const { output } = await generateText({ ...asked, output: Output.object({ schema: Recipe }) });
  assert.deepEqual(Recipe.parse(output), output);
  const streamed = streamText({ ...asked, output: Output.object({ schema: Recipe }) });
  const parts = await all(streamed.partialOutputStream);
  assert.deepEqual(parts.at(-1), await streamed.output);
});

test("outputs of other kinds do too", async () => {
  const asked = { ...once, prompt: "A recipe for soup" };
  const list = await generateText({ ...asked, output: Output.array({ element: Recipe }) });
  assert.ok(Array.isArray(list.output));
  for (const each of list.output) Recipe.parse(each);
  const choice = Output.choice({ options: ["sun", "rain"] });
  assert.ok(["sun", "rain"].includes((await generateText({ ...asked, output: choice })).output));
  const { output } = await generateText({ ...asked, output: Output.json() });
  assert.equal(typeof output, "object");
});

test("an output that need not be strict may lack members", async () => {
  const schema = z.object({ name: z.string(), source: z.string().optional() });
  const { output } = await generateText({
    ...once,
    prompt: "A recipe for soup",
    output: Output.object({ schema }),
    ...options({ strictJsonSchema: false }),
  });
  assert.deepEqual(schema.parse(output), output);
});

test("an output may come after a tool", async () => {
  const result = await generateText({
    ...once,
    prompt: "What is the weather in Paris?",
    tools,
    stopWhen: isStepCount(5),
    output: Output.object({ schema: z.object({ summary: z.string() }) }),
  });
  assert.equal(result.steps.length, 2);
  assert.equal(typeof result.output.summary, "string");
});

test("an object that was cut is none", async () => {
  await refused(
    generateObject({
      ...once,
      schema: Recipe,
      prompt: "A recipe for soup",
      maxOutputTokens: 16,
    }),
    NoObjectGeneratedError,
    { finishReason: "length" },
  );
});

// Reasoning.

test("reasoning is generated before the text", async () => {
  const result = await generateText({ ...once, prompt: "Hello", ...options(thinking) });
  assert.ok(result.finalStep.reasoningText);
  assert.ok(result.usage.outputTokenDetails.reasoningTokens! > 0);
});

test("reasoning is streamed before the text", async () => {
  const { stream } = streamText({ ...once, prompt: "Hello", ...options(thinking) });
  const parts = await all(stream);
  const types = parts.map((part) => part.type);
  assert.ok(types.includes("reasoning-delta"));
  assert.ok(types.lastIndexOf("reasoning-end") < types.indexOf("text-start"));
});

test("reasoning comes back where nothing is stored", async () => {
  const hidden = options({ ...thinking, store: false });
  const prompt = { role: "user", content: "Hello" } as const;
  const first = await generateText({ ...once, messages: [prompt], ...hidden });
  const second = await generateText({
    ...once,
    messages: [prompt, ...first.responseMessages, { role: "user", content: "What did you think?" }],
    ...hidden,
  });
  assert.match(second.text, /I thought: "The user says: "Hello"/);
});

test("reasoning goes through a tool", async () => {
  for (const store of [true, false]) {
    const result = streamText({
      ...once,
      prompt: "What is the weather in Paris?",
      tools,
      stopWhen: isStepCount(5),
      ...options({ ...thinking, store }),
    });
    assert.match(await result.text, /get_weather said/);
    assert.equal((await result.steps).length, 2);
  }
});

test("log probabilities are told", async () => {
  const { finalStep } = await generateText({
    ...once,
    prompt: "Hello",
    ...options({ logprobs: 2 }),
  });
  const logprobs = finalStep.providerMetadata?.["openai"]?.["logprobs"] as unknown[][];
  assert.ok(logprobs.length > 0);
});

// Errors.

test("an error is told as the server tells it", async () => {
  const wrong = { ...once, prompt: "Hello", ...options({ previousResponseId: "resp_0" }) };
  const told = { statusCode: 400, isRetryable: false };
  const error = await refused(generateText(wrong), APICallError, told);
  const { error: data } = error.data as { error: Record<string, unknown> };
  assert.deepEqual(
    [data["code"], data["param"]],
    ["previous_response_not_found", "previous_response_id"],
  );
  assert.equal(error.message, data["message"]);
  const errors: unknown[] = [];
  const streamed = streamText({ ...wrong, onError: ({ error }) => void errors.push(error) });
  const parts = await all(streamed.stream);
  assert.ok(parts.some((part) => part.type === "error"));
  assert.ok(APICallError.isInstance(errors[0]) && errors[0].statusCode === 400);
});

test("a failure is tried again as often as it is told", async () => {
  let asked = 0;
  const counting = createOpenAI({
    apiKey: "unused",
    baseURL: `${url}/v1`,
    fetch: (input, init) => {
      asked += 1;
      return fetch(input, init);
    },
  });
  const prompt = "Fail before the first event with server_error";
  const failing = { model: counting("sim"), prompt, maxRetries: 0 };
  await refused(generateText(failing), APICallError, { statusCode: 502, isRetryable: true });
  assert.equal(asked, 1);
});

test("a wrong key is told to be", async () => {
  const other = createOpenAI({ ...guarded, apiKey: "sk-wrong" });
  const asked = { model: other("sim"), prompt: "Hello", maxRetries: 0 };
  await refused(generateText(asked), APICallError, { statusCode: 401, isRetryable: false });
});

test("a stream that fails on its way is told to have failed", async () => {
  const errors: unknown[] = [];
  const streamed = streamText({
    ...once,
    prompt: "Fail after 3 deltas",
    onError: ({ error }) => void errors.push(error),
  });
  const types = (await all(streamed.stream)).map((part) => part.type);
  assert.ok(types.includes("error"));
  assert.equal(types.filter((type) => type === "text-delta").length, 3);
  assert.equal(errors.length, 1);
});

test("a run ends when its stream is aborted", async () => {
  const controller = new AbortController();
  let id = "";
  const { stream } = streamText({
    ...once,
    prompt: "Be slow: 60 s",
    abortSignal: controller.signal,
    include: { rawChunks: true },
  });
  const types = [];
  for await (const part of stream) {
    types.push(part.type);
    const raw = part.type === "raw" ? (part.rawValue as { response?: { id: string } }) : {};
    if (raw.response) {
      ({ id } = raw.response);
      controller.abort();
    }
  }
  assert.equal(types.at(-1), "abort");
  const ended = await until(
    () => stored(id),
    ({ status }) => status !== "in_progress",
  );
  assert.equal(ended["status"], "cancelled");
});

test("nothing was warned of, and nothing outside asked for", () => {
  // But for `generateObject` and `streamObject`, which are to be replaced by outputs.
  const others = warnings.filter((warning) => warning.type !== "deprecated");
  assert.deepEqual(others, []);
  assert.deepEqual(lookedUp, []);
});
