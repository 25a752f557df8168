import { describe, expect, test } from 'vitest';
import { settled } from '../../support/settled.ts';
import { bucket, expectGrantAfter, makeLimiter } from '../make-limiter.ts';

describe('a 429', () => {
  test.each([
    ['a delay of 5 s', 5_000, 5_000],
    ['no delay', undefined, 1_000],
    ['NaN', Number.NaN, 1_000],
    ['Infinity', Number.POSITIVE_INFINITY, 1_000],
    ['a timestamp', 1_763_650_000_000, 3_600_000],
  ])(
    'a 429 with %s → no call is granted before the end of the pause',
    async (_title, retryAfterMs, pauseMs) => {
      const { acquire, respond, clock, limiter } = makeLimiter();
      await respond(1, { status: 429, retryAfterMs });
      expect(limiter.snapshot(bucket)?.pausedUntil).toBe(clock.wallNow() + pauseMs);
      await expectGrantAfter(pauseMs, acquire());
      expect(limiter.snapshot(bucket)?.pausedUntil).toBeNull();
    },
  );

  test.each([
    ['a 429 with a delay of 0', { status: 429, retryAfterMs: 0 }],
    ['a 503 with a delay', { status: 503, retryAfterMs: 60_000 }],
  ])('%s → no pause', async (_title, feedback) => {
    const { respond, limiter, tryAcquire } = makeLimiter();
    await respond(1, feedback);
    expect(limiter.snapshot(bucket)?.pausedUntil).toBeNull();
    expect(await tryAcquire()).toBe('granted');
  });
});

describe('the body of a 429 with a delay of 10 s', () => {
  /** A 429 whose headers have arrived. */
  async function begin() {
    const { acquire, clock, sent, limiter } = makeLimiter();
    const [permit] = await sent(1);
    permit?.noteResponse({ status: 429, retryAfterMs: 10_000 });
    return { acquire, clock, limiter, permit };
  }

  test('stalls, and then names a used-up quota → a pause of 10 s', async () => {
    const { acquire, clock, permit } = await begin();
    await clock.advance(900);
    permit?.settlePause(true);
    await expectGrantAfter(9_100, acquire());
  });

  test.each([
    ['names no used-up quota', false, 'rejected'],
    ['names a used-up quota', true, 'granted'],
  ])(
    '%s, while a call waits for 2 s at most → the call waits until then, and is $2',
    async (_title, isQuotaUsedUp, state) => {
      const { acquire, clock, permit } = await begin();
      const call = acquire({ maxPauseMs: 2_000 });
      await clock.advance(400);
      expect(call.state).toBe('waiting');
      permit?.settlePause(isQuotaUsedUp);
      await clock.advance(600);
      expect(call.state).toBe(state);
    },
  );
});

describe('a call with maxPauseMs of 2 s', () => {
  test.each([
    [2_000, 'waiting'],
    [2_001, 'rejected'],
  ])('a call in a pause of %d ms → %s', async (retryAfterMs, state) => {
    const { respond, tryAcquire } = makeLimiter();
    await respond(1, { status: 429, retryAfterMs });
    expect(await tryAcquire({ maxPauseMs: 2_000 })).toBe(state);
  });

  test.each([
    [2_000, 'waiting'],
    [2_001, 'rejected'],
  ])('a queued call when a pause of %d ms begins → %s', async (retryAfterMs, state) => {
    const { acquire, sent } = makeLimiter();
    const [first] = await sent(3);
    const call = acquire({ maxPauseMs: 2_000 });
    first?.noteResponse({ status: 429, retryAfterMs });
    first?.settlePause(false);
    await settled();
    expect(call.state).toBe(state);
  });

  test('a call with 5 s of a pause left → an error with these 5 s', async () => {
    const { acquire, respond, clock } = makeLimiter();
    await respond(1, { status: 429, retryAfterMs: 6_000 });
    await clock.advance(1_000);
    const call = acquire({ maxPauseMs: 2_000 });
    await settled();
    expect(call.error).toMatchObject({ name: 'LongPauseError', pausedForMs: 5_000 });
  });
});

test('a pause of exactly maxPauseMs, on a clock with fractions of a millisecond → the call waits', async () => {
  const { respond, clock, tryAcquire } = makeLimiter();
  // In floating point, this time plus an hour minus this time is a little more than an hour.
  await clock.advance(1_352_060.274606436 - clock.now());
  await respond(1, { status: 429, retryAfterMs: 3_600_000 });
  expect(await tryAcquire({ maxPauseMs: 3_600_000 })).toBe('waiting');
});
