import { describe, expect, test } from 'vitest';
import { bucket, grantedOf, makeLimiter } from './make-limiter.ts';
import { settled } from './manual-clock.ts';

describe('an announced limit', () => {
  test('above the known one → waiting calls go at once', async () => {
    const { acquire, sent } = makeLimiter();
    const [permit] = await sent(3);
    const waiting = [1, 2, 3, 4].map(() => acquire());
    permit?.report({ status: 200, announcedLimit: 5 });
    await settled();
    expect(grantedOf(waiting)).toBe(2);
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
    ['more than 1,000, as a budget of a day has it', 1_001],
    ['nothing', undefined],
  ])('of %s → the limit stays', async (_title, announcedLimit) => {
    const { answered, limiter } = makeLimiter();
    await answered(1, { announcedLimit });
    expect(limiter.snapshot(bucket)?.limit).toBe(3);
  });

  test.each([
    [1, 3],
    [1_000, 3],
    [4_000, 5_000],
  ])('of %d at a limit of %d → believed', async (announcedLimit, limit) => {
    const { answered, limiter } = makeLimiter();
    await answered(1, { announcedLimit }, { limit });
    expect(limiter.snapshot(bucket)?.limit).toBe(announcedLimit);
  });

  test('on a 429 → counts as well', async () => {
    const { answered, limiter } = makeLimiter();
    await answered(1, { status: 429, retryAfterMs: 1_000, announcedLimit: 7 });
    expect(limiter.snapshot(bucket)?.limit).toBe(7);
  });

  test('in the late answer to an older request → ignored', async () => {
    const { clock, limiter, sent } = makeLimiter();
    const [older] = await sent(1);
    await clock.advance(100);
    const [newer] = await sent(1);
    newer?.report({ status: 200, announcedLimit: 2 });
    older?.report({ status: 200, announcedLimit: 3 });
    expect(limiter.snapshot(bucket)?.limit).toBe(2);
  });

  test('in two answers to requests of one moment → that of the later answer', async () => {
    const { limiter, sent } = makeLimiter();
    for (const [index, permit] of (await sent(2)).entries())
      permit.report({ status: 200, announcedLimit: 5 - index });
    expect(limiter.snapshot(bucket)?.limit).toBe(4);
  });

  test('above maxLimit → the limit rises to maxLimit only', async () => {
    const { answered, limiter } = makeLimiter();
    await answered(1, { announcedLimit: 10 }, { limit: 3, maxLimit: 5 });
    expect(limiter.snapshot(bucket)?.limit).toBe(5);
  });

  test('above the known one, without a bound on it → believed', async () => {
    const { answered, limiter } = makeLimiter();
    await answered(1, { announcedLimit: 10 }, { maxLimit: Number.POSITIVE_INFINITY });
    expect(limiter.snapshot(bucket)?.limit).toBe(10);
  });

  test('for one endpoint → the others keep theirs', async () => {
    const { acquire, answered, limiter } = makeLimiter();
    const other = { ...bucket, endpoint: 'couriers.list' };
    acquire({ bucket: other });
    await answered(1, { announcedLimit: 9 });
    expect(limiter.snapshot(other)?.limit).toBe(3);
  });
});
