import fc from 'fast-check';
import type { ProcessGuard } from './process-guard.ts';

/** The servers and clients of one batch. */
export interface World<Input> {
  /** Rejects when an input breaks the property. */
  check(input: Input): Promise<void>;
  /** Stops everything; rejects when something does not stop. */
  stop(): Promise<void>;
}

/** The outcome of one batch. */
export interface Batch {
  readonly runs: number;
  /** The failure and its shrunk input; undefined on success. */
  readonly failure: string | undefined;
}

/** A rule that must hold for any input. One seed decides the inputs of a batch. */
export interface Property {
  readonly name: string;
  batch(seed: number, guard: ProcessGuard): Promise<Batch>;
}

/** Longer than every deadline of a run, on a busy machine. */
const RUN_TIMEOUT_MS = 60_000;
/** Shrinking stops after this time, because the seed repeats the failure anyway. */
const SHRINK_WITHIN_MS = 60_000;
const MAX_REPORT_LENGTH = 4_000;

/** @param runs - how many inputs a batch tries */
export function property<Input>(
  name: string,
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
    const report = failures.map((failure) => failure.slice(0, MAX_REPORT_LENGTH)).join('\n');
    return { runs: details.numRuns, failure: report === '' ? undefined : report };
  }
  return { name, batch };
}
