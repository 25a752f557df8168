// What docs/shop.md says about crashes: each part of examples/shop is killed at each of its points, and then started again.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createFakeTrackingService } from 'tracking-client/testing';
import { beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { openDatabase } from '../../examples/shop/database.ts';
import { bundled } from '../../scripts/support/bundled.ts';
import { describeWithPostgres } from '../integration/services.ts';
import { createDatabase } from '../integration/test-database.ts';
import { type Plan, runPart } from './shop-part.ts';

const SECRET = 'whsec-shop';
const NUMBER = 'RR123456785CN';
const ORDER = JSON.stringify({
  number: '1001',
  email: 'anna@example.com',
  parcel: { trackingNumber: NUMBER },
});
/** Several starts of programs can take long on a busy machine. */
const TIMEOUT_MS = 120_000;

type KillAt = NonNullable<Plan['killAt']>;
const before = (what: string): KillAt => ({ when: 'before', what });
const after = (what: string): KillAt => ({ when: 'after', what });

let program: string;
beforeAll(async () => {
  program = await bundled('test/system/shop-part.ts');
});

async function startShop(databaseUrl?: string) {
  const folder = await mkdtemp(join(tmpdir(), 'shop-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const mailbox = join(folder, 'mailbox');
  await writeFile(mailbox, '');
  const fake = createFakeTrackingService({ resultsDelayMs: 0, limits: false });
  const service = await fake.listen();
  onTestFinished(() => service.close());
  const data = join(folder, 'data');
  const settings = { baseUrl: service.url, apiKey: fake.apiKey, folder: data, secret: SECRET, mailbox };
  const makePlan = (part: Plan['part'], more: Pick<Plan, 'killAt' | 'body'>): Plan => ({
    part,
    ...settings,
    ...(databaseUrl !== undefined && { databaseUrl }),
    ...more,
  });

  /** Runs a round of a part in a process that dies. */
  async function kill(part: Plan['part'], killAt: KillAt, body = ''): Promise<void> {
    const env = { ...process.env, SHOP_PLAN: JSON.stringify(makePlan(part, { killAt, body })) };
    const child = spawn(process.execPath, [program], { env, stdio: 'inherit' });
    expect(await once(child, 'close')).toEqual([null, 'SIGKILL']);
  }
  /** Runs a round of a part, as its next start does. */
  const run = (part: Plan['part'], body = '') => runPart(makePlan(part, { body }));
  async function query<Row extends object>(sql: string): Promise<Row[]> {
    const db = await openDatabase(databaseUrl, data);
    try {
      return await db.query<Row>(sql);
    } finally {
      await db.close();
    }
  }
  return {
    fake,
    kill,
    run,
    query,
    readMails: async () => (await readFile(mailbox, 'utf8')).split('\n').filter((line) => line !== ''),
    /** Makes all orders and mails due. */
    passTime: () =>
      query(`WITH o AS (UPDATE orders SET tracker_taken_at = '-infinity', results_taken_at = '-infinity')
        UPDATE mails SET mail_taken_at = '-infinity'`),
    readOrder: async () => {
      const [order] = await query<{
        id: string;
      }>(`SELECT id, has_tracker, status->>'milestone' AS milestone,
        proof IS NOT NULL AS proof, (SELECT count(*)::int FROM events) AS events, (SELECT count(*)::int FROM mails) AS mails
        FROM orders`);
      return order;
    },
    async ship() {
      await run('web', ORDER);
      await run('trackers');
    },
    takeWebhook: () => JSON.stringify({ trackings: fake.webhooks.take().map(({ item }) => item) }),
  };
}

describe('the shop on PGlite', () => {
  it(
    'killed after the commit of a webhook → the next start finds the news, and removes the lock',
    async () => {
      const shop = await startShop();
      await shop.ship();
      shop.fake.shipment(NUMBER).addEvent({ statusMilestone: 'in_transit' });
      const body = shop.takeWebhook();
      await shop.kill('receiver', after('COMMIT'), body);
      expect(await shop.readOrder()).toMatchObject({ milestone: 'in_transit', events: 1, mails: 1 });
    },
    TIMEOUT_MS,
  );
});

await describeWithPostgres('the shop on PostgreSQL', (serverUrl) => {
  let shop: Awaited<ReturnType<typeof startShop>>;
  beforeEach(async () => {
    const { url, drop } = await createDatabase(serverUrl);
    onTestFinished(drop);
    shop = await startShop(url);
  });

  it.each([before('INSERT INTO orders'), after('INSERT INTO orders')])(
    'placing an order dies $when its $what, and is repeated → one order, and the id that was saved first',
    async (killAt) => {
      await shop.kill('web', killAt, ORDER);
      const [saved] = await shop.query<{ id: string }>('SELECT id FROM orders');
      expect(saved === undefined).toBe(killAt.when === 'before');
      const response = await shop.run('web', ORDER);
      const orders = await shop.query<{ id: string }>('SELECT id FROM orders');
      expect(orders).toEqual([{ id: saved?.id ?? orders[0]?.id }]);
      expect(response).toContain(`201 {"id":"${orders[0]?.id}"`);
    },
    TIMEOUT_MS,
  );

  it.each([
    { ...after('tracker_taken_at = now()'), requests: 1 },
    { ...before('request'), requests: 1 },
    { ...after('request'), requests: 2 },
    { ...before('has_tracker = true'), requests: 2 },
    { ...after('has_tracker = true'), requests: 1 },
  ])(
    'the job that creates trackers dies $when $what → requests: $requests, one tracker',
    async ({ requests, ...killAt }) => {
      await shop.run('web', ORDER);
      await shop.kill('trackers', killAt);
      const sent = shop.fake.requests.length;
      await shop.run('trackers');
      expect(shop.fake.requests).toHaveLength(sent); // the order is still taken
      await shop.passTime();
      await shop.run('trackers');
      expect(shop.fake.requests).toHaveLength(requests);
      expect(shop.fake.trackers).toHaveLength(1);
      expect(await shop.readOrder()).toMatchObject({ has_tracker: true });
    },
    TIMEOUT_MS,
  );

  it.each([after('INSERT INTO events'), before('COMMIT'), after('COMMIT')])(
    'the receiver dies $when $what, and the webhook comes again → event, status and mail once',
    async (killAt) => {
      await shop.ship();
      shop.fake.shipment(NUMBER).addEvent({ statusMilestone: 'in_transit' });
      const body = shop.takeWebhook();
      await shop.kill('receiver', killAt, body);
      const isSaved = killAt.what === 'COMMIT' && killAt.when === 'after';
      const news = { milestone: 'in_transit', events: 1, mails: 1 };
      const nothing = { milestone: null, events: 0, mails: 0 };
      expect(await shop.readOrder()).toMatchObject(isSaved ? news : nothing);
      for (const _again of [1, 2]) expect(await shop.run('receiver', body)).toMatch(/^200 /);
      expect(await shop.readOrder()).toMatchObject(news);
    },
    TIMEOUT_MS,
  );

  it.each([
    { ...after('mail_taken_at = now()'), times: 1 },
    { ...after('send'), times: 2 },
    { ...before('sent_at = now()'), times: 2 },
    { ...after('sent_at = now()'), times: 1 },
  ])(
    'the job that sends mails dies $when $what → mails sent: $times, with one key',
    async ({ times, ...killAt }) => {
      await shop.ship();
      shop.fake.shipment(NUMBER).addEvent({ statusMilestone: 'in_transit' });
      await shop.run('receiver', shop.takeWebhook());
      await shop.kill('mails', killAt);
      const sent = await shop.readMails();
      await shop.run('mails');
      expect(await shop.readMails()).toEqual(sent); // the mail is still taken
      await shop.passTime();
      await shop.run('mails');
      const order = await shop.readOrder();
      expect(await shop.readMails()).toEqual(Array(times).fill(`${order?.id}:in_transit`));
    },
    TIMEOUT_MS,
  );

  it.each([
    after('results_taken_at = now()'),
    after('INSERT INTO events'),
    after('COMMIT'),
    before('SET proof'),
    before('stopped_at = now()'),
  ])(
    'reconcile dies $when $what, after all webhooks were lost → the run of the next day saves all',
    async (killAt) => {
      await shop.ship();
      shop.fake.shipment(NUMBER).deliver().proveDelivery().stopTracking();
      shop.fake.webhooks.record(shop.fake.webhooks.take(), { status: 503, succeeded: false });
      await shop.passTime();
      await shop.kill('reconcile', killAt);
      const sent = shop.fake.requests.length;
      await shop.run('reconcile');
      expect(shop.fake.requests).toHaveLength(sent); // the order is read once a day
      await shop.passTime();
      await shop.run('reconcile');
      const all = { milestone: 'delivered', proof: true, events: 1, mails: 1 };
      expect(await shop.readOrder()).toMatchObject(all);
      await shop.passTime();
      await shop.run('reconcile');
      expect(await shop.readOrder()).toMatchObject(all);
    },
    TIMEOUT_MS,
  );
});
