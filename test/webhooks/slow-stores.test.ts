import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { deferred, makeInbox, payload, ScriptedStore, tracking } from './support.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('a commit that waits for a slow one as the webhook ends → never given back, not answered before it is committed', async () => {
  const store = new ScriptedStore();
  const commits = [deferred(), deferred()];
  let commitCount = 0;
  store.before = (operation) => (operation === 'commit' ? commits[commitCount++]?.promise : undefined);
  const inbox = makeInbox({ store });
  let isOver = false;
  const processing = inbox
    .process(payload(tracking('t1', 'a', 'b', 'c')), async ({ eventId }) => {
      const ms = eventId === 'a' ? 10 : 150;
      await new Promise((resolve) => setTimeout(resolve, ms));
      if (eventId === 'c') throw new Error('no such parcel');
    })
    .finally(() => {
      isOver = true;
    });
  // 10: a is done; 110: its commit is sent; 160: b is done; 260: the next commit waits; 310: c fails.
  await vi.advanceTimersByTimeAsync(400);
  commits[0]?.resolve();
  await vi.advanceTimersByTimeAsync(10);
  const released = store.calls.filter(({ operation }) => operation === 'release').flatMap(({ keys }) => keys);
  expect.soft(released).toEqual(['tracking/events:t1:c']);
  expect.soft(isOver).toBe(false);
  commits[1]?.resolve();
  await vi.advanceTimersByTimeAsync(10);
  expect(await processing).toMatchObject({ outcome: 'failed', handled: 2 });
});

test('the same, second commit fails once → a redelivery meanwhile handles b once', async () => {
  const store = new ScriptedStore();
  const first = deferred();
  let commitCount = 0;
  store.before = (operation) => {
    if (operation !== 'commit') return undefined;
    commitCount += 1;
    if (commitCount === 1) return first.promise;
    if (commitCount === 2) throw new Error('connection reset');
    return undefined;
  };
  const inbox = makeInbox({ store });
  const handled: unknown[] = [];
  let isFailing = true;
  const handler = async ({ eventId }: { eventId?: unknown }) => {
    await new Promise((resolve) => setTimeout(resolve, eventId === 'a' ? 10 : 150));
    if (eventId === 'c' && isFailing) throw new Error('no such parcel');
    handled.push(eventId);
  };
  const body = payload(tracking('t1', 'a', 'b', 'c'));
  const processing = inbox.process(body, handler);
  await vi.advanceTimersByTimeAsync(400);
  first.resolve();
  await vi.advanceTimersByTimeAsync(10);
  isFailing = false;
  const again = inbox.process(body, handler);
  await vi.advanceTimersByTimeAsync(1_000);
  await Promise.all([processing, again]);
  expect(handled).toEqual(['a', 'b', 'c']);
});

test('a statement that hangs → the other webhooks of the process go on', async () => {
  const store = new ScriptedStore();
  store.before = (operation, keys) =>
    operation === 'claim' && keys.includes('tracking/events:t0:e') ? new Promise(() => {}) : undefined;
  const inbox = makeInbox({ store });
  void inbox.process(payload(tracking('t0', 'e')), () => {});
  await vi.advanceTimersByTimeAsync(1_000);
  let outcome: unknown;
  void inbox
    .process(payload(tracking('t1', 'e')), () => {})
    .then((report) => {
      outcome = report.outcome;
    });
  await vi.advanceTimersByTimeAsync(60_000);
  expect(outcome).toBe('done');
});

test('a store that says every lease ends at once → a bounded number of looks', async () => {
  const store = new ScriptedStore();
  let looks = 0;
  store.claim = async (keys) => {
    looks += 1;
    return keys.map(() => ({ status: 'busy' as const, retryAfterMs: 1 }));
  };
  const processing = makeInbox({ store, busyBudgetMs: 4_000 }).process(
    payload(tracking('t1', 'e')),
    () => {},
  );
  await vi.advanceTimersByTimeAsync(4_100);
  await processing;
  expect(looks).toBeLessThan(100);
});

test('a webhook of 20,000 events → statements of 1,000 keys each, none of more or of none', async () => {
  const store = new ScriptedStore();
  const ids = Array.from({ length: 20_000 }, (_, index) => `e${index}`);
  const processing = makeInbox({ store }).process(payload(tracking('t1', ...ids)), () => {});
  await vi.advanceTimersByTimeAsync(100);
  await processing;
  expect(new Set(store.calls.map(({ keys }) => keys.length))).toEqual(new Set([1_000]));
});

test('a claim that fails for a group of 200 while the store is down → nine claims, not 200', async () => {
  const store = new ScriptedStore();
  store.before = async () => {
    await new Promise((resolve) => setTimeout(resolve, 1));
    throw new Error('ECONNREFUSED');
  };
  const inbox = makeInbox({ store });
  const all = Array.from({ length: 200 }, (_, i) => inbox.process(payload(tracking(`t${i}`, 'e')), () => {}));
  await vi.advanceTimersByTimeAsync(1_000);
  await Promise.all(all);
  // The first alone, the others in two groups, and three of each one by one.
  expect(store.calls.filter(({ operation }) => operation === 'claim')).toHaveLength(9);
});
