// Which methods of a client the tests call, by watching a client from outside: it is not changed.

const called = new Set<string>();
const watched = new WeakMap<object, object>();

/** The objects that are watched, by the names that they are told under. */
type Kind = { name: string; of: abstract new (...args: never[]) => object };

const kinds: Kind[] = [];

/** Watches instances of a class wherever a watched method returns one. */
export function watchKind(name: string, of: Kind["of"]): void {
  kinds.push({ name, of });
}

function watchAny(value: unknown, inner?: string): unknown {
  if (typeof value !== "object" || value === null) return value;
  const kind = kinds.find(({ of }) => value instanceof of);
  const name = kind?.name ?? inner;
  return name === undefined ? value : watch(value, name);
}

/** Returns a stand-in for an object which notes what is called on it, and on what it gives. */
export function watch<T extends object>(target: T, name: string): T {
  const known = watched.get(target);
  if (known !== undefined) return known as T;
  const proxy = new Proxy(target, {
    get(_, key) {
      // The object itself is asked, so that its private members work.
      const value: unknown = Reflect.get(target, key, target);
      if (typeof key !== "string") return typeof value === "function" ? value.bind(target) : value;
      if (typeof value !== "function") {
        if (typeof value !== "object") called.add(`${name}.${key}`);
        return watchAny(value, isResource(value) ? `${name}.${key}` : undefined);
      }
      return (...args: unknown[]) => {
        called.add(`${name}.${key}`);
        if (key === "then") {
          const [resolve, reject] = args as [((got: unknown) => unknown)?, unknown?];
          args = [resolve && ((got: unknown) => resolve(watchAny(got))), reject];
        }
        return watchAny(value.apply(target, args));
      };
    },
  });
  watched.set(target, proxy);
  return proxy;
}

function isResource(value: unknown): value is object {
  return typeof value === "object" && value !== null && "_client" in value;
}

/** Returns the public methods and accessors of a class, with those that it inherits. */
function membersOf(prototype: object): Set<string> {
  const found = new Set<string>();
  const own = [Object.prototype, Promise.prototype] as object[];
  for (let at = prototype; !own.includes(at); at = Object.getPrototypeOf(at) as object)
    for (const key of Object.getOwnPropertyNames(at))
      if (key !== "constructor" && !key.startsWith("_")) found.add(key);
  return found;
}

/** Returns the names of every method of a resource and of the resources in it. */
function methodsOf(resource: object, name: string): string[] {
  const own = [...membersOf(Object.getPrototypeOf(resource) as object)];
  const inner = Object.entries(resource).filter(
    ([key, each]) => key !== "_client" && isResource(each),
  );
  return [
    ...own.map((key) => `${name}.${key}`),
    ...inner.flatMap(([key, each]) => methodsOf(each as object, `${name}.${key}`)),
  ];
}

/**
 * Returns what nobody has called.
 *
 * @param resources the resources of the client, by their names.
 * @param inner members that are there for the client's own use.
 */
export function missed(resources: Record<string, object>, inner: string[]): string[] {
  const wanted = [
    ...Object.entries(resources).flatMap(([name, each]) => methodsOf(each, name)),
    ...kinds.flatMap(({ name, of }) =>
      [...membersOf(of.prototype as object)].map((key) => `${name}.${key}`),
    ),
  ];
  return wanted.filter((name) => !called.has(name) && !inner.includes(name));
}
