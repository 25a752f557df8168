import { appendFile } from 'node:fs/promises';
import { Redis } from 'ioredis';
import { steadyNow } from './messages.ts';
import type { Pulse } from './pulse.ts';

const LOOK_EVERY_MS = 1_000;
/** Longer than calls stop when Redis goes, and when it comes back. */
const STALLED_AFTER_MS = 6_000;

/** While no call is answered, writes down what `RedisLimiter` has in Redis: without it nobody can tell who held the tokens. */
export function watchLimiter(redisUrl: string, pulse: Pulse, file: string): { stop(): void } {
  const redis = new Redis(redisUrl, { maxRetriesPerRequest: 0 });
  redis.on('error', () => {});
  let [calls, changedAt] = [0, steadyNow()];
  const look = async () => {
    const now = steadyNow();
    if (pulse.totals.calls !== calls) [calls, changedAt] = [pulse.totals.calls, now];
    if (now - changedAt < STALLED_AFTER_MS) return;
    const time = await redis.time();
    const kept: unknown[] = [];
    for (const key of (await redis.keys('tracking-client:limiter:*results*')).toSorted())
      kept.push(
        key.endsWith('leases') ? await redis.zrange(key, '0', '-1', 'WITHSCORES') : await redis.hgetall(key),
      );
    await appendFile(file, `${JSON.stringify({ now, time, kept })}\n`);
  };
  const timer = setInterval(() => {
    // Redis may be away as well.
    look().catch(() => {});
  }, LOOK_EVERY_MS);
  return {
    stop() {
      clearInterval(timer);
      redis.disconnect();
    },
  };
}
