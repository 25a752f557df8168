import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { PostgresDedupeStore } from '../../src/postgres/index.ts';
import { RedisDedupeStore } from '../../src/redis/index.ts';
import { type DedupeStore, WebhookInbox } from '../../src/webhooks/index.ts';
import { makePool } from './postgres-schema.ts';
import { ownKeys } from './redis-clients.ts';
import { describeWithAnyPostgres, describeWithRedis } from './services.ts';
import type { TestDatabase } from './test-database.ts';

const IDS = Array.from({ length: 10 }, (_, index) => `e${100 + index}`);
const BODY = { trackerId: 't1', events: IDS.map((eventId) => ({ eventId })) };

/** Delivers a webhook of ten events at once to three receivers; returns how the callbacks went. */
async function deliverAtOnce(stores: readonly DedupeStore[]) {
  const handled: unknown[] = [];
  let running = 0;
  let overlaps = 0;
  const outcomes = await Promise.all(
    stores.map(async (store) => {
      const { outcome } = await new WebhookInbox({ store }).process(BODY, async ({ eventId }) => {
        if (running > 0) overlaps += 1;
        running += 1;
        await sleep(5);
        running -= 1;
        handled.push(eventId);
      });
      return outcome;
    }),
  );
  return { handled, overlaps, outcomes };
}

const ONE_AFTER_ANOTHER = { handled: IDS, overlaps: 0, outcomes: ['done', 'done', 'done'] };

await describeWithRedis('one webhook delivered three times at once, with Redis', (url) => {
  const { keyPrefix } = ownKeys(url);
  const redis = new Redis(url);
  afterAll(() => redis.disconnect());

  test('ten events of a tracker → handled once each, in their order, and no callbacks overlap', async () => {
    const stores = [1, 2, 3].map(() => new RedisDedupeStore({ redis, keyPrefix }));
    expect(await deliverAtOnce(stores)).toEqual(ONE_AFTER_ANOTHER);
  });
});

await describeWithAnyPostgres('one webhook delivered three times at once, with PostgreSQL', (create) => {
  let database: TestDatabase;
  let pool: pg.Pool;
  beforeAll(async () => {
    database = await create();
    pool = makePool({ connectionString: database.url, max: database.maxConnections });
  });
  afterAll(async () => {
    await pool.end();
    await database.drop();
  });

  test('ten events of a tracker → handled once each, in their order, and no callbacks overlap', async () => {
    const stores = [1, 2, 3].map(() => new PostgresDedupeStore({ pool }));
    await stores[0]?.createTable();
    expect(await deliverAtOnce(stores)).toEqual(ONE_AFTER_ANOTHER);
  });
});
