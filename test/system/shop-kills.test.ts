// examples/shop on PostgreSQL with each part in a process of its own. The service and the front end of the shop are in this process.
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import {
  createFakeTrackingService,
  createWebhookSender,
  type EventInput,
  type WebhookSenderReport,
} from 'tracking-client/testing';
import { afterEach, expect, it, onTestFinished, vi } from 'vitest';
import { useSchema } from '../integration/postgres-schema.ts';
import { findFreePort } from '../integration/redis-limiter/own-redis.ts';
import { describeWithPostgres } from '../integration/services.ts';
import { type StartedProgram, startProgram } from './start-program.ts';

const MAIN = fileURLToPath(new URL('../../examples/shop/main.ts', import.meta.url));
const PARTS = ['web', 'receiver', 'trackers', 'mails', 'reconcile'] as const;
type Part = (typeof PARTS)[number];
/** A kill between a mail and its mark in the database sends the mail again, so the mails are not among the killed parts. */
const KILLED = ['web', 'trackers', 'receiver'] as const;
const ROUNDS = 3;
const NUMBERS = Array.from({ length: 300 }, (_, index) => `${1001 + index}`);
const OUTAGE_MS = 10_000;
/** The first delivery is a mistake of the courier, so the order gets the status twice, but one mail about it. */
const EVENTS = [
  { statusMilestone: 'delivered', occurrenceDatetime: '2026-03-04T12:00:00' },
  { statusMilestone: 'exception', occurrenceDatetime: '2026-03-05T12:00:00' },
  { statusMilestone: 'delivered', occurrenceDatetime: '2026-03-06T12:00:00' },
];
const WEBHOOK_SECRET = 'webhook-secret';
const STAFF_TOKEN = 'staff-token';
const PLACED_WITH = { authorization: `Bearer ${STAFF_TOKEN}`, 'content-type': 'application/json' };
/** The orders of a killed process wait for half a minute, and a busy machine may take several times as long. */
const WAIT = { timeout: 300_000, interval: 100 };

const readOrders = (schema: string) => `SELECT id, number, status ->> 'milestone' AS status, ARRAY(
    SELECT event ->> 'statusMilestone' FROM ${schema}.events
    WHERE order_id = orders.id ORDER BY event ->> 'occurrenceDatetime'
  ) AS events FROM ${schema}.orders ORDER BY number`;

await describeWithPostgres('examples/shop', (postgresUrl) => {
  const { schema, pool } = useSchema(postgresUrl);
  const running = new Map<Part, StartedProgram>();
  afterEach(async () => {
    await Promise.all([...running.values()].map(({ end }) => end('SIGKILL')));
    running.clear();
    // The second try of a failed test begins with an empty database.
    await pool.query(`DROP TABLE IF EXISTS ${schema}.mails, ${schema}.events, ${schema}.orders`);
  });

  async function startShop() {
    let onWork: (part: Part) => void = () => {};
    let aheadMs = 0;
    const fake = createFakeTrackingService({
      resultsDelayMs: 0,
      now: () => Date.now() + aheadMs,
      // The service has created the trackers, but the shop does not know yet.
      onRequest: ({ endpoint }) => endpoint === 'trackers.createBulk' && onWork('trackers'),
    });
    const service = await fake.listen();
    onTestFinished(() => service.close());
    const ports = { web: await findFreePort(), receiver: await findFreePort() };
    const url = `http://127.0.0.1:${ports.web}`;
    const sender = createWebhookSender({
      fake,
      target: `http://127.0.0.1:${ports.receiver}/webhooks`,
      secret: WEBHOOK_SECRET,
      duplicates: 2,
      shuffle: true,
      seed: Math.random(),
      concurrency: 16,
      until2xx: { speed: 7_200 }, // the second attempt comes after 0.1 s, the last one after a minute
      onSent: () => onWork('receiver'),
    });
    const databaseUrl = new URL(postgresUrl);
    databaseUrl.searchParams.set('options', `-c search_path=${schema}`);
    const env = {
      DATABASE_URL: databaseUrl.href,
      TRACKING_BASE_URL: service.url,
      TRACKING_API_KEY: fake.apiKey,
      TRACKING_WEBHOOK_SECRET: WEBHOOK_SECRET,
      STAFF_TOKEN,
      SHOP_URL: url,
    };

    async function start(part: Part): Promise<void> {
      const port = part === 'receiver' ? ports.receiver : ports.web;
      const program = await startProgram(MAIN, [part], { ...env, PORT: `${port}` });
      running.set(part, program);
      const started = expect.stringMatching(/^Started/);
      await vi.waitFor(() => expect(program.lines).toContainEqual(started), WAIT);
    }

    return {
      fake,
      sender,
      start,
      /** Adds an event to a shipment, later than all events before. */
      addEvent(trackingNumber: string, event: EventInput): void {
        aheadMs += 1;
        fake.shipment(trackingNumber).addEvent(event);
      },
      /** Kills a part in the middle of its work if it has any, and starts it again. */
      async restart(part: Part): Promise<void> {
        const working = new Promise<void>((resolve) => {
          onWork = (worker) => worker === part && resolve();
        });
        await Promise.race([working, sleep(1_000)]);
        expect(await running.get(part)?.end('SIGKILL')).toBeNull();
        await start(part);
      },
      /** Places an order as the front end of a shop does: again until the shop confirms it. Returns its id. */
      async place(number: string): Promise<string> {
        const parcel = { trackingNumber: `RR47300${number}CN` };
        const body = JSON.stringify({ number, email: `${number}@example.com`, parcel });
        for (;;) {
          try {
            const response = await fetch(`${url}/staff/orders`, {
              method: 'POST',
              headers: PLACED_WITH,
              body,
            });
            onWork('web');
            if (response.status === 201) return Object(await response.json()).id;
          } catch {
            // The process was killed.
          }
          await sleep(50);
        }
      },
    };
  }

  it('its processes are killed in turns, the service has an outage, and webhooks come three times and out of order → each of 300 orders has one tracker, its events once, its status, and one mail about each', {
    timeout: 600_000,
  }, async () => {
    const { fake, sender, addEvent, start, restart, place } = await startShop();
    await start('web');
    // An order is due for `reconcile` as soon as it has a tracker, so that its results and its webhooks come at the same time.
    await pool.query(`ALTER TABLE ${schema}.orders ALTER results_taken_at SET DEFAULT '-infinity'`);
    for (const part of ['receiver', 'trackers', 'mails'] as const) await start(part);

    const sending: Promise<WebhookSenderReport>[] = [];
    const shipped = new Set<string>();
    const finished = new AbortController();
    onTestFinished(() => finished.abort());
    async function shipAll(): Promise<void> {
      while (!finished.signal.aborted) {
        for (const { trackingNumber } of fake.trackers) {
          if (shipped.has(trackingNumber)) continue;
          shipped.add(trackingNumber);
          for (const event of EVENTS) addEvent(trackingNumber, event);
          sending.push(sender.flush());
        }
        await sleep(50);
      }
    }
    const shipping = shipAll();

    const ids = new Map<string, string>();
    const unplaced = [...NUMBERS];
    async function placeSome(): Promise<void> {
      const numbers = unplaced.splice(0, Math.ceil(NUMBERS.length / (ROUNDS * KILLED.length)));
      await Promise.all(numbers.map(async (number) => ids.set(number, await place(number))));
    }
    for (let round = 1; round <= ROUNDS; round += 1) {
      // It reads the orders that are due when it starts, and those that become due meanwhile.
      if (round === 2) await start('reconcile');
      if (round === ROUNDS) {
        const outage = fake.fail('*', { status: 503, times: Number.POSITIVE_INFINITY });
        setTimeout(() => outage.cancel(), OUTAGE_MS);
      }
      for (const part of KILLED) await Promise.all([placeSome(), restart(part)]);
    }

    const count = async (rows: string) => (await pool.query(`SELECT FROM ${schema}.${rows}`)).rowCount;
    await vi.waitFor(async () => expect(await count('orders WHERE has_tracker')).toBe(NUMBERS.length), WAIT);
    await vi.waitFor(() => expect(shipped.size, 'trackers of the service').toBe(NUMBERS.length), WAIT);
    finished.abort();
    await shipping;
    const reports = await Promise.all(sending);
    await vi.waitFor(async () => expect(await count('mails WHERE sent_at IS NULL')).toBe(0), WAIT);
    const exitCodes = await Promise.all(PARTS.map((part) => running.get(part)?.end('SIGTERM')));
    expect(exitCodes).toEqual(PARTS.map(() => 0));

    expect(fake.requests.map(({ status }) => status)).toContain(503);
    expect(reports.filter(({ lost }) => lost > 0)).toEqual([]);
    expect(fake.trackers.length).toBe(NUMBERS.length);
    const printed = running.get('mails')?.lines.filter((line) => line.startsWith('Mail to ')) ?? [];
    expect(printed).toHaveLength((await count('mails')) ?? 0);
    const { rows: orders } = await pool.query<{ id: string; number: string }>(readOrders(schema));
    const audited = orders.map((order) => {
      const mails = printed.filter((line) => line.startsWith(`Mail to ${order.number}@`));
      return {
        ...order,
        trackers: fake.trackers.filter(({ clientTrackerId }) => clientTrackerId === order.id).length,
        mailsAboutDelivery: mails.filter((line) => line.includes(': Delivered. ')).length,
        repeatedMails: mails.length - new Set(mails).size,
      };
    });
    const expected = NUMBERS.map((number) => ({
      number,
      id: ids.get(number),
      status: 'delivered',
      events: EVENTS.map(({ statusMilestone }) => statusMilestone),
      trackers: 1,
      mailsAboutDelivery: 1,
      repeatedMails: 0,
    }));
    expect(audited).toEqual(expected);
  });
});
