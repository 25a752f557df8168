import { describe, expect, test } from 'vitest';
import type { ResponseFacts } from '../../../src/limiter/limiter.ts';
import { settled } from '../../support/settled.ts';
import { bucket, countGranted, expectGrantAfter, makeLimiter } from '../make-limiter.ts';

describe('an announced limit', () => {
  test('an announced limit above the known limit → waiting calls are granted at once', async () => {
    const { acquire, sent } = makeLimiter();
    const [permit] = await sent(3);
    const waiting = [1, 2, 3, 4].map(() => acquire());
    permit?.noteResponse({ status: 200, limit: 5, resetMs: 1_000 });
    await settled();
    expect(countGranted(waiting)).toBe(2);
  });

  test('an announced limit below the tokens in use → the next call waits until enough tokens are free', async () => {
    const { acquire, clock, sent } = makeLimiter({ limits: { 'trackers.createBulk': 4 } });
    const permits = await sent(4);
    permits[0]?.noteResponse({ status: 200, limit: 2 });
    await clock.advance(100);
    permits[1]?.noteResponse({ status: 200 });
    await clock.advance(100);
    permits[2]?.noteResponse({ status: 200 });
    await expectGrantAfter(1_010, acquire());
  });

  test.each<[string, number, ...Partial<ResponseFacts>[]]>([
    ['0', 3, { limit: 0, resetMs: 1_000 }],
    ['Infinity', 3, { limit: Number.POSITIVE_INFINITY, resetMs: 1_000 }],
    ['2.5', 3, { limit: 2.5, resetMs: 1_000 }],
    ['nothing', 3, { limit: undefined, resetMs: 1_000 }],
    ['7, reset in 1 s', 7, { limit: 7, resetMs: 1_000 }],
    ['7, reset in 1,001 ms', 3, { limit: 7, resetMs: 1_001 }],
    ['7, no reset', 3, { limit: 7 }],
    ['2, no reset', 2, { limit: 2 }],
    ['36,000, cut to five times the configured limit', 15, { limit: 36_000, resetMs: 1_000 }],
    ['7, then only a longer reset', 3, { limit: 7, resetMs: 1 }, { resetMs: 1e6 }],
    ['7, then no headers', 7, { limit: 7, resetMs: 1_000 }, { status: 503 }],
    ['2, then 600 with a longer reset', 3, { limit: 2 }, { limit: 600, resetMs: 60_000 }],
    ['2, then 3', 3, { limit: 2 }, { limit: 3 }],
    ['2 by a 429', 2, { status: 429, retryAfterMs: 1_000, limit: 2 }],
  ])('an announced limit of %s, with 3 configured → a limit of %d', async (_title, limit, ...responses) => {
    const { respond, limiter } = makeLimiter();
    for (const response of responses) await respond(1, response);
    expect(limiter.snapshot(bucket)?.limit).toBe(limit);
  });

  test.each([
    ['no limit of the caller → 10', {}, 10, 10],
    ['a limit of the caller → that limit, because it is never raised', { 'trackers.createBulk': 5 }, 10, 5],
    ['a lower one than the limit of the caller → the announced limit', { 'trackers.createBulk': 5 }, 2, 2],
  ])('an announced limit and %s', async (_title, limits, announcedLimit, limit) => {
    const { respond, limiter } = makeLimiter({ limits });
    await respond(1, { limit: announcedLimit, resetMs: 1_000 });
    expect(limiter.snapshot(bucket).limit).toBe(limit);
  });
});
