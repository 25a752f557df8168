/**
 * A map that knows which key was used least recently.
 * One cursor walks the keys for good: asking a `Map` for its first key again and again is slow once many were deleted.
 */
export class RecencyMap<Value> {
  readonly #values = new Map<string, Value>();
  #cursor = this.#values.keys();
  /** The key the cursor stands on; undefined when it has to move on first. */
  #leastRecent: string | undefined;

  get size(): number {
    return this.#values.size;
  }

  get(key: string): Value | undefined {
    return this.#values.get(key);
  }

  /** Stores a value, and makes its key the most recently used one. */
  set(key: string, value: Value): void {
    this.delete(key);
    this.#values.set(key, value);
  }

  delete(key: string): void {
    if (this.#values.delete(key) && this.#leastRecent === key) this.#leastRecent = undefined;
  }

  /** The least recently used key with its value; undefined when there is none. */
  leastRecent(): readonly [key: string, value: Value] | undefined {
    if (this.#values.size === 0) return undefined;
    while (this.#leastRecent === undefined) {
      const next = this.#cursor.next();
      // Everything the cursor passed was deleted or put at the end, so a cursor that ran out starts anew.
      if (next.done === true) this.#cursor = this.#values.keys();
      else this.#leastRecent = next.value;
    }
    const value = this.#values.get(this.#leastRecent);
    return value === undefined ? undefined : [this.#leastRecent, value];
  }

  [Symbol.iterator](): Iterator<[key: string, value: Value]> {
    return this.#values.entries();
  }
}
