import assert from "node:assert/strict";
import { test } from "node:test";

import { zodResponsesFunction, zodTextFormat } from "openai/helpers/zod";
import { standardResponsesFunction, standardTextFormat } from "openai/helpers/standard-schema";
import OpenAI from "openai";
import { z } from "zod";
import { z as z3 } from "zod/v3";
import * as mini from "zod/mini";

import { refused } from "../harness.js";
import { responses } from "./client.js";

const Address = z.object({ street: z.string(), zip: z.string().regex(/^\d{5}$/) });

type Category = { name: string; children: Category[] };
const Category: z.ZodType<Category> = z.lazy(() =>
  z.object({ name: z.string(), children: z.array(Category) }),
);

/** What zod can say and a strict schema of the API may hold. */
const Person = z.object({
  name: z.string().describe("The full name"),
  age: z.number().int().min(0).max(150),
  height: z.number().gt(0.5).lt(2.5),
  role: z.enum(["admin", "guest"]),
  email: z.email(),
  born: z.iso.date(),
  active: z.boolean(),
  nickname: z.string().nullable(),
  kind: z.literal("person"),
  tags: z.array(z.string()).min(1).max(3),
  address: Address,
  other: z.array(Address).max(2),
  pet: z.union([
    z.object({ kind: z.literal("cat"), lives: z.number().int().min(1).max(9) }),
    z.object({ kind: z.literal("dog"), name: z.string() }),
  ]),
  category: Category,
});

const format = zodTextFormat(Person, "person");
const asked = { model: "sim", input: "Tell me of Ada Lovelace.", text: { format } } as const;

test("a schema of zod is answered with what it parses", async () => {
  const response = await responses.parse(asked);
  const person = Person.parse(response.output_parsed);
  assert.deepEqual(JSON.parse(response.output_text), person);
  assert.deepEqual(response.text?.format, JSON.parse(JSON.stringify(format)));
  const [item] = response.output;
  assert.ok(item?.type === "message" && item.content[0]?.type === "output_text");
  assert.deepEqual(item.content[0].parsed, person);
});

test("so it is in a stream", async () => {
  const stream = responses.stream(asked);
  let text = "";
  stream.on("response.output_text.delta", ({ delta }) => (text += delta));
  const response = await stream.finalResponse();
  assert.deepEqual(Person.parse(JSON.parse(text)), response.output_parsed);
});

test("any standard schema will do", async () => {
  const schema = z.object({ city: z.string(), degrees: z.number() });
  const response = await responses.parse({
    model: "sim",
    input: "What is the weather in Paris?",
    text: { format: standardTextFormat(schema, "weather") },
  });
  assert.deepEqual(schema.parse(response.output_parsed), response.output_parsed);
});

test("the schemas of other versions of zod are answered too", async () => {
  const old = z3.object({
    city: z3.string(),
    kind: z3.enum(["sun", "rain"]),
    degrees: z3.array(z3.number().int().min(-50).max(60)).min(1),
    wind: z3.object({ from: z3.string().nullable() }),
  });
  const first = await responses.parse({
    model: "sim",
    input: "What is the weather in Paris?",
    text: { format: zodTextFormat(old, "weather") },
  });
  assert.deepEqual(old.parse(first.output_parsed), first.output_parsed);
  const small = mini.object({ city: mini.string(), sunny: mini.boolean() });
  const second = await responses.parse({
    model: "sim",
    input: "What is the weather in Paris?",
    text: { format: zodTextFormat(small, "weather") },
  });
  assert.deepEqual(small.parse(second.output_parsed), second.output_parsed);
});

test("JSON of any shape is JSON", async () => {
  const response = await responses.create({
    model: "sim",
    input: "Answer in JSON.",
    text: { format: { type: "json_object" } },
  });
  assert.equal(typeof JSON.parse(response.output_text), "object");
});

test("a refusal has nothing parsed", async () => {
  const response = await responses.parse({ ...asked, input: "Refuse to answer" });
  assert.equal(response.output_parsed, null);
  const [item] = response.output;
  assert.ok(item?.type === "message" && item.content[0]?.type === "refusal");
});

test("what was cut is not parsed", async () => {
  const cut = { ...asked, max_output_tokens: 16 };
  for (const response of [
    await responses.parse(cut),
    await responses.stream(cut).finalResponse(),
  ]) {
    assert.deepEqual(
      [response.status, response.incomplete_details?.reason, response.output_parsed],
      ["incomplete", "max_output_tokens", null],
    );
    assert.throws(() => JSON.parse(response.output_text) as unknown, SyntaxError);
  }
});

test("a schema that nothing fits is refused", async () => {
  await refused(
    responses.create({
      model: "sim",
      input: "Hello",
      text: {
        format: {
          type: "json_schema",
          name: "none",
          schema: { type: "object", properties: { a: false }, required: ["a"] },
        },
      },
    }),
    OpenAI.BadRequestError,
    { param: "text.format.schema" },
  );
});

test("the arguments of a call are parsed", async () => {
  const parameters = Person;
  for (const tool of [
    zodResponsesFunction({ name: "forecast", parameters }),
    standardResponsesFunction({ name: "forecast", parameters }),
  ]) {
    const response = await responses.parse({ model: "sim", input: "Call forecast", tools: [tool] });
    const [call] = response.output;
    assert.ok(call?.type === "function_call");
    const parsed = call.parsed_arguments as unknown;
    assert.deepEqual(parameters.parse(parsed), parsed);
    assert.deepEqual(JSON.parse(call.arguments), parsed);
    const streamed = responses.stream({ model: "sim", input: "Call forecast", tools: [tool] });
    const [again] = (await streamed.finalResponse()).output;
    assert.ok(again?.type === "function_call");
    assert.deepEqual(again.parsed_arguments, parsed);
  }
});
