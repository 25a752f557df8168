import { beforeAll, expect, test } from 'vitest';
import { PostgresDedupeStore } from '../../src/postgres/index.ts';
import { useSchema } from '../integration/postgres-schema.ts';
import { describeWithPostgres } from '../integration/services.ts';
import { runFleet } from './receivers/run.ts';

const TRAFFIC = { events: 200, copies: 3, perWebhook: 8, concurrency: 24 };
const KILLS = 3;

await describeWithPostgres('four receiver processes on one PostgreSQL', (url) => {
  const { schema, pool } = useSchema(url);
  beforeAll(() => new PostgresDedupeStore({ pool, table: `${schema}.inbox` }).createTable());

  test('every event delivered 3 times, shuffled, receivers killed at random → none lost, repeats only where a kill fell before the commit', async () => {
    const receivers = { inbox: 'postgres', serviceUrl: url, namespace: schema } as const;
    const report = await runFleet({ receivers, size: 4, traffic: TRAFFIC, kills: KILLS });
    expect(report).toMatchObject({ lost: [], unexcused: [], kills: KILLS });
  });
});
