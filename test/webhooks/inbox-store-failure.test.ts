import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { TrackingError } from '../../src/errors.ts';
import { processWebhook } from '../../src/webhooks/inbox.ts';
import type { Claim } from '../../src/webhooks/index.ts';
import { resolveInboxOptions } from '../../src/webhooks/processor.ts';
import { makeHandler, post } from './make-handler.ts';
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
    // The third is the timer's.
    expect(store.calls.filter(({ operation }) => operation === 'claim')).toHaveLength(3);
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

  test('on every commit → tried again for ten seconds with growing pauses, then done: a 503 would make a repeat certain', async () => {
    const store = new ScriptedStore();
    store.before = (operation) => {
      if (operation === 'commit') throw down;
    };
    const startedAt = performance.now();
    const times: number[] = [];
    const inbox = makeInbox({
      store,
      onError: (error, { operation, keys }) => {
        expect([error, operation, keys]).toEqual([down, 'commit', ['tracking/events:t1:e1']]);
        times.push(performance.now() - startedAt);
      },
    });
    const processing = inbox.process(payload(tracking('t1', 'e1')), () => {});
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await processing).toMatchObject({ outcome: 'done', handled: 1, failures: [] });
    expect(times).toEqual([0, 50, 150, 350, 750, 1_550, 3_150, 4_750, 6_350, 7_950, 9_550, 10_000]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('on commits for nine seconds → committed after all, a duplicate is not handled again', async () => {
    const store = new ScriptedStore();
    store.before = (operation) => {
      if (operation === 'commit') throw down;
    };
    const inbox = makeInbox({ store });
    const processing = inbox.process(payload(tracking('t1', 'e1')), () => {});
    await vi.advanceTimersByTimeAsync(9_000);
    store.before = () => {};
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await processing).toMatchObject({ outcome: 'done', handled: 1 });
    expect(await inbox.process(payload(tracking('t1', 'e1')), () => {})).toMatchObject({ duplicates: 1 });
  });

  test('on release → the failure is reported, and the lease ends by itself', async () => {
    const store = new ScriptedStore();
    store.before = (operation) => {
      if (operation === 'release') throw down;
    };
    const told: unknown[] = [];
    const inbox = makeInbox({ store, busyTimeoutMs: 0, onError: (...error) => told.push(error) });
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

  test.each([
    ['nothing', undefined],
    ['null', null],
    ['a misspelled status', { status: 'aquired', attempt: 1 }],
    ['no status', {}],
    ['acquired without an attempt', { status: 'acquired' }],
    ['attempt 0', { status: 'acquired', attempt: 0 }],
    ['attempt 1.5', { status: 'acquired', attempt: 1.5 }],
    ['attempt "1"', { status: 'acquired', attempt: '1' }],
    ['busy without retryAfterMs', { status: 'busy' }],
    ['retryAfterMs NaN', { status: 'busy', retryAfterMs: Number.NaN }],
  ])('replies with %s → unavailable, told to onError, nothing handled or lost', async (_title, claim) => {
    const store = new ScriptedStore();
    const { claim: claimAll } = store;
    store.claim = async (...parameters) => {
      const [first] = await claimAll.apply(store, parameters);
      // A store of a program without types.
      return [first, claim] as Claim[];
    };
    const onError = vi.fn();
    const handler = vi.fn(() => Promise.reject(failure));
    const inbox = makeInbox({ store, onError });
    const body = payload(tracking('t1', 'e1', 'e2'));
    const keys = ['tracking/events:t1:e1', 'tracking/events:t1:e2'];
    expect(await inbox.process(body, handler)).toMatchObject({ outcome: 'unavailable', unavailable: keys });
    expect(handler).not.toHaveBeenCalled();
    expect(onError).toHaveBeenCalledExactlyOnceWith(expect.any(TrackingError), { operation: 'claim', keys });
    expect(onError.mock.lastCall?.[0].message).toBe(
      "Expected the store to reply with 2 claims, each { status: 'acquired', attempt: 1 }, " +
        "{ status: 'busy', retryAfterMs: 1000 } or { status: 'done' }, got an invalid claim at index 1",
    );
    store.claim = claimAll;
    expect(await inbox.process(body, () => {})).toMatchObject({ outcome: 'done', handled: 2 });
  });

  test.each<[string, unknown, string]>([
    ['undefined instead of a list', undefined, 'undefined'],
    ['fewer claims than keys', [{ status: 'acquired', attempt: 1 }], 'an array of 1'],
    ['a list with holes', Array(2), 'an invalid claim at index 0'],
  ])('replies with %s → unavailable, and the message says what it got', async (_title, reply, got) => {
    const store = new ScriptedStore();
    store.claim = async () => reply as Claim[];
    const onError = vi.fn();
    const body = payload(tracking('t1', 'e1', 'e2'));
    expect(await makeInbox({ store, onError }).process(body, () => {})).toMatchObject({
      outcome: 'unavailable',
      handled: 0,
    });
    expect(onError.mock.lastCall?.[0].message).toMatch(new RegExp(`^Expected the store .*, got ${got}$`));
  });

  test('replies with nothing → the webhook handler responds with 503', async () => {
    const store = new ScriptedStore();
    store.claim = async () => [undefined] as unknown as Claim[];
    const handle = makeHandler({ store, onError: () => {} });
    expect((await handle(post(payload(tracking('t1', 'e1'))))).status).toBe(503);
  });

  test('an item that the engine leaves open → counts as unavailable, so that it is delivered again', async () => {
    const settings = resolveInboxOptions({ store: new ScriptedStore() });
    const onOther = vi.fn();
    const callbacks = { onEvent: () => {}, onOther };
    const body = payload(tracking('t1', 'e1'), tracking('t2'));
    const report = await processWebhook(settings, body, callbacks, {}, async () => {});
    expect(report).toMatchObject({ outcome: 'unavailable', unavailable: ['tracking/events:t1:e1'] });
    expect(onOther).not.toHaveBeenCalled();
  });

  test('down → onOther waits for the redelivery', async () => {
    const store = new ScriptedStore();
    store.before = () => Promise.reject(down);
    const onOther = vi.fn();
    const body = payload(tracking('t1', 'e1'), tracking('t2'), proofOfDelivery('t3'));
    await makeInbox({ store }).process(body, { onEvent: () => {}, onOther });
    expect(onOther).not.toHaveBeenCalled();
  });
});

describe('a store that hangs', () => {
  const hanging = () => new Promise<never>(() => {});

  test('on the first claim → unavailable after 4.5 s, nothing is handled', async () => {
    const store = new ScriptedStore();
    store.before = hanging;
    const onEvent = vi.fn();
    const processing = makeInbox({ store }).process(payload(tracking('t1', 'e1')), onEvent);
    await vi.advanceTimersByTimeAsync(4_500);
    expect(await processing).toMatchObject({ outcome: 'unavailable', handled: 0 });
    expect(onEvent).not.toHaveBeenCalled();
  });

  test('on the claim after half a lease → unavailable 4.5 s later, without waiting for a release', async () => {
    const store = new ScriptedStore();
    const processing = makeInbox({ store }).process(payload(tracking('t1', 'e1', 'e2')), ({ eventId }) => {
      if (eventId === 'e2') return;
      store.before = (operation) => (operation === 'commit' ? undefined : hanging());
      vi.advanceTimersByTime(HALF_LEASE_MS);
    });
    await vi.advanceTimersByTimeAsync(4_500);
    expect(await processing).toMatchObject({ outcome: 'unavailable', handled: 1 });
  });

  test('and claims after all, once nobody waits → released, a redelivery handles it at once', async () => {
    const store = new ScriptedStore();
    let carryOn = () => {};
    store.before = (operation) =>
      operation === 'claim' ? new Promise<void>((resolve) => (carryOn = resolve)) : undefined;
    const inbox = makeInbox({ store });
    const processing = inbox.process(payload(tracking('t1', 'e1')), () => {});
    await vi.advanceTimersByTimeAsync(4_500);
    expect((await processing).outcome).toBe('unavailable');
    store.before = () => {};
    carryOn();
    await vi.advanceTimersByTimeAsync(0);
    expect(await inbox.process(payload(tracking('t1', 'e1')), () => {})).toMatchObject({ handled: 1 });
  });

  test('on a renewal → told to onError, and the callback goes on', async () => {
    const store = new ScriptedStore();
    const told: unknown[] = [];
    const inbox = makeInbox({ store, onError: (_error, { operation }) => told.push(operation) });
    const processing = inbox.process(payload(tracking('t1', 'e1')), async () => {
      store.before = (operation) => (operation === 'claim' ? hanging() : undefined);
      await new Promise((resolve) => setTimeout(resolve, 2 * HALF_LEASE_MS));
    });
    await vi.advanceTimersByTimeAsync(2 * HALF_LEASE_MS);
    expect(await processing).toMatchObject({ outcome: 'done', handled: 1 });
    expect(told).toEqual(['renew', 'renew']);
  });

  test('on a commit → each try is given up after 4.5 s, and the outcome is done', async () => {
    const store = new ScriptedStore();
    store.before = (operation) => (operation === 'commit' ? hanging() : undefined);
    const processing = makeInbox({ store }).process(payload(tracking('t1', 'e1')), () => {});
    await vi.advanceTimersByTimeAsync(20_000);
    expect(await processing).toMatchObject({ outcome: 'done', handled: 1 });
    expect(store.calls.filter(({ operation }) => operation === 'commit')).toHaveLength(4);
  });
});
