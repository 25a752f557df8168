import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import pg from 'pg';
import { buildWebhookMessage } from '../../src/testing/index.ts';
import type { DedupeStore } from '../../src/webhooks/index.ts';
import { deleteKeys } from '../../test/support/fleet/run.ts';
import { postgres, redis as redisEntry, webhooks } from '../built.ts';
import { median } from '../statistics.ts';

const SECRET = 'whsec';
const CONCURRENCY = 64;
/** Each webhook is sent as often as `copies`. */
const TRAFFIC = [
  { events: 1, copies: 1 },
  { events: 1, copies: 3 },
  { events: 10, copies: 1 },
  { events: 10, copies: 3 },
];

type Receiver = (request: Request) => Promise<Response>;

interface ReceiverCase {
  readonly name: string;
  /** Target of the ratio with one event per webhook. */
  readonly must: number;
  readonly ours: Receiver;
  readonly byHand: Receiver;
}

/** Rates are in events per second. */
export interface ReceiverResult {
  readonly name: string;
  readonly eventsPerWebhook: number;
  readonly copies: number;
  /** Target of the ratio; null if there is none. */
  readonly must: number | null;
  readonly ours: number;
  readonly byHand: number;
  readonly ratio: number;
}

interface WebhookItem {
  readonly tracker: { readonly trackerId: string };
  readonly events: readonly { readonly eventId: string; readonly status: string }[];
}

/** Builds a receiver as most apps write it: it checks the header, parses the body, saves the events and responds. */
function writeByHand(save: (keys: readonly string[], item: WebhookItem) => Promise<unknown>): Receiver {
  return async (request) => {
    if (request.headers.get('authorization') !== `Bearer ${SECRET}`)
      return new Response(null, { status: 401 });
    // `buildBody` builds all bodies, so their type is known.
    const { trackings } = (await request.json()) as { trackings: WebhookItem[] };
    for (const item of trackings)
      await save(
        item.events.map(({ eventId }) => `${item.tracker.trackerId}:${eventId}`),
        item,
      );
    return Response.json({ success: true });
  };
}

/** Opens the receivers on real databases; `close` removes everything that the receivers wrote. */
async function openReceivers(redisUrl: string, postgresUrl: string) {
  const schema = `bench_${randomUUID().replaceAll('-', '')}`;
  const pool = new pg.Pool({ connectionString: postgresUrl, max: 10 }).on('error', console.error);
  await pool.query(`CREATE SCHEMA ${schema}`);
  await pool.query(`CREATE TABLE ${schema}.seen (key text PRIMARY KEY)`);
  await pool.query(`CREATE TABLE ${schema}.effects (key text, status text)`);
  const postgresStore = new postgres.PostgresDedupeStore({ pool, table: `${schema}.inbox` });
  await postgresStore.createTable();
  const redis = new Redis(redisUrl).on('error', console.error);
  const redisStore = new redisEntry.RedisDedupeStore({ redis, keyPrefix: `${schema}:ours:` });
  const seen = new Set<string>();
  const handle = (store: DedupeStore) =>
    webhooks.createWebhookHandler({ secret: SECRET, store, onEvent: () => {} });

  /** Writes the events whose keys are new, in one transaction. */
  const writeOnce = async (events: readonly (readonly [key: string, status: unknown])[]) => {
    const client = await pool.connect();
    try {
      await client.query('BEGIN');
      for (const [key, status] of events) {
        const insert = `INSERT INTO ${schema}.seen VALUES ($1) ON CONFLICT DO NOTHING`;
        const { rowCount } = await client.query(insert, [key]);
        if (rowCount !== 0)
          await client.query(`INSERT INTO ${schema}.effects VALUES ($1, $2)`, [key, status]);
      }
      await client.query('COMMIT');
      client.release();
    } catch (error) {
      client.release(true);
      throw error;
    }
  };

  const cases: ReceiverCase[] = [
    {
      name: '`PostgresDedupeStore`',
      must: 0.7,
      ours: handle(postgresStore),
      byHand: writeByHand(async (keys) => {
        const insert = `INSERT INTO ${schema}.seen SELECT unnest($1::text[]) ON CONFLICT DO NOTHING RETURNING key`;
        await pool.query(insert, [keys]);
      }),
    },
    {
      name: 'a transaction in the callback',
      must: 0.35,
      ours: webhooks.createWebhookHandler({
        secret: SECRET,
        store: new webhooks.MemoryDedupeStore(),
        onEvent: ({ status }, { key }) => writeOnce([[key, status]]),
      }),
      byHand: writeByHand((keys, { events }) =>
        writeOnce(keys.map((key, index) => [key, events[index]?.status])),
      ),
    },
    {
      name: '`RedisDedupeStore`',
      must: 0.34,
      ours: handle(redisStore),
      byHand: writeByHand((keys) =>
        Promise.all(keys.map((key) => redis.set(`${schema}:hand:${key}`, 1, 'EX', 2_592_000, 'NX'))),
      ),
    },
    {
      name: '`MemoryDedupeStore`',
      must: 0.38,
      ours: handle(new webhooks.MemoryDedupeStore()),
      byHand: writeByHand(async (keys) => {
        for (const key of keys) seen.add(key);
      }),
    },
  ];
  const close = async () => {
    await pool.query(`DROP SCHEMA ${schema} CASCADE`);
    await pool.end();
    redis.disconnect();
    await deleteKeys(redisUrl, `${schema}:`);
  };
  return { cases, close };
}

const { kind: _, ...message } = buildWebhookMessage();
const [event] = message.events;
let bodyCount = 0;

/** Builds a body with a tracker of its own, so that no receiver has seen its events before. */
function buildBody(events: number): string {
  const tracker = { ...message.tracker, trackerId: `tracker-${bodyCount++}` };
  const list = Array.from({ length: events }, (_, index) => ({ ...event, eventId: `event-${index}` }));
  return JSON.stringify({ trackings: [{ ...message, tracker, events: list }] });
}

/** Sends new webhooks, 64 at a time and each several times in shuffled order; returns the unique events per second. */
async function measureRate(receive: Receiver, count: number, { events, copies }: (typeof TRAFFIC)[number]) {
  const bodies = Array.from({ length: count }, () => buildBody(events));
  const requests = bodies
    .flatMap((body) => Array.from({ length: copies }, () => ({ body, place: Math.random() })))
    .sort((a, b) => a.place - b.place)
    .map(({ body }) => {
      const length = { 'content-length': String(Buffer.byteLength(body)) };
      const headers = { authorization: `Bearer ${SECRET}`, 'content-type': 'application/json', ...length };
      return new Request('http://localhost/webhooks', { method: 'POST', headers, body });
    });
  const queue = requests.values();
  const sendNext = async () => {
    for (const request of queue) {
      const { status } = await receive(request);
      if (status !== 200) throw new Error(`Expected 200, got ${status}`);
    }
  };
  const startedAt = performance.now();
  await Promise.all(Array.from({ length: CONCURRENCY }, sendNext));
  return (count * events * 1000) / (performance.now() - startedAt);
}

/** Measures both receivers of each store in turns and takes medians. */
export async function measureReceivers(redisUrl: string, postgresUrl: string, isQuick: boolean) {
  const { cases, close } = await openReceivers(redisUrl, postgresUrl);
  const rounds = isQuick ? 1 : 5;
  const results: ReceiverResult[] = [];
  for (const { name, must, ours, byHand } of cases) {
    const webhookCount = (name.includes('Memory') ? 4_000 : 1_000) / (isQuick ? 4 : 1);
    for (const traffic of TRAFFIC) {
      const rates: { ours: number; byHand: number }[] = [];
      for (let round = -1; round < rounds; round += 1) {
        const rate = {
          ours: await measureRate(ours, webhookCount, traffic),
          byHand: await measureRate(byHand, webhookCount, traffic),
        };
        if (round >= 0) rates.push(rate); // Round -1 warms up.
      }
      results.push({
        ...{ name, eventsPerWebhook: traffic.events, copies: traffic.copies },
        must: traffic.events === 1 ? must : null,
        ours: median(rates.map((rate) => rate.ours)),
        byHand: median(rates.map((rate) => rate.byHand)),
        ratio: median(rates.map((rate) => rate.ours / rate.byHand)),
      });
    }
  }
  await close();
  return results;
}
