import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { PostgresDedupeStore } from '../../src/postgres/index.ts';
import { createWebhookHandler, WebhookInbox } from '../../src/webhooks/index.ts';
import { makePool, useSchema } from '../integration/postgres-schema.ts';
import { describeWithPostgres, describeWithProgram } from '../integration/services.ts';
import { startOwnPgBouncer } from './own-pgbouncer.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const LEASE = { leaseMs: 60_000 };
/** Longer than the time limit of a store. */
const LOCKED_MS = 3_000;
const SERIALIZABLE = '-c default_transaction_isolation=serializable';

function postEvent(trackerId: string): Request {
  const body = JSON.stringify({ trackerId, events: [{ eventId: 'e' }] });
  const headers = { 'content-type': 'application/json' };
  return new Request('http://127.0.0.1/webhooks', { method: 'POST', headers, body });
}

await describeWithPostgres('other transactions on the table of events', (url) => {
  const { schema, pool: admin } = useSchema(url);
  const table = `${schema}.inbox`;
  const store = new PostgresDedupeStore({ pool: admin, table });
  beforeAll(() => store.createTable());

  /** A store with a pool of its own, as each receiver has one. */
  function makeStore(config: pg.PoolConfig = {}, commandTimeoutMs?: number): PostgresDedupeStore {
    const pool = makePool({ connectionString: url, ...config });
    onTestFinished(() => pool.end());
    return new PostgresDedupeStore({ pool, table, commandTimeoutMs });
  }

  async function connect(connectionString = url): Promise<pg.Client> {
    const client = new pg.Client({ connectionString });
    await client.connect();
    onTestFinished(() => client.end());
    return client;
  }

  /** Locks the rows of these keys. The function that it resolves to unlocks them. */
  async function lock(keys: readonly string[]): Promise<() => Promise<unknown>> {
    const client = await connect();
    await client.query('BEGIN');
    const { rowCount } = await client.query(`SELECT FROM ${table} WHERE key = ANY ($1) FOR UPDATE`, [keys]);
    expect(rowCount).toBe(keys.length);
    return () => client.query('ROLLBACK');
  }

  /** A key whose only attempt has failed, so that it has a row. */
  async function makeFailedKey(): Promise<string> {
    const key = randomUUID();
    await store.claim([key], { token: 'first', ...LEASE });
    await store.release([key], { token: 'first' });
    return key;
  }

  /** Locks the events of some trackers, and unlocks them when 200 webhooks about other trackers are answered. */
  async function expectNobodyWaits(store: PostgresDedupeStore, lockedCount: number) {
    const onEvent = vi.fn();
    const webhooks = createWebhookHandler({ secret: false, store, onEvent, onError: () => {} });
    const post = async (tracker: string) => (await webhooks(postEvent(tracker))).status;
    const locked = Array.from({ length: lockedCount }, () => randomUUID());
    const keys = locked.map((tracker) => `tracking/events:${tracker}:e`);
    await store.claim(keys, { token: 'first', ...LEASE });
    await store.release(keys, { token: 'first' });
    const unlock = await lock(keys);
    const answers = locked.map(post);
    const others = Array.from({ length: 200 }, async (_, index) => {
      await sleep((LOCKED_MS * index) / 200);
      return post(randomUUID());
    });
    expect(await Promise.all(others)).toEqual(Array(200).fill(200));
    expect(onEvent).toHaveBeenCalledTimes(200);
    await unlock();
    expect(await Promise.all(answers)).toEqual(Array(lockedCount).fill(200));
    expect(onEvent).toHaveBeenCalledTimes(200 + lockedCount);
  }

  describe('rows that another transaction has locked for 3 s', () => {
    test.each([1, 12])(
      '%i locked events → 200 other webhooks get 200 before the unlock, and the locked ones after it',
      (lockedCount) => expectNobodyWaits(makeStore(), lockedCount),
    );

    test('the same with serializable as the default level', () =>
      expectNobodyWaits(makeStore({ options: SERIALIZABLE }), 3));

    describeWithProgram('pgbouncer', 'behind PgBouncer in transaction mode', () => {
      test('the same, and no setting stays on a connection of the server', async () => {
        const bouncer = await startOwnPgBouncer(url, 5);
        onTestFinished(() => bouncer.stop());
        await expectNobodyWaits(makeStore({ connectionString: bouncer.url }), 3);
        const clients = await Promise.all(Array.from({ length: 5 }, () => connect(bouncer.url)));
        // Each transaction occupies another connection of the server.
        await Promise.all(clients.map((client) => client.query('BEGIN')));
        const settings = await Promise.all(clients.map((client) => client.query('SHOW lock_timeout')));
        expect(settings.flatMap(({ rows }) => rows)).toEqual(Array(5).fill({ lock_timeout: '0' }));
      });
    });
  });

  describe('a locked row', () => {
    test('a claim of a locked, a new and a done key → busy, acquired and done', async () => {
      const [locked, fresh, done] = [await makeFailedKey(), randomUUID(), randomUUID()];
      await store.commit([done], { retainMs: DAY_MS });
      const unlock = await lock([locked]);
      expect(await store.claim([locked, fresh, done], { token: 'mine', ...LEASE })).toEqual([
        { status: 'busy', retryAfterMs: 1_000 },
        { status: 'acquired', attempt: 1 },
        { status: 'done' },
      ]);
      await unlock();
    });

    test('a busy claim → takes no lease after the unlock', async () => {
      const key = await makeFailedKey();
      const unlock = await lock([key]);
      await store.claim([key], { token: 'late', ...LEASE });
      await unlock();
      expect(await store.claim([key], { token: 'mine', ...LEASE })).toEqual([
        { status: 'acquired', attempt: 2 },
      ]);
    });

    test('a key that another transaction has inserted and not committed → busy, and the other keys are acquired', async () => {
      const foreign = randomUUID();
      const client = await connect();
      await client.query('BEGIN');
      await client.query(
        `INSERT INTO ${table} (key, state, attempts, expires_at) VALUES ($1, 'failed', 1, now())`,
        [foreign],
      );
      const others = Array.from({ length: 20 }, () => randomUUID());
      const claim = (keys: string[]) => store.claim(keys, { token: 'mine', ...LEASE });
      const claims = await Promise.all([claim([foreign]), claim(others), claim([randomUUID()])]);
      expect(claims.flat()).toMatchObject([
        { status: 'busy' },
        ...Array(21).fill({ status: 'acquired', attempt: 1 }),
      ]);
      await client.query('ROLLBACK');
      expect(await claim([foreign])).toEqual([{ status: 'acquired', attempt: 1 }]);
    });

    test('a lease of another receiver → busy until that lease ends', async () => {
      const key = randomUUID();
      await store.claim([key], { token: 'theirs', ...LEASE });
      const unlock = await lock([key]);
      const [claim] = await store.claim([key], { token: 'mine', ...LEASE });
      await unlock();
      expect(claim).toEqual({
        status: 'busy',
        retryAfterMs: expect.toSatisfy((ms: number) => ms > 50_000 && ms <= 60_000),
      });
    });

    test('a renewal → rejects, because the lease is neither renewed nor lost', async () => {
      const key = randomUUID();
      await store.claim([key], { token: 'mine', ...LEASE });
      const unlock = await lock([key]);
      await expect(store.claim([key], { token: 'mine', ...LEASE })).rejects.toThrow(
        'another transaction has locked its row',
      );
      await unlock();
      expect(await store.claim([key], { token: 'mine', ...LEASE })).toEqual([
        { status: 'acquired', attempt: 1 },
      ]);
    });

    test('a commit and a release that begin before the unlock → both succeed after it', async () => {
      const [handled, failed] = [randomUUID(), randomUUID()];
      await store.claim([handled, failed], { token: 'mine', ...LEASE });
      const unlock = await lock([handled, failed]);
      const calls = [
        store.commit([handled], { retainMs: DAY_MS }),
        store.release([failed], { token: 'mine' }),
      ];
      await unlock();
      await Promise.all(calls);
      expect(await store.claim([handled, failed], { token: 'other', ...LEASE })).toEqual([
        { status: 'done' },
        { status: 'acquired', attempt: 2 },
      ]);
    });

    test('a commit and a release while the row stays locked → both reject, and succeed after the unlock', async () => {
      const [handled, failed] = [randomUUID(), randomUUID()];
      await store.claim([handled, failed], { token: 'mine', ...LEASE });
      const finish = () =>
        Promise.allSettled([
          store.commit([handled], { retainMs: DAY_MS }),
          store.release([failed], { token: 'mine' }),
        ]);
      const unlock = await lock([handled, failed]);
      const message = expect.stringContaining('another transaction has locked its row');
      expect(await finish()).toMatchObject([{ reason: { message } }, { reason: { message } }]);
      await unlock();
      expect(await finish()).toMatchObject([{ status: 'fulfilled' }, { status: 'fulfilled' }]);
    });

    test('a store on one connection → the locked key is busy, and calls for other keys succeed', async () => {
      const key = await makeFailedKey();
      const unlock = await lock([key]);
      const ownStore = new PostgresDedupeStore({ pool: await connect(), table });
      const [busy, ...others] = await Promise.all(
        [key, randomUUID(), randomUUID()].map((one) => ownStore.claim([one], { token: 'mine', ...LEASE })),
      );
      await unlock();
      expect(busy).toMatchObject([{ status: 'busy' }]);
      expect(others.flat()).toEqual(Array(2).fill({ status: 'acquired', attempt: 1 }));
    });

    test('a claim with retainMs of a done key → done without waiting, and the next claim remembers it for longer', async () => {
      const key = randomUUID();
      await store.commit([key], { retainMs: DAY_MS });
      const readDays = async () => {
        const text = `SELECT extract(day FROM expires_at - now())::int AS days FROM ${table} WHERE key = $1`;
        return (await admin.query(text, [key])).rows[0]?.days;
      };
      const retention = { token: 'mine', ...LEASE, retainMs: 30 * DAY_MS };
      const unlock = await lock([key]);
      expect(await store.claim([key], retention)).toEqual([{ status: 'done' }]);
      expect(await readDays()).toBe(0);
      await unlock();
      expect(await store.claim([key], retention)).toEqual([{ status: 'done' }]);
      expect(await readDays()).toBe(29);
    });

    test('a purge → deletes the other rows without waiting', async () => {
      const ownTable = `${schema}.purged`;
      const ownStore = new PostgresDedupeStore({ pool: admin, table: ownTable });
      await ownStore.createTable();
      await ownStore.commit(['free', 'locked'], { retainMs: 1 });
      await sleep(2);
      const client = await connect();
      await client.query('BEGIN');
      await client.query(`SELECT FROM ${ownTable} WHERE key = 'locked' FOR UPDATE`);
      const outcome = await Promise.race([ownStore.purge(), sleep(5_000, 'the purge waits')]);
      expect(outcome).toBe(1);
    });
  });

  describe('two receivers that get the same webhook with 3,000 events at once', () => {
    const EVENT_COUNT = 3_000;

    /** An inbox with a pool of its own, and the number of statements that it has sent. */
    function makeInbox() {
      const pool = makePool({ connectionString: url });
      onTestFinished(() => pool.end());
      const query = vi.fn((text: string, values?: unknown[]) => pool.query(text, values));
      // A long time limit, because the other suites run at the same time.
      const store = new PostgresDedupeStore({ pool: { query }, table, commandTimeoutMs: 30_000 });
      return { inbox: new WebhookInbox({ store }), query };
    }

    function buildWebhook(tracker: string) {
      const events = Array.from({ length: EVENT_COUNT }, (_, index) => ({ eventId: String(index) }));
      return { trackerId: tracker, events };
    }

    test('and a row that is locked → all other events handled once, in few statements, and a neighbour is not held up', async () => {
      const tracker = randomUUID();
      const lockedKey = `tracking/events:${tracker}:7`;
      await store.claim([lockedKey], { token: 'first', ...LEASE });
      await store.release([lockedKey], { token: 'first' });
      const unlock = await lock([lockedKey]);
      const receivers = [makeInbox(), makeInbox()];
      const handled: string[] = [];
      const process = (options: object) =>
        receivers.map(({ inbox }) =>
          inbox.process(
            buildWebhook(tracker),
            { onEvents: ({ events }) => void handled.push(...events.map(({ eventId }) => String(eventId))) },
            options,
          ),
        );
      const reports = process({ busyTimeoutMs: 0 });
      const neighbour = receivers[0]?.inbox.process(
        { trackerId: randomUUID(), events: [{ eventId: 'e' }] },
        () => {},
      );
      expect(await neighbour).toMatchObject({ outcome: 'done', handled: 1 });
      expect((await Promise.all(reports)).map(({ outcome }) => outcome)).toEqual(['busy', 'busy']);
      expect([handled.length, new Set(handled).size]).toEqual([EVENT_COUNT - 1, EVENT_COUNT - 1]);
      const statements = receivers.reduce((sum, { query }) => sum + query.mock.calls.length, 0);
      expect(statements).toBeLessThan(100);
      await unlock();
      await Promise.all(process({}));
      expect([handled.length, new Set(handled).size]).toEqual([EVENT_COUNT, EVENT_COUNT]);
    });
  });
});
