import assert from "node:assert/strict";
import { test } from "node:test";

import { OpenAIError } from "openai";
import { ResponsesWS } from "openai/resources/responses/ws";

import { client } from "./client.js";

test("a WebSocket is told that it is not built", async () => {
  const socket = new ResponsesWS(client);
  const error = await new Promise<OpenAIError>((resolve) => socket.on("error", resolve));
  assert.match(error.message, /501/);
  socket.close();
});
