import { describe, expect, test } from 'vitest';
import { settled } from '../support/settled.ts';
import { bucket, countGranted, makeLimiter } from './make-limiter.ts';

describe('an announced limit', () => {
  test('above the known one → waiting calls go at once', async () => {
    const { acquire, sent } = makeLimiter();
    const [permit] = await sent(3);
    const waiting = [1, 2, 3, 4].map(() => acquire());
    permit?.report({ status: 200, announcedLimit: 5, resetMs: 1_000 });
    await settled();
    expect(countGranted(waiting)).toBe(2);
  });

  test('below the known one → counts at once, calls wait until fewer are out', async () => {
    const { acquire, clock, sent } = makeLimiter();
    const permits = await sent(2, { limit: 10 });
    for (const permit of permits) permit.report({ status: 200, announcedLimit: 2 });
    const waiting = acquire();
    await clock.advance(1_009);
    expect(waiting.state).toBe('waiting');
    await clock.advance(1);
    expect(waiting.state).toBe('granted');
  });

  test('down while more than that are out → the next goes only when enough have come back', async () => {
    const { acquire, clock, sent } = makeLimiter();
    const permits = await sent(4, { limit: 4 });
    permits[0]?.report({ status: 200, announcedLimit: 2 });
    await clock.advance(100);
    permits[1]?.report({ status: 200 });
    await clock.advance(100);
    permits[2]?.report({ status: 200 });
    const waiting = acquire();
    await clock.advance(1_010 - 100 - 1);
    expect(waiting.state).toBe('waiting');
    await clock.advance(101);
    expect(waiting.state).toBe('granted');
  });

  test.each([
    ['0', 0],
    ['-3', -3],
    ['NaN', Number.NaN],
    ['Infinity', Number.POSITIVE_INFINITY],
    ['2.5', 2.5],
    ['nothing', undefined],
  ])('of %s → the limit stays', async (_title, announcedLimit) => {
    const { answered, limiter } = makeLimiter();
    await answered(1, { announcedLimit, resetMs: 1_000 });
    expect(limiter.snapshot(bucket)?.limit).toBe(3);
  });

  test.each([
    ['in 1 ms', 1, 7],
    ['in 1 s', 1_000, 7],
    ['in 1,001 ms', 1_001, 3],
    ['in a minute', 60_000, 3],
    ['never told', undefined, 3],
  ])('above the configured one, reset %s → %s', async (_title, resetMs, limit) => {
    const { answered, limiter } = makeLimiter();
    await answered(1, { announcedLimit: 7, resetMs });
    expect(limiter.snapshot(bucket)?.limit).toBe(limit);
  });

  test.each([
    ['in 1 s', 1_000],
    ['in a minute', 60_000],
    ['never told', undefined],
  ])('below the configured one, reset %s → counts', async (_title, resetMs) => {
    const { answered, limiter } = makeLimiter();
    await answered(1, { announcedLimit: 2, resetMs });
    expect(limiter.snapshot(bucket)?.limit).toBe(2);
  });

  test('of 600 a minute, 300 calls → ten of them leave in the first second', async () => {
    const { acquire, clock } = makeLimiter();
    const calls = Array.from({ length: 300 }, () => acquire({ limit: 10 }));
    await settled();
    for (const { permit } of calls) {
      permit?.send();
      permit?.report({ status: 200, announcedLimit: 600, remaining: 590, resetMs: 60_000 });
    }
    await clock.advance(1_000);
    expect(countGranted(calls)).toBe(10);
  });

  test('far above the configured one → up to five times that', async () => {
    const { answered, limiter } = makeLimiter();
    await answered(1, { announcedLimit: 36_000, resetMs: 1_000 });
    expect(limiter.snapshot(bucket)?.limit).toBe(15);
  });

  test.each([
    ['that announces the same', { announcedLimit: 7 }],
    ['that announces no limit', {}],
  ])('raised, then a response of a longer reset %s → the configured one again', async (_title, feedback) => {
    const { answered, limiter } = makeLimiter();
    await answered(1, { announcedLimit: 7, resetMs: 1_000 });
    await answered(1, { ...feedback, resetMs: 3_599_000 });
    expect(limiter.snapshot(bucket)?.limit).toBe(3);
  });

  test('raised, then a response without headers → stays raised', async () => {
    const { answered, limiter } = makeLimiter();
    await answered(1, { announcedLimit: 7, resetMs: 1_000 });
    await answered(1, { status: 503 });
    expect(limiter.snapshot(bucket)?.limit).toBe(7);
  });

  test('lowered, then a higher one of a longer reset → the configured one', async () => {
    const { answered, limiter } = makeLimiter();
    await answered(1, { announcedLimit: 2 });
    await answered(1, { announcedLimit: 600, resetMs: 60_000 });
    expect(limiter.snapshot(bucket)?.limit).toBe(3);
  });

  test('on a 429 → counts as well', async () => {
    const { answered, limiter } = makeLimiter();
    await answered(1, { status: 429, retryAfterMs: 1_000, announcedLimit: 2 });
    expect(limiter.snapshot(bucket)?.limit).toBe(2);
  });

  test('in the late response to an older request → ignored', async () => {
    const { clock, limiter, sent } = makeLimiter();
    const [older] = await sent(1);
    await clock.advance(100);
    const [newer] = await sent(1);
    newer?.report({ status: 200, announcedLimit: 2 });
    older?.report({ status: 200, announcedLimit: 3 });
    expect(limiter.snapshot(bucket)?.limit).toBe(2);
  });

  test('in two responses to requests of one moment → that of the later response', async () => {
    const { limiter, sent } = makeLimiter();
    for (const [index, permit] of (await sent(2)).entries())
      permit.report({ status: 200, announcedLimit: 3 - index });
    expect(limiter.snapshot(bucket)?.limit).toBe(2);
  });

  test('above maxLimit → the limit rises to maxLimit only', async () => {
    const { answered, limiter } = makeLimiter();
    await answered(1, { announcedLimit: 10, resetMs: 1_000 }, { limit: 3, maxLimit: 5 });
    expect(limiter.snapshot(bucket)?.limit).toBe(5);
  });

  test('above the configured one, without a bound of the user → believed', async () => {
    const { answered, limiter } = makeLimiter();
    await answered(1, { announcedLimit: 10, resetMs: 1_000 }, { maxLimit: Number.POSITIVE_INFINITY });
    expect(limiter.snapshot(bucket)?.limit).toBe(10);
  });

  test('for one endpoint → the others keep theirs', async () => {
    const { acquire, answered, limiter } = makeLimiter();
    const other = { ...bucket, endpoint: 'couriers.list' };
    acquire({ bucket: other });
    await answered(1, { announcedLimit: 2 });
    expect(limiter.snapshot(other)?.limit).toBe(3);
  });
});
