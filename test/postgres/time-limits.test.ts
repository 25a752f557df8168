import { EventEmitter } from 'node:events';
import { describe, expect, test, vi } from 'vitest';
import { PostgresDedupeStore, type Queryable } from '../../src/postgres/index.ts';
import { WebhookInbox } from '../../src/webhooks/index.ts';
import { settled } from '../support/settled.ts';
import { useVirtualTime } from '../support/virtual-time.ts';

const LEASE = { token: 'mine', leaseMs: 60_000 };
const TOO_LATE = { reason: { message: 'The store did not respond within 2000 ms (`commandTimeoutMs`)' } };
const LOST = new Error('connection lost');

/**
 * A database without keys, whose writes each reply after a number of milliseconds; more writes never reply. A read replies at
 * once.
 */
class SlowDatabase {
  /** The keys of each write. */
  readonly sent: (readonly string[])[] = [];
  readonly #delays: number[];

  constructor(...delays: number[]) {
    this.#delays = delays;
  }

  readonly query: Queryable['query'] = (text, [keys] = []) => {
    if (text.startsWith('SELECT')) return Promise.resolve({ rows: [] });
    const sent = keys as string[]; // The store sends its keys as the first value.
    this.sent.push(sent);
    const rows = sent.map((key) => ({ key, attempts: 1 }));
    return new Promise((resolve) => {
      const delayMs = this.#delays.shift();
      if (delayMs !== undefined) setTimeout(() => resolve({ rows }), delayMs);
    });
  };
}

/** A pool as that of `pg`; `log` has what happened to its connections. */
function makePool(query: Queryable['query'], { connectMs = 0 } = {}) {
  const log: string[] = [];
  const connections: EventEmitter[] = [];
  const pool = {
    totalCount: 0,
    query: () => Promise.reject(new Error('the pool itself was queried')),
    connect: async () => {
      if (connectMs > 0) await new Promise((resolve) => setTimeout(resolve, connectMs));
      log.push('lent');
      const release = (destroy: boolean) => log.push(destroy ? 'destroyed' : 'released');
      const connection = Object.assign(new EventEmitter(), { query, release });
      connections.push(connection);
      return connection;
    },
  };
  return { pool, log, connections };
}

describe('a database that hangs', () => {
  test.each([
    ['claim', (store: PostgresDedupeStore) => store.claim(['a'], LEASE)],
    ['commit', (store: PostgresDedupeStore) => store.commit(['a'], { retainMs: 1 })],
    ['release', (store: PostgresDedupeStore) => store.release(['a'], LEASE)],
  ])('%s → rejects after commandTimeoutMs', async (_title, call) => {
    const clock = useVirtualTime();
    const store = new PostgresDedupeStore({ pool: new SlowDatabase(), commandTimeoutMs: 20 });
    const outcome = expect(call(store)).rejects.toThrow(
      'The store did not respond within 20 ms (`commandTimeoutMs`)',
    );
    await clock.advance(20);
    await outcome;
    expect(store.commandTimeoutMs).toBe(20);
  });

  test('a read that replies after every call has given up → nothing is claimed', async () => {
    const clock = useVirtualTime();
    const written: string[] = [];
    const query = async (text: string) => {
      if (text.startsWith('SELECT')) await new Promise((resolve) => setTimeout(resolve, 2_500));
      else written.push(text);
      return { rows: [] };
    };
    const outcome = Promise.allSettled([new PostgresDedupeStore({ pool: { query } }).claim(['a'], LEASE)]);
    await clock.advance(3_000);
    expect([await outcome, written]).toMatchObject([[TOO_LATE], []]);
  });

  test('a read that hangs → rejects after commandTimeoutMs', async () => {
    const clock = useVirtualTime();
    const store = new PostgresDedupeStore({ pool: { query: () => new Promise<never>(() => {}) } });
    const outcome = Promise.allSettled([store.claim(['a'], LEASE)]);
    await clock.advance(2_000);
    expect(await outcome).toMatchObject([TOO_LATE]);
  });

  test('a call behind a hanging call → rejects after one limit, counted from its own start', async () => {
    const clock = useVirtualTime();
    const store = new PostgresDedupeStore({ pool: new SlowDatabase() });
    const first = store.claim(['a'], LEASE).catch(() => {});
    await clock.advance(500);
    const outcome = Promise.allSettled([store.claim(['b'], LEASE)]);
    await clock.advance(2_000);
    expect(await outcome).toMatchObject([TOO_LATE]);
    await first;
    expect(store.commandTimeoutMs).toBe(2_000);
  });

  test('a hanging statement → the next one is sent after commandTimeoutMs', async () => {
    const clock = useVirtualTime();
    const database = new SlowDatabase();
    const store = new PostgresDedupeStore({ pool: database });
    const outcomes = Promise.allSettled([store.claim(['a'], LEASE)]);
    await clock.advance(1_500);
    const later = Promise.allSettled([store.claim(['b'], LEASE)]);
    await clock.advance(499);
    expect(database.sent).toEqual([['a']]);
    await clock.advance(1);
    expect(database.sent).toEqual([['a'], ['b']]);
    await clock.advance(2_000);
    await Promise.all([outcomes, later]);
  });

  test('two calls while a statement is under way → one next statement for both', async () => {
    const clock = useVirtualTime();
    const database = new SlowDatabase(100, 100);
    const store = new PostgresDedupeStore({ pool: database });
    const claims = [store.claim(['a'], LEASE)];
    await clock.advance(99);
    claims.push(store.claim(['b'], LEASE), store.claim(['c', 'd'], LEASE));
    await settled();
    expect(database.sent).toEqual([['a']]);
    await clock.advance(101);
    expect((await Promise.all(claims)).map(({ length }) => length)).toEqual([1, 1, 2]);
    expect(database.sent).toEqual([['a'], ['b', 'c', 'd']]);
  });

  test('a claim that succeeds after its limit → the inbox releases its keys at once', async () => {
    const clock = useVirtualTime();
    const database = new SlowDatabase(2_500, 0, 0);
    const store = new PostgresDedupeStore({ pool: database });
    const released = vi.spyOn(store, 'release');
    const inbox = new WebhookInbox({ store, onError: () => {} });
    const report = inbox.process({ trackerId: 't', events: [{ eventId: 'e' }] }, { onEvent: () => {} });
    await clock.advance(2_000);
    expect(await report).toMatchObject({ outcome: 'unavailable' });
    released.mockClear();
    await clock.advance(499);
    expect(released).not.toHaveBeenCalled();
    await clock.advance(1);
    expect(released).toHaveBeenCalledOnce();
  });
});

describe('a pool that lends connections', () => {
  test('claim, commit and release → each runs on a connection, which is released', async () => {
    const { pool, log } = makePool(async () => ({ rows: [] }));
    const store = new PostgresDedupeStore({ pool });
    // The claim first reads the key on the same connection.
    await store.claim(['a'], LEASE);
    await store.commit(['a'], { retainMs: 1 });
    await store.release(['a'], LEASE);
    expect(log).toEqual(['lent', 'released', 'lent', 'released', 'lent', 'released']);
  });

  test('a `Client`, which has `connect` but no `totalCount` → its `query` is used', async () => {
    const connect = vi.fn();
    const query = vi.fn(async () => ({ rows: [] }));
    const client = { query, connect };
    await new PostgresDedupeStore({ pool: client }).commit(['a'], { retainMs: 1 });
    expect([query.mock.calls.length, connect.mock.calls.length]).toEqual([1, 0]);
  });

  test('a statement that fails → its connection is destroyed, and the call rejects with its error', async () => {
    const { pool, log } = makePool(() => Promise.reject(LOST));
    await expect(new PostgresDedupeStore({ pool }).claim(['a'], LEASE)).rejects.toBe(LOST);
    expect(log).toEqual(['lent', 'destroyed']);
  });

  test('a pool that cannot connect → the calls that wait reject with its error, and the next call tries again', async () => {
    const connect = vi.fn(() => Promise.reject(LOST));
    const pool = { ...makePool(vi.fn()).pool, connect };
    const store = new PostgresDedupeStore({ pool });
    const outcomes = await Promise.allSettled([store.claim(['a'], LEASE), store.claim(['b'], LEASE)]);
    expect(outcomes).toMatchObject([{ reason: LOST }, { reason: LOST }]);
    await expect(store.claim(['a'], LEASE)).rejects.toBe(LOST);
    expect(connect).toHaveBeenCalledTimes(2);
  });

  test('a connection that breaks while it is lent → no uncaught error; its listener goes when it is returned', async () => {
    const clock = useVirtualTime();
    const { pool, connections } = makePool(new SlowDatabase(10).query);
    const claim = new PostgresDedupeStore({ pool }).claim(['a'], LEASE);
    await settled();
    connections[0]?.emit('error', LOST);
    await clock.advance(10);
    await claim;
    expect(connections[0]?.listenerCount('error')).toBe(0);
  });

  test('a connection that comes after its caller gave up → returned unused', async () => {
    const clock = useVirtualTime();
    const database = new SlowDatabase(0);
    const { pool, log } = makePool(database.query, { connectMs: 2_001 });
    const store = new PostgresDedupeStore({ pool });
    vi.spyOn(store, 'release').mockResolvedValue();
    const inbox = new WebhookInbox({ store, onError: () => {} });
    const report = inbox.process({ trackerId: 't', events: [{ eventId: 'e' }] }, { onEvent: () => {} });
    await clock.advance(2_001);
    expect(await report).toMatchObject({ outcome: 'unavailable' });
    expect([database.sent, log]).toEqual([[], ['lent', 'released']]);
  });

  test('a connection that comes after one of two callers gave up → only the other call is sent', async () => {
    const clock = useVirtualTime();
    const database = new SlowDatabase(800, 0);
    const { pool } = makePool(database.query, { connectMs: 700 });
    const store = new PostgresDedupeStore({ pool });
    const first = store.claim(['a'], LEASE);
    await clock.advance(100);
    const gone = Promise.allSettled([store.claim(['gone'], LEASE)]);
    await clock.advance(1_300);
    const kept = store.claim(['kept'], LEASE);
    await clock.advance(900);
    expect(await Promise.all([first, kept])).toEqual(Array(2).fill([{ status: 'acquired', attempt: 1 }]));
    expect(await gone).toMatchObject([TOO_LATE]);
    expect(database.sent).toEqual([['a'], ['kept']]);
  });

  test.each([
    ['no reply → kept for another limit, then destroyed', [], ['lent'], ['lent', 'destroyed']],
    ['a late reply → released, not destroyed', [3_998], ['lent', 'released'], ['lent', 'released']],
    ['a reply after it was destroyed → nothing more', [4_001], ['lent'], ['lent', 'destroyed']],
  ])('the connection of a statement with %s', async (_title, delays, before, after) => {
    const clock = useVirtualTime();
    const { pool, log } = makePool(new SlowDatabase(...delays).query);
    const outcome = Promise.allSettled([new PostgresDedupeStore({ pool }).claim(['a'], LEASE)]);
    await clock.advance(3_999);
    expect([await outcome, log]).toMatchObject([[TOO_LATE], before]);
    await clock.advance(10_000);
    expect(log).toEqual(after);
  });

  test('a limit of 24 days → the connection is not destroyed at once', async () => {
    const clock = useVirtualTime();
    const { pool, log } = makePool(new SlowDatabase(50).query);
    const claim = new PostgresDedupeStore({ pool, commandTimeoutMs: 2 ** 31 - 1 }).claim(['a'], LEASE);
    await clock.advance(50);
    await claim;
    expect([log, clock.timerCount]).toEqual([['lent', 'released'], 0]);
  });
});
