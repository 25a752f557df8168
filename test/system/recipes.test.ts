// The recipes of docs/recipes/ that need no framework, run as they stand. Those of frameworks run in test/consumers.
import { readdirSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import type pg from 'pg';
import * as main from 'tracking-client';
import { TrackingClient } from 'tracking-client';
import {
  createFakeTrackingService,
  createWebhookSender,
  type FakeTrackingService,
} from 'tracking-client/testing';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ENDPOINT_NAMES } from '../../src/endpoints.ts';
import { makePool } from '../integration/postgres-schema.ts';
import { makeRecipeFolder } from '../integration/recipe-folder.ts';
import { describeWithAnyPostgres, describeWithRedis } from '../integration/services.ts';
import { listening } from '../integration/webhook-loopback.ts';
import { parseMarkdown, readDocument } from '../readme/support/documents.ts';
import { recipeFiles } from '../readme/support/recipes.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SECRET = 'whsec-recipes';
const NUMBER = 'RR123456785CN';
/** A database of Redis that nothing else here uses, so that the recipe keeps its default keys. */
const REDIS_DATABASE = 12;
const LAMBDA_REDIS_DATABASE = 13;
/** What the service can respond while there is no news. */
const NO_RESULTS = ['pending', 'parcel_not_found', 'empty'] as const;

const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

/** Writes a recipe to a folder of its own, and imports one of its files: each time a new copy. */
async function imported<Exports>(name: string, path: string): Promise<Exports> {
  const { folder, remove } = await makeRecipeFolder(name);
  cleanUps.push(remove);
  return import(join(folder, path));
}

/** Imports the only block of a page that contains a text. */
async function importedBlock<Exports>(page: string, text: string): Promise<Exports> {
  const [block, ...others] = parseMarkdown(readDocument(page)).blocks.filter(({ code }) =>
    code.includes(text),
  );
  expect(others).toEqual([]);
  await mkdir(join(ROOT, '.tmp'), { recursive: true });
  const folder = await mkdtemp(join(ROOT, '.tmp', 'block-'));
  cleanUps.push(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, 'block.js'), block?.code ?? '');
  return import(join(folder, 'block.js'));
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

/** The lines that a program writes to the console. */
function captured(): string[] {
  const lines: string[] = [];
  for (const method of ['log', 'error'] as const)
    vi.spyOn(console, method).mockImplementation((...values) => void lines.push(values.join(' ')));
  return lines;
}

type Webhooks = (request: Request) => Promise<Response>;

/** Ships a parcel that is delivered at once; each of its six webhooks is sent three times, out of order. */
async function deliverParcel(
  fake: FakeTrackingService,
  target: Webhooks,
  create: () => Promise<unknown>,
): Promise<void> {
  await create();
  fake.play(NUMBER, 'delivered', { speed: Number.POSITIVE_INFINITY });
  const repeats = { duplicates: 2, shuffle: true, concurrency: 4, until2xx: true };
  const report = await createWebhookSender({ target, secret: SECRET, fake, ...repeats }).flush();
  expect(report.lost).toBe(0);
}

/** A delivery, and a scan that the courier noted after it. */
function deliverWithLateScan(fake: FakeTrackingService, number = NUMBER): void {
  const at = (time: string) => ({
    occurrenceDatetime: `2026-03-10T${time}`,
    location: 'SAN RAFAEL, CA 94901',
  });
  fake
    .shipment(number)
    .deliver(at('14:02'))
    .addEvent({ statusMilestone: 'out_for_delivery', ...at('14:07') });
}

/** The histories of a parcel whose newest event or newest webhook to arrive does not have its status. */
const HISTORIES: readonly (readonly [
  what: string,
  happen: (fake: FakeTrackingService) => void,
  status: string,
])[] = [
  ['a scan noted after the delivery', deliverWithLateScan, 'delivered'],
  [
    'a return after the delivery',
    (fake) =>
      fake
        .shipment(NUMBER)
        .deliver()
        .addEvent({ statusMilestone: 'exception', statusCode: 'exception_return' }),
    'exception',
  ],
];

/** Delivers the waiting webhooks, the oldest or the newest first. */
async function deliverWaiting(fake: FakeTrackingService, target: Webhooks, first: 'oldest' | 'newest') {
  const pushes = fake.webhooks.take();
  expect(pushes).toHaveLength(2);
  if (first === 'newest') pushes.reverse();
  for (const { item } of pushes) {
    const headers = { authorization: `Bearer ${SECRET}`, 'content-type': 'application/json' };
    const body = JSON.stringify({ trackings: [item] });
    const response = await target(new Request('http://shop.test/', { method: 'POST', headers, body }));
    expect(response.status).toBe(200);
  }
}

function createTracker(): Promise<unknown> {
  return new TrackingClient().trackers.create({ trackingNumber: NUMBER });
}

const pages = readdirSync(join(ROOT, 'docs/recipes')).filter(
  (name) => name.endsWith('.md') && name !== 'README.md',
);

describe('every recipe', () => {
  it.each(pages)('%s → is listed, and has files to copy', (page) => {
    expect(readDocument('docs/recipes/README.md')).toContain(`](${page})`);
    expect(recipeFiles(page.replace('.md', ''))).not.toEqual([]);
  });
});

describe('from-sdk.md', () => {
  const text = readDocument('docs/recipes/from-sdk.md');
  const SDK_METHODS = ['create', 'track', 'bulkCreate', 'list', 'get', 'update', 'getResults'].concat(
    ...['getResultsByTrackingNumber', 'resendWebhooks', 'downloadWebhookHistory'],
  );

  it('the table → every method of the SDK, every endpoint, and errors that exist', () => {
    const [, ...cells] = [...text.matchAll(/^\| (.+?) \| (.+?) \|/gm)].map(([, sdk, here]) => ({
      sdk,
      here,
    }));
    const told = cells.map(({ sdk }) => sdk).join();
    const names = [...SDK_METHODS.map((name) => `trackers.${name}`), 'couriers.list', 'perCall.track'];
    expect(names.filter((name) => !told.includes(`\`${name}\``))).toEqual([]);
    const here = cells.map(({ sdk, here }) => (here === 'the same names' ? sdk : here)).join();
    expect(ENDPOINT_NAMES.filter((name) => !here.includes(`\`${name}\``))).toEqual([]);
    const errors = [...here.matchAll(/`(\w+Error)`/g)].map(([, name = '']) => name);
    expect(errors.filter((name) => !(name in main))).toEqual([]);
  });

  it.each(NO_RESULTS)(
    'a tracker without news (%s) → pending; with news → its milestone',
    async (noResults) => {
      const fake = await serving({ resultsDelayMs: 3_600_000, noResults });
      vi.stubEnv('SHIP24_API_KEY', fake.apiKey);
      type Recipe = { milestone(id: string): Promise<string> };
      const { milestone } = await imported<Recipe>('from-sdk', 'src/tracking.ts');
      const { trackerId } = await new TrackingClient().trackers.create({ trackingNumber: NUMBER });
      expect(await milestone(trackerId)).toBe('pending');
      fake.shipment(NUMBER).addEvent({ statusMilestone: 'in_transit' });
      expect(await milestone(trackerId)).toBe('in_transit');
    },
  );
});

describe('cron.md', () => {
  beforeEach(async () => {
    const folder = await mkdtemp(join(tmpdir(), 'refresh-'));
    cleanUps.push(() => rm(folder, { recursive: true }));
    vi.stubEnv('REFRESH_FILE', join(folder, 'refresh.json'));
  });

  it('a parcel that is delivered and stopped between two runs → read once more, and then no more', async () => {
    const fake = await serving();
    await createTracker();
    fake.shipment(NUMBER).addEvent({ status: 'Arrived' });
    const lines = captured();
    await imported('cron', 'src/refresh.ts');
    fake.shipment(NUMBER).deliver().stopTracking();
    await imported('cron', 'src/refresh.ts');
    await imported('cron', 'src/refresh.ts');
    const milestones = lines.map((line) => line.replace(/^\S+ (\w+) \d events$/, '$1'));
    const runs = ['in_transit', '1 refreshed, 0 failed', 'delivered', '1 refreshed, 0 failed'];
    expect(milestones).toEqual([...runs, '0 refreshed, 0 failed']);
  });

  it.each(NO_RESULTS)(
    'two trackers with news and one without (%s) → two refreshed, exit code 0',
    async (noResults) => {
      const fake = await serving({ resultsDelayMs: 3_600_000, noResults });
      const client = new TrackingClient();
      for (const trackingNumber of [NUMBER, 'LA680658838NL', 'LA680658839NL'])
        await client.trackers.create({ trackingNumber });
      fake.shipment(NUMBER).addEvent({ status: 'Arrived' }).deliver();
      fake.shipment('LA680658838NL').addEvent({ status: 'Arrived' });
      const lines = captured();
      await imported('cron', 'src/refresh.ts');
      expect(lines.at(-1)).toBe('2 refreshed, 0 failed');
      expect(lines.some((line) => line.endsWith('in_transit 1 events'))).toBe(true);
      expect(process.exitCode ?? 0).toBe(0);
    },
  );

  it('a scan noted after the delivery → delivered', async () => {
    const fake = await serving();
    await createTracker();
    deliverWithLateScan(fake);
    const lines = captured();
    await imported('cron', 'src/refresh.ts');
    expect(lines[0]).toMatch(/ delivered 2 events$/);
  });

  it('a service that fails for one tracker → the others are refreshed, exit code 1', async () => {
    const fake = await serving();
    const client = new TrackingClient();
    for (const trackingNumber of [NUMBER, 'LA680658838NL']) await client.trackers.create({ trackingNumber });
    for (const number of [NUMBER, 'LA680658838NL']) fake.shipment(number).addEvent({ status: 'Arrived' });
    fake.fail('trackers.results', { status: 400 });
    const lines = captured();
    await imported('cron', 'src/refresh.ts');
    cleanUps.push(() => {
      process.exitCode = undefined;
    });
    expect([lines.at(-1), process.exitCode]).toEqual(['1 refreshed, 1 failed', 1]);
  });
});

describe('report.md', () => {
  /** Ships a parcel that leaves on one day and has its last milestone on another. */
  async function ship(
    fake: FakeTrackingService,
    number: string,
    courierCode: string,
    [from, milestone, to]: readonly [from: string, milestone: string, to: string],
  ) {
    await new TrackingClient().trackers.create({ trackingNumber: number, courierCode });
    fake
      .shipment(number)
      .addEvent({ courierCode, statusMilestone: 'info_received', occurrenceDatetime: '2025-12-24' })
      .addEvent({ courierCode, statusMilestone: 'in_transit', occurrenceDatetime: from })
      .addEvent({ courierCode, statusMilestone: milestone, occurrenceDatetime: to });
  }

  it('the program → at most 40 lines', () => {
    const code = recipeFiles('report').find(({ path }) => path === 'src/report.ts')?.code ?? '';
    expect(code).toContain('resultsMany');
    expect(code.split('\n').filter((line) => line.trim() !== '').length).toBeLessThanOrEqual(40);
  });

  it('trackers of two months, and one that cannot be read → the figures of each courier, exit code 1', async () => {
    const fake = await serving({ limits: false });
    vi.stubEnv('REPORT_MONTH', '2026-02');
    for (const trackingNumber of ['RR000000000CN', 'RR000000008CN']) // without news; the first one fails
      await new TrackingClient().trackers.create({ trackingNumber });
    await ship(fake, 'RR000000001CN', 'us-post', ['2026-02-02', 'delivered', '2026-02-04']);
    await ship(fake, 'RR000000002CN', 'us-post', ['2026-01-30T10:00', 'delivered', '2026-02-10T09:00']);
    await ship(fake, 'RR000000003CN', 'us-post', ['2026-02-01', 'delivered', '2026-02-06']);
    await ship(fake, 'RR000000004CN', 'us-post', ['2026-02-01', 'delivered', '2026-02-02']);
    await ship(fake, 'RR000000005CN', 'fr-post', ['2026-02-02', 'exception', '2026-02-20']);
    await ship(fake, 'RR000000006CN', 'fr-post', ['2026-02-27', 'delivered', '2026-03-01']);
    await ship(fake, 'RR000000007CN', 'fr-post', ['2026-02-02', 'out_for_delivery', '2026-02-03']);
    fake.fail('trackers.results', { status: 404, code: 'tracker_not_found' });
    const lines = captured();
    await imported('report', 'src/report.ts');
    cleanUps.push(() => {
      process.exitCode = undefined;
    });
    expect(lines.slice(-3)).toEqual([
      'courier,delivered,exceptions,median days',
      'fr-post,0,1,',
      'us-post,4,0,3.5',
    ]);
    expect(lines).toHaveLength(4);
    expect(process.exitCode).toBe(1);
  });
});

describe('a proxy, in docs/troubleshooting.md', () => {
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
    const { client } = await importedBlock<{ client: TrackingClient }>(
      'docs/troubleshooting.md',
      'EnvHttpProxyAgent',
    );
    await client.trackers.create({ trackingNumber: NUMBER });
    expect(tunnels).toEqual([new URL(process.env['TRACKING_BASE_URL'] ?? '').host]);
    expect(fake.requests.map(({ status }) => status)).toEqual([201]);
  });
});

describe('page.md', () => {
  type Page = { shipmentPage(tracking: unknown): string };

  it.each(HISTORIES)('%s → the page shows the status of the shipment', async (_what, happen, status) => {
    const fake = await serving();
    const { shipmentPage } = await imported<Page>('page', 'src/page.js');
    const client = new TrackingClient();
    const { trackerId } = await client.trackers.create({ trackingNumber: NUMBER });
    happen(fake);
    const html = shipmentPage(await client.trackers.results(trackerId));
    expect(html).toContain(`<h1>${status === 'delivered' ? 'Delivered' : 'Held up'}</h1>`);
  });

  it.each(NO_RESULTS)(
    'a tracker without news (%s) → the server shows a page that says so',
    async (noResults) => {
      await serving({ noResults });
      const client = new TrackingClient();
      await client.trackers.create({ trackingNumber: NUMBER, clientTrackerId: 'order-1' });
      const { server } = await imported<{ server: Server }>('page', 'src/server.js');
      const { port, close } = await listening(server);
      cleanUps.push(close);
      const response = await fetch(`http://127.0.0.1:${port}/orders/order-1`);
      expect(response.status).toBe(200);
      const html = await response.text();
      expect(html).toContain(`<p>Parcel ${NUMBER}</p>\n<h1>Waiting for news</h1>\n<p>No news yet</p>`);
    },
  );

  it.each([
    [{ city: 'Lyon <3', geo: { lat: 45.7 }, country: 'FR' }, '<small>Lyon &lt;3, FR</small>'],
    [['Lyon', null, 'FR'], '<small>Lyon, FR</small>'],
    [{ geo: { lat: 45.7 } }, 'Posted</div>'],
  ])('an event at the place %j → the page shows its texts', async (location, shown) => {
    const { shipmentPage } = await imported<Page>('page', 'src/page.js');
    const events = [{ eventId: 'e1', status: 'Posted', occurrenceDatetime: '2026-03-10', location }];
    expect(shipmentPage({ tracker: { trackingNumber: NUMBER }, events })).toContain(shown);
  });

  it('a milestone that the page does not know → not the status of the newest event', async () => {
    const { shipmentPage } = await imported<Page>('page', 'src/page.js');
    const events = [{ eventId: 'e1', status: 'Out for delivery', occurrenceDatetime: '2026-03-10' }];
    const html = shipmentPage({
      tracker: { trackingNumber: NUMBER },
      shipment: { statusMilestone: 'new' },
      events,
    });
    expect(html).toContain('<h1>New</h1>');
  });
});

interface Lambda {
  handler(event: object): Promise<{ statusCode: number; body: string }>;
}

/** An event of API Gateway. */
const lambdaEvent = (method: string, more: object = {}) => ({
  version: '2.0',
  rawPath: '/webhooks',
  rawQueryString: 'from=service',
  headers: { authorization: `Bearer ${SECRET}`, 'content-type': 'application/json' },
  requestContext: { domainName: 'abc.execute-api.test', http: { method, path: '/webhooks' } },
  isBase64Encoded: false,
  ...more,
});

interface PostgresRecipe {
  orderWebhooks(pool: pg.Pool): Webhooks;
}

const createOrder = (pool: pg.Pool) =>
  pool.query("INSERT INTO orders (id, status) VALUES ('order-1', 'packed')");

async function ship(pool: pg.Pool): Promise<void> {
  await createOrder(pool);
  await new TrackingClient().trackers.create({ trackingNumber: NUMBER, clientTrackerId: 'order-1' });
}

/** Returns the ids of the orders of the saved events. */
async function readEventOrders(pool: pg.Pool): Promise<string[]> {
  const { rows } = await pool.query<{ order_id: string }>('SELECT order_id FROM order_events');
  return rows.map(({ order_id }) => order_id);
}

async function readStatuses(pool: pg.Pool): Promise<string[]> {
  const { rows } = await pool.query<{ status: string }>('SELECT status FROM orders');
  return rows.map(({ status }) => status);
}

await describeWithAnyPostgres('recipes with PostgreSQL', (create) => {
  /** A database with the tables of a recipe, which `DATABASE_URL` names. */
  async function makeTables(recipe: string): Promise<pg.Pool> {
    const { url, drop } = await create();
    vi.stubEnv('DATABASE_URL', url);
    const pool = makePool({ connectionString: url });
    cleanUps.push(drop, () => pool.end());
    await pool.query(recipeFiles(recipe).find(({ path }) => path === 'schema.sql')?.code ?? '');
    return pool;
  }

  it('postgres.md: every webhook three times, at once and out of order → one row an event, the newest status', async () => {
    const fake = await serving();
    const pool = await makeTables('postgres');
    const { orderWebhooks } = await imported<PostgresRecipe>('postgres', 'src/orders.ts');
    await deliverParcel(fake, orderWebhooks(pool), () => ship(pool));
    expect(await readStatuses(pool)).toEqual(['delivered']);
    expect(await readEventOrders(pool)).toHaveLength(6);
  });

  describe.each(HISTORIES)('%s', (_what, happen, status) => {
    it.each(['oldest', 'newest'] as const)(
      `postgres.md: webhooks, the %s first → ${status}`,
      async (first) => {
        const fake = await serving();
        const pool = await makeTables('postgres');
        const { orderWebhooks } = await imported<PostgresRecipe>('postgres', 'src/orders.ts');
        await ship(pool);
        happen(fake);
        await deliverWaiting(fake, orderWebhooks(pool), first);
        expect(await readStatuses(pool)).toEqual([status]);
      },
    );
  });

  /** Sends a webhook with a new event, which the service generated in this year. */
  async function receive(webhooks: Webhooks, year: number, message: object): Promise<void> {
    const metadata = { generatedAt: `${year}-01-01T00:00:00.000Z` };
    const body = JSON.stringify({ metadata, events: [{ eventId: `e-${year}` }], ...message });
    const headers = { authorization: `Bearer ${SECRET}`, 'content-type': 'application/json' };
    const response = await webhooks(new Request('http://shop.test/', { method: 'POST', headers, body }));
    expect(response.status).toBe(200);
  }

  describe.each([
    ['no shipment', {}],
    ['a shipment without a milestone', { shipment: { statusMilestone: null } }],
  ])('the newest webhook has %s', (_what, message) => {
    it('postgres.md → the status stays until a later webhook has one', async () => {
      await serving();
      const pool = await makeTables('postgres');
      const { orderWebhooks } = await imported<PostgresRecipe>('postgres', 'src/orders.ts');
      const tracker = { clientTrackerId: 'order-1' };
      await createOrder(pool);
      const webhooks = orderWebhooks(pool);
      await receive(webhooks, 2098, { tracker, ...message });
      expect(await readStatuses(pool)).toEqual(['packed']);
      await receive(webhooks, 2099, { tracker, shipment: { statusMilestone: 'delivered' } });
      expect(await readStatuses(pool)).toEqual(['delivered']);
    });
  });

  it('postgres.md: a webhook for an unknown order, and one without a shipment → 200, and no status changes', async () => {
    await serving();
    const pool = await makeTables('postgres');
    const { orderWebhooks } = await imported<PostgresRecipe>('postgres', 'src/orders.ts');
    await createOrder(pool);
    const webhooks = orderWebhooks(pool);
    for (const clientTrackerId of ['order-1', 'another'])
      await receive(webhooks, 2099, {
        clientTrackerId,
        events: [{ eventId: 'e1', statusMilestone: 'in_transit' }],
      });
    expect(await readStatuses(pool)).toEqual(['packed']);
    expect(await readEventOrders(pool)).toEqual(['order-1']);
  });

  it('lambda.md: events of API Gateway, also in base64 → handled once; HEAD → 200, no secret → 401', async () => {
    await serving();
    const pool = await makeTables('lambda');
    const lambda = await imported<Lambda & { pool: pg.Pool }>('lambda', 'src/handler.ts');
    cleanUps.push(() => lambda.pool.end());
    const body = '{"trackerId":"t1","events":[{"eventId":"e1","status":"Arrived at Zürich"}]}';
    const base64 = { body: Buffer.from(body).toString('base64'), isBase64Encoded: true };
    const results = [
      await lambda.handler(lambdaEvent('POST', { body })),
      await lambda.handler(lambdaEvent('POST', base64)),
      await lambda.handler(lambdaEvent('HEAD')),
      await lambda.handler(lambdaEvent('POST', { body, headers: {} })),
    ];
    expect(results.map(({ statusCode }) => statusCode)).toEqual([200, 200, 200, 401]);
    const { rows } = await pool.query('SELECT tracker_id, status FROM parcel_events');
    expect(rows).toEqual([{ tracker_id: 't1', status: 'Arrived at Zürich' }]);
  });

  it('lambda.md: a URL with and without a query → the handler gets the whole URL', async () => {
    const { toLambda } = await imported<{ toLambda(webhooks: Webhooks): Lambda['handler'] }>(
      'lambda',
      'src/lambda.ts',
    );
    const handler = toLambda(async ({ url }) => new Response(url));
    const readUrl = async (more?: object) =>
      (await handler(lambdaEvent('POST', { body: '{}', ...more }))).body;
    expect(await readUrl()).toBe('https://abc.execute-api.test/webhooks?from=service');
    expect(await readUrl({ rawQueryString: '' })).toBe('https://abc.execute-api.test/webhooks');
  });

  it('pg-boss.md: every webhook three times and out of order → each event is worked on once', async () => {
    const fake = await serving();
    const pool = await makeTables('pg-boss');
    type Boss = { stop(): Promise<void> };
    type Job = { trackingNumber: string; event: { status: string } };
    const { startJobs, eventWebhooks } = await imported<{
      startJobs(connectionString: string, work: (job: Job) => Promise<void>): Promise<Boss>;
      eventWebhooks(pool: pg.Pool, boss: Boss): Webhooks;
    }>('pg-boss', 'src/events.ts');
    const lines: string[] = [];
    const boss = await startJobs(process.env['DATABASE_URL'] ?? '', async ({ trackingNumber, event }) => {
      lines.push(`${trackingNumber} ${event.status}`);
    });
    cleanUps.push(() => boss.stop());
    await deliverParcel(fake, eventWebhooks(pool, boss), createTracker);
    const { rows } = await pool.query(
      "SELECT count(*)::int AS jobs FROM pgboss.job WHERE name = 'parcel-events'",
    );
    expect(rows).toEqual([{ jobs: 6 }]);
    await vi.waitUntil(() => lines.length >= 6, { timeout: 30_000, interval: 50 });
    expect(lines.sort()).toHaveLength(6);
    expect(lines).toContain(`${NUMBER} Delivered`);
  });

  it('pg-boss.md: a webhook before its queue exists → 500, so that the service delivers it again', async () => {
    await serving();
    const pool = await makeTables('pg-boss');
    const { eventWebhooks } = await imported<{
      eventWebhooks(pool: pg.Pool, boss: { send(): Promise<null> }): Webhooks;
    }>('pg-boss', 'src/events.ts');
    const webhooks = eventWebhooks(pool, { send: async () => null }); // as pg-boss does
    const lines = captured();
    const { status } = await webhooks(
      new Request('http://shop.test/webhooks', {
        method: 'POST',
        headers: { authorization: `Bearer ${SECRET}`, 'content-type': 'application/json' },
        body: '{"trackerId":"t1","events":[{"eventId":"e1"}]}',
      }),
    );
    expect([status, lines.join()]).toEqual([500, expect.stringContaining('no queue')]);
  });
});

await describeWithRedis('recipes with Redis', (url) => {
  it('lambda.md: two instances, each webhook at both → the results are read and saved once a webhook', async () => {
    const fake = await serving();
    const database = new URL(`/${LAMBDA_REDIS_DATABASE}`, url).href;
    vi.stubEnv('REDIS_URL', database);
    const admin = new Redis(database);
    cleanUps.push(async () => {
      for (const key of await admin.keys('tracking-client:*')) await admin.del(key);
      admin.disconnect();
    });
    const instances: (Lambda & { redis: Redis })[] = [];
    for (let count = 1; count <= 2; count += 1) {
      const instance = await imported<Lambda & { redis: Redis }>('lambda', 'src/redis-handler.ts');
      cleanUps.push(() => instance.redis.disconnect());
      instances.push(instance);
    }
    await createTracker();
    deliverWithLateScan(fake);
    const lines = captured();
    const statuses: number[] = [];
    for (const { item } of fake.webhooks.take()) {
      const event = lambdaEvent('POST', { body: JSON.stringify({ trackings: [item] }) });
      const responses = await Promise.all(instances.map(({ handler }) => handler(event)));
      statuses.push(...responses.map(({ statusCode }) => statusCode));
    }
    expect(statuses).toEqual([200, 200, 200, 200]);
    expect(lines).toEqual(Array(2).fill(expect.stringMatching(/ delivered$/)));
    expect(fake.requests.filter(({ endpoint }) => endpoint === 'trackers.results')).toHaveLength(2);
  });

  it('lambda.md: a webhook with only a clientTrackerId → the results are read by it, 200', async () => {
    const fake = await serving();
    vi.stubEnv('REDIS_URL', new URL(`/${LAMBDA_REDIS_DATABASE}`, url).href);
    const { handler, redis } = await imported<Lambda & { redis: Redis }>('lambda', 'src/redis-handler.ts');
    cleanUps.push(async () => {
      for (const key of await redis.keys('tracking-client:*')) await redis.del(key);
      redis.disconnect();
    });
    await new TrackingClient().trackers.create({ trackingNumber: NUMBER, clientTrackerId: 'order-1' });
    deliverWithLateScan(fake);
    const lines = captured();
    const body = '{"clientTrackerId":"order-1","events":[{"eventId":"e1"}]}';
    const { statusCode } = await handler(lambdaEvent('POST', { body }));
    expect([statusCode, lines]).toEqual([200, ['order-1 delivered']]);
  });

  it('bullmq.md: every webhook three times and out of order → each event is worked on once', async () => {
    const fake = await serving();
    const database = new URL(`/${REDIS_DATABASE}`, url).href;
    vi.stubEnv('REDIS_URL', database);
    const redis = new Redis(database);
    const deleteKeys = async () => {
      for (const pattern of ['bull:parcel-events:*', 'tracking-client:webhooks:*'])
        for (const key of await redis.keys(pattern)) await redis.del(key);
    };
    await deleteKeys();
    cleanUps.push(async () => {
      await deleteKeys();
      redis.disconnect();
    });
    const { eventWebhooks, eventWorker } = await imported<{
      eventWebhooks(redis: Redis): {
        webhooks: Webhooks;
        queue: { close(): Promise<void> };
      };
      eventWorker(work: (job: { event: { status: string } }) => Promise<void>): { close(): Promise<void> };
    }>('bullmq', 'src/events.ts');
    const { webhooks, queue } = eventWebhooks(redis);
    const statuses: string[] = [];
    const worker = eventWorker(async ({ event }) => void statuses.push(event.status));
    cleanUps.push(() => queue.close());
    cleanUps.push(() => worker.close());
    await deliverParcel(fake, webhooks, createTracker);
    await vi.waitUntil(() => statuses.length >= 6, { timeout: 15_000, interval: 20 });
    expect(new Set(statuses).size).toBe(6);
    expect(statuses).toHaveLength(6);
  });
});
