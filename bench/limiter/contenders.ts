import { setTimeout as sleep } from 'node:timers/promises';
import Bottleneck from 'bottleneck';
import pThrottle from 'p-throttle';
import { TrackingClient } from '../../src/client.ts';

/** Whom a contender talks to, and how fast it may. */
export interface Target {
  readonly baseUrl: string;
  readonly account: string;
  readonly limit: number;
}

/** A way to keep within a rate limit. */
export interface Contender {
  readonly name: string;
  /** Returns a function that makes one call and resolves once the service accepted it. */
  readonly open: (target: Target) => () => Promise<unknown>;
}

const PATH = '/trackers/tracker-1';

async function send({ baseUrl, account }: Target): Promise<Response> {
  const response = await fetch(baseUrl + PATH, { headers: { authorization: `Bearer ${account}` } });
  await response.arrayBuffer();
  return response;
}

/** What is usually built around a limiter that knows nothing of answers: a refused call waits and queues again. */
function withRetries(limited: () => Promise<Response>): () => Promise<void> {
  return async () => {
    for (;;) {
      const response = await limited();
      if (response.status === 200) return;
      await sleep(Number(response.headers.get('retry-after') ?? 1) * 1_000);
    }
  };
}

/** The textbook's token bucket: `limit` tokens, filled evenly, taken when sending. */
function classicBucket(limit: number): () => Promise<void> {
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

/** The client as a user has it, on its default options. */
const trackingClient: Contender = {
  name: 'tracking-client',
  open: ({ baseUrl, account, limit }) => {
    const client = new TrackingClient({
      baseUrl,
      apiKey: account,
      rateLimit: { limits: { 'trackers.get': limit } },
    });
    return () => client.trackers.get('tracker-1');
  },
};

/** Everybody, in the order of the tables. */
export const contenders: readonly Contender[] = [
  trackingClient,
  {
    name: 'p-throttle',
    open: (target) => withRetries(pThrottle({ limit: target.limit, interval: 1_000 })(() => send(target))),
  },
  {
    name: 'p-throttle strict',
    open: (target) =>
      withRetries(pThrottle({ limit: target.limit, interval: 1_000, strict: true })(() => send(target))),
  },
  {
    name: 'bottleneck',
    open: (target) => {
      const bottleneck = new Bottleneck({
        reservoir: target.limit,
        reservoirRefreshAmount: target.limit,
        reservoirRefreshInterval: 1_000,
      });
      return withRetries(() => bottleneck.schedule(() => send(target)));
    },
  },
  {
    name: 'classic token bucket',
    open: (target) => {
      const take = classicBucket(target.limit);
      return withRetries(() => take().then(() => send(target)));
    },
  },
];
