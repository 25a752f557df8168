import { setTimeout as sleep } from 'node:timers/promises';
import Bottleneck from 'bottleneck';
import pThrottle from 'p-throttle';
import { TrackingClient } from '../../src/index.ts';

/** The service that a contender talks to, and its limit per second. */
interface Target {
  readonly baseUrl: string;
  readonly account: string;
  readonly limit: number;
}

/** Returns a function that makes one call and resolves once the service accepted the call. */
type Open = (target: Target) => () => Promise<unknown>;

export async function send({ baseUrl, account }: Target): Promise<Response> {
  const response = await fetch(`${baseUrl}/trackers/tracker-1`, {
    headers: { authorization: `Bearer ${account}` },
  });
  await response.arrayBuffer();
  return response;
}

/** Retries a refused call after `Retry-After`, as is usual around a limiter that does not read responses. */
export function withRetries(limited: () => Promise<Response>): () => Promise<void> {
  return async () => {
    for (;;) {
      const response = await limited();
      if (response.status === 200) return;
      await sleep(Number(response.headers.get('retry-after') ?? 1) * 1_000);
    }
  };
}

/** Builds a textbook token bucket: it refills evenly, and each request takes one of its `limit` tokens. */
function createClassicBucket(limit: number): () => Promise<void> {
  let tokens = limit;
  let filledAt = performance.now();
  let tail: Promise<void> = Promise.resolve();
  async function take(): Promise<void> {
    for (;;) {
      const now = performance.now();
      tokens = Math.min(limit, tokens + ((now - filledAt) / 1_000) * limit);
      filledAt = now;
      if (tokens >= 1) break;
      await sleep(((1 - tokens) / limit) * 1_000);
    }
    tokens -= 1;
  }
  return () => {
    tail = tail.then(take);
    return tail;
  };
}

/** The tables list the contenders in this order. */
export const contenders: Readonly<Record<string, Open>> = {
  'tracking-client': ({ baseUrl, account, limit }) => {
    const rateLimit = { limits: { 'trackers.get': limit } };
    const client = new TrackingClient({ baseUrl, apiKey: account, rateLimit, logLevel: 'error' });
    return () => client.trackers.get('tracker-1');
  },
  'p-throttle': (target) =>
    withRetries(pThrottle({ limit: target.limit, interval: 1_000 })(() => send(target))),
  'p-throttle strict': (target) =>
    withRetries(pThrottle({ limit: target.limit, interval: 1_000, strict: true })(() => send(target))),
  bottleneck: (target) => {
    const bottleneck = new Bottleneck({
      reservoir: target.limit,
      reservoirRefreshAmount: target.limit,
      reservoirRefreshInterval: 1_000,
    });
    return withRetries(() => bottleneck.schedule(() => send(target)));
  },
  'classic token bucket': (target) => {
    const take = createClassicBucket(target.limit);
    return withRetries(() => take().then(() => send(target)));
  },
};
