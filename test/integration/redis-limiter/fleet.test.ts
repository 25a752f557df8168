import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { expect, onTestFinished, test, vi } from 'vitest';
import { type FleetCase, type FleetRun, runFleetCase } from '../../../bench/fleet/run.ts';
import { startEnforcingServer } from '../../../bench/limiter/enforcing-server.ts';
import { describeWithRedis } from '../services.ts';
import { hasRedisServer, startOwnRedis } from './own-redis.ts';

const FOUR = { name: 'four processes', mode: 'sliding', processes: 4, calls: 80 } as const;

/** Lets four processes share one limit of 10 requests per second, on a service that enforces it. */
async function runFour(redisUrl: string, overrides: Partial<FleetCase> = {}): Promise<FleetRun> {
  const fleetCase: FleetCase = { ...FOUR, contenders: ['RedisLimiter'], ...overrides };
  const [only] = await runFleetCase(fleetCase, redisUrl, startEnforcingServer);
  if (!only) throw new Error('Expected one run, got none');
  return only;
}

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

  test.skipIf(!hasRedisServer())(
    'Redis is killed and back empty after 3 s → no call lost, no 429',
    async () => {
      const killed = await startOwnRedis();
      const url = `redis://127.0.0.1:${killed.port}`;
      const running = runFour(url, { calls: 100 });
      const admin = new Redis(url);
      await vi.waitUntil(async () => (await admin.dbsize()) > 0, { timeout: 60_000 });
      admin.disconnect();
      await sleep(2_000);
      await killed.stop();
      await sleep(3_000);
      const restarted = await startOwnRedis('--port', String(killed.port));
      onTestFinished(() => restarted.stop());
      const result = await running;
      expect(result).toMatchObject({ refused: 0, lost: 0 });
      expect(result.fallbacks).toHaveLength(8);
    },
  );

  test("Redis loses all keys → at most one window's worth of 429s, no call lost", async () => {
    const result = await runFour(url, { forgetAfterSeconds: 3 });
    expect(result).toMatchObject({ lost: 0, fallbacks: [] });
    expect(result.refused).toBeLessThanOrEqual(10);
  });
});
