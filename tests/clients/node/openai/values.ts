// Every kind of tool and every value that the client's types have: what is missing here does not
// compile.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { ReasoningEffort } from "openai/resources/shared";
import type {
  ResponseIncludable,
  ResponseTextConfig,
  ServiceTier,
  Tool,
} from "openai/resources/responses/responses";

import { modes, responses } from "./client.js";

const tools: { [Type in Tool["type"]]: Tool & { type: Type } } = {
  apply_patch: { type: "apply_patch" },
  code_interpreter: { type: "code_interpreter", container: { type: "auto" } },
  computer: { type: "computer" },
  computer_use_preview: {
    type: "computer_use_preview",
    display_height: 600,
    display_width: 800,
    environment: "linux",
  },
  custom: {
    type: "custom",
    name: "sql",
    format: { type: "grammar", syntax: "regex", definition: "a+" },
  },
  file_search: { type: "file_search", vector_store_ids: ["vs_1"] },
  function: { type: "function", name: "f", parameters: { type: "object" }, strict: false },
  image_generation: { type: "image_generation" },
  local_shell: { type: "local_shell" },
  mcp: { type: "mcp", server_label: "docs", server_url: "https://mcp.example.com/sse" },
  namespace: {
    type: "namespace",
    name: "crm",
    description: "What is known of customers.",
    tools: [
      {
        type: "function",
        name: "find",
        description: "Finds a customer.",
        parameters: { type: "object" },
        strict: false,
      },
    ],
  },
  programmatic_tool_calling: { type: "programmatic_tool_calling" },
  shell: { type: "shell", environment: { type: "local" } },
  tool_search: { type: "tool_search" },
  web_search: { type: "web_search", search_context_size: "low" },
  web_search_2025_08_26: { type: "web_search_2025_08_26" },
  web_search_preview: { type: "web_search_preview" },
  web_search_preview_2025_03_11: { type: "web_search_preview_2025_03_11" },
};

for (const [mode, ask] of Object.entries(modes))
  test(`${mode} takes tools of every kind, and tells them as they are`, async () => {
    const asked = Object.values<Tool>(tools);
    const response = await ask({ input: "Repeat exactly: Hello", tools: asked });
    assert.equal(response.output_text, "Hello");
    assert.equal(response.tools.length, asked.length);
    for (const [index, told] of response.tools.entries())
      // More may be told: what holds where it was not said.
      assert.deepEqual({ ...told, ...asked[index] }, told);
  });

const includable: Record<ResponseIncludable, true> = {
  "code_interpreter_call.outputs": true,
  "computer_call_output.output.image_url": true,
  "file_search_call.results": true,
  "message.input_image.image_url": true,
  "message.output_text.logprobs": true,
  "reasoning.encrypted_content": true,
  "web_search_call.action.sources": true,
  "web_search_call.results": true,
};

test("everything that may be included is asked for", async () => {
  const include = Object.keys(includable) as ResponseIncludable[];
  const { id } = await responses.create({ model: "sim", input: "Hello", include });
  assert.equal((await responses.retrieve(id, { include })).id, id);
  assert.equal((await responses.inputItems.list(id, { include })).data.length, 1);
});

const efforts: Record<NonNullable<ReasoningEffort>, true> = {
  high: true,
  low: true,
  max: true,
  medium: true,
  minimal: true,
  none: true,
  xhigh: true,
};

test("reasoning costs what its effort says", async () => {
  const costs: [number, string][] = [];
  for (const effort of Object.keys(efforts) as NonNullable<ReasoningEffort>[]) {
    const response = await responses.create({
      model: "sim",
      input: "Hello",
      reasoning: { effort },
    });
    assert.equal(response.reasoning?.effort, effort);
    costs.push([response.usage!.output_tokens_details.reasoning_tokens, effort]);
  }
  costs.sort(([one], [other]) => one - other);
  assert.deepEqual(
    costs.map(([, effort]) => effort),
    ["none", "minimal", "low", "medium", "high", "xhigh", "max"],
  );
});

const tiers: Record<NonNullable<ServiceTier>, true> = {
  auto: true,
  default: true,
  fast: true,
  flex: true,
  priority: true,
  scale: true,
  ultrafast: true,
};

test("every service tier is taken", async () => {
  for (const service_tier of Object.keys(tiers) as NonNullable<ServiceTier>[]) {
    const response = await responses.create({ model: "sim", input: "Hello", service_tier });
    assert.equal(response.service_tier, service_tier === "auto" ? "default" : service_tier);
  }
});

const verbosities: Record<NonNullable<ResponseTextConfig["verbosity"]>, true> = {
  high: true,
  low: true,
  medium: true,
};

test("every verbosity is taken", async () => {
  for (const verbosity of Object.keys(verbosities) as (keyof typeof verbosities)[]) {
    const response = await responses.create({ model: "sim", input: "Hello", text: { verbosity } });
    assert.equal(response.text?.verbosity, verbosity);
  }
});
