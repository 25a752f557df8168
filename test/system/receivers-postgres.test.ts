import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { PostgresDedupeStore } from '../../src/postgres/index.ts';
import { describeWithPostgres } from '../integration/services.ts';
import type { InboxKind } from './receivers/receiver-config.ts';
import { runFleet } from './receivers/run.ts';

const TRAFFIC = { events: 200, copies: 3, perWebhook: 8, concurrency: 24 };
const KILLS = 3;

await describeWithPostgres('four receiver processes on one PostgreSQL', (url) => {
  const suffix = randomUUID().slice(0, 8);
  const schemas = {
    killed: `test_killed_${suffix}`,
    atomic: `test_atomic_${suffix}`,
  };
  let pool: pg.Pool;
  beforeAll(async () => {
    pool = new pg.Pool({ connectionString: url, max: 2 });
    for (const schema of Object.values(schemas)) {
      await pool.query(`CREATE SCHEMA ${schema}`);
      await pool.query(`CREATE TABLE ${schema}.handled_events (key text PRIMARY KEY)`);
      await pool.query(`CREATE TABLE ${schema}.effects (key text)`);
      await new PostgresDedupeStore({ pool, table: `${schema}.inbox` }).createTable();
    }
  });
  afterAll(async () => {
    for (const schema of Object.values(schemas)) await pool.query(`DROP SCHEMA ${schema} CASCADE`);
    await pool.end();
  });

  function run(inbox: InboxKind, namespace: string) {
    const receivers = { inbox, serviceUrl: url, namespace };
    return runFleet({ receivers, size: 4, traffic: TRAFFIC, kills: KILLS });
  }

  test('every event delivered 3 times, shuffled, receivers killed at random → none lost, repeats only where a kill fell before the commit', async () => {
    const report = await run('postgres', schemas.killed);
    expect(report).toMatchObject({ lost: [], unexcused: [], kills: KILLS });
  });

  test('callbacks with their own transaction, receivers killed at random → one effect for every event', async () => {
    const { kills } = await run('transaction', schemas.atomic);
    const { rows } = await pool.query(
      `SELECT count(*)::int AS effects, count(DISTINCT key)::int AS events FROM ${schemas.atomic}.effects`,
    );
    expect(kills).toBe(KILLS);
    expect(rows).toEqual([{ effects: TRAFFIC.events, events: TRAFFIC.events }]);
  });
});
