import { afterEach, expect, test, vi } from 'vitest';
import { systemClock } from '../../src/common/clock.ts';

afterEach(() => {
  vi.useRealTimers();
});

test('fake timers installed after import → the clock follows them', () => {
  vi.useFakeTimers({ now: 1_000 });
  const startedAt = systemClock.now();
  const callback = vi.fn();
  systemClock.setTimeout(callback, 50);
  vi.advanceTimersByTime(50);
  expect(callback).toHaveBeenCalledOnce();
  expect(systemClock.now() - startedAt).toBe(50);
  expect(systemClock.wallNow()).toBe(1_050);
});

test('the wall clock steps back an hour → now() goes on', () => {
  vi.useFakeTimers();
  const startedAt = systemClock.now();
  vi.setSystemTime(Date.now() - 3_600_000);
  vi.advanceTimersByTime(10);
  expect(systemClock.now() - startedAt).toBe(10);
});

test('clearTimeout → the callback never comes', () => {
  vi.useFakeTimers();
  const callback = vi.fn();
  systemClock.clearTimeout(systemClock.setTimeout(callback, 10));
  vi.advanceTimersByTime(100);
  expect(callback).not.toHaveBeenCalled();
  expect(vi.getTimerCount()).toBe(0);
});
