// The job of docs/recipes/reconcile.md and a receiver as processes of their own, on a fake service in this process.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import type pg from 'pg';
import { TrackingClient } from 'tracking-client';
import { createFakeTrackingService, type FakeTrackingService } from 'tracking-client/testing';
import { buildEventKey } from 'tracking-client/webhooks';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import { bundled } from '../../scripts/support/bundled.ts';
import { makePool } from '../integration/postgres-schema.ts';
import { makeRecipeFolder } from '../integration/recipe-folder.ts';
import { findFreePort } from '../integration/redis-limiter/own-redis.ts';
import { describeWithPostgres } from '../integration/services.ts';
import { createDatabase } from '../integration/test-database.ts';
import { listening } from '../integration/webhook-loopback.ts';
import { recipeFiles } from '../readme/support/recipes.ts';
import { deferred } from '../support/deferred.ts';

/** Several starts of programs can take long on a busy machine. */
const TIMEOUT_MS = 120_000;
const SECRET = 'whsec-reconcile';
/** A delivery, and a scan that the courier noted after it. */
const LATE_SCAN = [
  { eventId: 'e1', statusMilestone: 'in_transit', occurrenceDatetime: '2026-03-10T09:30' },
  { eventId: 'e2', statusMilestone: 'delivered', occurrenceDatetime: '2026-03-10T14:02' },
  { eventId: 'e3', statusMilestone: 'out_for_delivery', occurrenceDatetime: '2026-03-10T14:07' },
] as const;

/** The receiver of postgres.md. */
const SERVER = `import { createServer } from 'node:http';
import { toNodeHandler } from 'tracking-client/webhooks';
import { openPool } from './database.ts';
import { orderWebhooks } from './orders.ts';
const pool = openPool();
const webhooks = orderWebhooks(pool);
const server = createServer(toNodeHandler(webhooks)).listen(process.env.PORT);
process.once('SIGTERM', async () => {
  await webhooks.close();
  server.close(() => pool.end());
  setTimeout(() => server.closeAllConnections(), 2_000).unref();
});
`;

type Push = ReturnType<FakeTrackingService['webhooks']['take']>[number]['item'];

interface Program {
  /** What the program has printed. */
  readonly lines: readonly string[];
  /** Resolves to the exit code. */
  readonly closed: Promise<number | null>;
  /** Sends a signal, and resolves to the exit code. */
  end(signal: NodeJS.Signals): Promise<number | null>;
}

const waitFor = (check: () => Promise<void>) => vi.waitFor(check, { timeout: 30_000, interval: 10 });

await describeWithPostgres('reconcile.md on a real PostgreSQL', (postgresUrl) => {
  const programs = new Map<string, string>();
  const running: ChildProcess[] = [];
  const cleanUps: (() => unknown)[] = [];
  let env: NodeJS.ProcessEnv;
  let tables: pg.Pool;
  let fake: FakeTrackingService;
  let client: TrackingClient;
  let removeFolder: () => Promise<void>;

  beforeAll(async () => {
    const { folder, remove } = await makeRecipeFolder('reconcile');
    removeFolder = remove;
    await writeFile(join(folder, 'src/server.ts'), SERVER);
    for (const name of ['server', 'reconcile'])
      programs.set(name, await bundled(join(folder, `src/${name}.ts`)));
  });
  afterAll(() => removeFolder());
  beforeEach(async () => {
    const { url, drop } = await createDatabase(postgresUrl);
    tables = makePool({ connectionString: url });
    cleanUps.push(drop, () => tables.end());
    const files = recipeFiles('reconcile');
    for (const name of ['schema.sql', 'stopped.sql'])
      await tables.query(files.find(({ path }) => path === name)?.code ?? expect.fail(`Expected ${name}`));
    // A client sends at most five times the usual limit, which is less than this limit.
    const limits = { 'trackers.results': 1_000, 'trackers.create': 1_000 };
    fake = createFakeTrackingService({ resultsDelayMs: 0, limits });
    const { baseUrl, apiKey, fetch } = fake;
    client = new TrackingClient({ baseUrl, apiKey, fetch, rateLimit: false });
    const service = await fake.listen();
    cleanUps.push(() => service.close());
    env = {
      DATABASE_URL: url,
      TRACKING_BASE_URL: service.url,
      TRACKING_API_KEY: apiKey,
      TRACKING_WEBHOOK_SECRET: SECRET,
    };
  });
  afterEach(async () => {
    for (const program of running.splice(0)) program.kill('SIGKILL');
    for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
  });

  function start(name: 'server' | 'reconcile', more: NodeJS.ProcessEnv = {}): Program {
    const program = spawn(process.execPath, [programs.get(name) ?? ''], {
      env: { ...process.env, ...env, ...more },
    });
    running.push(program);
    const lines: string[] = [];
    for (const output of [program.stdout, program.stderr])
      output.on('data', (text) => lines.push(...`${text}`.split('\n').filter((line) => line !== '')));
    const closed = once(program, 'close').then(([code]): number | null => code);
    const end = (signal: NodeJS.Signals) => {
      program.kill(signal);
      return closed;
    };
    return { lines, closed, end };
  }

  async function expectSuccess(...started: readonly Program[]): Promise<void> {
    for (const { closed, lines } of started) expect([await closed, lines], lines.join('\n')).toEqual([0, []]);
  }

  async function startServer() {
    const port = await findFreePort();
    const server = start('server', { PORT: `${port}` });
    const url = `http://127.0.0.1:${port}/`;
    await waitFor(async () => expect((await fetch(url, { method: 'HEAD' })).status).toBe(200));
    return { ...server, url };
  }

  async function query<Row>(sql: string, values: readonly unknown[] = []): Promise<Row[]> {
    const { rows } = await tables.query(sql, [...values]);
    return rows;
  }

  /** Ships an order, and lets events happen to its parcel. Returns the webhooks, oldest first. */
  async function ship(id: string, events: readonly (typeof LATE_SCAN)[number][]): Promise<Push[]> {
    await query('INSERT INTO orders (id) VALUES ($1)', [id]);
    await client.trackers.create({ trackingNumber: `NUMBER-${id}`, clientTrackerId: id });
    for (const event of events) fake.shipment(`NUMBER-${id}`).addEvent(event);
    return fake.webhooks.take().map(({ item }) => item);
  }

  const findKey = (id: string, eventId: string) => {
    const tracker = fake.trackers.find(({ clientTrackerId }) => clientTrackerId === id);
    return buildEventKey({ trackerId: tracker?.trackerId ?? '' }, { eventId });
  };

  async function post(url: string, body: object): Promise<number> {
    const headers = { authorization: `Bearer ${SECRET}`, 'content-type': 'application/json' };
    const { status } = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
    return status;
  }

  /** Delivers each webhook three times, all at once. */
  async function deliver(url: string, pushes: readonly Push[]): Promise<void> {
    const deliveries = [...pushes, ...pushes, ...pushes].map((item) => post(url, { trackings: [item] }));
    expect(new Set(await Promise.all(deliveries))).toEqual(new Set([200]));
  }

  const makeSilent = (condition = 'true') =>
    query(`UPDATE orders SET status_at = status_at - interval '6 hours' WHERE ${condition}`);

  /** Returns the ids of the orders whose results were read, sorted. */
  const listReads = () =>
    fake.requests
      .filter(({ endpoint }) => endpoint === 'trackers.results')
      .map(({ path }) => path.split('/').at(-2))
      .toSorted();

  /** Waits until so many statements of the programs wait for a lock. */
  const waitForLocks = (count: number) =>
    waitFor(async () => {
      const waiting = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
      expect(await query(waiting)).toHaveLength(count);
    });

  /** Keeps the locks of a statement. Returns a function that rolls back. */
  async function hold(sql: string, values: readonly unknown[] = []): Promise<() => Promise<void>> {
    const holder = await tables.connect();
    await holder.query('BEGIN');
    await holder.query(sql, [...values]);
    return async () => {
      await holder.query('ROLLBACK');
      holder.release();
    };
  }

  /** Kills a program while it inserts the key of an event. */
  async function killAtEvent(key: string, begin: () => Program): Promise<void> {
    const release = await hold('INSERT INTO handled_events VALUES ($1)', [key]);
    const program = begin();
    await waitForLocks(1);
    expect(await program.end('SIGKILL')).toBeNull();
    await release();
    await waitForLocks(0);
  }

  it(
    'webhooks lost, tripled and late, a receiver and a job killed → each event once, the last status',
    async () => {
      const all = await ship('all-webhooks', LATE_SCAN);
      const some = await ship('some-webhooks', LATE_SCAN);
      const late = await ship('late-webhooks', LATE_SCAN);
      const killed = await ship('killed-receiver', LATE_SCAN);
      await ship('killed-job', LATE_SCAN);
      await ship('no-webhooks', LATE_SCAN);
      await ship('on-its-way', LATE_SCAN.slice(0, 1));

      const receiver = await startServer();
      for (const push of all.toReversed()) await deliver(receiver.url, [push]);
      await deliver(receiver.url, some.slice(0, 1));
      await killAtEvent(findKey('killed-receiver', 'e2'), () => {
        post(receiver.url, { trackings: [killed[1]] }).catch(() => {});
        return receiver;
      });
      await makeSilent("id <> 'all-webhooks'");
      await killAtEvent(findKey('killed-job', 'e2'), () => start('reconcile'));
      await makeSilent("id = 'killed-job'");
      await expectSuccess(start('reconcile'));
      const next = await startServer();
      await deliver(next.url, [...late.toReversed(), ...killed, ...some]);
      expect([await next.end('SIGTERM'), next.lines], next.lines.join('\n')).toEqual([0, []]);

      const orders = await query(
        `SELECT id, status, array(
          SELECT event->>'eventId' FROM order_events WHERE order_id = id ORDER BY 1
        ) AS events FROM orders ORDER BY id`,
      );
      const delivered = { status: 'delivered', events: ['e1', 'e2', 'e3'] };
      expect(orders).toEqual([
        { id: 'all-webhooks', ...delivered },
        { id: 'killed-job', ...delivered },
        { id: 'killed-receiver', ...delivered },
        { id: 'late-webhooks', ...delivered },
        { id: 'no-webhooks', ...delivered },
        { id: 'on-its-way', status: 'in_transit', events: ['e1'] },
        { id: 'some-webhooks', ...delivered },
      ]);
    },
    TIMEOUT_MS,
  );

  it(
    'webhooks that have events, but no shipment → the job reads the status, although it knows all events',
    async () => {
      const pushes = await ship('order-1', LATE_SCAN);
      const { url } = await startServer();
      for (const { tracker, ...push } of pushes)
        expect(await post(url, { ...tracker, events: 'events' in push ? push.events : [] })).toBe(200);
      const read = 'SELECT status, (SELECT count(*)::int FROM order_events) AS events FROM orders';
      expect(await query(read)).toEqual([{ status: null, events: 3 }]);
      await makeSilent();
      await expectSuccess(start('reconcile'));
      expect(await query(read)).toEqual([{ status: 'delivered', events: 3 }]);
    },
    TIMEOUT_MS,
  );

  it(
    'a webhook that comes while older results are under way → its status stays',
    async () => {
      await ship('order-1', LATE_SCAN.slice(0, 1));
      await makeSilent();
      const resultsRead = deferred();
      const opened = deferred();
      const slowService = await listening(
        createServer(async ({ url = '', headers: { authorization = '' } }, response) => {
          const results = await fetch(new URL(url, env['TRACKING_BASE_URL']), { headers: { authorization } });
          const body = await results.text();
          resultsRead.resolve();
          await opened.promise;
          // A proxy that passes the headers of the service on.
          const date = results.headers.get('date') ?? '';
          response.writeHead(results.status, { 'content-type': 'application/json', date }).end(body);
        }),
      );
      cleanUps.push(() => slowService.close());
      const { pathname } = new URL(env['TRACKING_BASE_URL'] ?? '');
      const job = start('reconcile', {
        TRACKING_BASE_URL: `http://127.0.0.1:${slowService.port}${pathname}`,
      });
      const { url } = await startServer();
      await resultsRead.promise;
      fake.shipment('NUMBER-order-1').addEvent(LATE_SCAN[1]);
      const pushes = fake.webhooks.take().map(({ item }) => item);
      await deliver(url, pushes);
      opened.resolve();
      await expectSuccess(job);
      expect(await query('SELECT status FROM orders')).toEqual([{ status: 'delivered' }]);
    },
    TIMEOUT_MS,
  );

  it(
    'silent orders and one that got a webhook → each silent order is read once',
    async () => {
      const ids = Array.from({ length: 30 }, (_, index) => `silent-${index}`).toSorted();
      for (const id of ids) await ship(id, []);
      const pushes = await ship('heard', LATE_SCAN.slice(0, 1));
      await makeSilent();
      const { url } = await startServer();
      await deliver(url, pushes);
      for (const id of ids) fake.shipment(`NUMBER-${id}`).addEvent(LATE_SCAN[0]);
      for (const _run of ['this hour', 'the next hour']) await expectSuccess(start('reconcile'));
      expect(listReads()).toEqual(ids);
    },
    TIMEOUT_MS,
  );

  it(
    'results that cannot be read, then a used-up quota → exit code 1, and the run of the next hour reads them; a stopped tracker → read no more',
    async () => {
      await ship('order-1', LATE_SCAN);
      fake.shipment('NUMBER-order-1').stopTracking();
      await makeSilent();
      const failures = [
        { failure: { status: 400 }, line: 'order-1' },
        { failure: { status: 403, code: 'quota_limit_reached' }, line: 'QuotaExceededError' },
      ];
      for (const { failure, line } of failures) {
        fake.fail('trackers.results', failure);
        const failing = start('reconcile');
        expect([await failing.closed, failing.lines.join()]).toEqual([1, expect.stringContaining(line)]);
      }
      expect(listReads()).toHaveLength(2);
      await expectSuccess(start('reconcile'));
      expect(await query('SELECT status, stopped FROM orders')).toEqual([
        { status: 'delivered', stopped: true },
      ]);
      await makeSilent();
      await expectSuccess(start('reconcile'));
      expect(listReads()).toHaveLength(3);
    },
    TIMEOUT_MS,
  );

  it(
    'no results of a tracker that has stopped → the order is read no more',
    async () => {
      await ship('order-1', []);
      fake.shipment('NUMBER-order-1').stopTracking();
      await makeSilent();
      fake.fail('trackers.results', { status: 404, code: 'parcel_not_found' });
      await expectSuccess(start('reconcile'));
      expect(await query('SELECT stopped FROM orders')).toEqual([{ stopped: true }]);
    },
    TIMEOUT_MS,
  );

  it(
    'lost rows, after the keys of their events were deleted → the next run saves the events again',
    async () => {
      await ship('order-1', LATE_SCAN);
      await makeSilent();
      await expectSuccess(start('reconcile'));
      await query(`DELETE FROM order_events; UPDATE orders SET status = NULL, status_at = NULL;
        DELETE FROM handled_events WHERE key LIKE 'tracking/events:%';
        UPDATE orders SET stopped = false`);
      await expectSuccess(start('reconcile'));
      expect(await query('SELECT FROM order_events')).toHaveLength(3);
      expect(await query('SELECT status FROM orders')).toEqual([{ status: 'delivered' }]);
    },
    TIMEOUT_MS,
  );
});
