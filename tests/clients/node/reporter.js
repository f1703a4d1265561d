// Reports each finished test as one line of JSON: its name, what is wrong with it, if anything,
// and whether it was passed over.

export default async function* report(events) {
  for await (const { type, data } of events) {
    if (type !== "test:pass" && type !== "test:fail") continue;
    const error = data.details.error;
    const told = {
      name: data.name,
      error: type === "test:fail" ? (error?.cause?.stack ?? error?.stack ?? String(error)) : null,
      skipped: data.skip !== undefined || data.todo !== undefined,
    };
    yield `${JSON.stringify(told)}\n`;
  }
}
