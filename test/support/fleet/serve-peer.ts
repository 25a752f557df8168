import { Redis } from 'ioredis';
import { TrackingClient } from '../../../src/index.ts';
import type { RedisLimiter } from '../../../src/redis/index.ts';
import type { PeerOutcome, PeerTask } from './peers.ts';

type Fallback = PeerOutcome['fallbacks'][number];

/** Returns a function that makes one call and resolves once the service accepted the call. */
export type OpenPeer = (
  task: PeerTask,
  redis: Redis,
  onFallback: (state: Fallback) => void,
) => () => Promise<unknown>;

/** Calls the service with a client of this package. Default of `limiter`: a limiter of this process. */
export function openClient(
  { baseUrl, account, limit }: PeerTask,
  limiter?: RedisLimiter,
): () => Promise<unknown> {
  const client = new TrackingClient({
    baseUrl,
    apiKey: account,
    logLevel: 'error',
    ...(limiter ? { limiter } : { rateLimit: { limits: { 'trackers.get': limit } } }),
  });
  return () => client.trackers.get('tracker-1');
}

async function run(open: OpenPeer, task: PeerTask): Promise<PeerOutcome> {
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
  const call = open(task, redis, (state) => fallbacks.push(state));
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

/** Makes this process a peer: it waits for its task, makes all its calls at once, and reports the outcome. */
export function servePeer(open: OpenPeer): void {
  process.once('message', async (task) => {
    // The parent sends one message, which is the task.
    process.send?.(await run(open, task as PeerTask));
  });
  // Exit explicitly, because the connection to Redis keeps the process alive.
  process.once('disconnect', () => process.exit(0));
  process.send?.('ready');
}
