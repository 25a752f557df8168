import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { MemoryDedupeStore } from '../../src/webhooks/index.ts';
import {
  failingOn,
  failure,
  makeInbox,
  payload,
  proofOfDelivery,
  ScriptedStore,
  tracking,
} from './support.ts';

describe('onDeadLetter', () => {
  test('the last allowed attempt fails → called once, and the event is done', async () => {
    const letters: unknown[] = [];
    const inbox = makeInbox({
      maxAttempts: 3,
      onDeadLetter: (event, context) => {
        letters.push([event?.eventId, context]);
      },
    });
    const { attempts, handler } = failingOn('e1');
    const outcomes: string[] = [];
    for (let round = 0; round < 5; round += 1) {
      outcomes.push((await inbox.process(payload(tracking('t1', 'e1')), handler)).outcome);
    }
    expect(attempts).toEqual(['e1#1', 'e1#2', 'e1#3']);
    expect(outcomes).toEqual(['failed', 'failed', 'done', 'done', 'done']);
    expect(letters).toMatchObject([
      ['e1', { key: 'tracking/events:t1:e1', attempt: 3, error: failure, message: { kind: 'events' } }],
    ]);
  });

  test('called → counted as dead-lettered, not as handled', async () => {
    const inbox = makeInbox({ maxAttempts: 1, onDeadLetter: () => {} });
    const report = await inbox.process(payload(tracking('t1', 'e1')), failingOn('e1').handler);
    expect(report).toMatchObject({ outcome: 'done', handled: 0, deadLettered: 1, failures: [] });
  });

  test('rejects → the event is released, outcome failed, and the next attempt calls it again', async () => {
    let calls = 0;
    const inbox = makeInbox({
      maxAttempts: 1,
      onDeadLetter: async () => {
        calls += 1;
        if (calls === 1) throw new Error('no queue');
      },
    });
    const { handler } = failingOn('e1');
    expect((await inbox.process(payload(tracking('t1', 'e1')), handler)).outcome).toBe('failed');
    expect((await inbox.process(payload(tracking('t1', 'e1')), handler)).outcome).toBe('done');
    expect(calls).toBe(2);
  });

  test('rejects → told to onError as the callback was, with the key', async () => {
    const told: unknown[] = [];
    const noQueue = new Error('no queue');
    const inbox = makeInbox({
      maxAttempts: 1,
      onDeadLetter: () => Promise.reject(noQueue),
      onError: (...error) => told.push(error),
    });
    await inbox.process(payload(tracking('t1', 'e1')), failingOn('e1').handler);
    const keys = ['tracking/events:t1:e1'];
    expect(told).toEqual([
      [failure, { operation: 'callback', keys }],
      [noQueue, { operation: 'deadLetter', keys }],
    ]);
  });

  test('resolves → the store is asked to commit the event, and to give nothing back', async () => {
    const store = new ScriptedStore();
    const inbox = makeInbox({ store, maxAttempts: 1, onDeadLetter: () => {} });
    await inbox.process(payload(tracking('t1', 'e1')), failingOn('e1').handler);
    expect(store.calls.map(({ operation }) => operation)).toEqual(['claim', 'commit']);
  });

  test('not given → an event that failed often is tried again all the same', async () => {
    const inbox = makeInbox();
    const outcomes: string[] = [];
    for (let round = 0; round < 12; round += 1) {
      outcomes.push((await inbox.process(payload(tracking('t1', 'e1')), failingOn('e1').handler)).outcome);
    }
    expect(outcomes).toEqual(Array(12).fill('failed'));
  });

  test('beyond callbackTimeoutMs → counts as failed: the event is released, outcome failed', async () => {
    vi.useFakeTimers();
    try {
      const inbox = makeInbox({
        maxAttempts: 1,
        callbackTimeoutMs: 5_000,
        onDeadLetter: () => new Promise(() => {}),
      });
      const processing = inbox.process(payload(tracking('t1', 'e1')), failingOn('e1').handler);
      await vi.advanceTimersByTimeAsync(5_000);
      expect(await processing).toMatchObject({
        outcome: 'failed',
        deadLettered: 0,
        failures: [
          { keys: ['tracking/events:t1:e1'], error: { message: expect.stringContaining('5000 ms') } },
        ],
      });
    } finally {
      vi.useRealTimers();
    }
  });

  test('no maxAttempts → called after 10 attempts', async () => {
    const store = new MemoryDedupeStore();
    const attempts: number[] = [];
    const inbox = makeInbox({ store, onDeadLetter: (_event, { attempt }) => attempts.push(attempt) });
    for (let round = 0; round < 12; round += 1) {
      await inbox.process(payload(tracking('t1', 'e1')), failingOn('e1').handler);
    }
    expect(attempts).toEqual([10]);
  });

  test('onEvents fails for the last time → called for each of its events', async () => {
    const letters: unknown[] = [];
    const inbox = makeInbox({ maxAttempts: 1, onDeadLetter: (event) => letters.push(event?.eventId) });
    const report = await inbox.process(payload(tracking('t1', 'e1', 'e2')), {
      onEvents: () => Promise.reject(failure),
    });
    expect(letters).toEqual(['e1', 'e2']);
    expect(report).toMatchObject({ outcome: 'done', deadLettered: 2 });
  });

  test('onEvents fails, one event for the last time → that one is dead-lettered, the other released', async () => {
    const letters: unknown[] = [];
    const inbox = makeInbox({ maxAttempts: 2, onDeadLetter: (event) => letters.push(event?.eventId) });
    const onEvents = () => Promise.reject(failure);
    await inbox.process(payload(tracking('t1', 'old')), { onEvents });
    const report = await inbox.process(payload(tracking('t1', 'old', 'new')), { onEvents });
    expect(letters).toEqual(['old']);
    expect(report).toMatchObject({
      outcome: 'failed',
      deadLettered: 1,
      failures: [{ keys: ['tracking/events:t1:new'] }],
    });
  });

  test('a proof of delivery fails for the last time → called with it as the message', async () => {
    const letters: unknown[] = [];
    const inbox = makeInbox({
      maxAttempts: 1,
      onDeadLetter: (event, { message }) => letters.push([event, message.kind]),
    });
    await inbox.process(payload(proofOfDelivery('t1')), { onProofOfDelivery: () => Promise.reject(failure) });
    expect(letters).toEqual([[undefined, 'proofOfDelivery']]);
  });

  test('another receiver took the event over while its callback ran, which then fails → left to that one, not called', async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const store = new MemoryDedupeStore();
    const { claim } = store;
    let isTakenOver = false;
    store.claim = async (keys, options) => {
      const busy = { status: 'busy', retryAfterMs: 60_000 } as const;
      return isTakenOver ? keys.map(() => busy) : claim.call(store, keys, options);
    };
    const onDeadLetter = vi.fn();
    const inbox = makeInbox({ store, maxAttempts: 1, onDeadLetter, busyTimeoutMs: 0 });
    const processing = inbox.process(payload(tracking('t1', 'e1')), async () => {
      isTakenOver = true;
      await vi.advanceTimersByTimeAsync(30_000);
      throw failure;
    });
    expect(await processing).toMatchObject({ outcome: 'busy', failures: [], deadLettered: 0 });
    expect(onDeadLetter).not.toHaveBeenCalled();
  });

  test('another receiver took the event over before its last words → busy, even when others are waited for after it', async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const store = new MemoryDedupeStore();
    await store.claim(['tracking/events:t1:e2'], { token: 'other', leaseMs: 60_000 });
    const { claim } = store;
    let isTakenOver = false;
    store.claim = async (keys, options) => {
      const claims = await claim.call(store, keys, options);
      const busy = { status: 'busy', retryAfterMs: 60_000 } as const;
      return claims.map((found, index) => (isTakenOver && keys[index]?.endsWith(':e1') ? busy : found));
    };
    const onDeadLetter = vi.fn();
    const inbox = makeInbox({ store, maxAttempts: 1, onDeadLetter, busyTimeoutMs: 60 });
    const processing = inbox.process(payload(tracking('t1', 'e1', 'e2')), () => {
      isTakenOver = true;
      vi.advanceTimersByTime(30_000);
      throw failure;
    });
    await vi.advanceTimersByTimeAsync(100);
    expect(await processing).toMatchObject({
      outcome: 'busy',
      deadLettered: 0,
      busy: ['tracking/events:t1:e1', 'tracking/events:t1:e2'],
    });
    expect(onDeadLetter).not.toHaveBeenCalled();
  });
});
