import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { PostgresDedupeStore } from '../../src/postgres/index.ts';
import type { InboxKind } from '../../test/integration/receivers/receiver-config.ts';
import { runFleet } from '../../test/integration/receivers/run.ts';
import { deleteKeys } from '../fleet/run.ts';

export interface StoreResult {
  readonly inbox: InboxKind;
  readonly eventsPerWebhook: number;
  /** Events per second, divided by those of the receiver by hand on the same database and with as many kills. */
  readonly ratio: number | null;
  /** Target of the ratio; null if there is none. */
  readonly must: number | null;
  readonly kills: number;
  readonly events: number;
  readonly seconds: number;
  readonly lost: number;
  /** Number of times that an event was handled again, or with `transaction`, written again. */
  readonly repeats: number;
  /** Number of repeats that no kill between handling and commit explains. */
  readonly unexcused: number;
  /** Number of requests by status; `0` counts requests to which a dying receiver did not respond. */
  readonly responses: Readonly<Record<number, number>>;
}

/** The inboxes on each database; the receiver by hand comes first, because the others are compared with it. */
const INBOXES = {
  redis: ['redis by hand', 'redis', 'ioredis'],
  postgres: ['postgres by hand', 'postgres', 'transaction'],
} as const;

/** Targets of the ratio without kills, by the number of events in a webhook. */
const MUST: Readonly<Record<number, Partial<Record<InboxKind, number>>>> = {
  8: { redis: 0.35, ioredis: 0.35, postgres: 0.45 },
  1: { redis: 0.5, ioredis: 0.5, postgres: 0.7 },
};

const EVENTS = 4_000;
/** V8 compiles the code of a receiver during its first thousands of webhooks. A receiver that replaces a killed one is not warm. */
const WARM_UP_EVENTS = 8_000;

export function isByHand(inbox: InboxKind): boolean {
  return inbox.endsWith('by hand');
}

/** Sends each event three times, shuffled, to four receiver processes of each kind: undisturbed, then with kills. */
export async function measureStores(redisUrl: string, postgresUrl: string, isQuick: boolean) {
  const results: StoreResult[] = [];
  for (const eventsPerWebhook of [8, 1]) {
    for (const database of ['redis', 'postgres'] as const) {
      const [run, url] = database === 'redis' ? [runOnRedis, redisUrl] : [runOnPostgres, postgresUrl];
      for (const kills of [0, isQuick ? 3 : 10]) {
        let rateByHand = Number.NaN;
        for (const inbox of INBOXES[database]) {
          console.error(`${inbox}, ${eventsPerWebhook} per webhook, ${kills} kills`);
          const events = isQuick ? 500 : EVENTS;
          const warmUpEvents = kills > 0 || isQuick ? 0 : WARM_UP_EVENTS;
          const result = await run(url, { inbox, kills, events, eventsPerWebhook, warmUpEvents });
          const rate = events / result.seconds;
          if (isByHand(inbox)) rateByHand = rate;
          const must = kills === 0 ? MUST[eventsPerWebhook]?.[inbox] : undefined;
          results.push({
            ...result,
            ratio: isByHand(inbox) ? null : rate / rateByHand,
            must: must ?? null,
          });
        }
      }
    }
  }
  return results;
}

/** Options of a run with four receivers: their store, the events that they get, and the number of kills. */
interface Storm {
  readonly inbox: InboxKind;
  readonly kills: number;
  readonly events: number;
  readonly eventsPerWebhook: number;
  /** How many events the receivers get before the measured time. Default: 0. */
  readonly warmUpEvents?: number | undefined;
  /** The receivers run these programs in turn. Default: that of the sources. */
  readonly programs?: readonly string[];
}

/** Sends a storm of events to four receivers on Redis. */
export async function runOnRedis(url: string, storm: Storm) {
  const namespace = `bench:${randomUUID()}:`;
  try {
    return await runReceivers({ inbox: storm.inbox, serviceUrl: url, namespace }, storm);
  } finally {
    await deleteKeys(url, namespace);
  }
}

/** Sends a storm of events to four receivers on PostgreSQL. */
export async function runOnPostgres(url: string, storm: Storm) {
  const namespace = `bench_${randomUUID().slice(0, 8)}`;
  const pool = new pg.Pool({ connectionString: url, max: 1 }).on('error', console.error);
  try {
    await pool.query(`CREATE SCHEMA ${namespace}`);
    await pool.query(`CREATE TABLE ${namespace}.handled_events (key text PRIMARY KEY)`);
    await pool.query(`CREATE TABLE ${namespace}.effects (key text)`);
    await new PostgresDedupeStore({ pool, table: `${namespace}.inbox` }).createTable();
    const result = await runReceivers({ inbox: storm.inbox, serviceUrl: url, namespace }, storm);
    if (storm.inbox !== 'transaction') return result;
    // The journals also hold attempts that were rolled back, so count the committed rows instead.
    const { rows } = await pool.query(
      `SELECT count(*)::int AS written, count(DISTINCT key)::int AS events FROM ${namespace}.effects`,
    );
    const repeats = rows[0].written - rows[0].events;
    const sent = storm.events + (storm.warmUpEvents ?? 0);
    return { ...result, lost: sent - rows[0].events, repeats, unexcused: repeats };
  } finally {
    await pool.query(`DROP SCHEMA ${namespace} CASCADE`);
    await pool.end();
  }
}

async function runReceivers(
  receivers: Parameters<typeof runFleet>[0]['receivers'],
  { kills, events, eventsPerWebhook, warmUpEvents, programs }: Storm,
): Promise<Omit<StoreResult, 'ratio' | 'must'>> {
  const traffic = { events, copies: 3, perWebhook: eventsPerWebhook, concurrency: 24 };
  const report = await runFleet({ receivers, size: 4, traffic, warmUpEvents, kills, programs });
  return {
    inbox: receivers.inbox,
    eventsPerWebhook,
    kills: report.kills,
    events,
    seconds: report.elapsedMs / 1000,
    lost: report.lost.length,
    repeats: report.repeats,
    unexcused: report.unexcused.length,
    responses: report.responses,
  };
}
