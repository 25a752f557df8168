import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import pg from 'pg';
import { PostgresDedupeStore } from '../../src/postgres/index.ts';
import type { InboxKind } from '../../test/integration/receivers/receiver-config.ts';
import { runFleet } from '../../test/integration/receivers/run.ts';
import type { Traffic } from '../../test/integration/receivers/sender.ts';

/** One case: a kind of inbox, and how many receivers are killed meanwhile. */
export interface FleetCase {
  readonly inbox: InboxKind;
  readonly kills: number;
}

/** What came of a case. */
export interface FleetResult extends FleetCase {
  readonly events: number;
  readonly messages: number;
  readonly webhooks: number;
  /** Handlings of an event, or for `TransactionalInbox` rows written, beyond the first. */
  readonly repeats: number;
  readonly lost: number;
  /** Repeats that no kill between handling and commit explains. */
  readonly unexcused: number;
  readonly seconds: number;
  readonly answers: Readonly<Record<number, number>>;
}

/** Where the servers are. */
export interface Services {
  readonly redisUrl: string;
  readonly postgresUrl: string;
}

/** Runs a case on four receiver processes with a namespace of its own, and leaves nothing behind. */
export async function runFleetCase(
  services: Services,
  { inbox, kills }: FleetCase,
  traffic: Traffic,
): Promise<FleetResult> {
  const isRedis = inbox === 'redis' || inbox === 'ioredis';
  const place = isRedis ? await redisPlace(services.redisUrl) : await postgresPlace(services.postgresUrl);
  try {
    const receivers = { inbox, serviceUrl: place.url, namespace: place.namespace };
    const report = await runFleet({ receivers, size: 4, traffic, kills });
    // The journal of a transactional handler also holds tries that were rolled back; its effects are the rows.
    const written = inbox === 'postgres transactional' ? await place.effects() : undefined;
    return {
      inbox,
      kills: report.kills,
      events: traffic.events,
      messages: traffic.events * traffic.copies,
      webhooks: report.webhooks,
      repeats: written === undefined ? report.repeats : written.rows - written.events,
      lost: written === undefined ? report.lost.length : traffic.events - written.events,
      unexcused: written === undefined ? report.unexcused.length : written.rows - written.events,
      seconds: report.elapsedMs / 1000,
      answers: report.answers,
    };
  } finally {
    await place.remove();
  }
}

interface Place {
  readonly url: string;
  readonly namespace: string;
  effects(): Promise<{ rows: number; events: number }>;
  remove(): Promise<void>;
}

async function redisPlace(url: string): Promise<Place> {
  const namespace = `bench:${randomUUID()}:`;
  return {
    url,
    namespace,
    effects: () => Promise.reject(new Error('Redis holds no effects')),
    remove: async () => {
      const redis = new Redis(url);
      for await (const keys of redis.scanStream({ match: `${namespace}*`, count: 1_000 })) {
        if (keys.length > 0) await redis.del(...keys);
      }
      redis.disconnect();
    },
  };
}

async function postgresPlace(url: string): Promise<Place> {
  const namespace = `bench_${randomUUID().slice(0, 8)}`;
  const pool = new pg.Pool({ connectionString: url, max: 1 });
  await pool.query(`CREATE SCHEMA ${namespace}`);
  await pool.query(`CREATE TABLE ${namespace}.effects (key text)`);
  await new PostgresDedupeStore({ pool, table: `${namespace}.inbox` }).createTable();
  return {
    url,
    namespace,
    effects: async () => {
      const { rows } = await pool.query(
        `SELECT count(*)::int AS rows, count(DISTINCT key)::int AS events FROM ${namespace}.effects`,
      );
      return rows[0];
    },
    remove: async () => {
      await pool.query(`DROP SCHEMA ${namespace} CASCADE`);
      await pool.end();
    },
  };
}
