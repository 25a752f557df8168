import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import pg from 'pg';
import { PostgresDedupeStore, TransactionalInbox } from 'tracking-client/postgres';
import { RedisDedupeStore } from 'tracking-client/redis';
import { createWebhookHandler, type DedupeStore, MemoryDedupeStore } from 'tracking-client/webhooks';
import { median } from '../statistics.ts';

const SECRET = 'whsec';
const CONCURRENCY = 64;
const ROUNDS = 5;

type Receiver = (request: Request) => Promise<Response>;

/** One comparison: our receiver against one that somebody wrote by hand for the same store. */
export interface ReceiverCase {
  readonly name: string;
  readonly must: number;
  readonly ours: Receiver;
  readonly byHand: Receiver;
}

/** What a case measured, in events a second. */
export interface ReceiverResult {
  readonly name: string;
  readonly eventsPerWebhook: number;
  readonly copies: number;
  readonly must: number;
  readonly ours: number;
  readonly byHand: number;
  readonly ratio: number;
}

interface Push {
  readonly tracker: { readonly trackerId: string };
  readonly events: readonly { readonly eventId: string; readonly status: string }[];
}

/** Checks the header, parses, hands the new events to `save`, answers: what most receivers are. */
function handWritten(save: (push: Push) => Promise<void>): Receiver {
  return async (request) => {
    if (request.headers.get('authorization') !== `Bearer ${SECRET}`)
      return new Response(null, { status: 401 });
    // What was sent by this file.
    const { trackings } = (await request.json()) as { trackings: Push[] };
    for (const push of trackings) await save(push);
    return Response.json({ success: true });
  };
}

/** The receivers on real servers, and what removes what they wrote. */
export async function openReceivers(services: { readonly redisUrl: string; readonly postgresUrl: string }) {
  const schema = `bench_${randomUUID().replaceAll('-', '')}`;
  const pool = new pg.Pool({ connectionString: services.postgresUrl, max: 10 });
  await pool.query(`CREATE SCHEMA ${schema}`);
  await pool.query(`CREATE TABLE ${schema}.seen (key text PRIMARY KEY)`);
  await pool.query(`CREATE TABLE ${schema}.effects (key text, status text)`);
  const redis = new Redis(services.redisUrl);
  const prefix = `${schema}:`;
  const postgresStore = new PostgresDedupeStore({ pool, table: `${schema}.inbox` });
  await postgresStore.createTable();
  const atomic = new TransactionalInbox({ pool, table: `${schema}.atomic` });
  await atomic.createTable();

  const handle = (store: DedupeStore) => createWebhookHandler({ secret: SECRET, store, onEvent: () => {} });
  const keysOf = ({ tracker, events }: Push) =>
    events.map(({ eventId }) => `${tracker.trackerId}:${eventId}`);
  const seen = new Set<string>();

  const cases: ReceiverCase[] = [
    {
      name: '`PostgresDedupeStore`',
      must: 0.8,
      ours: handle(postgresStore),
      byHand: handWritten(async (push) => {
        const insert = `INSERT INTO ${schema}.seen SELECT unnest($1::text[]) ON CONFLICT DO NOTHING RETURNING key`;
        await pool.query(insert, [keysOf(push)]);
      }),
    },
    {
      name: '`TransactionalInbox`',
      must: 0.35,
      ours: createWebhookHandler({
        secret: SECRET,
        inbox: atomic,
        onEvent: async ({ status }, { key, transaction }) => {
          await transaction.query(`INSERT INTO ${schema}.effects VALUES ($1, $2)`, [key, status]);
        },
      }),
      byHand: handWritten(async (push) => {
        const client = await pool.connect();
        try {
          await client.query('BEGIN');
          for (const [index, key] of keysOf(push).entries()) {
            const insert = `INSERT INTO ${schema}.seen VALUES ($1) ON CONFLICT DO NOTHING RETURNING key`;
            const { rowCount } = await client.query(insert, [key]);
            if (rowCount === 0) continue;
            const values = [key, push.events[index]?.status];
            await client.query(`INSERT INTO ${schema}.effects VALUES ($1, $2)`, values);
          }
          await client.query('COMMIT');
        } catch (error) {
          await client.query('ROLLBACK');
          throw error;
        } finally {
          client.release();
        }
      }),
    },
    {
      name: '`RedisDedupeStore`',
      must: 0.4,
      ours: handle(new RedisDedupeStore({ redis, keyPrefix: `${prefix}ours:` })),
      byHand: handWritten(async (push) => {
        await Promise.all(
          keysOf(push).map((key) => redis.set(`${prefix}hand:${key}`, 1, 'EX', 2_592_000, 'NX')),
        );
      }),
    },
    {
      name: '`MemoryDedupeStore`',
      must: 0.35,
      ours: handle(new MemoryDedupeStore()),
      byHand: handWritten(async (push) => {
        for (const key of keysOf(push)) seen.add(key);
      }),
    },
  ];
  const close = async () => {
    await pool.query(`DROP SCHEMA ${schema} CASCADE`);
    await pool.end();
    for await (const keys of redis.scanStream({ match: `${prefix}*`, count: 1_000 })) {
      if (keys.length > 0) await redis.unlink(...keys);
    }
    redis.disconnect();
  };
  return { cases, close };
}

let seed = 0;

/** Bodies of webhooks whose events nobody has seen. */
function newBodies(count: number, eventsPerWebhook: number): string[] {
  return Array.from({ length: count }, () => {
    seed += 1;
    const trackerId = `t${seed}-${process.pid}`;
    const events = Array.from({ length: eventsPerWebhook }, (_, index) => ({
      eventId: `e${index}`,
      status: 'In transit',
      occurrenceDatetime: `2026-03-04T17:${10 + index}:57`,
      order: index,
      location: 'SAN RAFAEL, CA',
      statusMilestone: 'in_transit',
    }));
    const metadata = {
      generatedAt: '2026-03-04T17:12:57.000Z',
      messageId: trackerId,
      topic: 'tracking/events',
    };
    return JSON.stringify({
      trackings: [{ metadata, tracker: { trackerId, trackingNumber: '9400115901047177598206' }, events }],
    });
  });
}

/** Sends all, 64 at a time, each `copies` times in shuffled order; events a second. */
export async function eventsPerSecond(
  receive: Receiver,
  bodies: readonly string[],
  events: number,
  copies: number,
) {
  const headers = { authorization: `Bearer ${SECRET}`, 'content-type': 'application/json' };
  const sends = shuffle(bodies.flatMap((body) => Array.from({ length: copies }, () => body)));
  const requests = sends.map((body) => {
    // As every server hands it over.
    const length = { 'content-length': String(Buffer.byteLength(body)) };
    return new Request('http://localhost/webhooks', {
      method: 'POST',
      headers: { ...headers, ...length },
      body,
    });
  });
  let next = 0;
  const send = async () => {
    while (next < requests.length) {
      const request = requests[next];
      next += 1;
      if (request === undefined) return;
      const { status } = await receive(request);
      if (status !== 200) throw new Error(`Expected 200, got ${status}`);
    }
  };
  const startedAt = performance.now();
  await Promise.all(Array.from({ length: CONCURRENCY }, send));
  return (bodies.length * events * 1000) / (performance.now() - startedAt);
}

function shuffle<Item>(items: readonly Item[]): Item[] {
  const placed = items.map((item) => ({ item, place: Math.random() }));
  return placed.sort((a, b) => a.place - b.place).map(({ item }) => item);
}

/** Both receivers in turns; medians. */
export async function measureReceivers(
  { name, must, ours, byHand }: ReceiverCase,
  eventsPerWebhook: number,
  copies: number,
  webhooks: number,
): Promise<ReceiverResult> {
  const figures = { ours: [] as number[], byHand: [] as number[] };
  for (let round = -1; round < ROUNDS; round += 1) {
    for (const [who, receive] of [
      ['ours', ours],
      ['byHand', byHand],
    ] as const) {
      const figure = await eventsPerSecond(
        receive,
        newBodies(webhooks, eventsPerWebhook),
        eventsPerWebhook,
        copies,
      );
      // The first round warms up.
      if (round >= 0) figures[who].push(figure);
    }
  }
  const [oursMedian, byHandMedian] = [median(figures.ours), median(figures.byHand)];
  const ratio = oursMedian / byHandMedian;
  return { name, eventsPerWebhook, copies, must, ours: oursMedian, byHand: byHandMedian, ratio };
}
