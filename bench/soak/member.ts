/** `members.ts` forks this program for the poller and for each receiver of the soak. */
import { once } from 'node:events';
import { openSync, writeSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { getHeapCodeStatistics } from 'node:v8';
import { Redis } from 'ioredis';
import pg from 'pg';
import { isTrackingError, TrackingClient } from '../../src/index.ts';
import { PostgresDedupeStore } from '../../src/postgres/index.ts';
import { RedisDedupeStore, RedisLimiter } from '../../src/redis/index.ts';
import {
  createWebhookHandler,
  type DedupeStore,
  MemoryDedupeStore,
  toNodeHandler,
  WebhookInbox,
} from '../../src/webhooks/index.ts';
import { shiftWallClock } from '../fleet/shift-clock.ts';
import { usedHeapBytes } from '../heap.ts';
import {
  type HeapUse,
  INBOXES,
  type InboxName,
  type MemberMessage,
  type MemberTask,
  pick,
  type Replies,
  SENT_AT_HEADER,
  steadyNow,
  TOTAL_TIMEOUT_MS,
} from './task.ts';

const TICK_MS = 100;
const POLL_EVERY_MS = 10_000;
const CALL_EVERY_MS = 200;
const TIMEOUT_MS = 3_000;
const LEASE_MS = 10_000;
const CALLBACK_MS = 4;
/** These measurements of the heap take 7 s together, which is the time from one fault to the next. */
const HEAP_LOOKS = 10;
const HEAP_LOOK_EVERY_MS = 700;

// `members.ts` passes the task as the first argument.
const task = JSON.parse(process.argv[2] ?? '') as MemberTask;
const journal = openSync(task.journal, 'a');
const redis = new Redis(task.redisUrl);
// Without a listener, ioredis prints each failed attempt to connect.
redis.on('error', () => {});
const rejected: Record<string, number> = {};
let [longestCallMs, givenUp, calls] = [0, 0, 0];
/** Number of events that the inbox in memory has handled, whose keys it remembers. */
let rememberedKeys = 0;

/** Writes a line before it returns, so that a SIGKILL right after cannot lose the line. */
function note(...words: readonly string[]): void {
  writeSync(journal, `${steadyNow().toFixed(1)} ${words.join(' ')}\n`);
}

function send(message: MemberMessage): void {
  // Sending fails once the soak is interrupted; the `disconnect` event then ends this process.
  process.send?.(message, () => {});
}

function openClient(): TrackingClient {
  const { baseUrl, limitPerSecond, processes, schema: keyPrefix } = task;
  const logger = { debug() {}, info() {}, warn() {}, error() {} };
  return new TrackingClient({
    baseUrl,
    apiKey: 'key-of-the-soak',
    limiter: new RedisLimiter({
      redis,
      keyPrefix,
      processes,
      limits: { 'trackers.results': limitPerSecond },
      logger,
    }),
    timeoutMs: TIMEOUT_MS,
    logger,
    fetch: (url, init) => {
      const headers = { ...init.headers, [SENT_AT_HEADER]: String(steadyNow()) };
      return fetch(url, { ...init, headers });
    },
  });
}

/** Polls all trackers through one stream. */
function startPolling(client: TrackingClient) {
  const polls = client.trackers.pollMany(task.trackerIds, {
    intervalMs: POLL_EVERY_MS,
    initialDelayMs: 0,
    concurrency: 50,
  });
  let drain: { readonly left: Set<string>; readonly done: () => void } | undefined;
  const read = async () => {
    for await (const { id, error, newEvents } of polls) {
      if (error === undefined) calls += 1;
      else givenUp += 1;
      for (const { eventId } of newEvents ?? []) note('polled', `${id}:${eventId}`);
      drain?.left.delete(id);
      if (drain?.left.size === 0) drain.done();
    }
  };
  const reading = read();
  return {
    url: '',
    drain: () =>
      new Promise<void>((done) => {
        drain = { left: new Set(task.trackerIds), done };
      }),
    close: async () => {
      await polls.return();
      await reading;
    },
  };
}

/** Receives webhooks over HTTP with an inbox on each store, and also makes calls. */
async function startReceiving(client: TrackingClient) {
  const { postgresUrl: connectionString, schema } = task;
  const openPool = () => {
    const pool = new pg.Pool({ connectionString, application_name: schema, max: 4, query_timeout: 4_000 });
    // Without these listeners, the end of an idle or a borrowed connection would end the process.
    pool.on('error', () => {});
    pool.on('connect', (connection) => connection.on('error', () => {}));
    return pool;
  };
  const [pool, transactionPool] = [openPool(), openPool()];
  // Ignore errors of the stores, because the audit finds every event that was lost or handled twice.
  const onError = () => {};
  const work = () => sleep((Math.random() * CALLBACK_MS) / 2);
  const handleWith = (name: InboxName, store: DedupeStore) =>
    createWebhookHandler({
      secret: task.secret,
      inbox: new WebhookInbox({ store, leaseMs: LEASE_MS, onError }),
      onEvent: async (_, { key }) => {
        await work();
        note('handled', name, key);
        await work();
      },
    });
  const handlers = {
    redis: handleWith('redis', new RedisDedupeStore({ redis, keyPrefix: schema })),
    postgres: handleWith('postgres', new PostgresDedupeStore({ pool, table: `${schema}.inbox` })),
    // The memory is lost with the process, so only the unique key keeps an event from being written again.
    transactional: createWebhookHandler({
      secret: task.secret,
      inbox: new WebhookInbox({ store: new MemoryDedupeStore(), onError }),
      onEvent: async (_, { key }) => {
        const transaction = await transactionPool.connect();
        try {
          await transaction.query('BEGIN');
          await work();
          const insert = `INSERT INTO ${schema}.handled_events VALUES ($1) ON CONFLICT DO NOTHING`;
          const { rowCount } = await transaction.query(insert, [key]);
          if (rowCount !== 0) await transaction.query(`INSERT INTO ${schema}.effects VALUES ($1)`, [key]);
          await work();
          await transaction.query('COMMIT');
          transaction.release();
          rememberedKeys += 1;
        } catch (error) {
          transaction.release(true);
          throw error;
        }
      },
    }),
  };
  const routes = Object.fromEntries(INBOXES.map((name) => [`/${name}`, toNodeHandler(handlers[name])]));
  const server = createServer((request, response) => routes[request.url ?? '']?.(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo; // A server that listens on TCP has an address with a port.

  const calling = new AbortController();
  const keepingOn = keepCalling(client, calling.signal);
  return {
    url: `http://127.0.0.1:${port}`,
    drain: async () => {},
    close: async () => {
      calling.abort();
      await keepingOn;
      await Promise.all(INBOXES.map((name) => handlers[name].close()));
      server.close();
      server.closeAllConnections();
      await Promise.all([pool.end(), transactionPool.end()]);
    },
  };
}

async function keepCalling(client: TrackingClient, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const id = pick(task.trackerIds) ?? '';
    const startedAt = performance.now();
    try {
      await client.trackers.results(id, { totalTimeoutMs: TOTAL_TIMEOUT_MS });
      calls += 1;
    } catch (error) {
      const name = isTrackingError(error) ? error.name : `not of this package: ${String(error)}`;
      rejected[name] = (rejected[name] ?? 0) + 1;
    }
    longestCallMs = Math.max(longestCallMs, performance.now() - startedAt);
    await sleep(CALL_EVERY_MS);
  }
}

/** Returns the least of several measurements of the heap, because the number of calls under way varies. */
async function measureHeap(): Promise<HeapUse> {
  let least: HeapUse = { objects: Number.POSITIVE_INFINITY, code: 0, keys: 0 };
  for (let look = 0; look < HEAP_LOOKS; look += 1) {
    const bytes = await usedHeapBytes();
    const { code_and_metadata_size: machineCode, bytecode_and_metadata_size: bytecode } =
      getHeapCodeStatistics();
    const code = machineCode + bytecode;
    if (bytes - code < least.objects) least = { objects: bytes - code, code, keys: rememberedKeys };
    await sleep(HEAP_LOOK_EVERY_MS);
  }
  return least;
}

const client = openClient();
const work = task.role === 'poller' ? startPolling(client) : await startReceiving(client);
const ticking = setInterval(() => {
  if (calls > 0) send({ kind: 'calls', count: calls });
  calls = 0;
}, TICK_MS);

const commands: { readonly [Kind in keyof Replies]: (argument: number) => Promise<Replies[Kind]> } = {
  heap: measureHeap,
  shift: async (byMs) => {
    shiftWallClock(byMs);
    return null;
  },
  drain: async () => {
    await work.drain();
    return null;
  },
  finish: async () => {
    await work.close();
    await redis.quit();
    clearInterval(ticking);
    return { rejected, longestCallMs, givenUp };
  },
};
process.on('message', async ({ command, argument }: { command: keyof Replies; argument: number }) => {
  send({ kind: 'reply', command, value: await commands[command](argument) });
  if (command !== 'finish') return;
  // From here on, only a leaked handle keeps the process alive.
  process.removeAllListeners('disconnect');
  process.disconnect();
});
// An interrupted soak must leave no process behind.
process.on('disconnect', () => process.exit(1));
send({ kind: 'ready', url: work.url });
