import { randomUUID } from 'node:crypto';
import type { AcquireOptions, Permit } from '../../../src/limiter/limiter.ts';
import { RedisLimiter, type RedisLimiterOptions } from '../../../src/redis/index.ts';
import { formatKeys } from '../../../src/redis/limiter-script.ts';
import { ownKeys } from '../redis-clients.ts';

export const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** Limiters on one real Redis under keys of their own, which go when the suite is over. */
export function fleetsOn(url: string) {
  const { admin, keyPrefix } = ownKeys(url);

  /** Processes of one account, each with a limiter of its own, on a bucket that no other test uses. */
  function makeFleet(options: Partial<RedisLimiterOptions> = {}) {
    const bucket = {
      baseUrl: 'https://api.example.test/v1',
      account: randomUUID(),
      endpoint: 'trackers.createBulk',
    };
    const [tokens = '', pause = '', limit = ''] = formatKeys(keyPrefix, bucket);
    const keys = { tokens, pause, limit };
    const join = (overrides: Partial<RedisLimiterOptions> = {}) =>
      new RedisLimiter({ redis: admin, keyPrefix, logger: silent, ...options, ...overrides });
    const toAcquire = (overrides: Partial<AcquireOptions> = {}): AcquireOptions => ({
      bucket,
      priority: 'interactive',
      ...overrides,
    });
    return { join, toAcquire, bucket, keys };
  }

  return { admin, keyPrefix, makeFleet };
}

/** Tokens that are granted and sent at once. */
export async function take(limiter: RedisLimiter, options: AcquireOptions, count: number): Promise<Permit[]> {
  const permits = await Promise.all(Array.from({ length: count }, () => limiter.acquire(options)));
  for (const permit of permits) permit.send();
  return permits;
}
