import { setImmediate as turn, setTimeout as wait } from 'node:timers/promises';
import { inspect } from 'node:util';
import fc from 'fast-check';

/** Longer than every deadline of a run, on a busy machine. */
const RUN_TIMEOUT_MS = 60_000;
/** Shrinking stops after this time, because the seed repeats the failure anyway. */
const SHRINK_WITHIN_MS = 60_000;
/** Sockets close and timers end a moment after the run that used them. */
const END_WITHIN_MS = 10_000;

/** Fails the run unless `isSo`. */
export function must(isSo: boolean, broken: () => string): void {
  if (!isSo) throw new Error(broken());
}

/** Returns all text that a log may print of a value. */
export function printed(value: unknown): string {
  const shown = inspect(value, { depth: 12, showHidden: true, maxStringLength: null, maxArrayLength: 500 });
  const said = value instanceof Error ? `${value}${value.stack}` : '';
  try {
    return shown + said + JSON.stringify(value);
  } catch {
    return shown + said;
  }
}

/** Notes what goes wrong in this process outside of all promises. */
class ProcessWatch {
  readonly #noted: string[] = [];
  readonly #listeners = ['unhandledRejection', 'uncaughtException', 'warning'].map(
    (event) => [event, (error: unknown) => void this.#noted.push(`${event}: ${inspect(error)}`)] as const,
  );

  constructor() {
    for (const [event, listener] of this.#listeners) process.on(event, listener);
  }

  /** Rejects after an unhandled rejection, an uncaught exception, a warning, or a polluted prototype. */
  async check(): Promise<void> {
    // Node reports a rejection when the microtasks are over.
    await turn();
    const problems = this.#noted.splice(0);
    must(problems.length === 0, () => problems.join('\n'));
    const polluted = Object.keys(Object.prototype);
    for (const key of polluted) Reflect.deleteProperty(Object.prototype, key);
    must(polluted.length === 0, () => `the prototype of all objects has got ${inspect(polluted)}`);
  }

  end(): void {
    for (const [event, listener] of this.#listeners) process.off(event, listener);
  }
}

/** Rejects if more timers, sockets and servers keep the process alive than before. */
async function checkResources(before: number): Promise<void> {
  const giveUpAt = performance.now() + END_WITHIN_MS;
  while (process.getActiveResourcesInfo().length > before) {
    must(performance.now() < giveUpAt, () => `left over: ${process.getActiveResourcesInfo()}`);
    await wait(5);
  }
}

/** The servers and clients of one batch. */
interface World<Input> {
  /** Rejects when an input breaks the property. */
  check(input: Input): Promise<void>;
  /** Stops everything; rejects when something does not stop. */
  stop(): Promise<void>;
}

/** A rule that must hold for any input. */
export interface Property {
  readonly name: string;
  /**
   * Tries many inputs, which the seed decides. Rejects with the first one, shrunk, that breaks the rule, and with the command that
   * tries the same inputs again.
   */
  runBatch(seed: number): Promise<void>;
}

/** The seed of `npm test`, fixed so that a failure is due to a change. `npm run test:fuzz` draws a new one. */
export const TEST_SEED = 1;

/** @param numRuns - how many inputs a batch tries */
export function property<Input>(
  name: string,
  numRuns: number,
  arbitrary: fc.Arbitrary<Input>,
  start: () => Promise<World<Input>>,
): Property {
  async function tryInputs(seed: number, watch: ProcessWatch): Promise<void> {
    const resources = process.getActiveResourcesInfo().length;
    const world = await start();
    const checked = fc.asyncProperty(arbitrary, async (input) => {
      await world.check(input);
      await watch.check();
    });
    const limits = { timeout: RUN_TIMEOUT_MS, interruptAfterTimeLimit: SHRINK_WITHIN_MS };
    await fc
      .assert(checked, { seed, numRuns, includeErrorInReport: true, ...limits })
      .finally(() => world.stop());
    await checkResources(resources);
    await watch.check();
  }

  async function runBatch(seed: number): Promise<void> {
    const watch = new ProcessWatch();
    try {
      await tryInputs(seed, watch);
    } catch (error) {
      // The report of `npm test` shows the message only.
      const said = error instanceof Error ? error.message : inspect(error);
      throw new Error(`Again: npm run test:fuzz -- --property ${name} --seed ${seed}\n${said}`);
    } finally {
      watch.end();
    }
  }
  return { name, runBatch };
}
