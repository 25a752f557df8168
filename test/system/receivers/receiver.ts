/** One receiver process of a fleet: real HTTP, real inbox, real store, and a journal of what happened. */
import { openSync, writeSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { PostgresDedupeStore } from '../../../src/postgres/index.ts';
import { type RedisClient, RedisDedupeStore } from '../../../src/redis/index.ts';
import {
  createWebhookHandler,
  type DedupeStore,
  MemoryDedupeStore,
  toNodeHandler,
  type WebhookHandlerOptions,
  WebhookInbox,
} from '../../../src/webhooks/index.ts';
import { inTransaction } from '../in-transaction.ts';
import { type Listening, type ReceiverConfig, SECRET } from './receiver-config.ts';

/** Longer than a stall of a busy machine, but short, because the events of a killed receiver wait until their lease ends. */
const LEASE_MS = 4_000;
/** Shorter than the lease, so that webhooks with events of a killed receiver get a 503 for a while. */
const BUSY_TIMEOUT_MS = 500;
const MAX_HANDLER_MS = 4;

// The fleet writes this argument with `JSON.stringify` of a `ReceiverConfig`.
const config = JSON.parse(process.argv[2] ?? '') as ReceiverConfig;
const journal = openSync(config.journal, 'a');

/** Written at once to the file, so that a SIGKILL right after cannot take it back. */
function note(what: 'handled' | 'committed', key: string): void {
  writeSync(journal, `${what} ${key}\n`);
}

/** Waits up to half of `MAX_HANDLER_MS`; a callback waits once before its effect and once after it. */
async function work(): Promise<void> {
  await sleep((Math.random() * MAX_HANDLER_MS) / 2);
}

/** Makes an inbox wait for busy events for less time than the handler allows. */
function shortenWaits(inbox: WebhookInbox): NonNullable<WebhookHandlerOptions['inbox']> {
  return {
    process: (payload, callbacks, options) =>
      inbox.process(payload, callbacks, { ...options, busyTimeoutMs: BUSY_TIMEOUT_MS }),
  };
}

function createHandler(store: DedupeStore) {
  const noting: DedupeStore = {
    claim: (keys, options) => store.claim(keys, options),
    release: (keys, options) => store.release(keys, options),
    commit: async (keys, options) => {
      await store.commit(keys, options);
      for (const key of keys) note('committed', key);
    },
  };
  return createWebhookHandler({
    inbox: shortenWaits(new WebhookInbox({ store: noting, leaseMs: LEASE_MS })),
    secret: SECRET,
    onEvent: async (_, { key }) => {
      await work();
      note('handled', key);
      await work();
    },
  });
}

/** The events of each process are in its own memory, so only the unique key keeps other processes from writing them again. */
function createTransactionHandler(pool: pg.Pool) {
  return createWebhookHandler({
    inbox: shortenWaits(new WebhookInbox({ store: new MemoryDedupeStore() })),
    secret: SECRET,
    onEvent: (_, { key }) =>
      inTransaction(pool, async (transaction) => {
        await work();
        const insert = `INSERT INTO ${config.namespace}.handled_events VALUES ($1) ON CONFLICT DO NOTHING`;
        const { rowCount } = await transaction.query(insert, [key]);
        if (rowCount === 0) return;
        note('handled', key);
        await transaction.query(`INSERT INTO ${config.namespace}.effects (key) VALUES ($1)`, [key]);
        await work();
      }),
  });
}

/**
 * The receiver that many programs write: it marks an event as known, and then works on it. The event is lost if the process
 * ends in between.
 */
function createByHand(markIfNew: (key: string) => Promise<boolean>): RequestListener {
  return async (request, response) => {
    if (request.headers.authorization !== `Bearer ${SECRET}`) return void response.writeHead(401).end();
    let body = '';
    for await (const chunk of request.setEncoding('utf8')) body += chunk;
    // The sender of the fleet writes all bodies, so their type is known.
    const { trackings } = JSON.parse(body) as {
      trackings: { tracker: { trackerId: string }; events: { eventId: string }[] }[];
    };
    for (const { tracker, events } of trackings) {
      for (const { eventId } of events) {
        const key = `tracking/events:${tracker.trackerId}:${eventId}`;
        if (!(await markIfNew(key))) continue;
        await work();
        note('handled', key);
        await work();
      }
    }
    response.end('{"success":true}');
  };
}

// Each receiver loads only the driver that it uses, because a fleet starts several of them on few cores.
async function connectIoredis() {
  return new (await import('ioredis')).Redis(config.serviceUrl).on('error', console.error);
}

async function connectRedis(): Promise<RedisClient> {
  if (config.inbox === 'ioredis') return connectIoredis();
  return (await import('redis'))
    .createClient({ url: config.serviceUrl })
    .on('error', console.error)
    .connect();
}

async function openListener(): Promise<RequestListener> {
  const { inbox, serviceUrl, namespace } = config;
  if (inbox === 'redis by hand') {
    const redis = await connectIoredis();
    return createByHand(async (key) => (await redis.set(namespace + key, 1, 'EX', 2_592_000, 'NX')) === 'OK');
  }
  if (inbox === 'redis' || inbox === 'ioredis') {
    const store = new RedisDedupeStore({ redis: await connectRedis(), keyPrefix: namespace });
    return toNodeHandler(createHandler(store));
  }
  const { default: driver } = await import('pg');
  const pool = new driver.Pool({ connectionString: serviceUrl, max: 8, query_timeout: 4_000 }).on(
    'error',
    console.error,
  );
  if (inbox === 'postgres by hand') {
    const insert = `INSERT INTO ${namespace}.handled_events VALUES ($1) ON CONFLICT DO NOTHING`;
    return createByHand(async (key) => (await pool.query(insert, [key])).rowCount === 1);
  }
  if (inbox === 'transaction') return toNodeHandler(createTransactionHandler(pool));
  return toNodeHandler(createHandler(new PostgresDedupeStore({ pool, table: `${namespace}.inbox` })));
}

const server = createServer(await openListener());
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo; // A server that listens on a TCP port has such an address.
  process.send?.({ port } satisfies Listening);
});
// The receiver exits when its fleet ends or dies.
process.on('disconnect', () => process.exit(0));
