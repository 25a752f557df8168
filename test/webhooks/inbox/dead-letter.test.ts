import { describe, expect, test, vi } from 'vitest';
import type { DedupeStore, WebhookCallbacks } from '../../../src/webhooks/index.ts';
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

const { handler: failing } = failingOn('e1');

useFakeTimers();

test('the last allowed attempt fails → onDeadLetter is called once, and the event is done', async () => {
  const onDeadLetter = vi.fn();
  const inbox = makeInbox({ maxAttempts: 3, onDeadLetter });
  const { attempts, handler } = failingOn('e1');
  const reports: unknown[] = [];
  for (let round = 0; round < 4; round += 1) reports.push(await inbox.process(E1, handler));
  expect(attempts).toEqual(['e1#1', 'e1#2', 'e1#3']);
  expect(reports).toMatchObject([
    { outcome: 'failed' },
    { outcome: 'failed' },
    { outcome: 'done', handled: 0, deadLettered: 1, failures: [] },
    { outcome: 'done', duplicates: 1 },
  ]);
  expect(onDeadLetter).toHaveBeenCalledOnce();
  expect(onDeadLetter.mock.lastCall).toMatchObject([
    { eventId: 'e1' },
    {
      key: buildKey('e1'),
      attempt: 3,
      error: failure,
      message: { kind: 'events' },
      signal: { aborted: false },
    },
  ]);
});

test.each([
  ['no maxAttempts → onDeadLetter is called at the tenth attempt', true, ['failed', 'done', 'done']],
  ['no onDeadLetter → an event is tried again after any number of failures', false, Array(3).fill('failed')],
])('%s', async (_title, isGiven, lastOutcomes) => {
  const onDeadLetter = vi.fn();
  const inbox = makeInbox(isGiven ? { onDeadLetter } : {});
  const outcomes: string[] = [];
  for (let round = 0; round < 11; round += 1) outcomes.push((await inbox.process(E1, failing)).outcome);
  expect(outcomes).toEqual([...Array(8).fill('failed'), ...lastOutcomes]);
  expect(onDeadLetter.mock.calls.map(([, { attempt }]) => attempt)).toEqual(isGiven ? [10] : []);
});

test('onDeadLetter rejects → reported to onError, the event is released, the next attempt calls onDeadLetter again', async () => {
  const noQueue = new Error('no queue');
  const onDeadLetter = vi.fn().mockRejectedValueOnce(noQueue);
  const onError = vi.fn();
  const inbox = makeInbox({ maxAttempts: 1, onDeadLetter, onError });
  const keys = [buildKey('e1')];
  expect(await inbox.process(E1, failing)).toMatchObject({
    outcome: 'failed',
    deadLettered: 0,
    failures: [{ keys, error: noQueue }],
  });
  expect(onError.mock.calls).toEqual([
    [failure, { operation: 'callback', keys }],
    [noQueue, { operation: 'deadLetter', keys }],
  ]);
  expect(await inbox.process(E1, failing)).toMatchObject({ outcome: 'done', deadLettered: 1 });
});

test.each<[string, WebhookCallbacks, object, unknown[]]>([
  [
    'onEvents',
    { onEvents: () => Promise.reject(failure) },
    tracking('t1', 'e1', 'e2'),
    [
      [{ eventId: 'e1' }, { key: buildKey('e1') }],
      [{ eventId: 'e2' }, { key: buildKey('e2') }],
    ],
  ],
  [
    'onProofOfDelivery',
    { onProofOfDelivery: () => Promise.reject(failure) },
    proofOfDelivery('t1'),
    [[undefined, { message: { kind: 'proofOfDelivery' } }]],
  ],
])(
  '%s fails for the last time → onDeadLetter is called for each event or proof',
  async (_title, callbacks, item, calls) => {
    const onDeadLetter = vi.fn();
    const report = await makeInbox({ maxAttempts: 1, onDeadLetter }).process(payload(item), callbacks);
    expect(onDeadLetter.mock.calls).toMatchObject(calls);
    expect(report).toMatchObject({ outcome: 'done', deadLettered: calls.length });
  },
);

test('onEvents fails, for one event at its last attempt → that event is dead-lettered, the other released', async () => {
  const onDeadLetter = vi.fn();
  const inbox = makeInbox({ maxAttempts: 2, onDeadLetter });
  const onEvents = () => Promise.reject(failure);
  await inbox.process(payload(tracking('t1', 'old')), { onEvents });
  const report = await inbox.process(payload(tracking('t1', 'old', 'new')), { onEvents });
  expect(onDeadLetter.mock.calls).toMatchObject([[{ eventId: 'old' }, {}]]);
  expect(report).toMatchObject({
    outcome: 'failed',
    deadLettered: 1,
    failures: [{ keys: [buildKey('new')] }],
  });
});

test('an event that another receiver takes over before its dead letter → busy, not dead-lettered', async () => {
  const store = new ScriptedStore();
  const onDeadLetter = vi.fn();
  const inbox = makeInbox({ store, maxAttempts: 1, onDeadLetter, busyTimeoutMs: 0 });
  const report = await inbox.process(E1, async () => {
    store.claim = async (keys) => keys.map(() => ({ status: 'busy', retryAfterMs: 60_000 }));
    vi.advanceTimersByTime(30_000);
    await null;
    throw failure;
  });
  expect(report).toMatchObject({ outcome: 'busy', failures: [], deadLettered: 0, busy: [buildKey('e1')] });
  expect(onDeadLetter).not.toHaveBeenCalled();
});

describe('a callback that kills the process', () => {
  const IDS = Array.from({ length: 20 }, (_, index) => `e${101 + index}`);
  const TWENTY = payload(tracking('t1', ...IDS));

  /** Processes a webhook in a process that dies when `isFatal` is called with one of its events. */
  async function processUntilDeath(
    store: ScriptedStore,
    isFatal: (eventId: unknown) => boolean,
    options: Parameters<typeof makeInbox>[0] = {},
  ) {
    let isDead = false;
    const handled: unknown[] = [];
    const hangIfDead = () => (isDead ? new Promise<never>(() => {}) : undefined);
    const own: DedupeStore = {
      claim: async (...parameters) => hangIfDead() ?? store.claim(...parameters),
      commit: async (...parameters) => hangIfDead() ?? store.commit(...parameters),
      release: async (...parameters) => hangIfDead() ?? store.release(...parameters),
    };
    const processing = makeInbox({ ...options, store: own }).process(TWENTY, ({ eventId }) => {
      if (!isFatal(eventId)) return void handled.push(eventId);
      isDead = true;
      return new Promise(() => {});
    });
    await vi.advanceTimersByTimeAsync(10);
    if (isDead) await vi.advanceTimersByTimeAsync(60_000);
    return isDead ? { handled } : { handled, report: await processing };
  }

  test('event 1 of 20 kills ten processes → it alone is dead-lettered, without a call; 2 to 20 get all their attempts', async () => {
    const store = new ScriptedStore();
    const onDeadLetter = vi.fn();
    const isFatal = vi.fn((eventId: unknown) => eventId === 'e101');
    for (let round = 1; round <= 10; round += 1) {
      expect(await processUntilDeath(store, isFatal, { onDeadLetter })).toEqual({ handled: [] });
    }
    const { attempts, handler } = failingOn('e102');
    expect(await makeInbox({ store, onDeadLetter }).process(TWENTY, handler)).toMatchObject({
      outcome: 'failed',
      handled: 18,
      deadLettered: 1,
      failures: [{ keys: [buildKey('e102')] }],
    });
    expect(attempts).toEqual(IDS.slice(1).map((eventId) => `${eventId}#1`));
    const { handled, report } = await processUntilDeath(store, isFatal, { onDeadLetter });
    expect(report).toMatchObject({ outcome: 'done', handled: 1, duplicates: 19 });
    expect(handled).toEqual(['e102']);
    expect(onDeadLetter.mock.calls).toMatchObject([
      [
        { eventId: 'e101' },
        {
          attempt: 11,
          error: {
            message: 'The callback was not called, because it would be attempt 11, and `maxAttempts` is 10',
          },
        },
      ],
    ]);
    expect(isFatal.mock.calls.filter(([eventId]) => eventId === 'e101')).toHaveLength(10);
  });

  test('event 1 of 20 kills every process, without onDeadLetter → from the eleventh delivery on, 2 to 20 are handled before it', async () => {
    const store = new ScriptedStore();
    const isFatal = (eventId: unknown) => eventId === 'e101';
    for (let delivery = 1; delivery <= 10; delivery += 1) {
      expect(await processUntilDeath(store, isFatal)).toEqual({ handled: [] });
    }
    expect(await processUntilDeath(store, isFatal)).toEqual({ handled: IDS.slice(1) });
    expect(await processUntilDeath(store, isFatal)).toEqual({ handled: [] });
    expect(await processUntilDeath(store, () => false)).toMatchObject({
      handled: ['e101'],
      report: { outcome: 'done', duplicates: 19 },
    });
  });

  test('while an event is called → other receivers may take the later events, and they are not handled twice', async () => {
    const store = new ScriptedStore();
    const handled: unknown[] = [];
    const inbox = makeInbox({ store });
    const report = await inbox.process(TWO, async ({ eventId }) => {
      handled.push(eventId);
      const other = await inbox.process(payload(tracking('t1', 'e2')), (event) =>
        handled.push(event.eventId),
      );
      expect(other).toMatchObject({ outcome: 'done', handled: 1 });
    });
    expect(handled).toEqual(['e1', 'e2']);
    expect(report).toMatchObject({ outcome: 'done', handled: 1, duplicates: 1 });
  });
});

test('onEvents with one event above maxAttempts → that one is dead-lettered without a call, the other is handled', async () => {
  const store = new ScriptedStore();
  const onDeadLetter = vi.fn();
  for (const token of ['dead-1', 'dead-2']) await store.leaseToDead(['old'], token);
  const seen: unknown[] = [];
  const report = await makeInbox({ store, maxAttempts: 2, onDeadLetter }).process(
    payload(tracking('t1', 'old', 'new')),
    { onEvents: ({ events }) => seen.push(events.map(({ eventId }) => eventId)) },
  );
  expect(onDeadLetter.mock.calls).toMatchObject([[{ eventId: 'old' }, {}]]);
  expect(seen).toEqual([['new']]);
  expect(report).toMatchObject({ outcome: 'done', handled: 1, deadLettered: 1 });
});

describe('an event of ten attempts that never ended, without onDeadLetter', () => {
  /** A store in which ten processes died during the callbacks of these events. */
  async function makeStore(...eventIds: string[]): Promise<ScriptedStore> {
    const store = new ScriptedStore();
    for (let death = 1; death <= 10; death += 1) await store.leaseToDead(eventIds, `dead-${death}`);
    return store;
  }

  /** Processes a webhook; returns the calls of the callback as `eventId#attempt`, and the report. */
  async function processWith(store: ScriptedStore, body: unknown, fails = '') {
    const { attempts, handler } = failingOn(fails);
    const report = await makeInbox({ store, busyTimeoutMs: 0 }).process(body, handler);
    return { calls: attempts, report };
  }

  test('it is put off → free and uncounted while the other events are called', async () => {
    const store = await makeStore('e1');
    const onEvent = vi.fn(async ({ eventId }: { eventId?: unknown }) => {
      if (eventId === 'e2')
        expect(await store.claim([buildKey('e1')], { token: 'other', leaseMs: 1 })).toEqual([
          { status: 'acquired', attempt: 11 },
        ]);
      vi.advanceTimersByTime(2);
    });
    await makeInbox({ store }).process(TWO, onEvent);
    expect(onEvent).toHaveBeenCalledTimes(2);
  });

  test('two such events → both are called last, in their order', async () => {
    const store = await makeStore('e1', 'e3');
    const { calls } = await processWith(store, payload(tracking('t1', 'e1', 'e2', 'e3', 'e4')));
    expect(calls).toEqual(['e2#1', 'e4#1', 'e1#11', 'e3#11']);
  });

  test('it belongs to a message for onEvents → called with the other events first, with this event last', async () => {
    const store = await makeStore('e1');
    const seen: unknown[] = [];
    const report = await makeInbox({ store }).process(
      payload(tracking('t1', 'e1', 'e2'), tracking('t2', 'e3')),
      {
        onEvents: ({ events }, { attempt }) => seen.push([events.map(({ eventId }) => eventId), attempt]),
      },
    );
    expect(seen).toEqual([
      [['e2'], 1],
      [['e3'], 1],
      [['e1'], 11],
    ]);
    expect(report).toMatchObject({ outcome: 'done', handled: 3 });
  });

  test('another event stays busy → it is not called, and reported as busy', async () => {
    const store = await makeStore('e1');
    await store.lease('e2', 30_000);
    const { calls, report } = await processWith(store, TWO);
    expect(calls).toEqual([]);
    const busy = [buildKey('e1'), buildKey('e2')];
    expect(report).toMatchObject({ outcome: 'busy', busy, retryAfterMs: 30_000 });
  });

  test('a shutdown or a failure of the store before its turn → interrupted or unavailable, and not called', async () => {
    for (const outcome of ['interrupted', 'unavailable'] as const) {
      const store = await makeStore('e1');
      const shutdown = new AbortController();
      const onEvent = vi.fn(() => {
        if (outcome === 'interrupted') shutdown.abort();
        else store.on('claim', () => Promise.reject(failure));
      });
      const report = await makeInbox({ store }).process(TWO, onEvent, { signal: shutdown.signal });
      expect(report).toMatchObject({ outcome, handled: 1, [outcome]: [buildKey('e1')] });
      expect(onEvent).toHaveBeenCalledOnce();
    }
  });

  test('another receiver takes it before its turn → waited for, and handled once', async () => {
    const store = await makeStore('e1');
    const calls: unknown[] = [];
    const processing = makeInbox({ store }).process(TWO, async ({ eventId }, { attempt }) => {
      calls.push([eventId, attempt]);
      if (eventId === 'e2') await store.lease('e1', 3_000);
    });
    await vi.advanceTimersByTimeAsync(4_000);
    expect(await processing).toMatchObject({ outcome: 'done', handled: 2 });
    expect(calls).toEqual([
      ['e2', 1],
      ['e1', 12],
    ]);
  });
});
