import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { PostgresDedupeStore } from '../../src/postgres/index.ts';
import type { InboxKind } from '../../test/system/receivers/receiver-config.ts';
import { runFleet } from '../../test/system/receivers/run.ts';
import { deleteKeys } from '../fleet/run.ts';
import { median, sum } from '../statistics.ts';

/** The result of one run. */
type StormReport = Omit<StoreResult, 'ratio' | 'must'>;

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
  /** Number of requests of all rounds by status; `0` counts requests to which a dying receiver did not respond. */
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
const ROUNDS = 3;
/** V8 compiles the code of a receiver during its first thousands of webhooks. A receiver that replaces a killed one is not warm. */
const WARM_UP_EVENTS = 8_000;

export function isByHand(inbox: InboxKind): boolean {
  return inbox.endsWith('by hand');
}

/**
 * Sends each event three times, shuffled, to four receiver processes of each kind: undisturbed in several rounds, in which all kinds
 * take turns, then once with kills.
 */
export async function measureStores(redisUrl: string, postgresUrl: string, isQuick: boolean) {
  const results: StoreResult[] = [];
  const events = isQuick ? 500 : EVENTS;
  for (const eventsPerWebhook of [8, 1]) {
    for (const database of ['redis', 'postgres'] as const) {
      const [run, url] = database === 'redis' ? [runOnRedis, redisUrl] : [runOnPostgres, postgresUrl];
      const undisturbed = { kills: 0, rounds: ROUNDS, warmUpEvents: WARM_UP_EVENTS };
      for (const { rounds, ...options } of [
        isQuick ? { kills: 0, rounds: 1 } : undisturbed,
        { kills: isQuick ? 3 : 10, rounds: 1 },
      ]) {
        const runs = new Map<InboxKind, StormReport[]>(INBOXES[database].map((inbox) => [inbox, []]));
        for (let round = 1; round <= rounds; round += 1) {
          // Every second round is backwards, because the machine may become slower or faster meanwhile.
          for (const [inbox, reports] of round % 2 === 1 ? runs : [...runs].reverse()) {
            console.error(
              `${inbox}, ${eventsPerWebhook} per webhook, ${options.kills} kills, round ${round}`,
            );
            reports.push(await run(url, { ...options, inbox, events, eventsPerWebhook }));
          }
        }
        results.push(...summarize(runs, eventsPerWebhook, isQuick ? {} : MUST));
      }
    }
  }
  return results;
}

/** Takes medians of the times and ratios, and adds the counts of all rounds. The runs by hand come first. */
function summarize(
  runs: ReadonlyMap<InboxKind, readonly StormReport[]>,
  eventsPerWebhook: number,
  targets: typeof MUST,
): StoreResult[] {
  const [byHand = []] = runs.values();
  return [...runs].map(([inbox, reports]) => {
    const total = (count: 'kills' | 'lost' | 'repeats' | 'unexcused') =>
      sum(reports.map((report) => report[count]));
    const ratios = reports.map(({ seconds }, round) => (byHand[round]?.seconds ?? Number.NaN) / seconds);
    const must = total('kills') === 0 ? targets[eventsPerWebhook]?.[inbox] : undefined;
    return {
      inbox,
      eventsPerWebhook,
      ratio: isByHand(inbox) ? null : median(ratios),
      must: must ?? null,
      kills: total('kills'),
      events: reports[0]?.events ?? 0,
      seconds: median(reports.map(({ seconds }) => seconds)),
      lost: total('lost'),
      repeats: total('repeats'),
      unexcused: total('unexcused'),
      responses: addCounts(reports.map(({ responses }) => responses)),
    };
  });
}

function addCounts(counts: readonly Readonly<Record<number, number>>[]): Record<number, number> {
  const sums: Record<number, number> = {};
  for (const [status, count] of counts.flatMap(Object.entries<number>))
    sums[Number(status)] = (sums[Number(status)] ?? 0) + count;
  return sums;
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
): Promise<StormReport> {
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
