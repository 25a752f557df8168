import type { Ran } from './run.ts';

/** Prints one line a check, and counts them. */
export class Tally {
  readonly #count = { passed: 0, failed: 0, skipped: 0 };

  /** Notes a check that ran; the output of a failed one is printed. */
  ran(title: string, { isGood, output }: Ran, startedAt: number): void {
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
    this.#count[isGood ? 'passed' : 'failed'] += 1;
    console.log(`${isGood ? 'ok    ' : 'FAILED'} ${seconds.padStart(6)} s  ${title}`);
    if (!isGood) console.log(output);
  }

  /** Notes a check that could not run here, and why. */
  skipped(reason: string): void {
    this.#count.skipped += 1;
    console.log(`skipped: ${reason}`);
  }

  /** True when all that was noted ran and passed. */
  get isComplete(): boolean {
    return this.#count.failed === 0 && this.#count.skipped === 0;
  }

  /** Prints the count, and sets the exit code. A run that could prove nothing is no success. */
  end(): void {
    const { passed, failed, skipped } = this.#count;
    console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
    process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
  }
}
