import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { GuardedCall } from '../../src/webhooks/guarded-call.ts';
import { watchTimers } from '../support/watch-timers.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test('a parent that aborts while the callback runs → told', async () => {
  const parent = new AbortController();
  const call = new GuardedCall();
  await call.run(() => parent.abort(), 1_000, parent.signal);
  expect(call.signal.aborted).toBe(true);
});

test('a parent that aborts after the callback ended → not told, so that a long-lived signal holds nothing', async () => {
  const parent = new AbortController();
  const call = new GuardedCall();
  await call.run(() => {}, 1_000, parent.signal);
  parent.abort();
  expect(call.signal.aborted).toBe(false);
});

test('a callback that waits for nothing → its timer does not keep the process alive', async () => {
  await watchTimers(async (started) => {
    const running = new GuardedCall().run(() => new Promise(() => {}), 1_000, undefined).catch(() => {});
    expect(started[0]?.timer.hasRef()).toBe(false);
    await vi.advanceTimersByTimeAsync(1_000);
    await running;
  });
});
