/** `peers.ts` forks this program once for each process of a fleet. */
import { Redis } from 'ioredis';
import { RateLimiterQueue, RateLimiterRedis } from 'rate-limiter-flexible';
import { TrackingClient } from '../../src/index.ts';
import { RedisLimiter } from '../../src/redis/index.ts';
import { send, withRetries } from '../limiter/contenders.ts';
import type { Contender, PeerOutcome, PeerTask } from './peers.ts';
import { shiftWallClock } from './shift-clock.ts';

type Fallback = PeerOutcome['fallbacks'][number];
/** Returns a function that makes one call and resolves once the service accepted the call. */
type Open = (task: PeerTask, redis: Redis, onFallback: (state: Fallback) => void) => () => Promise<unknown>;

function openClient({ baseUrl, account, limit }: PeerTask, limiter?: RedisLimiter): () => Promise<unknown> {
  const client = new TrackingClient({
    baseUrl,
    apiKey: account,
    logLevel: 'error',
    ...(limiter ? { limiter } : { rateLimit: { limits: { 'trackers.get': limit } } }),
  });
  return () => client.trackers.get('tracker-1');
}

const contenders: Readonly<Record<Contender, Open>> = {
  RedisLimiter: (task, redis, onFallback) => {
    const { namespace: keyPrefix, processes } = task;
    const logger = {
      debug() {},
      info: () => onFallback('recovered'),
      warn: () => onFallback('unavailable'),
      error() {},
    };
    const limits = { 'trackers.get': task.limit };
    return openClient(task, new RedisLimiter({ redis, keyPrefix, processes, limits, logger }));
  },
  'rate-limiter-flexible': (task, storeClient) => {
    const { limit: points, namespace: keyPrefix } = task;
    const limiter = new RateLimiterRedis({ storeClient, keyPrefix, points, duration: 1 });
    const queue = new RateLimiterQueue(limiter, { maxQueueSize: 10_000 });
    return withRetries(async () => {
      await queue.removeTokens(1);
      return await send(task);
    });
  },
  uncoordinated: (task) => openClient(task),
};

async function run(task: PeerTask): Promise<PeerOutcome> {
  if (task.clockAheadMs !== 0) shiftWallClock(task.clockAheadMs);
  const redis = new Redis(task.redisUrl);
  // Without a listener, ioredis prints each failed attempt to connect.
  redis.on('error', () => {});
  await redis.ping();
  // Call `fetch` once before measuring, because the first call of a process loads code.
  await (await fetch(new URL('/log', task.baseUrl))).arrayBuffer();
  let redisCommands = 0;
  const sendCommand = redis.sendCommand.bind(redis);
  redis.sendCommand = (...command) => {
    redisCommands += 1;
    return sendCommand(...command);
  };
  const fallbacks: Fallback[] = [];
  const call = contenders[task.contender](task, redis, (state) => fallbacks.push(state));
  const startedAt = performance.now();
  const endedAt: number[] = [];
  const results = await Promise.allSettled(
    Array.from({ length: task.calls }, async () => {
      await call();
      endedAt.push(performance.now() - startedAt);
    }),
  );
  const seconds = (performance.now() - startedAt) / 1_000;
  const failed = results.filter(({ status }) => status === 'rejected').length;
  return { failed, seconds, endedAt, redisCommands, fallbacks };
}

process.once('message', async (task) => {
  // The parent sends one message, which is the task.
  process.send?.(await run(task as PeerTask));
});
// Exit explicitly, because the connection to Redis keeps the process alive.
process.once('disconnect', () => process.exit(0));
process.send?.('ready');
