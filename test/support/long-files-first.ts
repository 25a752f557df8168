import { createHash } from 'node:crypto';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** The longest files of each project: these wait for leases, outages and other programs, or have many tests. */
export const LONG_FILES = [
  'system/recipes-polling-worker.test.ts',
  'system/recipes-bullmq-polling.test.ts',
  'system/redis-limiter/fleet.test.ts',
  'system/readme-snippets.test.ts',
  'system/shop-kills.test.ts',
  'integration/redis-store.test.ts',
  'integration/shop.test.ts',
  'cli/import.test.ts',
  'cli/rows.test.ts',
  'fuzz/schedules.test.ts',
] as const;

/**
 * Runs files in a random order that depends on the seed, but the long files first: otherwise one of them may start last,
 * and a run waits for it with idle processors. Vitest takes the sequencer of the root only, not that of a project.
 */
export class LongFilesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { seed } = this.ctx.config.sequence;
    const placed = files.map((file) => {
      const isLong = LONG_FILES.some((name) => file.moduleId.endsWith(`/test/${name}`));
      const place = createHash('sha1').update(`${seed} ${file.moduleId}`).digest('hex');
      return { file, place: `${isLong ? 0 : 1} ${place}` };
    });
    return placed.sort((a, b) => (a.place < b.place ? -1 : 1)).map(({ file }) => file);
  }
}
