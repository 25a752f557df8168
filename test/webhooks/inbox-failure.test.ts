import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { MemoryDedupeStore } from '../../src/webhooks/index.ts';
import type { InboxErrorContext } from '../../src/webhooks/processor.ts';
import { watchTimers } from '../support/watch-timers.ts';
import { deferred, failingOn, failure, makeInbox, payload, proofOfDelivery, tracking } from './support.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe('a callback that fails', () => {
  test('throws → the other events are handled, outcome failed with the error', async () => {
    const { attempts, handler } = failingOn('e2');
    const report = await makeInbox().process(payload(tracking('t1', 'e1', 'e2', 'e3')), handler);
    expect(attempts).toEqual(['e1#1', 'e2#1', 'e3#1']);
    expect(report).toMatchObject({
      outcome: 'failed',
      handled: 2,
      failures: [{ keys: ['tracking/events:t1:e2'], error: failure }],
    });
  });

  test('throws → its key is released, a redelivery tries it alone, attempt 2', async () => {
    const inbox = makeInbox();
    const { attempts, handler } = failingOn('e2');
    await inbox.process(payload(tracking('t1', 'e1', 'e2')), handler);
    const report = await inbox.process(payload(tracking('t1', 'e1', 'e2')), handler);
    expect(attempts).toEqual(['e1#1', 'e2#1', 'e2#2']);
    expect(report).toMatchObject({ outcome: 'failed', handled: 0, duplicates: 1 });
  });

  test('throws, and a slow event comes after it → stays leased to the end of the webhook', async () => {
    const store = new MemoryDedupeStore();
    const work = deferred();
    const processing = makeInbox({ store }).process(payload(tracking('t1', 'e1', 'e2')), (event) =>
      event.eventId === 'e1' ? Promise.reject(failure) : work.promise,
    );
    await vi.advanceTimersByTimeAsync(1);
    const claim = () => store.claim(['tracking/events:t1:e1'], { token: 'other', leaseMs: 1 });
    expect(await claim()).toMatchObject([{ status: 'busy' }]);
    work.resolve();
    await processing;
    expect(await claim()).toEqual([{ status: 'acquired', attempt: 2 }]);
  });

  test('throws, then succeeds → outcome done, and handled for good', async () => {
    const inbox = makeInbox();
    await inbox.process(payload(tracking('t1', 'e1')), failingOn('e1').handler);
    const { attempts, handler } = failingOn('none');
    expect(await inbox.process(payload(tracking('t1', 'e1')), handler)).toMatchObject({ outcome: 'done' });
    expect(await inbox.process(payload(tracking('t1', 'e1')), handler)).toMatchObject({ duplicates: 1 });
    expect(attempts).toEqual(['e1#2']);
  });

  test('rejects without a reason → outcome failed all the same', async () => {
    const report = await makeInbox().process(payload(tracking('t1', 'e1')), () => Promise.reject());
    expect(report).toMatchObject({ outcome: 'failed', handled: 0 });
    expect(report.failures).toEqual([{ keys: ['tracking/events:t1:e1'], error: undefined }]);
  });

  test('onEvents rejects → all events of that message are released, the other message is handled', async () => {
    const inbox = makeInbox();
    const body = payload(tracking('t1', 'e1', 'e2'), tracking('t2', 'e3'));
    const report = await inbox.process(body, {
      onEvents: async ({ tracker }) => {
        if (tracker.trackerId === 't1') throw failure;
      },
    });
    expect(report).toMatchObject({
      outcome: 'failed',
      handled: 1,
      failures: [{ keys: ['tracking/events:t1:e1', 'tracking/events:t1:e2'] }],
    });
    expect(await inbox.process(body, { onEvents: () => {} })).toMatchObject({ handled: 2, duplicates: 1 });
  });

  test('onEvents rejects, and comes again behind a new event → told the highest attempt of both', async () => {
    const inbox = makeInbox();
    await inbox.process(payload(tracking('t1', 'b')), { onEvents: () => Promise.reject(failure) });
    const seen: unknown[] = [];
    await inbox.process(payload(tracking('t1', 'a', 'b')), {
      onEvents: ({ events }, { attempt }) => seen.push([events.map(({ eventId }) => eventId), attempt]),
    });
    expect(seen).toEqual([[['a', 'b'], 2]]);
  });

  test('onProofOfDelivery rejects → released, a redelivery tries again', async () => {
    const inbox = makeInbox();
    const body = payload(proofOfDelivery('t1'));
    expect(await inbox.process(body, { onProofOfDelivery: () => Promise.reject(failure) })).toMatchObject({
      outcome: 'failed',
    });
    expect(await inbox.process(body, { onProofOfDelivery: () => {} })).toMatchObject({ handled: 1 });
  });

  test('throws → told to onError with operation and keys', async () => {
    const errors: [unknown, InboxErrorContext][] = [];
    const inbox = makeInbox({ onError: (...error) => errors.push(error) });
    await inbox.process(payload(tracking('t1', 'e1')), failingOn('e1').handler);
    expect(errors).toEqual([[failure, { operation: 'callback', keys: ['tracking/events:t1:e1'] }]]);
  });

  test('onError throws → the other events are handled all the same', async () => {
    const inbox = makeInbox({
      onError: () => {
        throw new Error('the log is full');
      },
    });
    const report = await inbox.process(payload(tracking('t1', 'e1', 'e2')), failingOn('e1').handler);
    expect(report).toMatchObject({ outcome: 'failed', handled: 1 });
  });

  test('without onError → written to console.error', async () => {
    const write = vi.spyOn(console, 'error').mockImplementation(() => {});
    await makeInbox({ onError: undefined }).process(payload(tracking('t1', 'e1')), failingOn('e1').handler);
    expect(write).toHaveBeenCalledExactlyOnceWith(
      `[tracking-client] Webhook callback failed: ${failure.message} {"keys":["tracking/events:t1:e1"]}`,
      failure,
    );
    write.mockRestore();
  });

  test('runs longer than callbackTimeoutMs → failed and released, its signal aborted', async () => {
    const inbox = makeInbox({ callbackTimeoutMs: 5_000 });
    const signals: AbortSignal[] = [];
    const processing = inbox.process(payload(tracking('t1', 'e1', 'e2')), (event, { signal }) => {
      if (event.eventId !== 'e1') return undefined;
      signals.push(signal);
      return new Promise(() => {});
    });
    await vi.advanceTimersByTimeAsync(5_000);
    expect(await processing).toMatchObject({ outcome: 'failed', handled: 1 });
    expect(signals[0]?.aborted).toBe(true);
    expect(await inbox.process(payload(tracking('t1', 'e1')), () => {})).toMatchObject({ handled: 1 });
  });

  test('first looks at its signal beyond callbackTimeoutMs → that has aborted, with the error of the report', async () => {
    const inbox = makeInbox({ callbackTimeoutMs: 5_000 });
    let reason: unknown;
    const processing = inbox.process(payload(tracking('t1', 'e1')), async (_, context) => {
      await new Promise((resolve) => setTimeout(resolve, 6_000));
      reason = context.signal.reason;
    });
    await vi.advanceTimersByTimeAsync(6_000);
    expect((await processing).failures).toEqual([{ keys: [expect.any(String)], error: reason }]);
    expect(reason).toBeInstanceOf(Error);
  });

  test('waits for nothing → the timer of callbackTimeoutMs does not keep the process alive', async () => {
    await watchTimers(async (started) => {
      const work = deferred();
      const processing = makeInbox({ callbackTimeoutMs: 5_000 }).process(
        payload(tracking('t1', 'e1')),
        () => work.promise,
      );
      await vi.advanceTimersByTimeAsync(1);
      expect(started.find(({ delayMs }) => delayMs === 5_000)?.timer.hasRef()).toBe(false);
      work.resolve();
      await processing;
    });
  });

  test('any outcome → no timer is left behind', async () => {
    await makeInbox().process(payload(tracking('t1', 'e1', 'e2')), failingOn('e1').handler);
    expect(vi.getTimerCount()).toBe(0);
  });
});
