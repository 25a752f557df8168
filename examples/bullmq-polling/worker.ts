// Polls trackers with a job of BullMQ for each of them, for servers that cannot receive webhooks. Start any number of these workers.
// BullMQ adds a job for each tracker every 15 minutes, gives it to one of the workers, and tries it again if it fails. The inbox
// handles each event once, and the limiter shares the rate limit among all workers. If a worker dies, its jobs run again, so make
// your work safe to run twice. BullMQ and RedisDedupeStore need a Redis with `maxmemory-policy noeviction`. Needs TRACKING_BASE_URL,
// TRACKING_API_KEY and REDIS_URL. Call `startPolling` of polls.ts for each tracker that you create.
// Run: npx tsx examples/bullmq-polling/worker.ts
import { Redis } from 'ioredis';
import { TrackingClient } from 'tracking-client';
import { RedisDedupeStore, RedisLimiter } from 'tracking-client/redis';
import { WebhookInbox } from 'tracking-client/webhooks';
import { pollQueue, pollWorker } from './polls.ts';

const redis = new Redis(process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379').on('error', console.error);
const queue = pollQueue();
let maxLagMs = 0;
const worker = pollWorker({
  queue,
  client: new TrackingClient({ limiter: new RedisLimiter({ redis, processes: 3 }) }), // three workers
  inbox: new WebhookInbox({ store: new RedisDedupeStore({ redis }) }),
  callbacks: { onEvent: (_event, { key }) => console.log('new event', key) }, // your own work
  onLag: (ms) => {
    maxLagMs = Math.max(maxLagMs, ms);
  },
});
worker.on('failed', (job, error) => console.error(job?.data.trackerId, error));
setInterval(() => {
  console.log(`polls start at most ${(maxLagMs / 1000).toFixed(1)} s late`);
  maxLagMs = 0;
}, 60_000).unref();

for (const name of ['SIGTERM', 'SIGINT'] as const)
  process.once(name, async () => {
    await worker.close(); // the running jobs end first
    await queue.close();
    redis.disconnect();
  });
