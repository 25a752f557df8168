// The pattern of docs/recipes/postgres.md: the callback opens a transaction of its own, inserts the key of the event into a table
// with a unique index, leaves if the key was there, and writes.
import { randomUUID } from 'node:crypto';
import { beforeAll, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { MemoryDedupeStore, WebhookInbox } from '../../src/webhooks/index.ts';
import { deferred } from '../support/deferred.ts';
import { inTransaction } from './in-transaction.ts';
import { useSchema } from './postgres-schema.ts';
import { Fleet } from './receivers/fleet.ts';
import { SECRET } from './receivers/receiver-config.ts';
import { describeWithPostgres } from './services.ts';

await describeWithPostgres('a callback with its own transaction on a real PostgreSQL', (url) => {
  const { schema, pool } = useSchema(url);
  /** A tracker of the test's own, so that no two tests share a key. */
  let trackerId: string;
  beforeAll(async () => {
    await pool.query(`CREATE TABLE ${schema}.handled_events (key text PRIMARY KEY)`);
    await pool.query(`CREATE TABLE ${schema}.effects (key text)`);
  });
  beforeEach(() => {
    trackerId = randomUUID();
  });

  const buildBody = () => ({ trackerId, events: [{ eventId: 'a', occurrenceDatetime: '2021-03-04' }] });
  const buildKey = () => `tracking/events:${trackerId}:a`;

  /** A receiver with a memory of its own, as another process has. */
  function receive(afterInsert: () => unknown = () => {}) {
    const inbox = new WebhookInbox({ store: new MemoryDedupeStore(), onError: () => {} });
    return inbox.process(buildBody(), {
      onEvent: (_event, { key }) =>
        inTransaction(pool, async (transaction) => {
          const insert = `INSERT INTO ${schema}.handled_events VALUES ($1) ON CONFLICT DO NOTHING`;
          const { rowCount } = await transaction.query(insert, [key]);
          if (rowCount === 0) return;
          await transaction.query(`INSERT INTO ${schema}.effects VALUES ($1)`, [key]);
          await afterInsert();
        }),
    });
  }

  async function countEffects(): Promise<number> {
    const { rows } = await pool.query(`SELECT 1 FROM ${schema}.effects WHERE key = $1`, [buildKey()]);
    return rows.length;
  }

  /** Starts a receiver that has inserted the event, and does not commit before the test says so. */
  async function startRival() {
    const inserted = deferred();
    const end = deferred();
    const report = receive(() => {
      inserted.resolve();
      return end.promise;
    });
    await inserted.promise;
    return { report, commit: end.resolve, fail: () => end.reject(new Error('rival failed')) };
  }

  async function waitForLock(): Promise<void> {
    await vi.waitFor(async () => {
      const { rows } = await pool.query(
        `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%' || $1 || '%'`,
        [schema],
      );
      expect(rows.length).toBeGreaterThan(0);
    });
  }

  test('another receiver commits the event while we wait at its key → one effect', async () => {
    const rival = await startRival();
    const ours = receive();
    await waitForLock();
    rival.commit();
    expect(await Promise.all([ours, rival.report])).toMatchObject([{ outcome: 'done' }, { outcome: 'done' }]);
    expect(await countEffects()).toBe(1);
  });

  test('another receiver fails after its insert while we wait at its key → we write the event, one effect', async () => {
    const rival = await startRival();
    const ours = receive();
    await waitForLock();
    rival.fail();
    expect(await Promise.all([ours, rival.report])).toMatchObject([
      { outcome: 'done' },
      { outcome: 'failed' },
    ]);
    expect(await countEffects()).toBe(1);
  });

  test('a callback that throws after its insert → nothing is written, and the redelivery writes', async () => {
    const failed = await receive(() => Promise.reject(new Error('no disk')));
    expect([failed.outcome, await countEffects()]).toEqual(['failed', 0]);
    const repeated = await receive();
    expect([repeated.outcome, await countEffects()]).toEqual(['done', 1]);
  });

  test('eight receivers get the event three times at once, one in four fails, repeated until done → one effect', async () => {
    let count = 0;
    const fail = () => {
      count += 1;
      if (count % 4 === 1) throw new Error('no disk');
    };
    const deliver = async () => {
      for (;;) if ((await receive(fail)).outcome === 'done') return;
    };
    await Promise.all(Array.from({ length: 24 }, deliver));
    expect(await countEffects()).toBe(1);
  });

  test('a process killed between insert and commit, three times → nothing is written; the next process writes, one effect', async () => {
    const receivers = { inbox: 'transaction', serviceUrl: url, namespace: schema } as const;
    const post = (fleet: Fleet) =>
      fetch(fleet.urls()[0] ?? '', {
        method: 'POST',
        headers: { authorization: `Bearer ${SECRET}`, 'content-type': 'application/json' },
        body: JSON.stringify(buildBody()),
      });
    const stalling = await Fleet.start({ ...receivers, stalls: true }, 1);
    for (let kills = 0; kills < 3; kills += 1) {
      const cutOff = expect(post(stalling)).rejects.toThrow();
      await vi.waitFor(async () => {
        const { rows } = await pool.query(
          `SELECT 1 FROM pg_stat_activity WHERE state = 'idle in transaction' AND query LIKE '%' || $1 || '%'`,
          [`${schema}.effects`],
        );
        expect(rows).toHaveLength(1);
      }, 5_000);
      stalling.killOne();
      await cutOff;
      await vi.waitUntil(() => stalling.urls().length === 1, 10_000);
    }
    const journals = await stalling.stop();
    expect(journals.flatMap(({ lines }) => lines).filter(({ key }) => key === buildKey())).toHaveLength(3);
    expect(await countEffects()).toBe(0);
    const fleet = await Fleet.start(receivers, 1);
    onTestFinished(() => void fleet.stop());
    for (const _time of ['first', 'second']) expect((await post(fleet)).status).toBe(200);
    expect(await countEffects()).toBe(1);
  });
});
