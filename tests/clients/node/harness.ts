// What every script of tests shares.

import assert from "node:assert/strict";
import dns from "node:dns";

/** The address of the gateway. */
export const url = process.env["ANTIPHON_URL"]!;

/** The address of a gateway that asks for a key and lets one request a minute in. */
export const guarded = {
  apiKey: process.env["ANTIPHON_GUARDED_KEY"]!,
  baseURL: `${process.env["ANTIPHON_GUARDED_URL"]!}/v1`,
};

/** An id as the server makes them, of nothing. */
export const unknown = `resp_${"0".repeat(32)}`;

/** Every name that was looked up: the gateway is told by its number, so there should be none. */
export const lookedUp: string[] = [];

// A client that reports somewhere, or asks for news, would look a name up first.
dns.lookup = ((name: string, ...rest: unknown[]) => {
  lookedUp.push(name);
  (rest.at(-1) as (error: Error) => void)(new Error("tests stay on their machine"));
}) as unknown as typeof dns.lookup;

/** Reads a stream to its end. */
export async function all<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const read: T[] = [];
  for await (const each of stream) read.push(each);
  return read;
}

/** Checks that something is refused with an error of a class, and returns the error. */
export async function refused<E extends Error>(
  asked: PromiseLike<unknown>,
  kind: new (...args: never[]) => E,
  members: Partial<Record<keyof E, unknown>> = {},
): Promise<E> {
  let error: unknown;
  try {
    await asked;
  } catch (thrown) {
    error = thrown;
  }
  assert.ok(error instanceof kind, `${kind.name} is expected, not ${String(error)}`);
  for (const [name, value] of Object.entries(members))
    assert.deepEqual(error[name as keyof E], value, name);
  return error;
}

/** Asks again until the answer is as wanted: how often depends on the machine. */
export async function until<T>(ask: () => PromiseLike<T>, wanted: (got: T) => boolean): Promise<T> {
  for (;;) {
    const got = await ask();
    if (wanted(got)) return got;
  }
}
