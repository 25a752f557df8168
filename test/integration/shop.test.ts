// examples/shop: its parts on both databases, with the fake service and the receiver on loopback HTTP.
import { spawnSync } from 'node:child_process';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getRequestListener } from '@hono/node-server';
import { Hono } from 'hono';
import type { TrackingClient } from 'tracking-client';
import {
  createWebhookSender,
  type EventInput,
  type FakeTrackingServiceOptions,
} from 'tracking-client/testing';
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { type Database, openDatabase } from '../../examples/shop/database.ts';
import { type Mail, sendMails } from '../../examples/shop/mails.ts';
import { reconcile } from '../../examples/shop/reconcile.ts';
import { createTrackers } from '../../examples/shop/trackers.ts';
import { webRoutes } from '../../examples/shop/web.ts';
import { createReceiver, saveNews } from '../../examples/shop/webhooks.ts';
import { deferred } from '../support/deferred.ts';
import { makeService } from './make-service.ts';
import { describeWithPostgres } from './services.ts';
import { createDatabase } from './test-database.ts';
import { listening, SECRET } from './webhook-loopback.ts';

const NUMBER = 'RR123456785CN';
const OTHER_NUMBER = 'LA680658838NL';
/** Service and client refuse it: it is one ascending run of digits. */
const BAD_NUMBER = '123456789';
const STAFF = { authorization: 'Bearer staff-token', 'content-type': 'application/json' };
const SHOP_URL = 'https://shop.test';
/** The connections that wait for a lock. */
const WAITING =
  "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";

const makeFolder = () => mkdtemp(join(tmpdir(), 'shop-'));

function defineSuite(open: () => Promise<{ db: Database; drop(): Promise<unknown> }>): void {
  let db: Database;
  let drop: () => Promise<unknown>;
  beforeAll(async () => {
    ({ db, drop } = await open());
  });
  afterEach(async () => {
    for (const table of ['mails', 'events', 'orders']) await db.query(`DELETE FROM ${table}`);
  });
  afterAll(async () => {
    await db.close();
    await drop();
  });

  async function startShop(options: FakeTrackingServiceOptions = {}) {
    // The clock of the service.
    let nowMs = Date.now();
    const settings = { resultsDelayMs: 0, limits: false, now: () => nowMs, ...options };
    const { fake, client } = await makeService(settings);
    const receive = createReceiver(db, SECRET);
    const app = new Hono().route('/', webRoutes(db, 'staff-token'));
    app.all('/webhooks', (context) => receive(context.req.raw));
    const server = await listening(createServer(getRequestListener(app.fetch)));
    onTestFinished(() => server.close());
    const url = `http://127.0.0.1:${server.port}`;
    const sender = createWebhookSender({
      fake,
      target: `${url}/webhooks`,
      secret: SECRET,
      duplicates: 2,
      shuffle: true,
      concurrency: 6,
      until2xx: true,
    });
    const mails: Mail[] = [];
    return {
      fake,
      client,
      url,
      sender,
      mails,
      send: async (mail: Mail) => void mails.push(mail),
      /** Each event happens an hour after the one before. */
      happen(...events: EventInput[]) {
        for (const event of events) {
          nowMs += 3_600_000;
          fake.shipment(NUMBER).addEvent(event);
        }
      },
      async place(number: string, trackingNumber = NUMBER) {
        const body = JSON.stringify({ number, email: `${number}@example.com`, parcel: { trackingNumber } });
        const response = await fetch(`${url}/staff/orders`, { method: 'POST', headers: STAFF, body });
        const order: { id: string; page: string } = await response.json();
        return order;
      },
      async list(): Promise<unknown> {
        return (await fetch(`${url}/staff/orders`, { headers: STAFF })).json();
      },
    };
  }

  /** Makes every order due for the jobs, as if time had passed. */
  const passTime = () =>
    db.query("UPDATE orders SET tracker_taken_at = '-infinity', results_taken_at = '-infinity'");

  const countRows = async (table: string) => (await db.query(`SELECT FROM ${table}`)).length;

  async function reconcileNow(client: TrackingClient): Promise<void> {
    await passTime();
    await reconcile(db, client);
  }

  it('webhooks three times and out of order → newest status, each event once, one mail for each status', async () => {
    const { fake, client, place, list, happen, sender, mails, send } = await startShop();
    await place('1001');
    await createTrackers(db, client);
    happen({ statusMilestone: 'in_transit' }, { statusMilestone: 'out_for_delivery' });
    happen(
      { statusMilestone: 'delivered' },
      { statusMilestone: 'exception' },
      { statusMilestone: 'delivered' },
    );
    const { lost } = await sender.flush();
    const sendAll = () => sendMails(db, SHOP_URL, undefined, send);
    await Promise.all([sendAll(), sendAll()]);
    expect({ lost, events: await countRows('events') }).toEqual({ lost: 0, events: 5 });
    expect(await list()).toMatchObject([{ number: '1001', status: { milestone: 'delivered' } }]);
    const keys = mails.map(({ idempotencyKey }) => idempotencyKey);
    expect(new Set(keys).size).toBe(keys.length);
    expect(keys.filter((key) => key.endsWith(':delivered'))).toHaveLength(1);
    expect(fake.trackers).toHaveLength(1);
  });

  it('a customer opens the page → status in words, estimate, and the timeline as escaped HTML', async () => {
    const { fake, client, place, happen, sender, url } = await startShop();
    const { page } = await place('1001');
    await createTrackers(db, client);
    fake.shipment(NUMBER).update({ delivery: { estimatedDeliveryDate: '2026-03-06' } });
    const occurrenceDatetime = '2026-03-04T17:12:57';
    happen({ statusMilestone: 'out_for_delivery', status: '<b>Near</b>', occurrenceDatetime });
    await sender.flush();
    const html = await (await fetch(url + page)).text();
    expect(html).toContain('<h1>Out for delivery</h1>');
    expect(html).toMatch(/Expected: Friday,? 6 March 2026</);
    expect(html).toContain('&lt;b&gt;Near&lt;/b&gt;');
    expect(html).toMatch(/Wednesday,? 4 March 2026 at 17:12/);
  });

  it('no token of the staff, or an unknown order → 401, or 404', async () => {
    const { url } = await startShop();
    const { status: ofStaff } = await fetch(`${url}/staff/orders`);
    const { status: ofPage } = await fetch(`${url}/orders/1`);
    expect({ ofStaff, ofPage }).toEqual({ ofStaff: 401, ofPage: 404 });
  });

  it('the same order placed twice → one order, with its first parcel', async () => {
    const { place } = await startShop();
    const first = await place('1001');
    expect(await place('1001', OTHER_NUMBER)).toEqual(first);
    expect(await db.query('SELECT parcel FROM orders')).toEqual([{ parcel: { trackingNumber: NUMBER } }]);
  });

  it('the service refuses an order → marked with the reason and not tried again, until it is corrected', async () => {
    const { fake, client, place, list } = await startShop();
    await place('1001', BAD_NUMBER);
    await place('1002', OTHER_NUMBER);
    await createTrackers(db, client);
    await passTime();
    await createTrackers(db, client);
    expect(await list()).toMatchObject([
      { number: '1001', has_tracker: false, refused: expect.stringContaining('`trackingNumber`') },
      { number: '1002', has_tracker: true, refused: null },
    ]);
    await place('1001');
    await createTrackers(db, client);
    expect(fake.trackers.map(({ trackingNumber }) => trackingNumber)).toEqual([OTHER_NUMBER, NUMBER]);
  });

  it('the quota is used up → the round ends with an error, and the order waits', async () => {
    const { client, place, list } = await startShop({ plans: { perShipment: { quota: 0 } } });
    await place('1001');
    await expect(createTrackers(db, client)).rejects.toThrow('The quota is used up');
    expect(await list()).toMatchObject([{ has_tracker: false, refused: null }]);
  });

  it('the id of an order has a tracker with other data → the round ends with an error, and the order is marked', async () => {
    const { client, place, list } = await startShop();
    const { id } = await place('1001');
    const other = { trackingNumber: NUMBER, clientTrackerId: id, destinationCountryCode: 'US' };
    await client.trackers.create(other);
    await expect(createTrackers(db, client)).rejects.toThrow(`Order ${id} has a tracker with other data`);
    expect(await list()).toMatchObject([{ has_tracker: false, refused: expect.stringContaining('tracker') }]);
  });

  it('the response to a creation is lost → the next round finds the tracker that exists', async () => {
    const log = vi.spyOn(console, 'error').mockReturnValue();
    onTestFinished(() => log.mockRestore());
    const { fake, client, place, list } = await startShop();
    await place('1001');
    fake.fail('trackers.createBulk', { kind: 'commitThenDrop' });
    await createTrackers(db, client);
    expect(await list()).toMatchObject([{ has_tracker: false, refused: null }]);
    await passTime();
    await createTrackers(db, client);
    expect(await list()).toMatchObject([{ has_tracker: true }]);
    expect(fake.trackers).toHaveLength(1);
  });

  it('two processes create trackers at once → each order is sent once', async () => {
    const { fake, client, place } = await startShop();
    for (const number of ['1', '2', '3', '4']) await place(number);
    await Promise.all([createTrackers(db, client), createTrackers(db, client)]);
    const sent = fake.requests.flatMap(({ body }) => body);
    expect({ sent: sent.length, trackers: fake.trackers.length }).toEqual({ sent: 4, trackers: 4 });
  });

  it('all webhooks are lost → reconcile saves events, status and proof of delivery, and queues the mail', async () => {
    const { fake, client, place, list, happen, mails, send } = await startShop();
    await place('1001');
    await createTrackers(db, client);
    happen({ statusMilestone: 'in_transit' }, { statusMilestone: 'delivered' });
    fake.shipment(NUMBER).proveDelivery().stopTracking();
    fake.webhooks.record(fake.webhooks.take(), { status: 503, succeeded: false });
    await reconcileNow(client);
    await reconcileNow(client);
    expect(await countRows('events')).toBe(2);
    expect(await list()).toMatchObject([
      { status: { milestone: 'delivered' }, proof: { content: { type: 'application/pdf' } } },
    ]);
    await sendMails(db, SHOP_URL, undefined, send);
    expect(mails.map(({ text }) => text)).toContainEqual(
      expect.stringContaining('Your order 1001: Delivered.'),
    );
  });

  it('a mail cannot be sent → it stays due, and the next mail is sent', async () => {
    const log = vi.spyOn(console, 'error').mockReturnValue();
    onTestFinished(() => log.mockRestore());
    const { client, place, happen, sender, mails, send } = await startShop();
    await place('1001');
    await createTrackers(db, client);
    happen({ statusMilestone: 'in_transit' });
    await sender.flush();
    happen({ statusMilestone: 'delivered' });
    await sender.flush();
    await sendMails(db, SHOP_URL, undefined, async (mail) => {
      if (mail.text.includes('Delivered')) return send(mail);
      throw new Error('no connection');
    });
    expect(mails).toHaveLength(1);
    await db.query("UPDATE mails SET mail_taken_at = '-infinity'");
    await sendMails(db, SHOP_URL, undefined, send);
    expect(mails).toHaveLength(2);
  });
}

describe('the shop on PGlite', () => {
  let folder: string;
  defineSuite(async () => {
    folder = await makeFolder();
    const { pid } = spawnSync('true');
    await writeFile(join(folder, `${pid}.lock`), '');
    return { db: await openDatabase(undefined, folder), drop: () => rm(folder, { recursive: true }) };
  });

  it('a dead process has left its lock → its lock is replaced', async () => {
    expect((await readdir(folder)).sort()).toEqual([`${process.pid}.lock`, 'pglite']);
  });

  it('another process uses the folder → refused with the folder and what to do', async () => {
    const used = await makeFolder();
    onTestFinished(() => rm(used, { recursive: true }));
    await writeFile(join(used, `${process.ppid}.lock`), '');
    await expect(openDatabase(undefined, used)).rejects.toThrow(
      `The shop of process ${process.ppid} uses the folder ${used}. Stop it, or set DATABASE_URL`,
    );
    expect(await readdir(used)).toEqual([`${process.ppid}.lock`]);
  });
});

await describeWithPostgres('the shop on PostgreSQL', (serverUrl) => {
  let url: string;
  defineSuite(async () => {
    const database = await createDatabase(serverUrl);
    url = database.url;
    return { db: await openDatabase(url), drop: database.drop };
  });

  it('a process starts while another one saves a webhook → neither fails', async () => {
    const saving = await openDatabase(url);
    onTestFinished(() => saving.close());
    await saving.query(
      "INSERT INTO orders (id, number, email, parcel) VALUES ('o1', '1', 'a@example.com', '{}')",
    );
    let starting: Promise<Database> | undefined;
    await saving.transaction(async (transaction) => {
      await transaction.query("INSERT INTO events VALUES ('k1', 'o1', '{}')");
      starting = openDatabase(url);
      await vi.waitFor(async () => expect(await saving.query(WAITING)).toHaveLength(1), 10_000);
      await transaction.query("UPDATE orders SET status = '{}'");
    });
    await (await starting)?.close();
  });

  it('an older webhook is being saved when a newer one comes → the newer status stays', async () => {
    const db = await openDatabase(url);
    onTestFinished(() => db.close());
    await db.query(
      "INSERT INTO orders (id, number, email, parcel) VALUES ('o2', '2', 'a@example.com', '{}')",
    );
    const [reached, gate] = [deferred(), deferred()];
    const slow: Database = {
      ...db,
      transaction: (work) =>
        db.transaction((queries) =>
          work({
            query: async (text, values) => {
              if (text.startsWith('UPDATE')) {
                reached.resolve();
                await gate.promise;
              }
              return queries.query(text, values);
            },
          }),
        ),
    };
    const save = (via: Database, statusMilestone: string, generatedAt: string) =>
      saveNews(via, 'o2', { metadata: { generatedAt }, shipment: { statusMilestone } }, undefined);
    const older = save(slow, 'in_transit', '2026-03-04T10:00:00Z');
    await reached.promise;
    const newer = save(db, 'delivered', '2026-03-04T11:00:00Z');
    await Promise.race([
      newer,
      vi.waitFor(async () => expect(await db.query(WAITING)).toHaveLength(1), 10_000),
    ]);
    gate.resolve();
    await Promise.all([older, newer]);
    expect(await db.query("SELECT status ->> 'milestone' AS milestone FROM orders")).toEqual([
      { milestone: 'delivered' },
    ]);
  });
});
