// The supervisor starts several of these workers for one account. Each imports some of the trackers and receives webhooks, and
// all share the limit and the handled events through Redis.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Redis } from 'ioredis';
import { TrackingClient } from 'tracking-client';
import { RedisDedupeStore, RedisLimiter } from 'tracking-client/redis';
import { createWebhookHandler, toNodeHandler } from 'tracking-client/webhooks';
import type { SupervisorMessage, WorkerMessage, WorkerTask } from './messages.ts';

// The supervisor writes this argument.
const task = JSON.parse(process.argv[2] ?? '') as WorkerTask;
const tell = (message: WorkerMessage) => process.send?.(message);
const redis = new Redis(task.redisUrl);
// Without a listener, ioredis prints each error with its stack.
redis.on('error', (error) => console.error(error.message));

// All workers share the limit of the account.
const limiter = new RedisLimiter({ redis, keyPrefix: `${task.keyPrefix}limit:`, processes: task.workers });
let requests = 0;
let refused = 0;
let slow = 0;
const client = new TrackingClient({
  baseUrl: task.baseUrl,
  apiKey: task.apiKey,
  limiter,
  hooks: {
    onRequest: () => {
      requests += 1;
    },
    onRateLimit: () => {
      refused += 1;
    },
    onResponse: ({ durationMs }) => {
      if (durationMs > 500) slow += 1;
    },
  },
});

// Each event is handled by only one of the workers.
let events = 0;
const webhooks = createWebhookHandler({
  secret: task.secret,
  store: new RedisDedupeStore({ redis, keyPrefix: `${task.keyPrefix}event:` }),
  onEvent: () => {
    events += 1;
  },
});
const server = createServer(toNodeHandler(webhooks));

async function importTrackers(): Promise<void> {
  let created = 0;
  const inputs = task.trackingNumbers.map((trackingNumber) => ({ trackingNumber }));
  for await (const outcome of client.trackers.createMany(inputs, { chunkSize: 50 })) {
    if (outcome.status !== 'created') continue;
    created += 1;
    // A tenth of the parcels are delivered while the import goes on.
    if (created % 10 === 0) tell({ kind: 'created', trackingNumbers: [outcome.input.trackingNumber] });
  }
  tell({ kind: 'imported', created, requests, refused, slow });
}

process.on('message', (message: SupervisorMessage) => {
  if (message === 'import') void importTrackers();
  else tell({ kind: 'handled', events });
});
// When the supervisor ends or crashes, its workers end, too.
process.on('disconnect', () => process.exit(0));

server.listen(0, '127.0.0.1');
await once(server, 'listening');
// A server that listens on TCP has an address of this form.
tell({ kind: 'listening', url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/webhooks` });
