import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { RateLimiterQueue, RateLimiterRedis } from 'rate-limiter-flexible';
import { TrackingClient } from '../../src/client.ts';
import type { Limiter } from '../../src/limiter/limiter.ts';
import { RedisLimiter } from '../../src/redis/index.ts';
import type { ContenderName, PeerTask } from './task.ts';

/** Returns a function that makes one call and resolves once the service accepted it. */
type Open = (task: PeerTask, redis: Redis, onFallback: (state: string) => void) => () => Promise<unknown>;

const PATH = '/trackers/tracker-1';

const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

function clientCall({ baseUrl, account, limit }: PeerTask, limiter?: Limiter): () => Promise<unknown> {
  const client = new TrackingClient({
    baseUrl,
    apiKey: account,
    rateLimit: { limits: { 'trackers.get': limit } },
    ...(limiter ? { limiter } : {}),
  });
  return () => client.trackers.get('tracker-1');
}

/** How each contender is opened in a process; a refused call of one without retries waits and queues again. */
export const contenders: Record<ContenderName, Open> = {
  RedisLimiter: (task, redis, onFallback) =>
    clientCall(
      task,
      new RedisLimiter({
        redis,
        keyPrefix: task.namespace,
        processes: task.processes,
        logger: { ...silent, warn: () => onFallback('unavailable'), info: () => onFallback('recovered') },
      }),
    ),
  'rate-limiter-flexible': ({ baseUrl, account, limit, namespace }, redis) => {
    const storeClient = redis;
    const limiter = new RateLimiterRedis({ storeClient, keyPrefix: namespace, points: limit, duration: 1 });
    const queue = new RateLimiterQueue(limiter, { maxQueueSize: 10_000 });
    return async () => {
      for (;;) {
        await queue.removeTokens(1);
        const response = await fetch(baseUrl + PATH, { headers: { authorization: `Bearer ${account}` } });
        await response.arrayBuffer();
        if (response.status === 200) return;
        await sleep(Number(response.headers.get('retry-after') ?? 1) * 1_000);
      }
    };
  },
  uncoordinated: (task) => clientCall(task),
};
