import assert from "node:assert/strict";
import { test } from "node:test";

import OpenAI from "openai";
import { ResponsesToolRunner, runnerFunction } from "openai/helpers/responses-tool-runner";
import { zodResponsesFunction } from "openai/helpers/zod";
import { toResponseInputItems } from "openai/lib/responses/ResponseInputItems";
import type {
  ResponseCreateParamsBase,
  ResponseFunctionToolCall,
  ResponseInput,
  ResponseOutputItem,
  Tool,
} from "openai/resources/responses/responses";
import { z } from "zod";

import { all, refused } from "../harness.js";
import { client, modes, responses } from "./client.js";

function tool(name: string): Tool {
  const parameters = {
    type: "object",
    properties: { city: { type: "string" } },
    required: ["city"],
    additionalProperties: false,
  };
  return { type: "function", name, parameters, strict: true };
}

const tools = [tool("get_weather"), tool("get_time"), tool("send_mail")];

function calls(output: ResponseOutputItem[]): ResponseFunctionToolCall[] {
  return output.flatMap((item) => (item.type === "function_call" ? [item] : []));
}

function names(output: ResponseOutputItem[]): string[] {
  return calls(output).map((call) => call.name);
}

/** Answers every call with a text. */
function answers(output: ResponseOutputItem[], text: string): ResponseInput {
  return calls(output).map(({ call_id }) => ({
    type: "function_call_output",
    call_id,
    output: text,
  }));
}

for (const [mode, ask] of Object.entries(modes)) {
  test(`${mode} calls a function and answers with what it gave`, async () => {
    const first = await ask({ input: "What is the weather in Paris?", tools });
    assert.deepEqual(names(first.output), ["get_weather"]);
    const [call] = calls(first.output);
    assert.deepEqual(JSON.parse(call!.arguments), { city: "Paris" });
    assert.match(call!.call_id, /^call_/);
    const second = await ask({
      previous_response_id: first.id,
      input: answers(first.output, "18 degrees"),
      tools,
    });
    assert.match(second.output_text, /get_weather said: "18 degrees"/);
    const third = await ask({
      previous_response_id: second.id,
      input: 'Call send_mail with {"city":"Rome"}',
      tools,
    });
    assert.equal(calls(third.output)[0]?.arguments, '{"city":"Rome"}');
  });

  test(`${mode} calls a function where nothing is stored`, async () => {
    const input: ResponseInput = [{ role: "user", content: "Call get_time" }];
    const first = await ask({ input, tools, store: false });
    const second = await ask({
      input: toResponseInputItems([...input, ...first.output, ...answers(first.output, "noon")]),
      tools,
      store: false,
    });
    assert.match(second.output_text, /get_time said: "noon"/);
  });

  test(`${mode} calls several functions at once, or one by one`, async () => {
    const input = "Call get_weather, get_time and send_mail";
    const several = await ask({ input, tools });
    assert.deepEqual(names(several.output), ["get_weather", "get_time", "send_mail"]);
    const ids = calls(several.output).map((call) => call.call_id);
    assert.equal(new Set(ids).size, 3);
    const said = await ask({
      previous_response_id: several.id,
      input: answers(several.output, "done"),
      tools,
    });
    for (const name of names(several.output)) assert.ok(said.output_text.includes(name));

    let response = await ask({ input, tools, parallel_tool_calls: false });
    const found = names(response.output);
    while (calls(response.output).length > 0) {
      assert.equal(calls(response.output).length, 1);
      response = await ask({
        previous_response_id: response.id,
        input: answers(response.output, "done"),
        tools,
        parallel_tool_calls: false,
      });
      found.push(...names(response.output));
    }
    assert.deepEqual(found, ["get_weather", "get_time", "send_mail"]);
    assert.match(response.output_text, /send_mail said: "done"/);
  });

  test(`${mode} gives a custom tool its text`, async () => {
    const custom: Tool[] = [{ type: "custom", name: "run", description: "Runs a line." }];
    const first = await ask({ input: "Call run with ls -l | wc", tools: custom });
    const [call] = first.output;
    assert.ok(call?.type === "custom_tool_call");
    assert.deepEqual([call.name, call.input], ["run", "ls -l | wc"]);
    const second = await ask({
      previous_response_id: first.id,
      input: [{ type: "custom_tool_call_output", call_id: call.call_id, output: "3" }],
      tools: custom,
    });
    assert.match(second.output_text, /run said: "3"/);
  });
}

/** How a choice among the tools, and a message, lead to calls. */
const choices: [ResponseCreateParamsBase["tool_choice"], string, string[]][] = [
  ["auto", "Hello", []],
  ["auto", "Call get_time", ["get_time"]],
  ["none", "Call get_time", []],
  ["required", "Call get_time", ["get_time"]],
  [{ type: "function", name: "send_mail" }, "Hello", ["send_mail"]],
  [
    {
      type: "allowed_tools",
      mode: "required",
      tools: [{ type: "function", name: "get_time" }],
    },
    "What is the weather in Paris?",
    ["get_time"],
  ],
  [
    { type: "allowed_tools", mode: "auto", tools: [{ type: "function", name: "get_time" }] },
    "What is the weather in Paris?",
    [],
  ],
];

for (const [tool_choice, input, wanted] of choices)
  test(`${JSON.stringify(tool_choice)} and "${input}" call ${wanted.join() || "nothing"}`, async () => {
    for (const ask of Object.values(modes)) {
      const response = await ask({ input, tools, ...(tool_choice && { tool_choice }) });
      assert.deepEqual(names(response.output), wanted);
      assert.deepEqual(response.tool_choice, tool_choice);
    }
  });

test("a required call is some call", async () => {
  const { output } = await responses.create({
    model: "sim",
    input: "Hello",
    tools,
    tool_choice: "required",
  });
  assert.ok(calls(output).length > 0);
});

test("a choice of no tool of the request is refused", async () => {
  await refused(
    responses.create({
      model: "sim",
      input: "Hello",
      tools,
      tool_choice: { type: "function", name: "nobody" },
    }),
    OpenAI.BadRequestError,
    { param: "tool_choice" },
  );
});

test("the deltas of interleaved calls belong to their calls", async () => {
  const long = JSON.stringify({ city: "Paris, of all the cities that there are" });
  const stream = responses.stream({
    model: "sim",
    input: `Call get_weather with ${long} and get_time with ${long} interleaved`,
    tools,
  });
  const snapshots = new Map<string, string>();
  const order: number[] = [];
  stream.on("response.function_call_arguments.delta", (event) => {
    order.push(event.output_index);
    snapshots.set(event.item_id, event.snapshot);
  });
  const done: string[] = [];
  stream.on("response.function_call_arguments.done", (event) => done.push(event.item_id));
  const { output } = await stream.finalResponse();
  assert.deepEqual(names(output), ["get_weather", "get_time"]);
  assert.deepEqual(
    done.toSorted(),
    calls(output)
      .map((call) => call.id!)
      .toSorted(),
  );
  for (const call of calls(output)) {
    assert.equal(call.arguments, long);
    assert.equal(snapshots.get(call.id!), long);
  }
  // The second begins before the first has ended.
  assert.ok(order.indexOf(1) < order.lastIndexOf(0));
});

test("an output that answers no call is refused, and a call without an output", async () => {
  await refused(
    responses.create({
      model: "sim",
      input: [{ type: "function_call_output", call_id: "call_nobody", output: "x" }],
    }),
    OpenAI.BadRequestError,
    { param: "input" },
  );
  const { id } = await responses.create({ model: "sim", input: "Call get_time", tools });
  await refused(
    responses.create({ model: "sim", input: "Hello", previous_response_id: id, tools }),
    OpenAI.BadRequestError,
    { param: "input" },
  );
});

test("the client's runner calls functions until there is a text", async () => {
  for (const stream of [false, true]) {
    const called: unknown[] = [];
    const weather = zodResponsesFunction({
      name: "get_weather",
      parameters: z.object({ city: z.string() }),
      function: ({ city }) => {
        called.push(city);
        return `warm in ${city}`;
      },
    });
    const runner = new ResponsesToolRunner({ functions: [runnerFunction(weather)] });
    const asked = { model: "sim", input: "What is the weather in Paris?" };
    const response = await runner.run(client, asked, { stream });
    assert.deepEqual(called, ["Paris"]);
    assert.match(response.output_text, /get_weather said: "warm in Paris"/);
    runner.close();
  }
});

test("calls are part of what a response has been given", async () => {
  const first = await responses.create({ model: "sim", input: "Call get_time", tools });
  const second = await responses.create({
    model: "sim",
    previous_response_id: first.id,
    input: answers(first.output, "noon"),
    tools,
  });
  const items = await all(responses.inputItems.list(second.id, { order: "asc" }));
  assert.deepEqual(
    items.map((item) => item.type),
    ["message", "function_call", "function_call_output"],
  );
});
