import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { expect, onTestFinished, test, vi } from 'vitest';
import { startOwnRedis } from '../../integration/redis-limiter/own-redis.ts';
import { describeWithProgram, describeWithRedis } from '../../integration/services.ts';
import { startEnforcingServer } from '../../support/enforcing-server.ts';
import { type FleetCase, type FleetRun, runFleetCase } from '../../support/fleet/run.ts';

const FOUR = { mode: 'sliding', processes: 4, calls: 48 } as const;

/** Lets four processes share one limit of 10 requests per second, on a service that enforces it. */
function runFour(redisUrl: string, overrides: Partial<FleetCase> = {}): Promise<FleetRun> {
  return runFleetCase({ ...FOUR, ...overrides }, redisUrl, startEnforcingServer);
}

await describeWithRedis('four processes that share one limit of 10 per second', (url) => {
  test('requests that take 0 to 80 ms → no 429, every call succeeds', async () => {
    expect(await runFour(url)).toMatchObject({ refused: 0, lost: 0, fallbacks: [] });
  });

  test('one process is killed after 1 s → every call of the other processes succeeds, no 429', async () => {
    const result = await runFour(url, { killAfterSeconds: 1 });
    expect(result).toMatchObject({ refused: 0, lost: 0, fallbacks: [] });
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
