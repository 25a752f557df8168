import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { MemoryDedupeStore } from '../../src/webhooks/index.ts';
import { deferred } from '../support/deferred.ts';
import {
  buildKey,
  E1,
  failingOn,
  failure,
  makeInbox,
  payload,
  ScriptedStore,
  TWO,
  tracking,
  useFakeTimers,
} from './support.ts';

const LEASE_MS = 60_000;
const away = () => Promise.reject(new Error('unreachable'));
type Options = NonNullable<Parameters<typeof makeInbox>[0]>;

useFakeTimers();

/** Starts a webhook whose callbacks the test ends, and lets the inbox claim its events. */
async function begin(
  eventIds: string[],
  store = new ScriptedStore(),
  options: Options = {},
  callback = 'onEvent',
) {
  const works = new Map(eventIds.map((eventId) => [eventId, deferred()]));
  const signals = new Map<string, AbortSignal>();
  const handle = (eventId: string, { signal }: { signal: AbortSignal }) => {
    signals.set(eventId, signal);
    return works.get(eventId)?.promise;
  };
  const processing = makeInbox({ store, ...options }).process(payload(tracking('t1', ...eventIds)), {
    [callback]: (
      given: { eventId?: string; events?: { eventId?: string }[] },
      context: { signal: AbortSignal },
    ) => handle(given.eventId ?? given.events?.[0]?.eventId ?? '', context),
  });
  await vi.advanceTimersByTimeAsync(1);
  const end = async (eventId: string, error?: Error) => {
    if (error === undefined) works.get(eventId)?.resolve();
    else works.get(eventId)?.reject(error);
    await vi.advanceTimersByTimeAsync(1);
  };
  return { store, processing, end, isAborted: (eventId: string) => signals.get(eventId)?.aborted };
}

/** Lets another receiver take an event over, so that the next renewal finds it busy. */
function steal(eventId: string, store: ScriptedStore): void {
  const claim = store.claim.bind(store);
  store.claim = async (keys, options) => {
    const claims = await claim(keys, options);
    return claims.map((own, index) =>
      keys[index] === buildKey(eventId) ? { status: 'busy', retryAfterMs: LEASE_MS } : own,
    );
  };
}

test('three events, one of them twice → each is claimed, called and committed before the next', async () => {
  const store = new ScriptedStore();
  const steps: unknown[] = [];
  store.before = (operation, keys) => steps.push([operation, ...keys]);
  await makeInbox({ store }).process(
    payload(tracking('t1', 'e1', 'e2', 'e1'), tracking('t1', 'e3')),
    (_event, { key }) => steps.push(['call', key]),
  );
  const keys = [buildKey('e1'), buildKey('e2'), buildKey('e3')];
  expect(steps).toEqual(
    keys.flatMap((key) => [
      ['claim', key],
      ['call', key],
      ['commit', key],
    ]),
  );
});

test('a callback that fails → its event is free before the next event is claimed', async () => {
  const store = new ScriptedStore();
  await makeInbox({ store }).process(TWO, failingOn('e1').handler);
  expect(store.operations).toEqual(['claim', 'release', 'claim', 'commit']);
  expect(await store.lease('e1')).toBe('acquired');
});

describe('a claim whose reply comes after the lease has ended', () => {
  /** An inbox with a lease of a second, on a store whose first replies come late. */
  function makeLate(lateReplies: number) {
    const store = new ScriptedStore();
    const claim = store.claim.bind(store);
    let replies = 0;
    store.claim = async (keys, options) => {
      const claims = await claim(keys, options);
      replies += 1;
      if (replies <= lateReplies) await new Promise((resolve) => setTimeout(resolve, 1_500));
      return claims;
    };
    const [onEvent, onError] = [vi.fn(), vi.fn()];
    const inbox = makeInbox({ store, leaseMs: 1_000, busyTimeoutMs: 0, onError });
    return { store, inbox, onEvent, onError };
  }

  test('no other receiver → renewed, and then handled', async () => {
    const { store, inbox, onEvent } = makeLate(1);
    const processing = inbox.process(E1, onEvent);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(await processing).toMatchObject({ outcome: 'done', handled: 1 });
    expect(store.operations).toEqual(['claim', 'claim', 'commit']);
    expect(onEvent).toHaveBeenCalledOnce();
  });

  test('another receiver has the event now → busy, and not called', async () => {
    const { store, inbox, onEvent } = makeLate(1);
    const processing = inbox.process(E1, onEvent);
    await vi.advanceTimersByTimeAsync(1_200);
    expect(await store.lease('e1')).toBe('acquired');
    await vi.advanceTimersByTimeAsync(1_000);
    expect((await processing).outcome).toBe('busy');
    expect(onEvent).not.toHaveBeenCalled();
  });

  test('every reply is late → unavailable, not called, and an error that names leaseMs', async () => {
    const { inbox, onEvent, onError } = makeLate(Number.POSITIVE_INFINITY);
    const processing = inbox.process(E1, onEvent);
    await vi.advanceTimersByTimeAsync(10_000);
    expect((await processing).outcome).toBe('unavailable');
    expect(onEvent).not.toHaveBeenCalled();
    const [error, context] = onError.mock.lastCall ?? [];
    expect(error).toMatchObject({ message: expect.stringMatching(/after the lease .*`leaseMs` is 1000/) });
    expect(context).toEqual({ operation: 'renew', keys: [buildKey('e1')] });
  });

  test('another receiver has one of two events now → the callback gets the other, with a signal that is not aborted', async () => {
    const { store, inbox } = makeLate(1);
    const seen: unknown[] = [];
    const onEvents = ({ events }: { events: { eventId?: unknown }[] }, { signal }: { signal: AbortSignal }) =>
      void seen.push([events.map(({ eventId }) => eventId), signal.aborted]);
    const processing = inbox.process(TWO, { onEvents });
    await vi.advanceTimersByTimeAsync(1_200);
    expect(await store.lease('e2')).toBe('acquired');
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await processing).toMatchObject({ outcome: 'busy', handled: 1 });
    expect(seen).toEqual([[['e1'], false]]);
  });
});

test('a lease that ends between two callbacks and is renewed → the signal of the second callback is not aborted', async () => {
  const store = new ScriptedStore();
  const claim = store.claim.bind(store);
  store.claim = async (keys, options) => {
    const claims = await claim(keys, options);
    if (performance.now() - startedAt > 700) await new Promise((resolve) => setTimeout(resolve, 600));
    return claims;
  };
  const seen: boolean[] = [];
  const onDeadLetter = (_event: unknown, { signal }: { signal: AbortSignal }) =>
    void seen.push(signal.aborted);
  const inbox = makeInbox({ store, leaseMs: 1_000, maxAttempts: 1, onDeadLetter });
  const startedAt = performance.now();
  const processing = inbox.process(E1, () => new Promise((_, reject) => setTimeout(reject, 800, failure)));
  await vi.advanceTimersByTimeAsync(1);
  store.on('claim', () =>
    performance.now() - startedAt < 700 ? Promise.reject(new Error('away')) : undefined,
  );
  await vi.advanceTimersByTimeAsync(2_000);
  expect(await processing).toMatchObject({ outcome: 'done', deadLettered: 1 });
  expect(seen).toEqual([false]);
});

test('retainMs of 60 days → a redelivery after 50 days is a duplicate, and one 61 days later is handled again', async () => {
  const DAY_MS = 86_400_000;
  const inbox = makeInbox({ store: new MemoryDedupeStore(), retainMs: 60 * DAY_MS });
  const handle = () => inbox.process(E1, () => {});
  expect(await handle()).toMatchObject({ handled: 1 });
  vi.advanceTimersByTime(50 * DAY_MS);
  expect(await handle()).toMatchObject({ handled: 0, duplicates: 1 });
  vi.advanceTimersByTime(61 * DAY_MS);
  expect(await handle()).toMatchObject({ handled: 1 });
});

describe('every third of a lease', () => {
  test('a slow callback of e1 → the lease of e1 alone is renewed; no timer is left at the end', async () => {
    const { store, processing, end } = await begin(['e1', 'e2']);
    const renewal = { operation: 'claim', keys: [buildKey('e1')] };
    await vi.advanceTimersByTimeAsync(LEASE_MS / 3 - 2);
    expect(store.calls.slice(1)).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(store.calls.slice(1)).toEqual([renewal]);
    await vi.advanceTimersByTimeAsync(LEASE_MS);
    expect(store.calls.slice(1)).toEqual(Array(4).fill(renewal));
    await end('e1');
    await end('e2');
    expect(await processing).toMatchObject({ outcome: 'done', handled: 2 });
    expect(vi.getTimerCount()).toBe(0);
  });

  test('commits that fail for longer than a short lease → the lease is renewed meanwhile, and the event is done at last', async () => {
    const { store, processing, end } = await begin(['e1'], new ScriptedStore(), { leaseMs: 900 });
    store.on('commit', () => Promise.reject(new Error('read-only')));
    await end('e1');
    for (let second = 0; second < 9; second += 1) {
      await vi.advanceTimersByTimeAsync(1_000);
      expect(await store.lease('e1')).toBe('busy');
    }
    store.before = () => {};
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await processing).toMatchObject({ outcome: 'done', handled: 1 });
    expect(await store.lease('e1')).toBe('done');
    expect(vi.getTimerCount()).toBe(0);
  });

  test('one renewal fails → reported to onError, and the next renewal keeps the lease', async () => {
    const onError = vi.fn();
    const { store, processing, end } = await begin(['e1'], new ScriptedStore(), { onError });
    const reset = new Error('connection reset');
    let claims = 0;
    store.on('claim', () => (claims++ === 0 ? Promise.reject(reset) : undefined));
    await vi.advanceTimersByTimeAsync(LEASE_MS);
    expect(claims).toBeGreaterThan(1);
    expect(onError).toHaveBeenCalledExactlyOnceWith(reset, { operation: 'renew', keys: [buildKey('e1')] });
    expect(await store.lease('e1')).toBe('busy');
    await end('e1');
    expect((await processing).outcome).toBe('done');
  });

  test('a renewal that takes longer than a third of the lease → no second renewal beside it', async () => {
    const { store, processing, end } = await begin(['e1'], new ScriptedStore(), { leaseMs: 6_000 });
    store.on('claim', () => new Promise((resolve) => setTimeout(resolve, 3_000)));
    await vi.advanceTimersByTimeAsync(4_900);
    expect(store.operations).toEqual(['claim', 'claim']);
    await end('e1');
    expect((await processing).outcome).toBe('done');
  });

  test('the lease is lost during the commit → the signal of the callback, which has ended, does not abort', async () => {
    const { store, processing, end, isAborted } = await begin(['e1'], new ScriptedStore(), { leaseMs: 900 });
    store.before = away;
    await end('e1');
    await vi.advanceTimersByTimeAsync(15_000);
    expect(isAborted('e1')).toBe(false);
    expect((await processing).outcome).toBe('done');
  });

  test('a callback fails during a renewal → one release, after the end of the renewal', async () => {
    const { store, processing, end } = await begin(['e1']);
    const slow = deferred();
    store.on('claim', () => slow.promise);
    await vi.advanceTimersByTimeAsync(LEASE_MS / 3);
    await end('e1', failure);
    expect(store.operations).toEqual(['claim', 'claim']);
    slow.resolve();
    expect((await processing).outcome).toBe('failed');
    expect(store.operations).toEqual(['claim', 'claim', 'release']);
    expect(await store.lease('e1')).toBe('acquired');
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('an event that another receiver took over', () => {
  test.each([
    ['e1 while its callback runs → the signal aborts', 'e1', 'onEvent', true],
    ['e1 while a callback for both events runs → the signal aborts', 'e1', 'onEvents', true],
    ['e2, which is not leased yet, while e1 is called → the signal does not abort', 'e2', 'onEvent', false],
  ])('%s', async (_title, stolen, callback, isTold) => {
    const options = { busyTimeoutMs: 0 };
    const { store, processing, end, isAborted } = await begin(['e1', 'e2'], undefined, options, callback);
    steal(stolen, store);
    await vi.advanceTimersByTimeAsync(LEASE_MS / 3);
    expect(isAborted('e1')).toBe(isTold);
    await vi.advanceTimersByTimeAsync(LEASE_MS / 3);
    expect(store.calls.filter(({ keys }) => keys.length === 0)).toEqual([]);
    await end('e1');
    await end('e2');
    const busy = stolen === 'e2' ? [buildKey('e2')] : [];
    expect(await processing).toMatchObject({ busy, handled: 2 - busy.length });
    expect(await store.lease('e1', LEASE_MS, 'third')).toBe('done');
  });
});

test.each<[string, number, Options]>([
  ['its callback', 1, {}],
  ['its onDeadLetter', 2, { maxAttempts: 1 }],
])(
  'e1 is taken over while %s runs, which then rejects → busy, not failed',
  async (_title, steps, options) => {
    const store = new ScriptedStore();
    const works = [deferred(), deferred()];
    let calls = 0;
    const work = () => works[calls++]?.promise;
    const inbox = makeInbox({
      store,
      busyTimeoutMs: 0,
      ...options,
      ...(options.maxAttempts && { onDeadLetter: work }),
    });
    const processing = inbox.process(payload(tracking('t1', 'e1')), work);
    await vi.advanceTimersByTimeAsync(1);
    if (steps === 2) works[0]?.reject(failure);
    await vi.advanceTimersByTimeAsync(1);
    steal('e1', store);
    await vi.advanceTimersByTimeAsync(LEASE_MS / 3);
    works[steps - 1]?.reject(failure);
    expect(await processing).toMatchObject({ outcome: 'busy', busy: [buildKey('e1')], failures: [] });
    expect(calls).toBe(steps);
  },
);

describe('a renewal that reaches the store after its time limit', () => {
  const nothing = () => {};

  /** Lets the callback of e1 reject while its renewal hangs, which can arrive later. */
  async function failDuringHang(isInterrupted = false) {
    const store = new ScriptedStore();
    const [work, shutdown] = [deferred(), new AbortController()];
    const processing = makeInbox({ store }).process(E1, () => work.promise, { signal: shutdown.signal });
    await vi.advanceTimersByTimeAsync(1);
    const late = deferred();
    store.on('claim', () => late.promise);
    await vi.advanceTimersByTimeAsync(LEASE_MS / 3 + 4_500);
    if (isInterrupted) shutdown.abort();
    work.reject(failure);
    const report = await processing;
    store.before = nothing;
    return { store, late, report };
  }

  test.each([
    ['fails', 'failed', 2],
    ['is interrupted', 'interrupted', 1],
  ])(
    'e1 %s meanwhile → released again, and its redelivery is attempt $2',
    async (_title, outcome, attempt) => {
      const { store, late, report } = await failDuringHang(outcome === 'interrupted');
      expect(report.outcome).toBe(outcome);
      late.resolve();
      await vi.advanceTimersByTimeAsync(1);
      const next = vi.fn();
      expect(await makeInbox({ store, busyTimeoutMs: 0 }).process(E1, next)).toMatchObject({ handled: 1 });
      expect(next.mock.lastCall).toMatchObject([{}, { attempt }]);
    },
  );

  test('it rejects at last, although it was carried out → released again', async () => {
    const { store, late } = await failDuringHang();
    expect(store.operations.at(-1)).toBe('release');
    const released = store.operations.length;
    late.reject(new Error('connection closed'));
    await vi.advanceTimersByTimeAsync(1);
    expect(store.operations.slice(released)).toEqual(['release']);
  });

  test.each([
    ['it rejects at last', () => {}, true],
    ['the release after it rejects', (store: ScriptedStore) => store.on('release', away), false],
  ])('%s → no unhandled rejection', async (_title, prepare, rejects) => {
    const onUnhandled = vi.fn();
    process.on('unhandledRejection', onUnhandled);
    onTestFinished(() => void process.off('unhandledRejection', onUnhandled));
    const { store, late } = await failDuringHang();
    prepare(store);
    if (rejects) late.reject(new Error('connection closed'));
    else late.resolve();
    await vi.advanceTimersByTimeAsync(5_000);
    expect(onUnhandled).not.toHaveBeenCalled();
  });

  test('e1 is handled meanwhile, but not committed → not released', async () => {
    const { store, processing, end } = await begin(['e1']);
    const slow = deferred();
    store.before = (operation) => {
      if (operation === 'commit') throw new Error('read-only');
      return operation === 'claim' ? slow.promise : undefined;
    };
    await vi.advanceTimersByTimeAsync(LEASE_MS / 3 + 4_500);
    await end('e1');
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await processing).toMatchObject({ outcome: 'done', handled: 1 });
    slow.resolve();
    await vi.advanceTimersByTimeAsync(1);
    expect(store.operations).not.toContain('release');
    expect(await store.lease('e1')).toBe('busy');
  });
});

describe('a store that is away for a whole lease', () => {
  test.each([
    ['from the first renewal on → a lease after the first claim', 1, 0, 0],
    ['after one renewal → a lease after that renewal', 2, LEASE_MS / 3, 0],
    ['after a first claim of 300 ms → a lease after that claim began', 1, 0, 300],
    ['after a renewal of 300 ms → a lease after that renewal began', 2, LEASE_MS / 3, 300],
  ])('%s, the signal of the callback aborts, not before', async (_title, claimCount, claimedAtMs, tookMs) => {
    const store = new ScriptedStore();
    let claims = 0;
    store.on('claim', () => {
      claims += 1;
      if (claims > claimCount) return away();
      return claims === claimCount ? new Promise((resolve) => setTimeout(resolve, tookMs)) : undefined;
    });
    const { processing, end, isAborted } = await begin(['e1'], store);
    await vi.advanceTimersByTimeAsync(claimedAtMs + LEASE_MS - 2);
    expect(isAborted('e1')).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(isAborted('e1')).toBe(true);
    await end('e1');
    await processing;
  });

  test('the callback resolves after that → handled and committed', async () => {
    const { store, processing, end } = await begin(['e1']);
    store.on('claim', away);
    await vi.advanceTimersByTimeAsync(LEASE_MS + 1);
    await end('e1');
    expect(await processing).toMatchObject({ outcome: 'done', handled: 1 });
    expect(await store.lease('e1')).toBe('done');
  });

  test.each([
    ['still away', false],
    ['back again', true],
  ])(
    'the callback rejects after that, at its last attempt, the store is %s → unavailable, no dead letter, attempt 1 again',
    async (_title, isBack) => {
      const [onDeadLetter, onError] = [vi.fn(), vi.fn()];
      const options = { maxAttempts: 1, onDeadLetter, onError };
      const { store, processing, end } = await begin(['e1'], undefined, options);
      store.on('claim', away);
      await vi.advanceTimersByTimeAsync(LEASE_MS + 1);
      if (isBack) store.before = () => {};
      await end('e1', failure);
      expect(await processing).toMatchObject({
        outcome: 'unavailable',
        failures: [],
        unavailable: [buildKey('e1')],
      });
      expect(onDeadLetter).not.toHaveBeenCalled();
      expect(onError).not.toHaveBeenCalledWith(failure, expect.anything());
      store.before = () => {};
      const handle = vi.fn();
      await makeInbox({ store }).process(payload(tracking('t1', 'e1')), handle);
      expect(handle.mock.lastCall).toMatchObject([{}, { attempt: 1 }]);
    },
  );
});

test('two renewals reach the store after their time limits → e1 is free after each, with one attempt counted', async () => {
  const store = new ScriptedStore();
  const work = deferred();
  const processing = makeInbox({ store }).process(E1, () => work.promise);
  await vi.advanceTimersByTimeAsync(1);
  const late = [deferred(), deferred()];
  let renewals = 0;
  store.on('claim', () => late[renewals++]?.promise);
  await vi.advanceTimersByTimeAsync((2 * LEASE_MS) / 3 + 4_500);
  expect(renewals).toBe(2);
  work.reject(failure);
  expect((await processing).outcome).toBe('failed');
  store.before = () => {};
  for (const { resolve } of late) {
    const operations = store.operations.length;
    resolve();
    await vi.advanceTimersByTimeAsync(1);
    expect(store.operations.slice(operations)).toEqual(['release']);
  }
  const next = vi.fn();
  await makeInbox({ store, busyTimeoutMs: 0 }).process(E1, next);
  expect(next.mock.lastCall).toMatchObject([{}, { attempt: 2 }]);
});

test('a renewal reaches the store after its time limit while the callback works → nothing is released', async () => {
  const { store, processing, end } = await begin(['e1']);
  const slow = deferred();
  store.on('claim', () => slow.promise);
  await vi.advanceTimersByTimeAsync(LEASE_MS / 3 + 4_500);
  slow.resolve();
  store.before = () => {};
  await vi.advanceTimersByTimeAsync(LEASE_MS);
  expect(store.operations).not.toContain('release');
  expect(await store.lease('e1')).toBe('busy');
  await end('e1');
  expect((await processing).outcome).toBe('done');
});
