import { describe, expect, test, vi } from 'vitest';
import { PostgresDedupeStore, type Queryable } from '../../../src/postgres/index.ts';
import { WebhookInbox } from '../../../src/webhooks/index.ts';
import { settled } from '../../support/settled.ts';
import { useVirtualTime } from '../../support/virtual-time.ts';

const LEASE = { token: 'mine', leaseMs: 60_000 };
const TOO_LATE = {
  reason: {
    message: expect.stringContaining('The store did not respond within 2000 ms (`commandTimeoutMs`)'),
  },
};
/** A database without keys, whose statements each reply after a number of milliseconds; more statements never reply. */
class SlowDatabase {
  /** The keys of each statement. */
  readonly sent: (readonly string[])[] = [];
  readonly #delays: number[];

  constructor(...delays: number[]) {
    this.#delays = delays;
  }

  readonly query: Queryable['query'] = (_text, [keys] = []) => {
    const sent = keys as string[]; // The store sends its keys as the first value.
    this.sent.push(sent);
    const rows = sent.map((key) => ({ key, claimant: LEASE.token, attempts: 1 }));
    return new Promise((resolve) => {
      const delayMs = this.#delays.shift();
      if (delayMs !== undefined) setTimeout(() => resolve({ rows }), delayMs);
    });
  };
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

  test('a call that gets no reply → the message names the option with which `pg` replaces such connections', async () => {
    const clock = useVirtualTime();
    const outcome = expect(
      new PostgresDedupeStore({ pool: new SlowDatabase() }).claim(['a'], LEASE),
    ).rejects.toThrow(
      '; set `query_timeout` of your `pg` pool, so that it replaces connections that never answer',
    );
    await clock.advance(2_000);
    await outcome;
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
