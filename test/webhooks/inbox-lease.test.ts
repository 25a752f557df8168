import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type EventContext, MemoryDedupeStore } from '../../src/webhooks/index.ts';
import { watchTimers } from '../support/watch-timers.ts';
import { deferred, makeInbox, payload, ScriptedStore, tracking } from './support.ts';

const LEASE_MS = 60_000;
const RETAIN = { retainMs: 30 * 86_400_000 };
const keyOf = (eventId: string) => `tracking/events:t1:${eventId}`;

/** Keeps every renewal from the store until the leases have ended, and leases an event to another receiver. */
async function steal(eventId: string, store: ScriptedStore): Promise<void> {
  store.before = () => Promise.reject(new Error('unreachable'));
  await vi.advanceTimersByTimeAsync(LEASE_MS + 1);
  store.before = () => {};
  const [stolen] = await store.claim([keyOf(eventId)], { token: 'thief', leaseMs: LEASE_MS });
  expect(stolen?.status).toBe('acquired');
}

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe('claiming', () => {
  test('a payload of three events → one claim and one commit, whatever their number', async () => {
    const store = new ScriptedStore();
    // A process that has run for a while.
    vi.advanceTimersByTime(LEASE_MS);
    await makeInbox({ store }).process(payload(tracking('t1', 'e1', 'e2', 'e3')), () => {});
    expect(store.calls.map(({ operation, keys }) => [operation, keys.length])).toEqual([
      ['claim', 3],
      ['commit', 3],
    ]);
  });

  test('an event id twice in one payload → the store is asked for distinct keys', async () => {
    const store = new ScriptedStore();
    await makeInbox({ store }).process(payload(tracking('t1', 'e1', 'e1'), tracking('t1', 'e1')), () => {});
    expect(store.calls[0]).toEqual({ operation: 'claim', keys: [keyOf('e1')] });
  });

  test('one payload → one token; another payload → another token', async () => {
    const store = new ScriptedStore();
    const inbox = makeInbox({ store });
    await inbox.process(payload(tracking('t1', 'e1', 'e2')), () => {});
    expect(store.tokens.size).toBe(1);
    await inbox.process(payload(tracking('t1', 'e3')), () => {});
    expect(store.tokens.size).toBe(2);
  });

  test('half a lease later, and another receiver finished an event → claimed again, not handled again', async () => {
    const store = new MemoryDedupeStore();
    const handled: unknown[] = [];
    const report = await makeInbox({ store }).process(payload(tracking('t1', 'e1', 'e2')), async (event) => {
      handled.push(event.eventId);
      vi.advanceTimersByTime(LEASE_MS / 2);
      if (event.eventId === 'e1') await store.commit([keyOf('e2')], RETAIN);
    });
    expect(handled).toEqual(['e1']);
    expect(report).toMatchObject({ outcome: 'done', handled: 1, duplicates: 1 });
  });

  test('a slow second callback → what was handled before it is committed after a third of the lease', async () => {
    const store = new ScriptedStore();
    const work = deferred();
    const processing = makeInbox({ store }).process(payload(tracking('t1', 'e1', 'e2')), ({ eventId }) =>
      eventId === 'e2' ? work.promise : undefined,
    );
    await vi.advanceTimersByTimeAsync(LEASE_MS / 3 - 1);
    expect(store.calls.map(({ operation }) => operation)).toEqual(['claim']);
    await vi.advanceTimersByTimeAsync(1);
    expect(store.calls.slice(1)).toEqual([
      { operation: 'commit', keys: [keyOf('e1')] },
      { operation: 'claim', keys: [keyOf('e2')] },
    ]);
    work.resolve();
    await processing;
    expect(store.calls.at(-1)).toEqual({ operation: 'commit', keys: [keyOf('e2')] });
  });

  test('a store that refuses commits, and a slow second callback → the handled event stays leased, nobody else gets it', async () => {
    const store = new ScriptedStore();
    const work = deferred();
    const processing = makeInbox({ store }).process(payload(tracking('t1', 'e1', 'e2')), ({ eventId }) =>
      eventId === 'e2' ? work.promise : undefined,
    );
    store.before = (operation) => {
      if (operation === 'commit') throw new Error('read-only');
    };
    await vi.advanceTimersByTimeAsync(3 * LEASE_MS);
    const [claim] = await store.claim([keyOf('e1')], { token: 'other', leaseMs: 1 });
    expect(claim?.status).toBe('busy');
    store.before = () => {};
    work.resolve();
    expect(await processing).toMatchObject({ outcome: 'done', handled: 2 });
    const [late] = await store.claim([keyOf('e1')], { token: 'other', leaseMs: 1 });
    expect(late?.status).toBe('done');
  });

  test('onEvents with one event taken over meanwhile → called with the rest only', async () => {
    const store = new ScriptedStore();
    const seen: unknown[] = [];
    await makeInbox({ store }).process(payload(tracking('t0', 'e0'), tracking('t1', 'e1', 'e2')), {
      onEvents: async ({ events }) => {
        seen.push(events.map(({ eventId }) => eventId));
        vi.advanceTimersByTime(LEASE_MS / 2);
        await store.commit([keyOf('e1')], RETAIN);
      },
    });
    expect(seen).toEqual([['e0'], ['e2']]);
  });
});

describe('a round after another one', () => {
  /** Lets another receiver hold `e2` at first, and begins with `e1` and `e3`. */
  async function begin() {
    const store = new ScriptedStore();
    await store.claim([keyOf('e2')], { token: 'other', leaseMs: LEASE_MS });
    const works = { e1: deferred(), e2: deferred(), e3: deferred() };
    const signals = new Map<unknown, AbortSignal>();
    const processing = makeInbox({ store, busyTimeoutMs: 5 * LEASE_MS }).process(
      payload(tracking('t1', 'e1', 'e2', 'e3')),
      ({ eventId }, { signal }) => {
        signals.set(eventId, signal);
        return works[eventId as keyof typeof works].promise;
      },
    );
    await vi.advanceTimersByTimeAsync(1);
    return { store, works, signals, processing };
  }

  test('a commit by the timer outlasts its round → the callback of the next round is left alone, and what fails is released', async () => {
    const { store, works, signals, processing } = await begin();
    works.e1.resolve();
    await vi.advanceTimersByTimeAsync(1);
    const slow = deferred();
    let commits = 0;
    store.before = (operation) => (operation === 'commit' && commits++ === 0 ? slow.promise : undefined);
    await vi.advanceTimersByTimeAsync(LEASE_MS / 3);
    expect(commits).toBe(1);
    store.before = () => {};
    await store.release([keyOf('e2')], { token: 'other' });
    works.e3.resolve();
    await vi.advanceTimersByTimeAsync(1_000);
    slow.resolve();
    await vi.advanceTimersByTimeAsync(LEASE_MS / 3 + 1_000);
    expect(signals.get('e2')?.aborted).toBe(false);
    works.e2.reject(new Error('failed'));
    expect(await processing).toMatchObject({ outcome: 'failed', handled: 2 });
    const [claim] = await store.claim([keyOf('e2')], { token: 'third', leaseMs: 1 });
    expect(claim?.status).toBe('acquired');
  });

  test('a renewal outlasts its round → the next round claims after it', async () => {
    const { store, works, processing } = await begin();
    const slow = deferred();
    store.before = (operation) => (operation === 'claim' ? slow.promise : undefined);
    await vi.advanceTimersByTimeAsync(LEASE_MS / 3);
    store.before = () => {};
    works.e1.resolve();
    works.e3.resolve();
    await store.release([keyOf('e2')], { token: 'other' });
    store.calls.length = 0;
    await vi.advanceTimersByTimeAsync(1_000);
    expect(store.calls.map(({ operation }) => operation)).toEqual(['commit']);
    slow.resolve();
    works.e2.resolve();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await processing).toMatchObject({ outcome: 'done', handled: 3 });
  });

  test('an event that a round did not get → not in the renewals of that round', async () => {
    const { store, works, processing } = await begin();
    await vi.advanceTimersByTimeAsync(LEASE_MS / 3);
    expect(store.calls.at(-1)).toEqual({ operation: 'claim', keys: [keyOf('e1'), keyOf('e3')] });
    for (const work of Object.values(works)) work.resolve();
    await store.release([keyOf('e2')], { token: 'other' });
    await vi.advanceTimersByTimeAsync(1_000);
    await processing;
  });
});

describe('heartbeat', () => {
  test('a callback that outlives its lease → the lease is kept, nobody else gets the event', async () => {
    const store = new MemoryDedupeStore();
    const inbox = makeInbox({ store });
    const work = deferred();
    const processing = inbox.process(payload(tracking('t1', 'e1')), () => work.promise);
    await vi.advanceTimersByTimeAsync(5 * LEASE_MS);
    const [claim] = await store.claim([keyOf('e1')], { token: 'other', leaseMs: 1 });
    expect(claim?.status).toBe('busy');
    work.resolve();
    expect(await processing).toMatchObject({ outcome: 'done', handled: 1 });
  });

  test('a slow first callback → the leases of the events behind it are kept too', async () => {
    const store = new MemoryDedupeStore();
    const work = deferred();
    const processing = makeInbox({ store }).process(payload(tracking('t1', 'e1', 'e2')), () => work.promise);
    await vi.advanceTimersByTimeAsync(2 * LEASE_MS);
    const [claim] = await store.claim([keyOf('e2')], { token: 'other', leaseMs: 1 });
    expect(claim?.status).toBe('busy');
    work.resolve();
    expect(await processing).toMatchObject({ handled: 2 });
  });

  test('one renewal fails → told to onError, and the next one keeps the lease', async () => {
    const store = new ScriptedStore();
    const work = deferred();
    const told: unknown[] = [];
    const inbox = makeInbox({ store, onError: (...error) => told.push(error) });
    const processing = inbox.process(payload(tracking('t1', 'e1')), () => work.promise);
    await vi.advanceTimersByTimeAsync(1);
    const reset = new Error('connection reset');
    let failures = 0;
    store.before = (operation) => {
      if (operation === 'claim' && failures++ === 0) throw reset;
    };
    await vi.advanceTimersByTimeAsync(LEASE_MS);
    const [claim] = await store.claim([keyOf('e1')], { token: 'other', leaseMs: 1 });
    expect(failures).toBeGreaterThan(1);
    expect(told).toEqual([[reset, { operation: 'renew', keys: [keyOf('e1')] }]]);
    expect(claim?.status).toBe('busy');
    work.resolve();
    expect((await processing).outcome).toBe('done');
  });

  test.each([
    ['the lease was lost', 'onEvent', ['e1']],
    ['one of two leases was lost', 'onEvents', ['e1', 'e2']],
  ])(
    '%s and another receiver took over → the %s is told by its signal',
    async (_title, callback, eventIds) => {
      const store = new ScriptedStore();
      let signal: AbortSignal | undefined;
      const work = deferred();
      const processing = makeInbox({ store }).process(payload(tracking('t1', ...eventIds)), {
        [callback]: (_given: unknown, context: EventContext) => {
          signal = context.signal;
          return work.promise;
        },
      });
      await vi.advanceTimersByTimeAsync(1);
      await steal('e1', store);
      expect(signal?.aborted).toBe(false);
      await vi.advanceTimersByTimeAsync(LEASE_MS / 3);
      expect(signal?.aborted).toBe(true);
      work.resolve();
      await processing;
    },
  );

  test('the lease of an event behind was lost → the callback that runs is left alone', async () => {
    const store = new ScriptedStore();
    let signal: AbortSignal | undefined;
    const work = deferred();
    const inbox = makeInbox({ store, busyTimeoutMs: 0 });
    const processing = inbox.process(payload(tracking('t1', 'e1', 'e2')), (_event, context) => {
      signal = context.signal;
      return work.promise;
    });
    await vi.advanceTimersByTimeAsync(1);
    await steal('e2', store);
    await vi.advanceTimersByTimeAsync(LEASE_MS / 3);
    expect(signal?.aborted).toBe(false);
    work.resolve();
    expect(await processing).toMatchObject({ outcome: 'busy', handled: 1, busy: [keyOf('e2')] });
  });

  test('another receiver took an event over while its commit was slow → its callback, which has ended, is not told', async () => {
    const store = new ScriptedStore();
    const slow = deferred();
    let signal: AbortSignal | undefined;
    const processing = makeInbox({ store }).process(
      payload(tracking('t1', 'e1')),
      async (_event, context) => {
        signal = context.signal;
      },
    );
    store.before = (operation) => (operation === 'commit' ? slow.promise : undefined);
    await vi.advanceTimersByTimeAsync(1);
    store.claim = async (keys) => keys.map(() => ({ status: 'busy', retryAfterMs: LEASE_MS }));
    await vi.advanceTimersByTimeAsync(LEASE_MS / 3);
    expect(signal?.aborted).toBe(false);
    slow.resolve();
    await processing;
  });

  test('an event that failed → not renewed with the others', async () => {
    const store = new ScriptedStore();
    const work = deferred();
    const processing = makeInbox({ store }).process(payload(tracking('t1', 'e1', 'e2')), ({ eventId }) =>
      eventId === 'e1' ? Promise.reject(new Error('failed')) : work.promise,
    );
    await vi.advanceTimersByTimeAsync(LEASE_MS / 3);
    expect(store.calls.at(-1)).toEqual({ operation: 'claim', keys: [keyOf('e2')] });
    work.resolve();
    await processing;
  });

  test('a release that outlasts a renewal → the store is not asked to renew nothing', async () => {
    const store = new ScriptedStore();
    const slow = deferred();
    store.before = (operation) => (operation === 'release' ? slow.promise : undefined);
    const processing = makeInbox({ store }).process(payload(tracking('t1', 'e1')), () =>
      Promise.reject(new Error('failed')),
    );
    await vi.advanceTimersByTimeAsync(LEASE_MS / 3);
    expect(store.calls.map(({ operation }) => operation)).toEqual(['claim', 'release']);
    slow.resolve();
    await processing;
  });

  test('under way → its timer does not keep the process alive', async () => {
    await watchTimers(async (started) => {
      const work = deferred();
      const processing = makeInbox().process(payload(tracking('t1', 'e1')), () => work.promise);
      await vi.advanceTimersByTimeAsync(1);
      const beat = started.find(({ delayMs }) => delayMs === LEASE_MS / 3);
      expect(beat?.timer.hasRef()).toBe(false);
      work.resolve();
      await processing;
    });
  });

  test('the lease was stolen and the callback succeeds → the late commit still marks the event done', async () => {
    const store = new ScriptedStore();
    const work = deferred();
    const processing = makeInbox({ store }).process(payload(tracking('t1', 'e1')), () => work.promise);
    await vi.advanceTimersByTimeAsync(1);
    await steal('e1', store);
    work.resolve();
    expect((await processing).outcome).toBe('done');
    const [claim] = await store.claim([keyOf('e1')], { token: 'third', leaseMs: 1 });
    expect(claim?.status).toBe('done');
  });

  test('a callback fails while a renewal is under way → one release, which waits for it, and the event is free at once', async () => {
    const store = new ScriptedStore();
    const inbox = makeInbox({ store, busyTimeoutMs: 0 });
    const work = deferred();
    const processing = inbox.process(payload(tracking('t1', 'e1')), () => work.promise);
    await vi.advanceTimersByTimeAsync(1);
    const slow = deferred();
    store.before = (operation) => (operation === 'claim' ? slow.promise : undefined);
    await vi.advanceTimersByTimeAsync(LEASE_MS / 3);
    work.reject(new Error('failed'));
    await vi.advanceTimersByTimeAsync(1);
    slow.resolve();
    expect((await processing).outcome).toBe('failed');
    expect(store.calls.map(({ operation }) => operation)).toEqual(['claim', 'claim', 'release']);
    expect(await inbox.process(payload(tracking('t1', 'e1')), () => {})).toMatchObject({ handled: 1 });
  });

  test('done → no timer is left behind', async () => {
    const work = deferred();
    const processing = makeInbox().process(payload(tracking('t1', 'e1')), () => work.promise);
    await vi.advanceTimersByTimeAsync(LEASE_MS);
    work.resolve();
    await processing;
    expect(vi.getTimerCount()).toBe(0);
  });

  test('done while a renewal is under way → no timer is left behind', async () => {
    const store = new ScriptedStore();
    const [work, slow] = [deferred(), deferred()];
    const processing = makeInbox({ store }).process(payload(tracking('t1', 'e1')), () => work.promise);
    await vi.advanceTimersByTimeAsync(1);
    store.before = (operation) => (operation === 'claim' ? slow.promise : undefined);
    await vi.advanceTimersByTimeAsync(LEASE_MS / 3);
    work.resolve();
    await vi.advanceTimersByTimeAsync(1);
    slow.resolve();
    await processing;
    expect(vi.getTimerCount()).toBe(0);
  });
});
