import { describe, expect, test, vi } from 'vitest';
import type { WebhookCallbacks } from '../../../src/webhooks/index.ts';
import { deferred } from '../../support/deferred.ts';
import { watchTimers } from '../../support/watch-timers.ts';
import {
  buildKey,
  E1,
  failingOn,
  failure,
  makeInbox,
  payload,
  proofOfDelivery,
  TWO,
  tracking,
  useFakeTimers,
} from '../support.ts';

useFakeTimers();

describe('a callback that fails', () => {
  test('a callback that throws → the other events are handled, outcome failed, a redelivery tries the failed event only', async () => {
    const inbox = makeInbox();
    const { attempts, handler } = failingOn('e2');
    const body = payload(tracking('t1', 'e1', 'e2', 'e3'));
    expect(await inbox.process(body, handler)).toMatchObject({
      outcome: 'failed',
      handled: 2,
      failures: [{ keys: [buildKey('e2')], error: failure }],
    });
    expect(await inbox.process(body, handler)).toMatchObject({
      outcome: 'failed',
      handled: 0,
      duplicates: 2,
    });
    expect(attempts).toEqual(['e1#1', 'e2#1', 'e3#1', 'e2#2']);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('onEvents rejects → all events of that message are released, the other message is handled', async () => {
    const inbox = makeInbox();
    const body = payload(tracking('t1', 'e1', 'e2'), tracking('t2', 'e3'));
    const report = await inbox.process(body, {
      onEvents: ({ tracker }) => (tracker.trackerId === 't1' ? Promise.reject(failure) : undefined),
    });
    expect(report).toMatchObject({
      outcome: 'failed',
      handled: 1,
      failures: [{ keys: [buildKey('e1'), buildKey('e2')] }],
    });
    expect(await inbox.process(body, { onEvents: () => {} })).toMatchObject({ handled: 2, duplicates: 1 });
  });

  test('onEvents rejects, and its event is redelivered with a new event → called with the highest attempt of both', async () => {
    const inbox = makeInbox();
    await inbox.process(payload(tracking('t1', 'b')), { onEvents: () => Promise.reject(failure) });
    const onEvents = vi.fn();
    await inbox.process(payload(tracking('t1', 'a', 'b')), { onEvents });
    expect(onEvents.mock.calls).toMatchObject([
      [{ events: [{ eventId: 'a' }, { eventId: 'b' }] }, { attempt: 2 }],
    ]);
  });

  const reject = () => Promise.reject(failure);

  test.each<[WebhookCallbacks, object, string, string[]]>([
    [{ onEvent: reject }, tracking('t1', 'e1'), 'callback', [buildKey('e1')]],
    [{ onProofOfDelivery: reject }, proofOfDelivery('t1'), 'callback', [expect.stringMatching(/^t1:/)]],
    [{ onOther: reject }, proofOfDelivery('t1'), 'other', []],
  ])(
    '%o fails → outcome failed, onError gets operation and keys',
    async (callbacks, item, operation, keys) => {
      const onError = vi.fn();
      const report = await makeInbox({ onError }).process(payload(item), callbacks);
      expect(report).toMatchObject({ outcome: 'failed', failures: [{ keys, error: failure }] });
      expect(onError).toHaveBeenCalledExactlyOnceWith(failure, { operation, keys });
    },
  );

  const reportFailure = () => Promise.reject(new Error('the log is full'));
  const logFailure = () => {
    throw new Error('the log is full');
  };
  test.each<[string, Parameters<typeof makeInbox>[0]]>([
    ['onError rejects', { onError: reportFailure }],
    ['onError throws', { onError: logFailure }],
    [
      'the logger throws',
      { onError: undefined, logger: { debug() {}, info() {}, warn() {}, error: logFailure } },
    ],
  ])('%s → the other events are handled, no unhandled rejection', async (_title, options) => {
    const report = await makeInbox(options).process(TWO, failingOn('e1').handler);
    expect(report).toMatchObject({ outcome: 'failed', handled: 1 });
  });
});

describe('a callback beyond callbackTimeoutMs', () => {
  test('a callback beyond its timeout → failed and released, its signal aborts with the error of the report', async () => {
    const inbox = makeInbox({ callbackTimeoutMs: 5_000 });
    let signal: AbortSignal | undefined;
    const processing = inbox.process(TWO, (event, context) => {
      if (event.eventId !== 'e1') return undefined;
      signal = context.signal;
      return new Promise(() => {});
    });
    await vi.advanceTimersByTimeAsync(5_000);
    expect(signal?.reason).toMatchObject({
      message: 'The callback did not finish within 5000 ms (`callbackTimeoutMs`)',
    });
    expect(await processing).toMatchObject({
      outcome: 'failed',
      handled: 1,
      failures: [{ keys: [buildKey('e1')], error: signal?.reason }],
    });
    expect(await inbox.process(E1, () => {})).toMatchObject({ handled: 1 });
  });

  test('a running callback → neither its timer nor the timer of its lease keeps the process alive', async () => {
    await watchTimers(async (started) => {
      const work = deferred();
      const processing = makeInbox({ callbackTimeoutMs: 5_000 }).process(E1, () => work.promise);
      await vi.advanceTimersByTimeAsync(1);
      for (const delay of [5_000, 20_000]) {
        expect(started.find(({ delayMs }) => delayMs === delay)?.timer.hasRef()).toBe(false);
      }
      work.resolve();
      await processing;
    });
  });
});
