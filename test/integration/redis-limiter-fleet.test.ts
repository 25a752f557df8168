import { expect, test } from 'vitest';
import { type FleetCase, type FleetRun, runFleetCase } from '../../bench/fleet/run.ts';
import { startEnforcingServer } from '../../bench/limiter/enforcing-server.ts';
import { describeWithRedis } from './services.ts';

const FOUR = { name: 'four processes', mode: 'sliding', processes: 4, calls: 80 } as const;

await describeWithRedis('four processes that share one limit of 10 per second', (url) => {
  async function run(each: Partial<FleetCase> = {}): Promise<FleetRun> {
    const asked: FleetCase = { ...FOUR, contenders: ['RedisLimiter'], ...each };
    const [only] = await runFleetCase(asked, url, startEnforcingServer);
    if (!only) throw new Error('Expected one run, got none');
    return only;
  }

  test.each(['sliding', 'fixed'] as const)(
    '%s window, 0 to 80 ms jitter → no 429, nobody starves, at most 2 commands a request',
    async (mode) => {
      const result = await run({ mode });
      expect(result).toMatchObject({ refused: 0, lost: 0, fallbacks: [] });
      expect(result.commandsPerCall).toBeLessThanOrEqual(2);
      expect(result.fairnessPercent).toBeGreaterThan(30);
    },
  );

  test('one process is killed → no 429, the others use its share', async () => {
    const result = await run({ calls: 120, killAfterSeconds: 2 });
    expect(result).toMatchObject({ refused: 0, lost: 0 });
    // Three of four shares would be 75%.
    expect(result.sharePercentAfterKill).toBeGreaterThan(80);
  });

  test('the clock of one process is 1 h ahead → no effect', async () => {
    const result = await run({ clockAheadMs: 3_600_000 });
    expect(result).toMatchObject({ refused: 0, lost: 0, fallbacks: [] });
    expect(result.fairnessPercent).toBeGreaterThan(30);
  });

  test.each(['refused', 'silent'] as const)(
    'Redis is away for 3 s (%s) → no call lost, no 429, each process says so once',
    async (kind) => {
      const result = await run({ calls: 100, outage: { kind, afterSeconds: 2, seconds: 3 } });
      expect(result).toMatchObject({ refused: 0, lost: 0 });
      expect(result.fallbacks.toSorted()).toEqual([
        ...new Array(4).fill('recovered'),
        ...new Array(4).fill('unavailable'),
      ]);
    },
  );
});
