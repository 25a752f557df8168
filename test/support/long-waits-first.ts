import { createHash } from 'node:crypto';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** These files wait for leases, outages and other programs for longer than all others. */
export const LONG_WAITS = [
  'recipes-polling-worker.test.ts',
  'recipes-bullmq-polling.test.ts',
  'redis-limiter/fleet.test.ts',
  'readme-snippets.test.ts',
  'shop-kills.test.ts',
] as const;

/**
 * Runs files in a random order that depends on the seed, but the files with long waits first: otherwise one of them may start last,
 * and a run waits for it with idle processors. Vitest takes the sequencer of the root only, not that of a project.
 */
export class LongWaitsFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { seed } = this.ctx.config.sequence;
    const placed = files.map((file) => {
      const isLong = LONG_WAITS.some((name) => file.moduleId.endsWith(`/${name}`));
      const place = createHash('sha1').update(`${seed} ${file.moduleId}`).digest('hex');
      return { file, place: `${isLong ? 0 : 1} ${place}` };
    });
    return placed.sort((a, b) => (a.place < b.place ? -1 : 1)).map(({ file }) => file);
  }
}
