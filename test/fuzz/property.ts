import fc from 'fast-check';
import type { ProcessGuard } from './process-guard.ts';

/** What one batch of a property works with: servers, clients. */
export interface World<Input> {
  /** Rejects when an input breaks what must hold. */
  check(input: Input): Promise<void>;
  /** Ends everything; rejects when something would not end. */
  stop(): Promise<void>;
}

/** How one batch went. */
export interface Batch {
  readonly runs: number;
  /** What failed and on which input, shrunk; undefined when all went well. */
  readonly failure: string | undefined;
}

/** Something that must hold for any input, tried in batches that one seed decides. */
export interface Property {
  readonly name: string;
  /** What it feeds, and to whom. */
  readonly about: string;
  batch(seed: number, guard: ProcessGuard): Promise<Batch>;
}

/** Longer than every deadline that a run has, on a machine that is busy. */
const RUN_TIMEOUT_MS = 60_000;
/** Shrinking may take this long; the seed is what counts. */
const SHRINK_WITHIN_MS = 60_000;
const LONGEST_REPORT = 4_000;

/** @param runs - how many inputs a batch tries */
export function property<Input>(
  name: string,
  about: string,
  runs: number,
  arbitrary: fc.Arbitrary<Input>,
  start: () => Promise<World<Input>>,
): Property {
  async function batch(seed: number, guard: ProcessGuard): Promise<Batch> {
    const world = await start();
    const checked = fc.asyncProperty(arbitrary, async (input) => {
      await world.check(input);
      await guard.check();
    });
    const details = await fc.check(checked, {
      seed,

      numRuns: runs,
      timeout: RUN_TIMEOUT_MS,
      interruptAfterTimeLimit: SHRINK_WITHIN_MS,
    });
    const failures = details.failed
      ? [String(details.errorInstance), fc.defaultReportMessage(details) ?? '']
      : [];
    await world.stop().catch((error: unknown) => failures.push(String(error)));
    const report = failures.map((failure) => failure.slice(0, LONGEST_REPORT)).join('\n');
    return { runs: details.numRuns, failure: report === '' ? undefined : report };
  }
  return { name, about, batch };
}
