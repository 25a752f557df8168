import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { beforeAll, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { TransactionalInbox, type TransactionalInboxOptions } from '../../src/postgres/index.ts';
import { deferred } from '../support/deferred.ts';
import { settled } from '../support/settled.ts';
import { makePool, useSchema } from './postgres-schema.ts';
import { describeWithPostgres } from './services.ts';

const silent = () => {};

await describeWithPostgres('TransactionalInbox on a real PostgreSQL', (url) => {
  const { schema, pool } = useSchema(url);
  const table = `${schema}.inbox`;
  /** A tracker of the test's own, so that no two tests share a key. */
  let trackerId: string;
  beforeAll(async () => {
    await pool.query(`CREATE TABLE ${schema}.effects (tracker_id text, event_id text)`);
    await makeInbox().createTable();
  });
  beforeEach(() => {
    trackerId = randomUUID();
  });

  function makeInbox(options: Partial<TransactionalInboxOptions<pg.Pool>> = {}) {
    return new TransactionalInbox({ pool, table, onError: silent, ...options });
  }

  function push(...ids: string[]) {
    return { trackerId, events: ids.map((eventId) => ({ eventId, occurrenceDatetime: '2021-03-04' })) };
  }

  function write(event: { readonly eventId?: unknown }, { transaction }: { transaction: pg.PoolClient }) {
    return transaction.query(`INSERT INTO ${schema}.effects VALUES ($1, $2)`, [trackerId, event.eventId]);
  }

  async function effects(): Promise<unknown[]> {
    const { rows } = await pool.query(
      `SELECT event_id FROM ${schema}.effects WHERE tracker_id = $1 ORDER BY event_id`,
      [trackerId],
    );
    return rows.map((row) => row.event_id);
  }

  /** Starts a receiver that handles event `a` until the test ends its callback. */
  async function startRival() {
    const begun = deferred<void>();
    const end = deferred<void>();
    const report = makeInbox().process(push('a'), async (event, context) => {
      await write(event, context);
      begun.resolve();
      await end.promise;
    });
    await begun.promise;
    return { report, commit: end.resolve, fail: () => end.reject(new Error('rival failed')) };
  }

  /** Resolves once a statement of this test waits for a lock. */
  async function waitForLock(): Promise<void> {
    await vi.waitFor(async () => {
      const { rows } = await pool.query(
        `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%' || $1 || '%'`,
        [`"${schema}"`],
      );
      expect(rows.length).toBeGreaterThan(0);
    });
  }

  test('another receiver commits while we wait → a duplicate, one effect', async () => {
    const rival = await startRival();
    const ours = makeInbox().process(push('a'), write);
    await waitForLock();
    rival.commit();
    expect(await ours).toMatchObject({ outcome: 'done', handled: 0, duplicates: 1 });
    expect(await rival.report).toMatchObject({ outcome: 'done', handled: 1 });
    expect(await effects()).toEqual(['a']);
  });

  test('another receiver fails while we wait → we handle the event, one effect', async () => {
    const rival = await startRival();
    const ours = makeInbox().process(push('a'), write);
    await waitForLock();
    rival.fail();
    expect(await ours).toMatchObject({ outcome: 'done', handled: 1 });
    expect(await rival.report).toMatchObject({ outcome: 'failed', handled: 0 });
    expect(await effects()).toEqual(['a']);
  });

  test('another receiver takes longer than busyTimeoutMs → busy, and the other events are handled', async () => {
    const rival = await startRival();
    const ours = await makeInbox().process(push('a', 'b'), write, { busyTimeoutMs: 50 });
    expect(ours).toMatchObject({
      outcome: 'busy',
      busy: [`tracking/events:${trackerId}:a`],
      handled: 1,
      failures: [],
    });
    rival.commit();
    await rival.report;
    expect(await effects()).toEqual(['a', 'b']);
  });

  test('another receiver takes the event after our failure → our report does not wait for that receiver', async () => {
    const rivalBegun = deferred<void>();
    const rivalEnd = deferred<void>();
    let rival: Promise<unknown> | undefined;
    const onError = vi.fn();
    const ours = await makeInbox({ onError }).process(push('a'), async () => {
      rival = makeInbox().process(push('a'), async () => {
        rivalBegun.resolve();
        await rivalEnd.promise;
      });
      await waitForLock();
      throw new Error('we failed');
    });
    await rivalBegun.promise;
    expect(ours).toMatchObject({ outcome: 'failed' });
    expect(onError).toHaveBeenCalledWith(expect.objectContaining({ code: '55P03' }), {
      operation: 'release',
      keys: [`tracking/events:${trackerId}:a`],
    });
    rivalEnd.resolve();
    expect(await rival).toMatchObject({ outcome: 'done', handled: 1 });
  });

  test('another receiver loses its connection → we handle the event, and its process goes on', async () => {
    const rival = await startRival();
    const ours = makeInbox().process(push('a'), write);
    await waitForLock();
    await pool.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE state = 'idle in transaction' AND query LIKE '%' || $1 || '%'`,
      [schema],
    );
    expect(await ours).toMatchObject({ outcome: 'done', handled: 1 });
    rival.commit();
    expect(await rival.report).toMatchObject({ outcome: 'unavailable', handled: 0 });
    expect(await effects()).toEqual(['a']);
  });

  test('a callback that still writes after its timeout → its connection is not reused, none of its writes last', async () => {
    const small = makePool({ connectionString: url, max: 1 });
    onTestFinished(() => small.end());
    const late = deferred<unknown>();
    const report = await makeInbox({ pool: small, callbackTimeoutMs: 50 }).process(
      push('a'),
      (event, context) =>
        new Promise((_, reject) => {
          context.signal.addEventListener('abort', async () => {
            await settled();
            write(event, context).then(late.resolve, late.resolve);
            reject(context.signal.reason);
          });
        }),
    );
    expect(report).toMatchObject({ outcome: 'failed', handled: 0 });
    expect(await late.promise).toBeInstanceOf(Error);
    expect(await effects()).toEqual([]);
    expect(await makeInbox({ pool: small }).process(push('a'), write)).toMatchObject({ handled: 1 });
  });
});
