// docs/recipes/exactly-once.md with each library that it shows: the callback inserts the key of its event in the transaction of
// its own writes.
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { bundled } from '../../scripts/support/bundled.ts';
import { makePool } from '../integration/postgres-schema.ts';
import { describeWithAnyPostgres, describeWithPostgres } from '../integration/services.ts';
import { createDatabase, type TestDatabase } from '../integration/test-database.ts';
import { recipeFiles, writeRecipe } from '../readme/support/recipes.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SECRET = 'whsec-exactly-once';

type Webhooks = (request: Request) => Promise<Response>;

/** A program with the handler of the page for `pg`, and one for each other library, with its `doOnce` and an update of its own. */
const LIBRARIES = {
  pg: `import { openPool } from './src/database.ts';
import { orderWebhooks } from './src/webhooks.ts';
const pool = openPool();
export const receive = () => orderWebhooks(pool);
export const close = () => pool.end();`,
  drizzle: withOwnUpdate(
    `import { eq, sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import { integer, pgTable, text } from 'drizzle-orm/pg-core';
import { doOnce } from './src/do-once-drizzle.ts';
const db = drizzle(process.env.DATABASE_URL);
const orders = pgTable('orders', { id: text(), eventCount: integer('event_count') });
export const close = () => db.$client.end();`,
    "transaction.update(orders).set({ eventCount: sql.raw('event_count + 1') }).where(eq(orders.id, id))",
  ),
  knex: withOwnUpdate(
    `import knex from 'knex';
import { doOnce } from './src/do-once-knex.ts';
const db = knex({ client: 'pg', connection: process.env.DATABASE_URL });
export const close = () => db.destroy();`,
    "transaction('orders').where({ id }).increment('event_count', 1)",
  ),
  kysely: withOwnUpdate(
    `import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import { doOnce } from './src/do-once-kysely.ts';
const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 4 });
const db = new Kysely({ dialect: new PostgresDialect({ pool }) });
export const close = () => pool.end();`,
    "transaction.updateTable('orders').where('id', '=', id).set((row) => ({ event_count: row('event_count', '+', 1) })).execute()",
  ),
  typeorm: withOwnUpdate(
    `import { DataSource } from 'typeorm';
import { doOnce } from './src/do-once-typeorm.ts';
const db = await new DataSource({ type: 'postgres', url: process.env.DATABASE_URL }).initialize();
export const close = () => db.destroy();`,
    "transaction.createQueryBuilder().update('orders').set({ event_count: () => 'event_count + 1' }).where({ id }).execute()",
  ),
} as const;

function withOwnUpdate(setUp: string, update: string): string {
  return `import { createWebhookHandler, MemoryDedupeStore } from 'tracking-client/webhooks';
${setUp}
export const receive = () => createWebhookHandler({
  secret: process.env.TRACKING_WEBHOOK_SECRET,
  store: new MemoryDedupeStore(),
  onEvent: (_event, { message, key }) => {
    const id = message.tracker.clientTrackerId;
    return doOnce(db, key, async (transaction) => { await ${update}; });
  },
});
`;
}

/** A receiver with a memory of its own, which prints its port. */
const RECEIVER = `import { createServer } from 'node:http';
import { toNodeHandler } from 'tracking-client/webhooks';
import { receive } from './program.ts';
const server = createServer(toNodeHandler(receive()));
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
`;

type Library = keyof typeof LIBRARIES;
const NAMES = Object.keys(LIBRARIES) as Library[]; // an object of this file, so it has no other keys

/** A database with an order for each test, and receivers that write to it; call it at the top of a suite. */
function useShop(create: () => Promise<TestDatabase>) {
  let database: TestDatabase;
  let tables: pg.Pool;
  const folders: string[] = [];
  const closers: (() => unknown)[] = [];
  const processes: ChildProcess[] = [];
  /** An order of the test's own. */
  let orderId: string;

  beforeAll(async () => {
    database = await create();
    tables = makePool({ connectionString: database.url, max: 4 });
    // The recipe, and the processes that the tests start, read these variables.
    vi.stubEnv('DATABASE_URL', database.url);
    vi.stubEnv('TRACKING_WEBHOOK_SECRET', SECRET);
    const sql = recipeFiles('exactly-once').find(({ path }) => path === 'schema.sql')?.code ?? '';
    await tables.query(sql);
  });
  beforeEach(async () => {
    orderId = randomUUID();
    await tables.query('INSERT INTO orders (id) VALUES ($1)', [orderId]);
  });
  afterEach(() => {
    vi.restoreAllMocks();
    for (const process of processes.splice(0)) process.kill('SIGKILL');
  });
  afterAll(async () => {
    vi.unstubAllEnvs();
    for (const close of closers) await close();
    await tables.end();
    await database.drop();
    for (const folder of folders) await rm(folder, { recursive: true });
  });

  async function prepare(library: Library): Promise<string> {
    await mkdir(join(ROOT, '.tmp'), { recursive: true });
    const folder = await mkdtemp(join(ROOT, '.tmp', 'exactly-once-'));
    folders.push(folder);
    await writeRecipe('exactly-once', folder);
    await writeFile(join(folder, 'program.ts'), LIBRARIES[library]);
    await writeFile(join(folder, 'receiver.ts'), RECEIVER);
    return folder;
  }

  /** Makes receivers with a memory of their own, as other processes have. */
  async function makeReceivers(folder: string): Promise<() => Webhooks> {
    const { receive, close } = await import(join(folder, 'program.ts'));
    closers.push(close);
    return receive;
  }

  /** Starts a receiver process and returns its URL. */
  async function start(folder: string): Promise<{ url: string; process: ChildProcess }> {
    const receiver = spawn(process.execPath, [await bundled(join(folder, 'receiver.ts'))]);
    processes.push(receiver);
    let errors = '';
    receiver.stderr.on('data', (text) => {
      errors += text;
    });
    const listening = once(receiver.stdout, 'data').then(([port]) => `http://127.0.0.1:${`${port}`.trim()}/`);
    const ended = once(receiver, 'exit').then(() =>
      Promise.reject(new Error(`The receiver ended: ${errors}`)),
    );
    ended.catch(() => {});
    return { url: await Promise.race([listening, ended]), process: receiver };
  }

  /** The webhook of one event; each call makes a new delivery of the same event. */
  function buildWebhook(target = 'http://shop.test/'): Request {
    const item = {
      metadata: { generatedAt: '2026-03-10T12:00:00.000Z', topic: 'tracking/events' },
      tracker: { trackerId: orderId, clientTrackerId: orderId },
      shipment: { statusMilestone: 'in_transit' },
      events: [{ eventId: 'e1', statusMilestone: 'in_transit' }],
    };
    return new Request(target, {
      method: 'POST',
      headers: { authorization: `Bearer ${SECRET}`, 'content-type': 'application/json' },
      body: JSON.stringify({ trackings: [item] }),
    });
  }

  async function readOrder(): Promise<{ event_count: number; keys: number }> {
    const { rows } = await tables.query(
      `SELECT event_count, (SELECT count(*)::int FROM handled_events WHERE key LIKE '%' || id || '%') AS keys
FROM orders WHERE id = $1`,
      [orderId],
    );
    return rows[0];
  }

  /** Blocks the update of the order, which comes after the insert of the key. */
  async function lockOrder(): Promise<pg.PoolClient> {
    const holder = await tables.connect();
    await holder.query('BEGIN');
    await holder.query('SELECT FROM orders WHERE id = $1 FOR UPDATE', [orderId]);
    return holder;
  }

  async function waitForLock(count: number): Promise<void> {
    const waiting = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query ILIKE $1`;
    await vi.waitFor(async () => {
      const updates = await tables.query(waiting, ['update%orders%']);
      const inserts = await tables.query(waiting, ['insert%handled_events%']);
      expect(updates.rows.length + inserts.rows.length).toBe(count);
    }, 10_000);
  }

  return {
    prepare,
    makeReceivers,
    start,
    buildWebhook,
    readOrder,
    lockOrder,
    waitForLock,
    query: (sql: string) => tables.query(sql),
    get orderId() {
      return orderId;
    },
  };
}

await describeWithAnyPostgres('exactly-once.md on a PostgreSQL', (create) => {
  const shop = useShop(create);

  test.each(NAMES)(
    '%s: a callback that fails after its insert → nothing is written; the redelivery writes once',
    async (library) => {
      vi.spyOn(console, 'error').mockImplementation(() => {}); // the handler logs the failure
      const receiver = await shop.makeReceivers(await shop.prepare(library));
      const webhooks = receiver();
      const constraint = `refuse_${shop.orderId.slice(0, 8)}`;
      const check = `CHECK (id <> '${shop.orderId}' OR event_count = 0)`;
      await shop.query(`ALTER TABLE orders ADD CONSTRAINT ${constraint} ${check}`);
      expect((await webhooks(shop.buildWebhook())).status).toBe(500);
      expect(await shop.readOrder()).toEqual({ event_count: 0, keys: 0 });
      await shop.query(`ALTER TABLE orders DROP CONSTRAINT ${constraint}`);
      expect((await webhooks(shop.buildWebhook())).status).toBe(200);
      expect(await shop.readOrder()).toEqual({ event_count: 1, keys: 1 });
    },
  );
});

await describeWithPostgres('exactly-once.md on a PostgreSQL with several connections', (url) => {
  const shop = useShop(() => createDatabase(url));

  describe.each(NAMES)('%s', (library) => {
    let folder: string;
    let receiver: () => Webhooks;
    beforeAll(async () => {
      folder = await shop.prepare(library);
      receiver = await shop.makeReceivers(folder);
    });

    test('one event at two receivers at once, and again later → written once, each response is 200', async () => {
      const [one, two] = [receiver(), receiver()];
      const holder = await shop.lockOrder();
      const responses = [one(shop.buildWebhook()), two(shop.buildWebhook())];
      await shop.waitForLock(2);
      await holder.query('COMMIT');
      holder.release();
      const all = await Promise.all([
        ...responses,
        one(shop.buildWebhook()),
        receiver()(shop.buildWebhook()),
      ]);
      expect(all.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
      expect(await shop.readOrder()).toEqual({ event_count: 1, keys: 1 });
    });

    test('SIGKILL between insert and commit → nothing is written; the next receivers write once', async () => {
      const doomed = await shop.start(folder);
      const holder = await shop.lockOrder();
      const cutOff = expect(fetch(shop.buildWebhook(doomed.url))).rejects.toThrow();
      await shop.waitForLock(1);
      doomed.process.kill('SIGKILL');
      await cutOff;
      await holder.query('COMMIT');
      holder.release();
      await shop.waitForLock(0);
      expect(await shop.readOrder()).toEqual({ event_count: 0, keys: 0 });
      for (const next of [receiver(), receiver()]) expect((await next(shop.buildWebhook())).status).toBe(200);
      expect(await shop.readOrder()).toEqual({ event_count: 1, keys: 1 });
    });
  });
});
