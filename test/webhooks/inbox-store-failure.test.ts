import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { InboxErrorContext } from '../../src/webhooks/index.ts';
import {
  failingOn,
  failure,
  makeInbox,
  payload,
  proofOfDelivery,
  ScriptedStore,
  tracking,
} from './support.ts';

const HALF_LEASE_MS = 30_000;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe('a store that fails', () => {
  const down = new Error('connection refused');

  test('on the first claim → nothing is handled, outcome unavailable', async () => {
    const store = new ScriptedStore();
    store.before = () => Promise.reject(down);
    const { attempts, handler } = failingOn('none');
    const report = await makeInbox({ store }).process(payload(tracking('t1', 'e1', 'e2')), handler);
    expect(attempts).toEqual([]);
    expect(report).toMatchObject({
      outcome: 'unavailable',
      unavailable: ['tracking/events:t1:e1', 'tracking/events:t1:e2'],
    });
  });

  test('on the claim after half a lease → that event and all after it are left, for the store would be waited for again', async () => {
    const store = new ScriptedStore();
    store.before = (operation) => {
      if (operation === 'claim' && store.calls.length > 1) throw down;
    };
    const handler = vi.fn(() => void vi.advanceTimersByTime(HALF_LEASE_MS));
    const report = await makeInbox({ store }).process(payload(tracking('t1', 'e1', 'e2', 'e3')), handler);
    expect(handler).toHaveBeenCalledOnce();
    expect(report).toMatchObject({
      outcome: 'unavailable',
      handled: 1,
      unavailable: ['tracking/events:t1:e2', 'tracking/events:t1:e3'],
    });
    expect(store.calls.filter(({ operation }) => operation === 'claim')).toHaveLength(2);
  });

  test('on the claim before onDeadLetter → not called, the event is left, and what was handled before it stays so', async () => {
    const store = new ScriptedStore();
    store.before = (operation) => {
      if (operation === 'claim' && store.calls.length > 1) throw down;
    };
    const onDeadLetter = vi.fn();
    const inbox = makeInbox({ store, maxAttempts: 1, onDeadLetter });
    const report = await inbox.process(payload(tracking('t1', 'e1', 'e2')), ({ eventId }) => {
      if (eventId === 'e1') return;
      vi.advanceTimersByTime(HALF_LEASE_MS);
      throw failure;
    });
    expect(onDeadLetter).not.toHaveBeenCalled();
    expect(report).toMatchObject({
      outcome: 'unavailable',
      handled: 1,
      unavailable: ['tracking/events:t1:e2'],
    });
  });

  test('on a claim, while another receiver holds an event → not asked for that event again', async () => {
    const store = new ScriptedStore();
    await store.claim(['tracking/events:t1:e1'], { token: 'other', leaseMs: 60_000 });
    store.before = (operation, keys) => {
      if (operation === 'claim' && keys.length === 1) throw down;
      vi.advanceTimersByTime(HALF_LEASE_MS);
    };
    const processing = makeInbox({ store }).process(payload(tracking('t1', 'e1', 'e2')), () => {});
    await vi.advanceTimersByTimeAsync(1);
    expect(await processing).toMatchObject({
      outcome: 'unavailable',
      unavailable: ['tracking/events:t1:e2'],
      busy: ['tracking/events:t1:e1'],
    });
  });

  test('on a claim, after it took a part of the keys → these are given back, a redelivery handles them at once', async () => {
    const store = new ScriptedStore();
    const inbox = makeInbox({ store });
    store.before = async (operation, keys) => {
      if (operation !== 'claim') return;
      store.before = () => {};
      await store.claim(keys.slice(0, 1), { token: [...store.tokens].at(-1) ?? '', leaseMs: 60_000 });
      throw down;
    };
    // The token is known to the store before it fails, as a script that ran on one node of a cluster knows it.
    const { claim } = store;
    store.claim = (keys, options) => {
      store.tokens.add(options.token);
      return claim.call(store, keys, options);
    };
    const body = payload(tracking('t1', 'e1', 'e2'));
    expect(await inbox.process(body, () => {})).toMatchObject({ outcome: 'unavailable' });
    expect(await inbox.process(body, () => {})).toMatchObject({ outcome: 'done', handled: 2 });
  });

  test('on the claim after half a lease → the leases are given back, a redelivery handles it at once', async () => {
    const store = new ScriptedStore();
    store.before = (operation) => {
      if (operation === 'claim' && store.calls.length > 1) throw down;
      vi.advanceTimersByTime(HALF_LEASE_MS);
    };
    const inbox = makeInbox({ store });
    await inbox.process(payload(tracking('t1', 'e1', 'e2')), () => {});
    store.before = () => {};
    expect(await inbox.process(payload(tracking('t1', 'e1', 'e2')), () => {})).toMatchObject({
      outcome: 'done',
      handled: 2,
    });
  });

  test('slow to answer a webhook whose events were all handled before → not asked for anything again', async () => {
    const store = new ScriptedStore();
    await store.commit(['tracking/events:t1:e1'], { retainMs: 60_000 });
    store.before = () => void vi.advanceTimersByTime(HALF_LEASE_MS);
    const report = await makeInbox({ store }).process(payload(tracking('t1', 'e1')), () => {});
    expect(report).toMatchObject({ outcome: 'done', duplicates: 1 });
    expect(store.calls.map(({ operation }) => operation)).toEqual(['commit', 'claim']);
  });

  test('on the first commit → tried again, and the event is done', async () => {
    const store = new ScriptedStore();
    let commits = 0;
    store.before = (operation) => {
      if (operation === 'commit' && commits++ === 0) throw down;
    };
    const inbox = makeInbox({ store });
    const processing = inbox.process(payload(tracking('t1', 'e1')), () => {});
    await vi.runAllTimersAsync();
    expect(await processing).toMatchObject({ outcome: 'done', handled: 1 });
    expect(await inbox.process(payload(tracking('t1', 'e1')), () => {})).toMatchObject({ duplicates: 1 });
    expect(commits).toBe(2);
  });

  test('on every commit → given up after four tries with growing pauses, and the outcome is done: a repeat would be certain otherwise', async () => {
    const store = new ScriptedStore();
    store.before = (operation) => {
      if (operation === 'commit') throw down;
    };
    const startedAt = performance.now();
    const errors: (InboxErrorContext & { readonly atMs: number })[] = [];
    const inbox = makeInbox({
      store,
      onError: (_error, context) => errors.push({ ...context, atMs: performance.now() - startedAt }),
    });
    const processing = inbox.process(payload(tracking('t1', 'e1')), () => {});
    await vi.advanceTimersByTimeAsync(1_050);
    expect(vi.getTimerCount()).toBe(0);
    expect(await processing).toMatchObject({ outcome: 'done', handled: 1, failures: [] });
    const keys = ['tracking/events:t1:e1'];
    expect(errors).toEqual([0, 50, 250, 1_050].map((atMs) => ({ operation: 'commit', keys, atMs })));
  });

  test('on release → the failure is reported, and the lease ends by itself', async () => {
    const store = new ScriptedStore();
    store.before = (operation) => {
      if (operation === 'release') throw down;
    };
    const told: unknown[] = [];
    const inbox = makeInbox({ store, busyBudgetMs: 0, onError: (...error) => told.push(error) });
    const report = await inbox.process(payload(tracking('t1', 'e1', 'e2')), failingOn('e1').handler);
    expect(report).toMatchObject({ outcome: 'failed', handled: 1, failures: [{ error: failure }] });
    expect(told.at(-1)).toEqual([down, { operation: 'release', keys: ['tracking/events:t1:e1'] }]);
    expect((await inbox.process(payload(tracking('t1', 'e1')), () => {})).outcome).toBe('busy');
    await vi.advanceTimersByTimeAsync(60_000);
    expect(await inbox.process(payload(tracking('t1', 'e1')), () => {})).toMatchObject({ handled: 1 });
  });

  test('on release of what a shutdown left undone → told to onError', async () => {
    const store = new ScriptedStore();
    store.before = (operation) => {
      if (operation === 'release') throw down;
    };
    const onError = vi.fn();
    const shutdown = new AbortController();
    const inbox = makeInbox({ store, onError });
    const handler = () => shutdown.abort();
    await inbox.process(payload(tracking('t1', 'e1', 'e2')), handler, { signal: shutdown.signal });
    const keys = ['tracking/events:t1:e2'];
    expect(onError).toHaveBeenCalledExactlyOnceWith(down, { operation: 'release', keys });
  });

  test('claims fewer keys than it was asked for → outcome unavailable, not a silent loss', async () => {
    const store = {
      claim: async () => [{ status: 'acquired', attempt: 1 } as const],
      commit: async () => {},
      release: async () => {},
    };
    const report = await makeInbox({ store }).process(payload(tracking('t1', 'e1', 'e2')), () => {});
    expect(report).toMatchObject({ outcome: 'unavailable', handled: 0 });
  });

  test('down → onSnapshot and onUnhandled wait for the redelivery', async () => {
    const store = new ScriptedStore();
    store.before = () => Promise.reject(down);
    let calls = 0;
    await makeInbox({ store }).process(payload(tracking('t1', 'e1'), tracking('t2'), proofOfDelivery('t3')), {
      handler: () => {},
      onSnapshot: () => (calls += 1),
      onUnhandled: () => (calls += 1),
    });
    expect(calls).toBe(0);
  });
});
