/** One receiver of the soak: real HTTP, an inbox on each store, and calls of its own through the shared limiter. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { PostgresDedupeStore, TransactionalInbox } from '../../src/postgres/index.ts';
import { type RedisClient, RedisDedupeStore } from '../../src/redis/index.ts';
import {
  createWebhookHandler,
  type DedupeStore,
  toNodeHandler,
  WebhookInbox,
} from '../../src/webhooks/index.ts';
import { answerCommands, count, keepCalling, makeClient, note, task, tell } from './member.ts';
import { INBOXES, type InboxName, LEASE_MS } from './messages.ts';

const BUSY_BUDGET_MS = 500;
const HANDLER_MS = 4;
const CALL_EVERY_MS = 200;

const { secret, schema } = task;
const table = `${schema}.inbox`;
const redis = await connectRedis();
const pool = connectPostgres();
const transactionPool = connectPostgres();
// What the store did not do is in the journals; a line for each of thousands of errors helps nobody.
const common = { busyTimeoutMs: BUSY_BUDGET_MS, onError: () => {} };

const handlers = {
  redis: storeHandler('redis', new RedisDedupeStore({ redis: redis.client })),
  postgres: storeHandler('postgres', new PostgresDedupeStore({ pool: pool, table })),
  transactional: createWebhookHandler({
    secret,
    inbox: new TransactionalInbox({
      ...common,
      pool: transactionPool,
      table: `${schema}.transactional_inbox`,
    }),
    onEvent: async (_, { key, transaction }) => {
      await work();
      await transaction.query(`INSERT INTO ${schema}.effects (key) VALUES ($1)`, [key]);
      count('transactional');
      await work();
    },
  }),
};

function storeHandler(name: InboxName, store: DedupeStore) {
  const noting: DedupeStore = {
    claim: (keys, options) => store.claim(keys, options),
    release: (keys, options) => store.release(keys, options),
    commit: async (keys, options) => {
      await store.commit(keys, options);
      for (const key of keys) note('committed', name, key);
    },
  };
  return createWebhookHandler({
    secret,
    inbox: new WebhookInbox({ ...common, store: noting, leaseMs: LEASE_MS }),
    onEvent: async (_, { key }) => {
      await work();
      note('handled', name, key);
      count(name);
      await work();
    },
  });
}

/** Half of a handler's time, before or after its effect. */
async function work(): Promise<void> {
  await sleep((Math.random() * HANDLER_MS) / 2);
}

// Every other receiver has the other client.
async function connectRedis(): Promise<{ client: RedisClient; close(): Promise<unknown> }> {
  if (Number(task.name.at(-1)) % 2 === 0) {
    const { Redis } = await import('ioredis');
    const client = new Redis(task.redisUrl);
    client.on('error', () => {});
    return { client, close: () => client.quit() };
  }
  const { createClient } = await import('redis');
  const client = createClient({ url: task.redisUrl });
  client.on('error', () => {});
  await client.connect();
  return { client, close: () => client.close() };
}

function connectPostgres(): pg.Pool {
  const { postgresUrl: connectionString, applicationName: application_name } = task;
  const opened = new pg.Pool({ connectionString, application_name, max: 4 });
  // An idle connection that is ended would end the process.
  opened.on('error', () => {});
  return opened;
}

const routes = Object.fromEntries(INBOXES.map((name) => [`/${name}`, toNodeHandler(handlers[name])]));
const server = createServer((request, response) => routes[request.url ?? '']?.(request, response));
server.listen(0, '127.0.0.1');
await once(server, 'listening');

const calling = new AbortController();
const calls = keepCalling(makeClient(redis.client), CALL_EVERY_MS, calling.signal);
answerCommands({
  close: async () => {
    calling.abort();
    await calls;
    await Promise.all(INBOXES.map((name) => handlers[name].close()));
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await Promise.all([closed, redis.close(), pool.end(), transactionPool.end()]);
  },
});
const { port } = server.address() as AddressInfo; // A server that listens on a TCP port has such an address.
tell({ kind: 'ready', url: `http://127.0.0.1:${port}` });
