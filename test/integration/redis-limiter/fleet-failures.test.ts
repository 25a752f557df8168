import { expect, test } from 'vitest';
import { describeWithRedis } from '../services.ts';
import { runFour } from './fleet-case.ts';

await describeWithRedis('four processes that share one limit of 10 per second', (url) => {
  test('one process is killed → no 429, the others use its share', async () => {
    const result = await runFour(url, { calls: 120, killAfterSeconds: 2 });
    expect(result).toMatchObject({ refused: 0, lost: 0 });
    // Three of four shares would be 75%.
    expect(result.sharePercentAfterKill).toBeGreaterThan(80);
  });

  test.each(['refused', 'silent'] as const)(
    'Redis is away for 3 s (%s) → no call lost, no 429, each process says so once',
    async (kind) => {
      const result = await runFour(url, { calls: 100, outage: { kind, afterSeconds: 2, seconds: 3 } });
      expect(result).toMatchObject({ refused: 0, lost: 0 });
      expect(result.fallbacks.toSorted()).toEqual([
        ...new Array(4).fill('recovered'),
        ...new Array(4).fill('unavailable'),
      ]);
    },
  );

  test('Redis is away for 3 s and empty when it is back → no call lost, no 429', async () => {
    const outage = { kind: 'refused', afterSeconds: 2, seconds: 3 } as const;
    const result = await runFour(url, { calls: 100, outage, forgetAfterSeconds: 3 });
    expect(result).toMatchObject({ refused: 0, lost: 0 });
  });

  test("Redis loses all keys → at most one window's worth of 429s, no call lost", async () => {
    const result = await runFour(url, { forgetAfterSeconds: 3 });
    expect(result).toMatchObject({ lost: 0, fallbacks: [] });
    expect(result.refused).toBeLessThanOrEqual(10);
  });
});
