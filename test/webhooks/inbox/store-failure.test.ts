import { describe, expect, test, vi } from 'vitest';
import { TrackingError } from '../../../src/errors.ts';
import { type Claim, MemoryDedupeStore } from '../../../src/webhooks/index.ts';
import {
  buildKey,
  E1,
  failingOn,
  failure,
  makeInbox,
  payload,
  proofOfDelivery,
  ScriptedStore,
  TWO,
  tracking,
  useFakeTimers,
} from '../support.ts';

const HALF_LEASE_MS = 30_000;
const KEYS = [buildKey('e1'), buildKey('e2')];
const down = new Error('connection refused');
const nothing = () => {};
const fail = () => Promise.reject(down);
const hang = () => new Promise<never>(() => {});

/** A store whose first claim works and whose later ones fail. */
function makeStoreThatGoesDown(): ScriptedStore {
  const store = new ScriptedStore();
  store.on('claim', () => (store.calls.length > 1 ? fail() : undefined));
  return store;
}

useFakeTimers();

describe('a claim that fails', () => {
  test('the first claim fails → no callback is called, not even onOther, reported to onError, outcome unavailable', async () => {
    const store = new ScriptedStore();
    store.before = fail;
    const [onEvent, onOther, onError] = [vi.fn(), vi.fn(), vi.fn()];
    const body = payload(tracking('t1', 'e1', 'e2'), tracking('t2'), proofOfDelivery('t3'));
    const report = await makeInbox({ store, onError }).process(body, { onEvent, onOther });
    expect(report).toMatchObject({ outcome: 'unavailable', unavailable: KEYS });
    expect(onEvent).not.toHaveBeenCalled();
    expect(onOther).not.toHaveBeenCalled();
    // The release fails as well, which says nothing new.
    await vi.advanceTimersByTimeAsync(1);
    expect(onError).toHaveBeenCalledExactlyOnceWith(down, { operation: 'claim', keys: [buildKey('e1')] });
  });

  test('the store goes down in mid-webhook → no later event is called or claimed; a redelivery handles these at once', async () => {
    const store = makeStoreThatGoesDown();
    const onEvent = vi.fn();
    const inbox = makeInbox({ store });
    const body = payload(tracking('t1', 'e1', 'e2', 'e3'));
    expect(await inbox.process(body, onEvent)).toMatchObject({
      outcome: 'unavailable',
      handled: 1,
      unavailable: [buildKey('e2'), buildKey('e3')],
    });
    expect(onEvent).toHaveBeenCalledOnce();
    expect(store.operations.filter((operation) => operation === 'claim')).toHaveLength(2);
    store.before = nothing;
    expect(await inbox.process(body, nothing)).toMatchObject({ outcome: 'done', handled: 2, duplicates: 1 });
  });

  test('the renewal of a half-over lease hangs before onDeadLetter → not called, all events are unavailable after 4.5 s', async () => {
    const store = new ScriptedStore();
    const onDeadLetter = vi.fn();
    const inbox = makeInbox({ store, maxAttempts: 1, onDeadLetter });
    const onEvents = () => {
      store.before = hang;
      vi.advanceTimersByTime(HALF_LEASE_MS);
      throw failure;
    };
    const processing = inbox.process(TWO, { onEvents });
    await vi.advanceTimersByTimeAsync(4_500);
    const report = await processing;
    expect(onDeadLetter).not.toHaveBeenCalled();
    expect(report).toMatchObject({ outcome: 'unavailable', handled: 0, unavailable: KEYS });
  });

  test('a claim fails while another receiver holds an event → no further claim for that event', async () => {
    const store = new ScriptedStore();
    await store.lease('e1');
    const [busy, unavailable] = [buildKey('e1'), 'tracking/events:t2:e2'];
    store.on('claim', ([key]) => (key === unavailable ? fail() : undefined));
    const body = payload(tracking('t1', 'e1'), tracking('t2', 'e2'));
    const report = await makeInbox({ store }).process(body, nothing);
    expect(report).toMatchObject({ outcome: 'unavailable', unavailable: [unavailable], busy: [busy] });
    const claims = store.calls.filter(({ operation }) => operation === 'claim');
    expect(claims.map(({ keys }) => keys)).toEqual([[busy], [unavailable]]);
  });

  test('a claim fails after it leased a part of the keys → released, a redelivery handles all events at once', async () => {
    const store = new ScriptedStore();
    const { claim } = store;
    // A script that ran on one node of a cluster only leaves this state.
    store.claim = async (keys, options) => {
      store.claim = claim;
      await claim.call(store, keys.slice(0, 1), options);
      throw down;
    };
    const inbox = makeInbox({ store });
    expect(await inbox.process(TWO, { onEvents: nothing })).toMatchObject({ outcome: 'unavailable' });
    expect(await inbox.process(TWO, { onEvents: nothing })).toMatchObject({ outcome: 'done', handled: 2 });
  });
});

describe('a commit that fails', () => {
  test('commits that fail for nine seconds → tried again until one succeeds, and the event is done', async () => {
    const store = new ScriptedStore();
    store.on('commit', fail);
    const inbox = makeInbox({ store });
    const processing = inbox.process(E1, nothing);
    await vi.advanceTimersByTimeAsync(9_000);
    store.before = nothing;
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await processing).toMatchObject({ outcome: 'done', handled: 1 });
    expect(await inbox.process(E1, nothing)).toMatchObject({ duplicates: 1 });
  });

  test('two commits fail and the third succeeds → onError gets each failure, and the event is done', async () => {
    const store = new ScriptedStore();
    let commits = 0;
    store.on('commit', () => (commits++ < 2 ? fail() : undefined));
    const onError = vi.fn();
    const processing = makeInbox({ store, onError }).process(E1, nothing);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await processing).toMatchObject({ outcome: 'done', handled: 1 });
    const context = { operation: 'commit', keys: [buildKey('e1')] };
    expect(onError.mock.calls).toEqual([
      [down, context],
      [down, context],
    ]);
  });

  test('commits that always fail → tried for ten seconds, then done, because a 503 would repeat the event for certain', async () => {
    const store = new ScriptedStore();
    store.on('commit', fail);
    const startedAt = performance.now();
    const times: number[] = [];
    const onError = vi.fn(() => void times.push(performance.now() - startedAt));
    const processing = makeInbox({ store, onError }).process(E1, nothing);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await processing).toMatchObject({ outcome: 'done', handled: 1, failures: [] });
    expect(times.length).toBeLessThanOrEqual(20);
    expect(times.at(-1)).toBe(10_000);
    expect(onError).toHaveBeenLastCalledWith(down, { operation: 'commit', keys: [buildKey('e1')] });
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('a release that fails', () => {
  test('a release after a failed callback fails → reported to onError, and the lease expires', async () => {
    const store = new ScriptedStore();
    store.on('release', fail);
    const onError = vi.fn();
    const report = await makeInbox({ store, onError }).process(TWO, failingOn('e1').handler);
    expect(report).toMatchObject({ outcome: 'failed', handled: 1, failures: [{ error: failure }] });
    expect(onError).toHaveBeenLastCalledWith(down, { operation: 'release', keys: [buildKey('e1')] });
    expect(await store.lease('e1')).toBe('busy');
    await vi.advanceTimersByTimeAsync(60_000);
    expect(await store.lease('e1')).toBe('acquired');
  });
});

describe('a store with invalid replies', () => {
  test.each<[string, (first: Claim | undefined) => unknown, string]>([
    ['undefined instead of a list', () => undefined, 'undefined for 2 keys'],
    ['fewer claims than keys', (first) => [first], 'an array of 1 item for 2 keys'],
    ['a list with holes', () => Array(2), 'an invalid claim at index 0'],
    ...[
      null,
      {},
      { status: 'aquired', attempt: 1 },
      { status: 'acquired' },
      { status: 'acquired', attempt: 0 },
      { status: 'acquired', attempt: '1' },
      { status: 'busy' },
      { status: 'busy', retryAfterMs: Number.NaN },
    ].map((claim): [string, (first: Claim | undefined) => unknown, string] => [
      JSON.stringify(claim),
      (first) => [first, claim],
      'an invalid claim at index 1',
    ]),
  ])('%s → unavailable, reported to onError, nothing handled or lost', async (_title, reply, got) => {
    const store = new ScriptedStore();
    const { claim } = store;
    // A store of a program without types.
    store.claim = async (...parameters) => reply((await claim.apply(store, parameters))[0]) as Claim[];
    const [onError, onEvents] = [vi.fn(), vi.fn()];
    const inbox = makeInbox({ store, onError });
    expect(await inbox.process(TWO, { onEvents })).toMatchObject({
      outcome: 'unavailable',
      unavailable: KEYS,
    });
    expect(onEvents).not.toHaveBeenCalled();
    const message =
      `\`store.claim\` returned ${got}; for each key it must return ` +
      "{ status: 'acquired', attempt: <1 or more> }, { status: 'busy', retryAfterMs: <milliseconds> } or { status: 'done' }";
    expect(onError).toHaveBeenCalledExactlyOnceWith(new TrackingError(message), {
      operation: 'claim',
      keys: KEYS,
    });
    store.claim = claim;
    expect(await inbox.process(TWO, { onEvents: nothing })).toMatchObject({ outcome: 'done', handled: 2 });
  });
});

describe('a store with a time limit of its own', () => {
  test.each([
    ['10,000 ms → the claim is awaited', 10_000, 9_999, 'done'],
    ['0 → ignored, unavailable after 4.5 s', 0, 4_501, 'unavailable'],
    ['NaN → ignored, unavailable after 4.5 s', Number.NaN, 4_501, 'unavailable'],
    ['Infinity → ignored, unavailable after 4.5 s', Number.POSITIVE_INFINITY, 4_501, 'unavailable'],
  ])('%s', async (_title, commandTimeoutMs, claimMs, outcome) => {
    const store = Object.assign(new ScriptedStore(), { commandTimeoutMs });
    store.on('claim', () => new Promise((resolve) => setTimeout(resolve, claimMs)));
    const processing = makeInbox({ store }).process(E1, nothing);
    await vi.advanceTimersByTimeAsync(claimMs);
    expect((await processing).outcome).toBe(outcome);
  });
});

test('a refused connection → one release, because nothing can arrive late', async () => {
  const store = Object.assign(new ScriptedStore(), { commandTimeoutMs: 1_000 });
  store.before = fail;
  await makeInbox({ store }).process(E1, nothing);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(store.operations).toEqual(['claim', 'release']);
  expect(vi.getTimerCount()).toBe(0);
});

describe('a store that hangs', () => {
  test('a hang in the first claim → unavailable after 4.5 s; a claim that succeeds later is released', async () => {
    const store = new ScriptedStore();
    let carryOn = () => {};
    store.on('claim', () => new Promise<void>((resolve) => (carryOn = resolve)));
    const onEvent = vi.fn();
    const processing = makeInbox({ store }).process(E1, onEvent);
    await vi.advanceTimersByTimeAsync(4_500);
    expect(await processing).toMatchObject({ outcome: 'unavailable', handled: 0 });
    expect(onEvent).not.toHaveBeenCalled();
    store.before = nothing;
    carryOn();
    await vi.advanceTimersByTimeAsync(0);
    await makeInbox({ store }).process(E1, onEvent);
    expect(onEvent.mock.lastCall).toMatchObject([{}, { attempt: 1 }]);
  });

  test('a hang in the second claim → unavailable 4.5 s later, without waiting for a release', async () => {
    const store = new ScriptedStore();
    const processing = makeInbox({ store }).process(TWO, () => {
      store.before = (operation) => (operation === 'commit' ? undefined : hang());
    });
    await vi.advanceTimersByTimeAsync(4_500);
    expect(await processing).toMatchObject({ outcome: 'unavailable', handled: 1 });
  });

  test('a hang in commits → each try is given up after 4.5 s, and the outcome is done', async () => {
    const store = new ScriptedStore();
    store.on('commit', hang);
    const processing = makeInbox({ store }).process(E1, nothing);
    await vi.advanceTimersByTimeAsync(20_000);
    expect(await processing).toMatchObject({ outcome: 'done', handled: 1 });
    expect(store.operations.filter((operation) => operation === 'commit')).toHaveLength(4);
  });
});

describe('a memory store that was changed and hangs', () => {
  class SubclassedStore extends MemoryDedupeStore {
    override claim = hang;
  }

  test.each<[string, () => MemoryDedupeStore]>([
    ['a subclass', () => new SubclassedStore()],
    [
      'a store with a method that was replaced',
      () => Object.assign(new MemoryDedupeStore(), { claim: hang }),
    ],
  ])('%s → outcome unavailable after the time limit', async (_title, makeStore) => {
    const processing = makeInbox({ store: makeStore() }).process(E1, nothing);
    await vi.advanceTimersByTimeAsync(4_500);
    expect(await processing).toMatchObject({ outcome: 'unavailable' });
  });
});
