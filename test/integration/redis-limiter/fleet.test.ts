import { expect, test } from 'vitest';
import { describeWithRedis } from '../services.ts';
import { runFour } from './fleet-case.ts';

await describeWithRedis('four processes that share one limit of 10 per second', (url) => {
  test.each(['sliding', 'fixed'] as const)(
    '%s window, 0 to 80 ms jitter → no 429, nobody starves, at most 1.8 commands a call',
    async (mode) => {
      const result = await runFour(url, { mode });
      expect(result).toMatchObject({ refused: 0, lost: 0, fallbacks: [] });
      expect(result.commandsPerCall).toBeLessThanOrEqual(1.8);
      expect(result.leastServed).toBeGreaterThan(result.firstServed * 0.1);
    },
  );

  test('the clock of one process is 1 h ahead → no effect', async () => {
    const result = await runFour(url, { clockAheadMs: 3_600_000 });
    expect(result).toMatchObject({ refused: 0, lost: 0, fallbacks: [] });
    expect(result.leastServed).toBeGreaterThan(result.firstServed * 0.1);
  });
});
