import { describe, expect, test, vi } from 'vitest';
import type { WebhookCallbacks } from '../../../src/webhooks/index.ts';
import { deferred } from '../../support/deferred.ts';
import {
  buildKey,
  E1,
  failure,
  makeInbox,
  payload,
  proofOfDelivery,
  ScriptedStore,
  TWO,
  tracking,
  useFakeTimers,
} from '../support.ts';

useFakeTimers();

describe('an event that another webhook holds', () => {
  test.each([
    ['finishes in busyTimeoutMs → done, handled once', true, { handled: 0, duplicates: 1, busy: [] }, [1]],
    ['fails → the duplicate handles it, attempt 2', false, { handled: 1, duplicates: 0, busy: [] }, [1, 2]],
  ])('the owner %s', async (_title, succeeds, report, expectedAttempts) => {
    const inbox = makeInbox();
    const work = deferred();
    const attempts: number[] = [];
    const [owner, duplicate] = [1, 2].map(() =>
      inbox.process(E1, (_event, { attempt }) => {
        attempts.push(attempt);
        return attempt === 1 ? work.promise : undefined;
      }),
    );
    await vi.advanceTimersByTimeAsync(3_000);
    if (succeeds) work.resolve();
    else work.reject(failure);
    await vi.advanceTimersByTimeAsync(1_000);
    expect((await owner)?.outcome).toBe(succeeds ? 'done' : 'failed');
    expect(await duplicate).toMatchObject({ outcome: 'done', ...report });
    expect(attempts).toEqual(expectedAttempts);
  });

  test('a busy event → the later events of its tracker wait for it, an event of another tracker does not', async () => {
    const store = new ScriptedStore();
    await store.lease('e1', 5_000);
    const handled: unknown[] = [];
    const body = payload(tracking('t1', 'e1', 'e2'), tracking('t2', 'e3'));
    const processing = makeInbox({ store }).process(body, ({ eventId }) => handled.push(eventId));
    await vi.advanceTimersByTimeAsync(4_900);
    expect(handled).toEqual(['e3']);
    await vi.advanceTimersByTimeAsync(600);
    expect(handled).toEqual(['e3', 'e1', 'e2']);
    expect(await processing).toMatchObject({ outcome: 'done', handled: 3 });
  });

  test('a busy event when the time is up → the events that wait for it are reported as busy, and were never claimed', async () => {
    const store = new ScriptedStore();
    await store.lease('e1', 30_000);
    const report = await makeInbox({ store, busyTimeoutMs: 0 }).process(TWO, () => {});
    const busy = [buildKey('e1'), buildKey('e2')];
    expect(report).toMatchObject({ outcome: 'busy', handled: 0, busy, retryAfterMs: 30_000 });
    expect(store.calls).toEqual([{ operation: 'claim', keys: [buildKey('e1')] }]);
  });

  test.each<[string, WebhookCallbacks]>([
    ['a second message for onEvents', { onEvents: () => {} }],
    ['a proof of delivery', { onEvents: () => {}, onProofOfDelivery: () => {} }],
  ])('a message with a busy event → %s of the same tracker waits for it', async (_title, callbacks) => {
    const store = new ScriptedStore();
    await store.lease('e1');
    const later = callbacks.onProofOfDelivery === undefined ? tracking('t1', 'e2') : proofOfDelivery('t1');
    const body = payload(tracking('t1', 'e1'), later);
    const report = await makeInbox({ store, busyTimeoutMs: 0 }).process(body, callbacks);
    expect(report).toMatchObject({ outcome: 'busy', handled: 0, busy: { length: 2 } });
  });

  test('onEvents with one busy and one new event → called with the new event at once, with the busy event later', async () => {
    const store = new ScriptedStore();
    await store.lease('e1', 20);
    const seen: unknown[] = [];
    const processing = makeInbox({ store }).process(TWO, {
      onEvents: ({ events }) => seen.push(events.map(({ eventId }) => eventId)),
    });
    await vi.advanceTimersByTimeAsync(10);
    expect(seen).toEqual([['e2']]);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(seen).toEqual([['e2'], ['e1']]);
    expect(await processing).toMatchObject({ outcome: 'done', handled: 2, duplicates: 0 });
  });
});

test.each([
  ['a long wait → a few claims, the last when the time is up', 60_000, 2_000, 12, 2_000],
  ['no time to wait → one claim', 60_000, 0, 1, 0],
  ['a lease that ends → acquired by the next claim, soon after', 120, 4_000, 4, 520],
])('%s', async (_title, leaseMs, busyTimeoutMs, maxClaims, maxMs) => {
  const store = new ScriptedStore();
  await store.lease('e1', leaseMs);
  const startedAt = performance.now();
  const claims: number[] = [];
  store.on('claim', () => claims.push(Math.round(performance.now() - startedAt)));
  const processing = makeInbox({ store, busyTimeoutMs }).process(E1, () => {});
  await vi.advanceTimersByTimeAsync(busyTimeoutMs);
  expect((await processing).outcome).toBe(leaseMs < busyTimeoutMs ? 'done' : 'busy');
  expect(claims.length).toBeLessThanOrEqual(maxClaims);
  expect(claims.at(-1)).toBeLessThanOrEqual(maxMs);
  expect(claims.at(-1)).toBeGreaterThanOrEqual(Math.min(leaseMs, busyTimeoutMs));
});

test.each([
  ['the first of two leases', { t1: 10_000, t2: 42_000 }],
  ['the last of two leases', { t1: 42_000, t2: 10_000 }],
  ['the only lease, beside a handled event', { t1: 10_000 }],
])('%s ends first → outcome busy, and retryAfterMs is the rest of that lease', async (_title, leases) => {
  const store = new ScriptedStore();
  for (const [trackerId, leaseMs] of Object.entries(leases)) {
    await store.claim([`tracking/events:${trackerId}:e1`], { token: 'other', leaseMs });
  }
  const body = payload(tracking('t1', 'e1'), tracking('t2', 'e1'));
  const report = await makeInbox({ store, busyTimeoutMs: 0 }).process(body, () => {});
  expect(report).toMatchObject({ outcome: 'busy', retryAfterMs: 10_000 });
});

describe('an abort', () => {
  test('an abort while a callback runs → handled events are committed at once, the others are free, both before it ends', async () => {
    const store = new ScriptedStore();
    const shutdown = new AbortController();
    const work = deferred();
    const body = payload(tracking('t1', 'e1', 'e2', 'e3'));
    const onEvent = ({ eventId }: { eventId?: unknown }) => (eventId === 'e2' ? work.promise : undefined);
    const processing = makeInbox({ store }).process(body, onEvent, { signal: shutdown.signal });
    await vi.advanceTimersByTimeAsync(1);
    shutdown.abort();
    await vi.advanceTimersByTimeAsync(1);
    expect(await store.lease('e1')).toBe('done');
    expect(await store.lease('e2')).toBe('busy');
    expect(await store.lease('e3')).toBe('acquired');
    work.resolve();
    expect(await processing).toMatchObject({
      outcome: 'interrupted',
      handled: 2,
      interrupted: [buildKey('e3')],
    });
    expect(await store.lease('e2')).toBe('done');
  });

  test.each([
    ['rejects', (work: ReturnType<typeof deferred<void>>) => work.reject(failure)],
    ['runs into callbackTimeoutMs', () => vi.advanceTimersByTimeAsync(5_000)],
  ])(
    'a callback at its last attempt that %s after an abort → interrupted, no dead letter, attempt 1 again',
    async (_title, end) => {
      const store = new ScriptedStore();
      const shutdown = new AbortController();
      const work = deferred();
      const onDeadLetter = vi.fn();
      const inbox = makeInbox({ store, maxAttempts: 1, onDeadLetter, callbackTimeoutMs: 5_000 });
      const processing = inbox.process(E1, () => work.promise, { signal: shutdown.signal });
      await vi.advanceTimersByTimeAsync(1);
      shutdown.abort();
      await end(work);
      expect(await processing).toMatchObject({
        outcome: 'interrupted',
        failures: [],
        interrupted: [buildKey('e1')],
      });
      expect(onDeadLetter).not.toHaveBeenCalled();
      const handle = vi.fn();
      await inbox.process(E1, handle);
      expect(handle.mock.lastCall).toMatchObject([{}, { attempt: 1 }]);
    },
  );

  test('onEvents failed for two events, and an abort during the first dead letter → the second counts as failed', async () => {
    const store = new ScriptedStore();
    const shutdown = new AbortController();
    const onDeadLetter = vi.fn(async () => {
      shutdown.abort();
      throw failure;
    });
    const inbox = makeInbox({ store, maxAttempts: 1, onDeadLetter });
    const onEvents = () => Promise.reject(failure);
    const report = await inbox.process(TWO, { onEvents }, { signal: shutdown.signal });
    expect(report).toMatchObject({
      outcome: 'failed',
      interrupted: [buildKey('e1')],
      failures: [{ keys: [buildKey('e2')], error: failure }],
    });
    expect(onDeadLetter).toHaveBeenCalledOnce();
    const attempts: unknown[] = [];
    await makeInbox({ store }).process(
      TWO,
      ({ eventId }, { attempt }) => void attempts.push([eventId, attempt]),
    );
    expect(attempts).toEqual([
      ['e1', 1],
      ['e2', 2],
    ]);
  });

  test.each([
    ['during the first of two callbacks', 'e1'],
    ['during the claim of the second event', 'e2'],
  ])(
    'an abort %s → the second event is not called, free, and its attempt not counted',
    async (_title, when) => {
      const store = new ScriptedStore();
      const shutdown = new AbortController();
      await store.leaseToDead(['e1', 'e2']);
      const handled: unknown[] = [];
      const onEvent = ({ eventId }: { eventId?: unknown }) => {
        handled.push(eventId);
        if (when === 'e1') shutdown.abort();
        else store.on('claim', () => shutdown.abort());
      };
      const report = await makeInbox({ store }).process(TWO, onEvent, { signal: shutdown.signal });
      expect(handled).toEqual(['e1']);
      expect(report).toMatchObject({ outcome: 'interrupted', handled: 1, interrupted: [buildKey('e2')] });
      store.before = () => {};
      const next = vi.fn();
      await makeInbox({ store, busyTimeoutMs: 0 }).process(TWO, next);
      expect(next.mock.calls).toMatchObject([[{ eventId: 'e2' }, { attempt: 2 }]]);
    },
  );

  test('an abort while waiting for another receiver → outcome busy at once', async () => {
    const store = new ScriptedStore();
    await store.lease('e1');
    const shutdown = new AbortController();
    const processing = makeInbox({ store }).process(E1, () => {}, { signal: shutdown.signal });
    await vi.advanceTimersByTimeAsync(1_000);
    shutdown.abort();
    expect((await processing).outcome).toBe('busy');
  });

  test('an abort while one callback runs and one has ended → only the signal of the running callback aborts', async () => {
    const shutdown = new AbortController();
    const reason = new Error('shutting down');
    const signals: AbortSignal[] = [];
    await makeInbox().process(
      TWO,
      (_event, { signal }) => {
        signals.push(signal);
        if (signals.length === 2) shutdown.abort(reason);
      },
      { signal: shutdown.signal },
    );
    expect(signals.map((signal) => [signal.aborted, signal.reason])).toEqual([
      [false, undefined],
      [true, reason],
    ]);
  });

  test('an abort while the lease is renewed for a dead letter → onDeadLetter is not called, and the attempt has failed', async () => {
    const store = new ScriptedStore();
    const shutdown = new AbortController();
    const onDeadLetter = vi.fn();
    const inbox = makeInbox({ store, maxAttempts: 1, onDeadLetter, leaseMs: 60_000 });
    const fail = () => {
      store.on('claim', () => shutdown.abort());
      throw failure;
    };
    const processing = inbox.process(E1, () => new Promise((end) => setTimeout(end, 45_000)).then(fail), {
      signal: shutdown.signal,
    });
    await vi.advanceTimersByTimeAsync(1);
    // Without renewals, the lease is more than half over when the callback fails.
    store.on('claim', () => Promise.reject(failure));
    await vi.advanceTimersByTimeAsync(45_000);
    expect(await processing).toMatchObject({ outcome: 'failed' });
    expect(onDeadLetter).not.toHaveBeenCalled();
  });

  test('onDeadLetter exceeds its time limit after an abort → interrupted', async () => {
    const shutdown = new AbortController();
    const onDeadLetter = () => {
      shutdown.abort();
      return new Promise(() => {});
    };
    const inbox = makeInbox({ maxAttempts: 1, onDeadLetter, callbackTimeoutMs: 5_000 });
    const processing = inbox.process(E1, () => Promise.reject(failure), { signal: shutdown.signal });
    await vi.advanceTimersByTimeAsync(5_000);
    expect(await processing).toMatchObject({ outcome: 'interrupted', deadLettered: 0, failures: [] });
    expect(await inbox.process(E1, () => {})).toMatchObject({ outcome: 'done', handled: 1 });
  });

  test('an abort and a callback that rejects while a renewal is under way → released only after the renewal, so that the event is free', async () => {
    const store = new ScriptedStore();
    const shutdown = new AbortController();
    const work = deferred();
    const processing = makeInbox({ store }).process(E1, () => work.promise, { signal: shutdown.signal });
    const slow = deferred();
    await vi.advanceTimersByTimeAsync(1);
    store.on('claim', () => slow.promise);
    await vi.advanceTimersByTimeAsync(20_000);
    shutdown.abort();
    work.reject(failure);
    await vi.advanceTimersByTimeAsync(1);
    expect(store.operations).toEqual(['claim', 'claim']);
    store.before = () => {};
    slow.resolve();
    expect((await processing).outcome).toBe('interrupted');
    expect(await store.lease('e1')).toBe('acquired');
  });
});
