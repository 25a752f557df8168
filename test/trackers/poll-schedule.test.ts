import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { nextPollAt } from '../../src/trackers/poll-schedule.ts';

test.each([
  ['on time', { dueAt: 5000, startedAt: 5000, endedAt: 5200 }, 6000],
  ['a little late', { dueAt: 5000, startedAt: 5090, endedAt: 5300 }, 6000],
  ['held up', { dueAt: 5000, startedAt: 5400, endedAt: 5500 }, 6400],
  ['an answer as long as the interval', { dueAt: 5000, startedAt: 5000, endedAt: 6000 }, 6000],
  ['a slower answer', { dueAt: 5000, startedAt: 5000, endedAt: 6001 }, 7000],
  ['held up and a slower answer', { dueAt: 5000, startedAt: 5400, endedAt: 7500 }, 8400],
])('%s → the next poll counts from the right moment', (_, poll, next) => {
  expect(nextPollAt(poll, 1000)).toBe(next);
});

test('a day of polls, each a second late → not one second of drift', () => {
  let dueAt = 0;
  for (let poll = 0; poll < 96; poll += 1) {
    dueAt = nextPollAt({ dueAt, startedAt: dueAt + 1000, endedAt: dueAt + 3000 }, 900_000);
  }
  expect(dueAt).toBe(96 * 900_000);
});

test('any poll → the next is not in the past, and never much sooner than an interval after the last start', () => {
  const times = fc.tuple(
    fc.integer({ min: 0, max: 1e9 }),
    fc.integer({ min: 0, max: 1e7 }),
    fc.integer({ min: 0, max: 1e7 }),
    fc.integer({ min: 1000, max: 1e7 }),
  );
  fc.assert(
    fc.property(times, ([dueAt, lateMs, tookMs, intervalMs]) => {
      const startedAt = dueAt + lateMs;
      const endedAt = startedAt + tookMs;
      const next = nextPollAt({ dueAt, startedAt, endedAt }, intervalMs);
      expect(next).toBeGreaterThanOrEqual(endedAt);
      expect(next - startedAt).toBeGreaterThanOrEqual(0.9 * intervalMs);
      expect(next).toBeLessThanOrEqual(Math.max(endedAt, startedAt + intervalMs) + intervalMs);
    }),
  );
});
