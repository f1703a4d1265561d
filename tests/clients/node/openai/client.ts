// The client that the tests call, and how they ask it.

import { APIPromise } from "openai/api-promise";
import OpenAI from "openai";
import { ConversationCursorPage, CursorPage } from "openai/pagination";
import type {
  Response,
  ResponseCreateParamsNonStreaming,
} from "openai/resources/responses/responses";
import { Stream } from "openai/streaming";

import { watch, watchKind } from "../coverage.js";
import { url } from "../harness.js";

export const client = new OpenAI({ apiKey: "unused", baseURL: `${url}/v1`, maxRetries: 0 });

watchKind("APIPromise", APIPromise);
watchKind("CursorPage", CursorPage);
watchKind("ConversationCursorPage", ConversationCursorPage);
watchKind("Stream", Stream);

export const responses = watch(client.responses, "responses");
export const conversations = watch(client.conversations, "conversations");
export const beta = watch(client.beta.responses, "beta.responses");

/** Asks the simulator. */
export type Ask = (asked: ResponseCreateParamsNonStreaming) => Promise<Response>;

/** The ways there are to ask, each giving the final response. */
export const modes: Record<string, Ask> = {
  create: async (asked) => await responses.create({ model: "sim", ...asked }),
  stream: async (asked) => {
    let last: Response | undefined;
    let output_text = "";
    const stream = await responses.create({ model: "sim", ...asked, stream: true });
    for await (const event of stream)
      if (event.type === "response.output_text.delta") output_text += event.delta;
      else if (
        event.type === "response.completed" ||
        event.type === "response.incomplete" ||
        event.type === "response.failed"
      )
        last = event.response;
    return { ...last!, output_text };
  },
  helper: async (asked) =>
    await responses.stream({ model: "sim", ...asked, stream: true }).finalResponse(),
  parse: async (asked) => await responses.parse({ model: "sim", ...asked }),
};

/** Returns what the server told, without what the client adds by itself. */
export function told(response: Response): unknown {
  const copy = JSON.parse(JSON.stringify(response)) as Record<string, unknown>;
  for (const name of ["output_text", "output_parsed", "_request_id"]) delete copy[name];
  for (const item of copy["output"] as Record<string, unknown>[]) {
    delete item["parsed_arguments"];
    for (const part of (item["content"] as Record<string, unknown>[] | undefined) ?? [])
      delete part["parsed"];
  }
  return copy;
}
