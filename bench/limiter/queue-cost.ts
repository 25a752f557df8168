/** What 10,000 waiting calls cost: memory, timers, and the time to reject them all. `special-cases.ts` forks it. */
import Bottleneck from 'bottleneck';
import pThrottle from 'p-throttle';
import { TrackingClient } from '../../src/client.ts';
import { TokenBucketLimiter } from '../../src/limiter/token-bucket.ts';
import { median } from '../statistics.ts';

export interface QueueCost {
  readonly name: string;
  readonly megabytes: number;
  readonly timers: number;
  /** From the abort to the last rejection; null where one call can't be given up. */
  readonly rejectedAfterMs: number | null;
  /** Warnings that Node printed, as that of too many listeners. */
  readonly warnings: number;
}

const CALLS = 10_000;
const LIMIT = 10;
/** The first ones compile and allocate what the later ones find; the median leaves that out. */
const FILLS = 5;

interface Queue {
  readonly canAbort: boolean;
  readonly open: (signal: AbortSignal) => () => Promise<unknown>;
}

const queues: Record<string, Queue> = {
  TokenBucketLimiter: {
    canAbort: true,
    open: (signal) => {
      const limiter = new TokenBucketLimiter();
      const bucket = { baseUrl: 'http://127.0.0.1/v1', account: 'account', endpoint: 'trackers.get' };
      return () => limiter.acquire({ bucket, limit: LIMIT, priority: 'interactive', signal });
    },
  },
  'tracking-client, whole calls': {
    canAbort: true,
    open: (signal) => {
      const fetch = () => new Promise<never>(() => {});
      const client = new TrackingClient({ baseUrl: 'http://127.0.0.1/v1', apiKey: 'key', fetch });
      return async () => client.trackers.get('tracker-1', { signal });
    },
  },
  'p-throttle strict': {
    canAbort: false,
    open: () => pThrottle({ limit: LIMIT, interval: 1_000, strict: true })(async () => {}),
  },
  bottleneck: {
    canAbort: false,
    open: () => {
      const bottleneck = new Bottleneck({
        reservoir: LIMIT,
        reservoirRefreshAmount: LIMIT,
        reservoirRefreshInterval: 1_000,
      });
      return () => bottleneck.schedule(async () => {});
    },
  },
};

/** The queues that can be measured. */
export const QUEUE_NAMES = Object.keys(queues);

async function measure(name: string): Promise<QueueCost> {
  const queue = queues[name];
  if (!queue) throw new Error(`Expected one of ${QUEUE_NAMES.join(', ')}, got ${name}`);
  let warnings = 0;
  process.on('warning', () => {
    warnings += 1;
  });
  const fills: Awaited<ReturnType<typeof fill>>[] = [];
  for (let time = 0; time < FILLS; time += 1) fills.push(await fill(queue));
  return {
    name,
    megabytes: median(fills.map((each) => each.megabytes)),
    timers: median(fills.map((each) => each.timers)),
    rejectedAfterMs: queue.canAbort ? median(fills.map((each) => each.rejectedAfterMs)) : null,
    warnings,
  };
}

/** Lets everybody queue, looks, and aborts them all. */
async function fill(queue: Queue): Promise<{ megabytes: number; timers: number; rejectedAfterMs: number }> {
  const controller = new AbortController();
  const call = queue.open(controller.signal);
  const calls: Promise<unknown>[] = new Array(CALLS);
  const timersBefore = countTimers();
  const before = heapUsed();
  for (let index = 0; index < CALLS; index += 1) calls[index] = call();
  await Promise.resolve();
  const megabytes = (heapUsed() - before) / 1e6;
  const timers = countTimers() - timersBefore;
  let rejected = 0;
  for (const each of calls) {
    each.catch(() => {
      rejected += 1;
    });
  }
  const abortedAt = performance.now();
  controller.abort();
  // Rejections are told in microtasks, all of which run before the next turn of the event loop.
  await new Promise((resolve) => setImmediate(resolve));
  const rejectedAfterMs = performance.now() - abortedAt;
  if (queue.canAbort && rejected < CALLS - LIMIT)
    throw new Error(`Expected every waiting call to reject, ${rejected} did`);
  return { megabytes, timers, rejectedAfterMs };
}

function heapUsed(): number {
  globalThis.gc?.();
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

function countTimers(): number {
  return process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length;
}

if (process.send && process.argv[2]) {
  const cost = await measure(process.argv[2]);
  // Calls that can't be given up would hold the process for a quarter of an hour.
  process.send(cost, () => process.exit());
}
