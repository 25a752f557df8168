// The recipes of docs/recipes/ that need no framework, run as they stand. Those of frameworks run in test/consumers.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import pg from 'pg';
import { TrackingClient } from 'tracking-client';
import {
  createFakeTrackingService,
  createWebhookSender,
  type FakeTrackingService,
} from 'tracking-client/testing';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { recipeFiles, writeRecipe } from '../readme/support/recipes.ts';
import { describeWithPostgres, describeWithRedis } from './services.ts';
import { listening } from './webhook-loopback.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SECRET = 'whsec-recipes';
const NUMBER = 'RR123456785CN';
/** A database of Redis that nothing else here uses, so that the recipe keeps its default keys. */
const REDIS_DATABASE = 12;

const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

/** Writes a recipe to a folder of its own, and imports one of its files: each time a new copy. */
async function imported<Exports>(name: string, path: string): Promise<Exports> {
  await mkdir(join(ROOT, '.tmp'), { recursive: true });
  const folder = await mkdtemp(join(ROOT, '.tmp', 'recipe-'));
  cleanUps.push(() => rm(folder, { recursive: true }));
  await writeRecipe(name, folder);
  return import(join(folder, path));
}

/** A fake service that the environment names. */
async function serving(
  options: Parameters<typeof createFakeTrackingService>[0] = {},
): Promise<FakeTrackingService> {
  const fake = createFakeTrackingService({ resultsDelayMs: 0, ...options });
  const server = await fake.listen();
  cleanUps.push(() => server.close());
  for (const [name, value] of Object.entries({
    TRACKING_BASE_URL: server.url,
    TRACKING_API_KEY: fake.apiKey,
    TRACKING_WEBHOOK_SECRET: SECRET,
  }))
    vi.stubEnv(name, value);
  return fake;
}

/** What a program writes to the console. */
function captured(): string[] {
  const lines: string[] = [];
  for (const method of ['log', 'error'] as const)
    vi.spyOn(console, method).mockImplementation((...values) => void lines.push(values.join(' ')));
  return lines;
}

function statusesOf(fake: FakeTrackingService): (number | null)[] {
  return fake.requests.map(({ status }) => status);
}

describe('every recipe', () => {
  it('→ is listed, has files to copy, and is short', async () => {
    const pages = (await readdir(join(ROOT, 'docs/recipes'))).filter((name) => name !== 'README.md');
    const index = await readFile(join(ROOT, 'docs/recipes/README.md'), 'utf8');
    expect(pages.filter((page) => !index.includes(`](${page})`))).toEqual([]);
    for (const page of pages) {
      expect(recipeFiles(page.replace('.md', '')), page).not.toEqual([]);
      const text = await readFile(join(ROOT, 'docs/recipes', page), 'utf8');
      expect(text.split('\n').length, page).toBeLessThanOrEqual(120);
      expect(text, page).toContain('## What to watch for');
    }
  });
});

describe('from-fetch.md', () => {
  interface Shop {
    createTracker(orderId: string, trackingNumber: string): Promise<string>;
    lastStatus(trackerId: string): Promise<string | undefined>;
  }

  it('before and after → the same tracker, and only the second places a date without a time', async () => {
    const fake = await serving();
    const before = await imported<Shop>('from-fetch', 'src/before.ts');
    const after = await imported<Shop>('from-fetch', 'src/after.ts');
    const trackerId = await before.createTracker('order-1', NUMBER);
    expect(await after.createTracker('order-1', NUMBER)).toBe(trackerId);
    expect([await before.lastStatus('nobody'), await after.lastStatus('nobody')]).toEqual([
      undefined,
      undefined,
    ]);
    fake
      .shipment(NUMBER)
      .addEvent({ occurrenceDatetime: '2026-03-02T08:00:00Z', status: 'Announced', order: 1 })
      .addEvent({ occurrenceDatetime: '2026-03-02', status: 'Arrived', order: 2 });
    expect(await before.lastStatus(trackerId)).toBe('Announced');
    expect(await after.lastStatus(trackerId)).toBe('Arrived');
  });

  it('a lost connection → only the second asks again', async () => {
    const fake = await serving();
    const before = await imported<Shop>('from-fetch', 'src/before.ts');
    const after = await imported<Shop>('from-fetch', 'src/after.ts');
    fake.fail('trackers.create', { kind: 'reset' });
    await expect(before.createTracker('order-1', NUMBER)).rejects.toThrow('fetch failed');
    fake.fail('trackers.create', { kind: 'reset' });
    expect(await after.createTracker('order-1', NUMBER)).toBe(fake.trackers[0]?.trackerId);
  });
});

describe('cron.md', () => {
  it('two trackers with results and one without → refreshed, exit code 0', async () => {
    const fake = await serving({ resultsDelayMs: 3_600_000 });
    const client = new TrackingClient();
    for (const trackingNumber of [NUMBER, 'LA680658838NL', 'LA680658839NL'])
      await client.trackers.create({ trackingNumber });
    fake.shipment(NUMBER).addEvent({ status: 'Arrived' }).deliver();
    fake.shipment('LA680658838NL').addEvent({ status: 'Arrived' });
    const lines = captured();
    await imported('cron', 'src/refresh.ts');
    expect(lines.at(-1)).toBe('2 refreshed, 0 failed');
    expect(lines.some((line) => line.endsWith('Arrived'))).toBe(true);
    expect(process.exitCode ?? 0).toBe(0);
  });

  it('a service that fails for one tracker → the others are refreshed, exit code 1', async () => {
    const fake = await serving();
    const client = new TrackingClient();
    for (const trackingNumber of [NUMBER, 'LA680658838NL']) await client.trackers.create({ trackingNumber });
    for (const number of [NUMBER, 'LA680658838NL']) fake.shipment(number).addEvent({ status: 'Arrived' });
    fake.fail('trackers.results', { status: 403 });
    const lines = captured();
    await imported('cron', 'src/refresh.ts');
    cleanUps.push(() => {
      process.exitCode = undefined;
    });
    expect([lines.at(-1), process.exitCode]).toEqual(['1 refreshed, 1 failed', 1]);
  });
});

describe('proxy.md', () => {
  async function startProxy() {
    const tunnels: (string | undefined)[] = [];
    const proxy = createServer().on('connect', ({ url }, socket) => {
      tunnels.push(url);
      const { hostname, port } = new URL(`http://${url}`);
      const upstream = connect(Number(port), hostname, () => {
        socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
        upstream.pipe(socket).pipe(upstream);
      });
      upstream.on('error', () => socket.destroy());
      socket.on('error', () => upstream.destroy());
    });
    const running = await listening(proxy);
    cleanUps.push(() => running.close());
    vi.stubEnv('HTTP_PROXY', `http://127.0.0.1:${running.port}`);
    vi.stubEnv('NO_PROXY', '');
    return tunnels;
  }

  it('a call with HTTP_PROXY set → goes through the proxy', async () => {
    const fake = await serving();
    const tunnels = await startProxy();
    const { client } = await imported<{ client: TrackingClient }>('proxy', 'src/tracking.ts');
    await client.trackers.create({ trackingNumber: NUMBER });
    expect(tunnels).toEqual([new URL(process.env['TRACKING_BASE_URL'] ?? '').host]);
    expect(statusesOf(fake)).toEqual([201]);
  });

  it('a route for browsers → the events without the rest, and refusals without the service’s words', async () => {
    const fake = await serving();
    fake.shipment(NUMBER).addEvent({ status: 'Accepted', location: 'Beijing' }).deliver();
    const { shipmentOf } = await imported<{
      shipmentOf(request: Request): Promise<Response>;
    }>('proxy', 'src/tracking-proxy.ts');
    const ask = (number: string) => shipmentOf(new Request(`http://shop.test/api/shipments/${number}`));
    const found = await ask(NUMBER);
    const { milestone, events } = (await found.json()) as { milestone: string; events: object[] };
    expect([found.status, found.headers.get('cache-control'), milestone]).toEqual([
      200,
      'public, max-age=300',
      'delivered',
    ]);
    expect(Object.keys(events[0] ?? {})).toEqual(['occurrenceDatetime', 'status', 'location']);
    expect((await ask('x')).status).toBe(400);
    captured();
    fake.fail('trackers.track', { status: 403 });
    const refused = await ask('LA680658838NL');
    expect([refused.status, await refused.json()]).toEqual([503, { error: 'try again later' }]);
  });
});

await describeWithPostgres('recipes with PostgreSQL', (url) => {
  /** A schema of its own, that connections of `DATABASE_URL` use. */
  async function makeSchema(): Promise<pg.Pool> {
    const schema = `recipes_${randomUUID().replaceAll('-', '')}`;
    const admin = new pg.Pool({ connectionString: url });
    await admin.query(`CREATE SCHEMA ${schema}`);
    const own = new URL(url);
    own.searchParams.set('options', `-c search_path=${schema}`);
    vi.stubEnv('DATABASE_URL', own.href);
    const pool = new pg.Pool({ connectionString: own.href });
    cleanUps.push(async () => {
      await pool.end();
      await admin.query(`DROP SCHEMA ${schema} CASCADE`);
      await admin.end();
    });
    return pool;
  }

  it('postgres.md: every webhook three times, at once and out of order → one row an event, the newest status', async () => {
    const fake = await serving();
    const pool = await makeSchema();
    await pool.query(recipeFiles('postgres').find(({ path }) => path === 'schema.sql')?.code ?? '');
    const { ship, orderWebhooks, history } = await imported<{
      ship(pool: pg.Pool, client: TrackingClient, id: string, number: string): Promise<void>;
      orderWebhooks(
        pool: pg.Pool,
      ): ((request: Request) => Promise<Response>) & { createTable(): Promise<void> };
      history(pool: pg.Pool, id: string): Promise<{ events: { status: string }[]; last: { status: string } }>;
    }>('postgres', 'src/orders.ts');
    const webhooks = orderWebhooks(pool);
    await webhooks.createTable();
    await ship(pool, new TrackingClient(), 'order-1', NUMBER);
    fake.play(NUMBER, 'delivered', { speed: Number.POSITIVE_INFINITY });
    const sender = createWebhookSender({
      ...{
        target: webhooks,
        secret: SECRET,
        fake,
        duplicates: 2,
        shuffle: true,
        concurrency: 4,
        until2xx: true,
      },
    });
    expect((await sender.flush()).lost).toBe(0);
    const { rows } = await pool.query('SELECT status, last_event FROM orders');
    const { events, last } = await history(pool, 'order-1');
    expect(rows).toMatchObject([{ status: 'delivered', last_event: { status: last.status } }]);
    expect(events).toHaveLength(6);
  });

  it('lambda.md: events of API Gateway, also in base64 → handled once; HEAD and a wrong secret answered', async () => {
    await serving();
    const pool = await makeSchema();
    const { inboxTableSql } = await import('tracking-client/postgres');
    await pool.query(inboxTableSql('webhook_inbox'));
    await pool.query('CREATE TABLE parcel_events (key text PRIMARY KEY, tracker_id text, status text)');
    const lambda = await imported<{
      handler(event: object): Promise<{ statusCode: number; body: string }>;
      pool: pg.Pool;
    }>('lambda', 'src/handler.ts');
    cleanUps.push(() => lambda.pool.end());
    const body = '{"trackerId":"t1","events":[{"eventId":"e1","status":"Arrived at Zürich"}]}';
    const event = (method: string, more: object = {}) => ({
      version: '2.0',
      rawPath: '/webhooks',
      rawQueryString: 'from=service',
      headers: { authorization: `Bearer ${SECRET}`, 'content-type': 'application/json' },
      requestContext: { domainName: 'abc.execute-api.test', http: { method, path: '/webhooks' } },
      isBase64Encoded: false,
      ...more,
    });
    const base64 = { body: Buffer.from(body).toString('base64'), isBase64Encoded: true };
    const answers = [
      await lambda.handler(event('POST', { body })),
      await lambda.handler(event('POST', base64)),
      await lambda.handler(event('HEAD')),
      await lambda.handler(event('POST', { body, headers: {} })),
    ];
    expect(answers.map(({ statusCode }) => statusCode)).toEqual([200, 200, 200, 401]);
    const { rows } = await pool.query('SELECT tracker_id, status FROM parcel_events');
    expect(rows).toEqual([{ tracker_id: 't1', status: 'Arrived at Zürich' }]);
  });
});

await describeWithRedis('recipes with Redis', (url) => {
  it('bullmq.md: more orders than a second allows, one twice, one hopeless → each tracker once, no 429', async () => {
    const fake = await serving();
    const own = new URL(url);
    own.pathname = `/${REDIS_DATABASE}`;
    vi.stubEnv('REDIS_URL', own.href);
    const redis = new Redis(own.href);
    const forgetAll = async () => {
      const keys = await redis.keys('*');
      const ours = keys.filter((key) => /^(bull:create-trackers|tracking-client):/.test(key));
      if (ours.length > 0) await redis.del(...ours);
    };
    await forgetAll();
    const { importQueue, importWorker } = await imported<{
      importQueue(): {
        queue: { close(): Promise<void> };
        add(orderId: string, number: string): Promise<unknown>;
      };
      importWorker(
        redis: Redis,
        processes: number,
      ): import('node:events').EventEmitter & { close(): Promise<void> };
    }>('bullmq', 'src/import.ts');
    const { queue, add } = importQueue();
    const worker = importWorker(redis, 1);
    cleanUps.push(async () => {
      await worker.close();
      await queue.close();
      await forgetAll();
      redis.disconnect();
    });
    const failed = once(worker, 'failed');
    for (let order = 1; order <= 12; order += 1) await add(`${order}`, `LA${600_000_000 + order}NL`);
    await add('1', 'LA600000001NL');
    await add('hopeless', 'n/a');
    await vi.waitUntil(() => fake.trackers.length === 12, { timeout: 15_000, interval: 20 });
    const [job] = await failed;
    expect([job.data.clientTrackerId, job.attemptsMade]).toEqual(['hopeless', 1]);
    expect(new Set(statusesOf(fake))).toEqual(new Set([201]));
  });
});
