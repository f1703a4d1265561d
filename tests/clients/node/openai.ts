// The official SDK: every method that it has for responses and conversations.

import assert from "node:assert/strict";
import { test } from "node:test";

import "./openai/create.js";
import "./openai/values.js";
import "./openai/streams.js";
import "./openai/lifecycle.js";
import "./openai/conversations.js";
import "./openai/parse.js";
import "./openai/tools.js";
import "./openai/errors.js";
import "./openai/websocket.js";

import { missed } from "./coverage.js";
import { lookedUp } from "./harness.js";
import { client } from "./openai/client.js";

/** Members that are there for the client's own use. */
const inner = ["APIPromise.parse"];

test("every method of the client is called", () => {
  const resources = {
    responses: client.responses,
    conversations: client.conversations,
    "beta.responses": client.beta.responses,
  };
  assert.deepEqual(missed(resources, inner), []);
});

test("nothing outside is asked for", () => {
  assert.deepEqual(lookedUp, []);
});
