/**
 * Reads the value at a path of JSON, e.g. `at(body, 'data', 'trackings', 0, 'shipment')`; undefined when it is not there.
 * Bodies are unknown on purpose: the client's types must not influence what the contract tests check.
 */
export function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  let current = value;
  for (const key of path) {
    if (typeof current !== 'object' || current === null) return undefined;
    current = Reflect.get(current, key);
  }
  return current;
}
