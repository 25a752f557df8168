import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { MemoryDedupeStore, type WebhookProcessor } from '../../src/webhooks/index.ts';
import { deferred, makeInbox, payload, tracking } from './support.ts';

const LEASE_MS = 60_000;
const keyOf = (eventId: string) => `tracking/events:t1:${eventId}`;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe('busy elsewhere', () => {
  test('the owner finishes within the budget → waited for, outcome done, handled once', async () => {
    const inbox = makeInbox();
    const work = deferred();
    let calls = 0;
    const handler = () => {
      calls += 1;
      return work.promise;
    };
    const owner = inbox.process(payload(tracking('t1', 'e1')), handler);
    const duplicate = inbox.process(payload(tracking('t1', 'e1')), handler);
    await vi.advanceTimersByTimeAsync(3_000);
    work.resolve();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await owner).toMatchObject({ outcome: 'done', handled: 1 });
    expect(await duplicate).toMatchObject({ outcome: 'done', handled: 0, duplicates: 1, busy: [] });
    expect(calls).toBe(1);
  });

  test('the owner takes longer than the budget → outcome busy, never done', async () => {
    const inbox = makeInbox({ busyTimeoutMs: 8_000 });
    const work = deferred();
    const owner = inbox.process(payload(tracking('t1', 'e1')), () => work.promise);
    const duplicate = inbox.process(payload(tracking('t1', 'e1')), () => work.promise);
    await vi.advanceTimersByTimeAsync(8_000);
    const report = await duplicate;
    expect(report).toMatchObject({ outcome: 'busy', busy: [keyOf('e1')] });
    expect(report.retryAfterMs).toBeGreaterThan(0);
    work.resolve();
    await owner;
  });

  test('the owner fails → the duplicate handles the event, attempt 2', async () => {
    const inbox = makeInbox();
    const work = deferred();
    const owner = inbox.process(payload(tracking('t1', 'e1')), () => work.promise);
    const attempts: number[] = [];
    const duplicate = inbox.process(payload(tracking('t1', 'e1')), (_event, { attempt }) =>
      attempts.push(attempt),
    );
    await vi.advanceTimersByTimeAsync(1_000);
    work.reject(new Error('failed'));
    await vi.advanceTimersByTimeAsync(1_000);
    expect((await owner).outcome).toBe('failed');
    expect(await duplicate).toMatchObject({ outcome: 'done', handled: 1 });
    expect(attempts).toEqual([2]);
  });

  test('the owner crashes → once its lease ends the duplicate handles the event, attempt 2', async () => {
    const store = new MemoryDedupeStore();
    // A crash: claimed by a process that renews, commits and releases nothing any more.
    await store.claim([keyOf('e1')], { token: 'crashed', leaseMs: 5_000 });
    const attempts: number[] = [];
    const duplicate = makeInbox({ store }).process(payload(tracking('t1', 'e1')), (_event, { attempt }) =>
      attempts.push(attempt),
    );
    await vi.advanceTimersByTimeAsync(6_000);
    expect(await duplicate).toMatchObject({ outcome: 'done', handled: 1 });
    expect(attempts).toEqual([2]);
  });

  test('one event busy, one new → the new one is handled at once', async () => {
    const store = new MemoryDedupeStore();
    await store.claim([keyOf('e1')], { token: 'other', leaseMs: LEASE_MS });
    const handled: unknown[] = [];
    const processing = makeInbox({ store }).process(payload(tracking('t1', 'e1', 'e2')), (event) =>
      handled.push(event.eventId),
    );
    await vi.advanceTimersByTimeAsync(1);
    expect(handled).toEqual(['e2']);
    await vi.advanceTimersByTimeAsync(8_000);
    expect(await processing).toMatchObject({ outcome: 'busy', handled: 1, busy: [keyOf('e1')] });
  });

  test.each<[string, (store: MemoryDedupeStore, inbox: WebhookProcessor) => unknown]>([
    ['elsewhere', (store) => store.claim([keyOf('e1')], { token: 'other', leaseMs: 20 })],
    [
      'in another webhook of this process, which fails',
      (_store, inbox) =>
        inbox.process(payload(tracking('t1', 'e1')), async () => {
          await new Promise((resolve) => setTimeout(resolve, 20));
          throw new Error('failed');
        }),
    ],
  ])(
    'onEvents with one event busy %s → called with the new one at once, with that one later, both handled',
    async (_title, hold) => {
      const store = new MemoryDedupeStore();
      const inbox = makeInbox({ store });
      void hold(store, inbox);
      const seen: unknown[] = [];
      const processing = inbox.process(payload(tracking('t1', 'e1', 'e2')), {
        onEvents: ({ events }) => seen.push(events.map(({ eventId }) => eventId)),
      });
      await vi.advanceTimersByTimeAsync(10);
      expect(seen).toEqual([['e2']]);
      await vi.advanceTimersByTimeAsync(1_000);
      expect(seen).toEqual([['e2'], ['e1']]);
      expect(await processing).toMatchObject({ outcome: 'done', handled: 2, duplicates: 0 });
    },
  );

  test('an event handled before one that another receiver holds → committed before the wait', async () => {
    const store = new MemoryDedupeStore();
    await store.claim([keyOf('e2')], { token: 'other', leaseMs: LEASE_MS });
    const processing = makeInbox({ store }).process(payload(tracking('t1', 'e1', 'e2')), () => {});
    await vi.advanceTimersByTimeAsync(10);
    const [claim] = await store.claim([keyOf('e1')], { token: 'third', leaseMs: 1 });
    expect(claim?.status).toBe('done');
    await vi.advanceTimersByTimeAsync(8_000);
    expect(await processing).toMatchObject({ outcome: 'busy', handled: 1 });
  });

  test('100 concurrent webhooks of the same 5 events → each handled once, every outcome done', async () => {
    const inbox = makeInbox();
    const counts = new Map<unknown, number>();
    const body = payload(tracking('t1', 'e1', 'e2', 'e3', 'e4', 'e5'));
    const all = Promise.all(
      Array.from({ length: 100 }, () =>
        inbox.process(body, async (event) => {
          await new Promise((resolve) => setTimeout(resolve, 20));
          counts.set(event.eventId, (counts.get(event.eventId) ?? 0) + 1);
        }),
      ),
    );
    await vi.advanceTimersByTimeAsync(10_000);
    expect(new Set((await all).map(({ outcome }) => outcome))).toEqual(new Set(['done']));
    expect([...counts.values()]).toEqual([1, 1, 1, 1, 1]);
  });
});

describe('an abort', () => {
  test('between two events → the first is finished, the second given back, outcome interrupted', async () => {
    const inbox = makeInbox();
    const shutdown = new AbortController();
    const report = await inbox.process(payload(tracking('t1', 'e1', 'e2')), () => shutdown.abort(), {
      signal: shutdown.signal,
    });
    expect(report).toMatchObject({ outcome: 'interrupted', handled: 1, interrupted: [keyOf('e2')] });
    expect(await inbox.process(payload(tracking('t1', 'e1', 'e2')), () => {})).toMatchObject({
      handled: 1,
      duplicates: 1,
    });
  });

  test('while waiting for another receiver → outcome busy at once', async () => {
    const store = new MemoryDedupeStore();
    await store.claim([keyOf('e1')], { token: 'other', leaseMs: LEASE_MS });
    const shutdown = new AbortController();
    const processing = makeInbox({ store }).process(payload(tracking('t1', 'e1')), () => {}, {
      signal: shutdown.signal,
    });
    await vi.advanceTimersByTimeAsync(1_000);
    shutdown.abort();
    expect((await processing).outcome).toBe('busy');
  });

  test('while a handler runs → its signal aborts with the same reason', async () => {
    const shutdown = new AbortController();
    const reason = new Error('shutting down');
    let seen: unknown;
    const processing = makeInbox().process(
      payload(tracking('t1', 'e1')),
      (_event, { signal }) =>
        new Promise<void>((resolve) => {
          signal.addEventListener('abort', () => {
            seen = signal.reason;
            resolve();
          });
        }),
      { signal: shutdown.signal },
    );
    await vi.advanceTimersByTimeAsync(1);
    shutdown.abort(reason);
    await processing;
    expect(seen).toBe(reason);
  });

  test('after a handler ended → its signal stays quiet, so that a long-lived signal holds nothing', async () => {
    const shutdown = new AbortController();
    const signals: AbortSignal[] = [];
    await makeInbox().process(
      payload(tracking('t1', 'e1')),
      (_event, { signal }) => void signals.push(signal),
      { signal: shutdown.signal },
    );
    shutdown.abort();
    expect(signals.map(({ aborted }) => aborted)).toEqual([false]);
  });
});
