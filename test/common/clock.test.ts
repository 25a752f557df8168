import { getEventListeners } from 'node:events';
import { expect, test, vi } from 'vitest';
import { sleep, systemClock } from '../../src/common/clock.ts';

test('the wall clock steps back an hour → now() goes on', () => {
  vi.useFakeTimers();
  const startedAt = systemClock.now();
  vi.setSystemTime(Date.now() - 3_600_000);
  vi.advanceTimersByTime(10);
  expect(systemClock.now() - startedAt).toBe(10);
});

test('fake timers that were removed after 3 ms and installed again → the clock counts from their first millisecond', () => {
  vi.useFakeTimers();
  systemClock.now();
  vi.advanceTimersByTime(3);
  systemClock.now();
  vi.useRealTimers();
  vi.useFakeTimers();
  const startedAt = systemClock.now();
  vi.advanceTimersByTime(10);
  expect(systemClock.now() - startedAt).toBe(10);
});

test('faked timers of 4 ms and a clock that is not faked → the clock moves with every timer', () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const startedAt = systemClock.now();
  let fired = 0;
  const onFire = () => {
    fired += 1;
    if (fired < 100) systemClock.setTimeout(onFire, 4);
  };
  systemClock.setTimeout(onFire, 4);
  vi.advanceTimersByTime(400);
  expect(systemClock.now() - startedAt).toBeGreaterThanOrEqual(400);
});

test('a timer fires 1 ms early → the clock shows the time of the timer, and never goes back', () => {
  vi.useFakeTimers();
  const startedAt = systemClock.now();
  let toldMs = Number.NaN;
  systemClock.setTimeout(() => {
    toldMs = systemClock.now() - startedAt;
  }, 10);
  const reading = vi.spyOn(performance, 'now');
  const early = performance.now() + 9;
  reading.mockReturnValue(early);
  vi.advanceTimersByTime(10);
  reading.mockRestore();
  expect(toldMs).toBe(10);
});

test('sleeps that end → leave no listener on their signal', async () => {
  vi.useFakeTimers();
  const { signal } = new AbortController();
  const sleeps = Promise.all([sleep(10, signal), sleep(20, signal)]);
  expect(getEventListeners(signal, 'abort')).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(20);
  await sleeps;
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});
