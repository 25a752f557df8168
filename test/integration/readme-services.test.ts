import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import pg from 'pg';
import type { createClient } from 'redis';
import { createWebhookSender, type WebhookTarget } from 'tracking-client/testing';
import { expect, it, vi } from 'vitest';
import { type Block, readReadme, typeScriptBlocks } from '../readme/support/readme.ts';
import { SECRET, type Stage, setStage } from '../readme/support/stage.ts';
import { describeWithPostgres, describeWithRedis } from './services.ts';

/** A database of Redis that nothing else here uses, so the block may keep its default keys. */
const REDIS_DATABASE = 11;

// The real clients; only remembered, since a program of the README keeps its connections for good.
const connections = vi.hoisted((): { destroy(): void }[] => []);
vi.mock('redis', async (importOriginal) => {
  const redis = await importOriginal<typeof import('redis')>();
  const createRemembered = (...options: Parameters<typeof createClient>) => {
    const client = redis.createClient(...options);
    connections.push(client);
    return client;
  };
  return { ...redis, createClient: createRemembered };
});

function blockOf(id: string): Block {
  const block = typeScriptBlocks(readReadme()).programs.find((program) => program.id === id);
  if (block === undefined) throw new Error(`Expected README.md to hold the block "${id}", got none`);
  return block;
}

/** Creates a tracker, and sends each of its two events three times to the handler that a block exports. */
async function sendEvents(
  { fake, client }: Stage,
  { webhooks }: Readonly<Record<string, unknown>>,
): Promise<number> {
  await client.trackers.create({ trackingNumber: 'RR123456785CN', shipmentReference: 'a gift' });
  fake.shipment('RR123456785CN').addEvent({ statusMilestone: 'in_transit' }).deliver();
  // The block exports what `createWebhookHandler` gave it; the compiler checks that in another test.
  const target = webhooks as WebhookTarget;
  const report = await createWebhookSender({
    ...{ target, secret: SECRET, fake, duplicates: 2, concurrency: 4, until2xx: true },
  }).flush();
  return report.accepted;
}

await describeWithPostgres('a program of the README with PostgreSQL', (url) => {
  it('webhooks 3 → each event is written once', async () => {
    const schema = `readme_${randomUUID().replaceAll('-', '')}`;
    const admin = new pg.Client({ connectionString: url });
    await admin.connect();
    await admin.query(`CREATE SCHEMA ${schema}`);
    await admin.query(`CREATE TABLE ${schema}.parcel_events (tracker_id text, status text)`);
    const own = new URL(url);
    own.searchParams.set('options', `-c search_path=${schema}`);
    await using stage = await setStage({ environment: { DATABASE_URL: own.href } });
    const connect = vi.spyOn(pg.Pool.prototype, 'connect');
    try {
      expect(await sendEvents(stage, await stage.run(blockOf('webhooks 3')))).toBe(2);
      const { rows } = await admin.query(`SELECT status FROM ${schema}.parcel_events ORDER BY status`);
      expect(rows).toEqual([{ status: 'Delivered' }, { status: 'In transit' }]);
    } finally {
      for (const pool of new Set(connect.mock.contexts)) if (pool instanceof pg.Pool) await pool.end();
      await admin.query(`DROP SCHEMA ${schema} CASCADE`);
      await admin.end();
    }
  });
});

await describeWithRedis('a program of the README with Redis', (url) => {
  it('many-processes 1 → each event is handled once, within one allowance', async () => {
    const own = new URL(url);
    own.pathname = `/${REDIS_DATABASE}`;
    const admin = new Redis(own.href);
    await using stage = await setStage({ environment: { REDIS_URL: own.href } });
    try {
      expect(await sendEvents(stage, await stage.run(blockOf('many-processes 1')))).toBe(2);
      expect([...stage.output].sort()).toEqual(['a gift Delivered', 'a gift In transit']);
      expect(await admin.keys('tracking-client:limiter:*')).not.toEqual([]);
      expect(await admin.keys('tracking-client:dedupe:*')).toHaveLength(2);
    } finally {
      for (const connection of connections) connection.destroy();
      const keys = await admin.keys('tracking-client:*');
      if (keys.length > 0) await admin.del(...keys);
      admin.disconnect();
    }
  });
});
