/**
 * Reads what lies at a path of JSON, e.g. `at(body, 'data', 'trackings', 0, 'shipment')`; undefined when it is not there.
 * Wire bodies are unknown on purpose: the types of the client must not vouch for what the service says.
 */
export function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  let current = value;
  for (const key of path) {
    if (typeof current !== 'object' || current === null) return undefined;
    current = Reflect.get(current, key);
  }
  return current;
}

/** The list that lies at a path of JSON; one that is not there is empty. */
function listAt(value: unknown, ...path: readonly (string | number)[]): readonly unknown[] {
  const found = at(value, ...path);
  return Array.isArray(found) ? found : [];
}

/** One field of every item of a list that lies at a path of JSON. */
export function fieldsAt(value: unknown, field: string, ...path: readonly (string | number)[]): unknown[] {
  return listAt(value, ...path).map((item) => at(item, field));
}
