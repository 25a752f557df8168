import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { expect, onTestFinished, test, vi } from 'vitest';
import { type FleetCase, type FleetRun, runFleetCase } from '../../../bench/fleet/run.ts';
import { startEnforcingServer } from '../../../bench/limiter/enforcing-server.ts';
import { startOwnRedis } from '../../integration/redis-limiter/own-redis.ts';
import { describeWithProgram, describeWithRedis } from '../../integration/services.ts';

const FOUR = { name: 'four processes', mode: 'sliding', processes: 4, calls: 48 } as const;

/** Lets four processes share one limit of 10 requests per second, on a service that enforces it. */
async function runFour(redisUrl: string, overrides: Partial<FleetCase> = {}): Promise<FleetRun> {
  const fleetCase: FleetCase = { ...FOUR, contenders: ['RedisLimiter'], ...overrides };
  const [only] = await runFleetCase(fleetCase, redisUrl, startEnforcingServer);
  if (!only) throw new Error('Expected one run, got none');
  return only;
}

await describeWithRedis('four processes that share one limit of 10 per second', (url) => {
  test('requests that take 0 to 80 ms → no 429, every call succeeds', async () => {
    expect(await runFour(url)).toMatchObject({ refused: 0, lost: 0, fallbacks: [] });
  });

  test('Redis does not reply for 3 s → every call succeeds, no 429', async () => {
    const outage = { kind: 'silent', afterSeconds: 1, seconds: 3 } as const;
    const result = await runFour(url, { calls: 60, outage });
    expect(result).toMatchObject({ refused: 0, lost: 0 });
    expect(result.fallbacks).toContain('recovered');
  });

  describeWithProgram('redis-server', 'a Redis of the test', () => {
    test('Redis is killed and restarts empty after 3 s → every call succeeds, no 429', async () => {
      const killed = await startOwnRedis();
      const url = `redis://127.0.0.1:${killed.port}`;
      const running = runFour(url, { calls: 60 });
      const admin = new Redis(url);
      await vi.waitUntil(async () => (await admin.dbsize()) > 0, { timeout: 60_000 });
      admin.disconnect();
      await sleep(1_000);
      await killed.stop();
      await sleep(3_000);
      const restarted = await startOwnRedis('--port', String(killed.port));
      onTestFinished(() => restarted.stop());
      const result = await running;
      expect(result).toMatchObject({ refused: 0, lost: 0 });
      expect(result.fallbacks).toContain('recovered');
    });
  });

  test('Redis loses all keys → every call succeeds, no more 429s than one window has requests', async () => {
    const result = await runFour(url, { forgetAfterSeconds: 1 });
    expect(result).toMatchObject({ lost: 0, fallbacks: [] });
    expect(result.refused).toBeLessThanOrEqual(10);
  });
});
