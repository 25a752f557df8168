import { setImmediate as turn, setTimeout as wait } from 'node:timers/promises';
import { inspect } from 'node:util';
import { must } from './must.ts';

/** Sockets close and timers end a moment after the test that used them. */
const END_WITHIN_MS = 10_000;

/** Timers, sockets and servers that keep the process alive, by their kind. */
function countResources(): Map<string, number> {
  const counts = new Map<string, number>();
  for (const kind of process.getActiveResourcesInfo()) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return counts;
}

/** Fails when an input adds to the prototype of all objects, leaves a rejection unhandled, or leaves a resource open. */
export class ProcessGuard {
  readonly #noted: string[] = [];
  #resources = countResources();

  constructor() {
    const note = (what: string) => (error: unknown) => this.#noted.push(`${what}: ${inspect(error)}`);
    process.on('unhandledRejection', note('unhandled rejection'));
    process.on('uncaughtException', note('uncaught exception'));
    process.on('warning', note('warning'));
  }

  /** Rejects after an unhandled rejection, an uncaught exception, a warning, or a polluted prototype. */
  async check(): Promise<void> {
    // Node reports a rejection when the microtasks are over.
    await turn();
    const noted = this.#noted.splice(0);
    must(noted.length === 0, () => noted.join('\n'));
    const polluted = Object.keys(Object.prototype);
    for (const key of polluted) Reflect.deleteProperty(Object.prototype, key);
    must(polluted.length === 0, () => `the prototype of all objects has got ${inspect(polluted)}`);
  }

  /** Allows the resources that are active now. */
  noteResources(): void {
    this.#resources = countResources();
  }

  /** Rejects when a timer, socket or server is left open. */
  async checkResources(): Promise<void> {
    const giveUpAt = performance.now() + END_WITHIN_MS;
    for (;;) {
      await wait(5);
      const left = [...countResources()].filter(([kind, count]) => count > (this.#resources.get(kind) ?? 0));
      if (left.length === 0) return;
      must(performance.now() < giveUpAt, () => `left over: ${inspect(Object.fromEntries(left))}`);
    }
  }
}
