import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { type RedisClient, RedisDedupeStore } from '../../src/redis/index.ts';
import { HoldingProxy } from '../../test/integration/redis-holding-proxy.ts';

const ROUNDS = 50;
const KEY_COUNT = 100;
const DAY_MS = 24 * 60 * 60 * 1000;

/** What a payload of 100 events costs on one client. */
export interface RoundTripResult {
  readonly client: string;
  /** Commands that left before the first reply was let through; with all of them it is one round trip. */
  readonly sentBeforeReply: { readonly claim: number; readonly commit: number };
  /** Medians in milliseconds; `ping` is a bare round trip on the same connection. */
  readonly medianMs: { readonly ping: number; readonly claim: number; readonly commit: number };
}

interface Connection {
  readonly redis: RedisClient;
  ping(): Promise<unknown>;
  close(): Promise<unknown>;
}

/** Measures both clients through a proxy that can keep replies back, and directly for the times. */
export async function measureRoundTrips(redisUrl: string): Promise<RoundTripResult[]> {
  return [
    await measure('redis', connectNodeRedis, redisUrl),
    await measure('ioredis', connectIoredis, redisUrl),
  ];
}

async function connectNodeRedis(url: string): Promise<Connection> {
  const redis = await createClient({ url }).connect();
  return { redis, ping: () => redis.ping(), close: () => redis.close() };
}

async function connectIoredis(url: string): Promise<Connection> {
  const redis = new Redis(url);
  return { redis, ping: () => redis.ping(), close: () => redis.quit() };
}

async function measure(
  client: string,
  connect: (url: string) => Promise<Connection>,
  url: string,
): Promise<RoundTripResult> {
  const proxy = await HoldingProxy.open(url, 'EVALSHA');
  const held = await connect(proxy.url);
  const sentBeforeReply = await countSent(held.redis, proxy);
  await held.close();
  await proxy.close();
  const direct = await connect(url);
  const medianMs = await time(direct);
  await direct.close();
  return { client, sentBeforeReply, medianMs };
}

function payload() {
  const namespace = `bench:${randomUUID()}:`;
  return Array.from({ length: KEY_COUNT }, (_, index) => `${namespace}tracking/events:t1:event-${index}`);
}

async function countSent(redis: RedisClient, proxy: HoldingProxy) {
  const store = new RedisDedupeStore({ redis });
  const keys = payload();
  // A new server gets the scripts by a second round trip once.
  await store.claim(['warm-up'], { token: 'bench', leaseMs: 1 });
  await store.commit(['warm-up'], { retainMs: 1 });
  proxy.holdUntil(KEY_COUNT);
  await store.claim(keys, { token: 'bench', leaseMs: 60_000 });
  const claim = proxy.sent;
  proxy.holdUntil(KEY_COUNT);
  await store.commit(keys, { retainMs: 1 });
  return { claim, commit: proxy.sent };
}

async function time({ redis, ping }: Connection) {
  const store = new RedisDedupeStore({ redis });
  const times = { ping: [] as number[], claim: [] as number[], commit: [] as number[] };
  for (let round = 0; round < ROUNDS; round += 1) {
    const keys = payload();
    times.ping.push(await elapsedMs(ping));
    times.claim.push(await elapsedMs(() => store.claim(keys, { token: 'bench', leaseMs: 60_000 })));
    times.commit.push(await elapsedMs(() => store.commit(keys, { retainMs: DAY_MS })));
    // What was remembered is forgotten at once; the bench leaves nothing behind.
    await store.commit(keys, { retainMs: 1 });
  }
  return { ping: median(times.ping), claim: median(times.claim), commit: median(times.commit) };
}

async function elapsedMs(run: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await run();
  return performance.now() - startedAt;
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
