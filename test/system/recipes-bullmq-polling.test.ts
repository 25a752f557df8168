// examples/bullmq-polling/ with workers as processes of their own, on a fake service in another process.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import { startOwnRedis } from '../integration/redis-limiter/own-redis.ts';
import { describeWithProgram } from '../integration/services.ts';
import { expectRepeatsOfKillOnly, PollingProcesses } from './polling-processes.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const EXAMPLE = join(ROOT, 'examples/bullmq-polling');
const TIMEOUT_MS = 180_000;
const LIMIT = 400;
const CONCURRENCY = 20;
const LOCK_MS = 4_000;

/** A worker of the example with short locks and a raised limit. Its callback notes each call in a list. */
const WORKER = `import { Redis } from 'ioredis';
import { TrackingClient } from 'tracking-client';
import { RedisDedupeStore, RedisLimiter } from 'tracking-client/redis';
import { WebhookInbox } from 'tracking-client/webhooks';
import { pollQueue, pollWorker } from '${EXAMPLE}/polls.ts';
const [name] = process.argv.slice(2);
const redis = new Redis(process.env.REDIS_URL).on('error', console.error);
const queue = pollQueue();
const limits = { 'trackers.results': ${LIMIT}, 'trackers.get': ${LIMIT} };
// A busy machine must not look like a Redis that hangs.
const commandTimeoutMs = 10_000;
const worker = pollWorker({
  queue,
  client: new TrackingClient({ limiter: new RedisLimiter({ redis, processes: 3, limits, commandTimeoutMs }) }),
  inbox: new WebhookInbox({ store: new RedisDedupeStore({ redis, commandTimeoutMs }), leaseMs: ${LOCK_MS} }),
  callbacks: { onEvent: (_event, { key }) => redis.rpush('calls', key + ' ' + name) },
  onLag: (ms) => { if (!(ms >= 0)) console.error('Expected a lag, got', ms); },
  lockMs: ${LOCK_MS},
});
worker.on('failed', (job, error) => console.error(job?.data.trackerId, error));
process.once('SIGTERM', async () => { await worker.close(); await queue.close(); redis.disconnect(); });
`;

// A Redis of its own, because the example has fixed names and the test deletes all keys.
describeWithProgram('redis-server', 'examples/bullmq-polling/ on a real Redis', () => {
  let url: string;
  let redis: Redis;
  const processes = new PollingProcesses();
  const cleanUps: (() => Promise<unknown>)[] = [];
  let folder: string;
  let queue: Queue;
  let startPolling: (queue: Queue, trackerId: string, startDate?: number) => Promise<void>;

  beforeAll(async () => {
    const own = await startOwnRedis();
    cleanUps.push(() => own.stop());
    url = `redis://127.0.0.1:${own.port}`;
    redis = new Redis(url);
    cleanUps.push(() => redis.quit());
    vi.stubEnv('REDIS_URL', url);
    await mkdir(join(ROOT, '.tmp'), { recursive: true });
    folder = await mkdtemp(join(ROOT, '.tmp', 'bullmq-polling-'));
    cleanUps.push(() => rm(folder, { recursive: true }));
    await writeFile(join(folder, 'short-locks.ts'), WORKER);
    const polls = await import(join(EXAMPLE, 'polls.ts'));
    startPolling = polls.startPolling;
    queue = polls.pollQueue();
    cleanUps.push(() => queue.close());
  });
  beforeEach(() => redis.flushdb());
  afterEach(() => processes.killAll());
  afterAll(async () => {
    vi.unstubAllEnvs();
    for (const cleanUp of cleanUps.reverse()) await cleanUp();
  });

  /** Starts a service whose trackers are due now. */
  async function startService(trackers: number) {
    const { trackerIds, env, count } = await processes.startService(trackers, LIMIT);
    await Promise.all(trackerIds.map((id) => startPolling(queue, id, Date.now())));
    const startWorker = (file: string, ...args: readonly string[]) =>
      processes.startWorker(folder, { ...env, REDIS_URL: url }, file, ...args);
    return { startWorker, count, trackerIds };
  }

  const waitFor = (check: () => Promise<void>) => vi.waitFor(check, { timeout: 120_000, interval: 50 });

  it.each([2, 3])(
    '2,000 trackers, %d workers, one is killed → every event is handled, twice only where the kill forces it, no 429',
    async (workers) => {
      const { startWorker, count, trackerIds } = await startService(2_000);
      const [killed, ...others] = await Promise.all(
        Array.from({ length: workers }, (_, index) => startWorker('short-locks.ts', `worker-${index}`)),
      );
      await waitFor(async () => expect(await redis.llen('calls')).toBeGreaterThan(600));
      await killed?.end('SIGKILL');
      await waitFor(async () => {
        const { active, waiting, delayed } = await queue.getJobCounts('active', 'waiting', 'delayed');
        // The next poll of each tracker that is not stopped.
        expect([active, waiting, delayed]).toEqual([0, 0, (trackerIds.length * 3) / 4]);
      });
      for (const { end, lines } of others)
        expect([await end('SIGTERM'), lines], lines.join('\n')).toEqual([0, []]);
      expect(await queue.getJobSchedulersCount()).toBe((trackerIds.length * 3) / 4);
      const calls = new Map<string, string[]>();
      for (const line of await redis.lrange('calls', 0, -1)) {
        const [key = '', worker = ''] = line.split(' ');
        calls.set(key, [...(calls.get(key) ?? []), worker]);
      }
      expect(calls.size).toBe(2 * trackerIds.length);
      expectRepeatsOfKillOnly([...calls.values()], 'worker-0', CONCURRENCY);
      const { refused, polls } = await count();
      expect(refused).toBe(0);
      expect(Object.keys(polls).toSorted()).toEqual(trackerIds.toSorted());
    },
    TIMEOUT_MS,
  );

  it(
    'worker.ts as it stands → each event is reported once, a tracker that is gone is polled no more; SIGTERM, exit code 0',
    async () => {
      const { startWorker, trackerIds } = await startService(4);
      await startPolling(queue, 'gone', Date.now());
      const { lines, end } = await startWorker(join(EXAMPLE, 'worker.ts'));
      await waitFor(async () => expect(await queue.getJobSchedulersCount()).toBe(3));
      await waitFor(async () =>
        expect(lines.filter((line) => line.startsWith('new event '))).toHaveLength(8),
      );
      expect(await end('SIGTERM')).toBe(0);
      const news = lines.filter((line) => line.startsWith('new event '));
      expect(new Set(news).size).toBe(2 * trackerIds.length);
      expect(await queue.getJobCounts('failed', 'delayed')).toEqual({ failed: 1, delayed: 3 });
    },
    TIMEOUT_MS,
  );
});
