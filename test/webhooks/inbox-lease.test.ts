import { describe, expect, test, vi } from 'vitest';
import { deferred } from '../support/deferred.ts';
import {
  buildKey,
  failure,
  makeInbox,
  payload,
  ScriptedStore,
  TWO,
  tracking,
  useFakeTimers,
} from './support.ts';

const LEASE_MS = 60_000;
const RETAIN = { retainMs: 30 * 86_400_000 };
type Options = Parameters<typeof makeInbox>[0];

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

/** Keeps every renewal from the store until the leases have ended, and leases an event to another receiver. */
async function steal(eventId: string, store: ScriptedStore): Promise<void> {
  store.before = () => Promise.reject(new Error('unreachable'));
  await vi.advanceTimersByTimeAsync(LEASE_MS + 1);
  store.before = () => {};
  expect(await store.lease(eventId, LEASE_MS, 'thief')).toBe('acquired');
}

describe('claiming', () => {
  test('three events, one of them twice, in a long-running process → one claim and one commit of distinct keys', async () => {
    const store = new ScriptedStore();
    vi.advanceTimersByTime(LEASE_MS);
    await makeInbox({ store }).process(
      payload(tracking('t1', 'e1', 'e2', 'e1'), tracking('t1', 'e3')),
      () => {},
    );
    const keys = [buildKey('e1'), buildKey('e2'), buildKey('e3')];
    expect(store.calls).toEqual([
      { operation: 'claim', keys },
      { operation: 'commit', keys },
    ]);
  });

  test('an event that another receiver finished, half a lease later → claimed again, not handled', async () => {
    const store = new ScriptedStore();
    const onEvent = vi.fn(async () => {
      vi.advanceTimersByTime(LEASE_MS / 2);
      await store.commit([buildKey('e2')], RETAIN);
    });
    const report = await makeInbox({ store }).process(TWO, onEvent);
    expect(onEvent).toHaveBeenCalledOnce();
    expect(report).toMatchObject({ outcome: 'done', handled: 1, duplicates: 1 });
  });

  test('onEvents with an event that another receiver finished → called with the rest only', async () => {
    const store = new ScriptedStore();
    const seen: unknown[] = [];
    await makeInbox({ store }).process(payload(tracking('t0', 'e0'), tracking('t1', 'e1', 'e2')), {
      onEvents: async ({ events }) => {
        seen.push(events.map(({ eventId }) => eventId));
        vi.advanceTimersByTime(LEASE_MS / 2);
        await store.commit([buildKey('e1')], RETAIN);
      },
    });
    expect(seen).toEqual([['e0'], ['e2']]);
  });
});

describe('every third of a lease', () => {
  test('a slow second callback → the first event is committed, the lease of the second renewed', async () => {
    const { store, processing, end } = await begin(['e1', 'e2']);
    await end('e1');
    await vi.advanceTimersByTimeAsync(LEASE_MS / 3 - 3);
    expect(store.operations).toEqual(['claim']);
    await vi.advanceTimersByTimeAsync(1);
    expect(store.calls.slice(1)).toEqual([
      { operation: 'commit', keys: [buildKey('e1')] },
      { operation: 'claim', keys: [buildKey('e2')] },
    ]);
    await end('e2');
    expect(await processing).toMatchObject({ outcome: 'done', handled: 2 });
    expect(store.calls.at(-1)).toEqual({ operation: 'commit', keys: [buildKey('e2')] });
    expect(vi.getTimerCount()).toBe(0);
  });

  test('a store that refuses commits → the handled event stays leased, and is committed at the end', async () => {
    const { store, processing, end } = await begin(['e1', 'e2']);
    store.on('commit', () => Promise.reject(new Error('read-only')));
    await end('e1');
    await vi.advanceTimersByTimeAsync(3 * LEASE_MS);
    expect(await store.lease('e1')).toBe('busy');
    store.before = () => {};
    await end('e2');
    expect(await processing).toMatchObject({ outcome: 'done', handled: 2 });
    expect(await store.lease('e1')).toBe('done');
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
    ['e2 while the callback of e1 runs → the signal does not abort', 'e2', 'onEvent', false],
  ])('%s', async (_title, stolen, callback, isTold) => {
    const options = { busyTimeoutMs: 0 };
    const { store, processing, end, isAborted } = await begin(['e1', 'e2'], undefined, options, callback);
    await steal(stolen, store);
    expect(isAborted('e1')).toBe(false);
    await vi.advanceTimersByTimeAsync(LEASE_MS / 3);
    expect(isAborted('e1')).toBe(isTold);
    await end('e1');
    await end('e2');
    const busy = stolen === 'e2' ? [buildKey('e2')] : [];
    expect(await processing).toMatchObject({ busy, handled: 2 - busy.length });
    expect(await store.lease('e1', LEASE_MS, 'third')).toBe('done');
  });
});
