// Shows four processes that share one account through Redis. Together they import 600 trackers exactly as fast as the limit
// allows, and handle every webhook event once, although each event comes three times, in most cases to different processes.
// Copy worker.ts into your app. Needs Redis, but no API key. Run: npx tsx examples/fleet/supervisor.ts
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import pc from 'picocolors';
import { createFakeTrackingService, createWebhookSender } from 'tracking-client/testing';
import type { SupervisorMessage, WorkerMessage, WorkerTask } from './messages.ts';

const WORKERS = 4;
const TRACKERS = 600;
const secret = 'whsec-example';
const redisUrl = process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379';
const keyPrefix = `example:fleet:${process.pid}:`;

const redis = new Redis(redisUrl, { lazyConnect: true, retryStrategy: () => null });
redis.on('error', () => {}); // `connect` below reports the same error
try {
  await redis.connect();
} catch {
  console.log(`No Redis answers at ${new URL(redisUrl).host}; set REDIS_URL to run this example.`);
  process.exit(process.env['CI'] === 'true' ? 1 : 0);
}

const fake = createFakeTrackingService({ resultsDelayMs: 0, limitWindow: 'sliding' });
await using service = await fake.listen();
console.log(`A fake tracking service listens on ${service.url}; it allows 3 bulk requests per second.`);

/** Waits for the next message of one kind. */
function nextMessage<Kind extends WorkerMessage['kind']>(
  worker: ChildProcess,
  kind: Kind,
): Promise<Extract<WorkerMessage, { kind: Kind }>> {
  return new Promise((resolve, reject) => {
    worker.on('message', (message: WorkerMessage) => {
      // This type is right: `kind` identifies it.
      if (message.kind === kind) resolve(message as Extract<WorkerMessage, { kind: Kind }>);
    });
    worker.once('exit', (code) => reject(new Error(`A worker ended with code ${code}`)));
  });
}

function startWorker(index: number): ChildProcess {
  const task: WorkerTask = {
    ...{ baseUrl: service.url, apiKey: fake.apiKey, secret, redisUrl, keyPrefix, workers: WORKERS },
    trackingNumbers: Array.from({ length: TRACKERS / WORKERS }, (_, n) => `FLEET${index}X${10_000 + n}`),
  };
  const script = fileURLToPath(new URL('./worker.ts', import.meta.url));
  return fork(script, [JSON.stringify(task)], { execArgv: ['--import', 'tsx'] });
}

const workers = Array.from({ length: WORKERS }, (_, index) => startWorker(index));
const urls = (await Promise.all(workers.map((worker) => nextMessage(worker, 'listening')))).map(
  ({ url }) => url,
);
console.log(`${WORKERS} workers are ready; each imports ${TRACKERS / WORKERS} trackers.\n`);

// Each webhook is sent three times, and webhooks that are due at the same time are shuffled. The workers get the requests in turn.
let next = 0;
let delivered = 0;
const sender = createWebhookSender({
  ...{ fake, secret, duplicates: 2, shuffle: true, concurrency: 8, until2xx: true },
  target: async (request) => {
    next += 1;
    const { method, headers } = request;
    return await fetch(urls[next % WORKERS] ?? '', { method, headers, body: await request.arrayBuffer() });
  },
  onSent: ({ succeeded }, pushes) => {
    if (!succeeded) return;
    for (const { item } of pushes) delivered += 'events' in item ? item.events.length : 0;
  },
});
const stopSending = sender.start();

const startedAt = performance.now();
const imports = workers.map(async (worker, index) => {
  worker.on('message', (message: WorkerMessage) => {
    if (message.kind !== 'created') return;
    for (const number of message.trackingNumbers) {
      fake.play(number, 'delivered', { speed: Number.POSITIVE_INFINITY });
    }
  });
  const imported = nextMessage(worker, 'imported');
  worker.send('import' satisfies SupervisorMessage);
  const { created, requests, refused, slow } = await imported;
  const perSecond = (1_000 * requests) / (performance.now() - startedAt);
  const rate = `${perSecond.toFixed(2)} requests/s`;
  console.log(`  worker ${index}: ${created} trackers, ${requests} requests, ${rate}, ${refused} times 429`);
  return { created, requests, refused, slow };
});
const results = await Promise.all(imports);
const seconds = (performance.now() - startedAt) / 1_000;
const sum = (key: keyof (typeof results)[number]) =>
  results.reduce((total, result) => total + result[key], 0);
const rate = pc.green(`${(sum('requests') / seconds).toFixed(2)} requests/s`);
console.log(
  `  in sum:   ${sum('created')} trackers, ${sum('requests')} requests, ${rate}, ${sum('refused')} times 429`,
);
// This can happen on a busy machine. The token of a slow request may come back too early, and the service may then refuse this
// request or a later one.
if (sum('slow') > 0) console.log(`  ${sum('slow')} of the requests took more than half a second`);

await stopSending();
await sender.flush();
let handled = 0;
for (const worker of workers) {
  const message = nextMessage(worker, 'handled');
  worker.send('finish' satisfies SupervisorMessage);
  handled += (await message).events;
}
console.log(
  `\n${delivered} events were delivered: ${pc.green(`${handled} handled`)}, ${delivered - handled} duplicates refused.`,
);

for (const worker of workers) {
  worker.removeAllListeners('exit');
  worker.disconnect();
}
for await (const keys of redis.scanStream({ match: `${keyPrefix}*`, count: 1_000 })) {
  if (keys.length > 0) await redis.del(...keys);
}
redis.disconnect();
