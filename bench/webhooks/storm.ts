import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { PostgresDedupeStore } from '../../src/postgres/index.ts';
import { deleteKeys } from '../../test/support/fleet/run.ts';
import type { InboxKind } from '../../test/system/receivers/receiver-config.ts';
import { runFleet } from '../../test/system/receivers/run.ts';

/** Options of a run with four receivers: their store, the events that they get, and the number of kills. */
interface Storm {
  readonly inbox: InboxKind;
  /** How many receivers are killed and replaced meanwhile. Default: 0. */
  readonly kills?: number;
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

/** The result of a storm. */
interface StormReport {
  readonly seconds: number;
  readonly lost: number;
  /** Number of times that an event was handled again, or with `transaction`, written again. */
  readonly repeats: number;
  /** Number of repeats that no kill between handling and commit explains. */
  readonly unexcused: number;
}

async function runReceivers(
  receivers: Parameters<typeof runFleet>[0]['receivers'],
  { kills = 0, events, eventsPerWebhook, warmUpEvents, programs }: Storm,
): Promise<StormReport> {
  const traffic = { events, copies: 3, perWebhook: eventsPerWebhook, concurrency: 24 };
  const report = await runFleet({ receivers, size: 4, traffic, warmUpEvents, kills, programs });
  return {
    seconds: report.elapsedMs / 1000,
    lost: report.lost.length,
    repeats: report.repeats,
    unexcused: report.unexcused.length,
  };
}
