import { setImmediate as turn, setTimeout as wait } from 'node:timers/promises';
import { inspect } from 'node:util';
import { must } from './must.ts';

const INTRINSICS: readonly object[] = [
  ...[Object, Array, Function, String, Number, Boolean, Symbol, Promise],
  ...[Map, Set, Date, RegExp, Error, Headers, Request, Response],
].map(({ prototype }) => prototype);

/** Sockets close and timers end a moment after the test that used them. */
const END_WITHIN_MS = 10_000;

function valuesOf(intrinsic: object): Map<PropertyKey, unknown> {
  const keys = Reflect.ownKeys(intrinsic);
  return new Map(
    keys.map((key) => {
      const { value, get } = Object.getOwnPropertyDescriptor(intrinsic, key) ?? {};
      return [key, value ?? get];
    }),
  );
}

/** Timers, sockets and servers that keep the process alive, by their kind. */
function activeResources(): Map<string, number> {
  const counts = new Map<string, number>();
  for (const kind of process.getActiveResourcesInfo()) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return counts;
}

/** Fails when an input changes a prototype, leaves a rejection unhandled, or leaves a resource open. */
export class ProcessGuard {
  readonly #prototypes = INTRINSICS.map(valuesOf);
  readonly #noted: string[] = [];
  #resources = activeResources();

  constructor() {
    const note = (what: string) => (error: unknown) => this.#noted.push(`${what}: ${inspect(error)}`);
    process.on('unhandledRejection', note('unhandled rejection'));
    process.on('uncaughtException', note('uncaught exception'));
    process.on('warning', note('warning'));
  }

  /** Rejects after an unhandled rejection, an uncaught exception, a warning, or a changed prototype. */
  async check(): Promise<void> {
    // Node reports a rejection when the microtasks are over.
    await turn();
    const noted = this.#noted.splice(0);
    must(noted.length === 0, () => noted.join('\n'));
    for (const [index, intrinsic] of INTRINSICS.entries()) {
      const before = this.#prototypes[index] ?? new Map();
      const after = valuesOf(intrinsic);
      const changed = [...after.keys(), ...before.keys()].filter((key) => after.get(key) !== before.get(key));
      for (const key of changed) if (!before.has(key)) Reflect.deleteProperty(intrinsic, key);
      must(changed.length === 0, () => `a prototype has changed: ${inspect(changed)}`);
    }
  }

  /** Allows the resources that are active now. */
  noteResources(): void {
    this.#resources = activeResources();
  }

  /** Rejects when a timer, socket or server is left open. */
  async checkResources(): Promise<void> {
    const giveUpAt = performance.now() + END_WITHIN_MS;
    for (;;) {
      await wait(5);
      const left = [...activeResources()].filter(([kind, count]) => count > (this.#resources.get(kind) ?? 0));
      if (left.length === 0) return;
      must(performance.now() < giveUpAt, () => `left over: ${inspect(Object.fromEntries(left))}`);
    }
  }
}

/** Bytes in use after a collection. Needs `--expose-gc`. */
export async function heapBytes(): Promise<number> {
  // Twice, with a turn between them: finalizers hold some things for one more collection.
  for (let count = 0; count < 2; count += 1) {
    globalThis.gc?.();
    await turn();
  }
  return process.memoryUsage().heapUsed + process.memoryUsage().arrayBuffers;
}
