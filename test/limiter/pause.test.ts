import { describe, expect, test } from 'vitest';
import { settled } from '../support/settled.ts';
import { bucket, countGranted, makeLimiter } from './make-limiter.ts';

describe('a 429', () => {
  test('with a delay of 5 s → nobody goes before that, though tokens are free', async () => {
    const { acquire, answered, clock } = makeLimiter();
    await answered(1, { status: 429, retryAfterMs: 5_000 });
    const call = acquire();
    await clock.advance(4_999);
    expect(call.state).toBe('waiting');
    await clock.advance(1);
    expect(call.state).toBe('granted');
  });

  test.each([
    ['no delay', undefined],
    ['NaN', Number.NaN],
    ['a negative delay', -5],
    ['Infinity', Number.POSITIVE_INFINITY],
  ])('with %s → a pause of one window', async (_title, retryAfterMs) => {
    const { acquire, answered, clock } = makeLimiter();
    await answered(1, { status: 429, retryAfterMs });
    const call = acquire();
    await clock.advance(999);
    expect(call.state).toBe('waiting');
    await clock.advance(1);
    expect(call.state).toBe('granted');
  });

  test('with a delay of 0 → no pause', async () => {
    const { answered, limiter } = makeLimiter();
    await answered(1, { status: 429, retryAfterMs: 0 });
    expect(limiter.snapshot(bucket)?.pausedUntil).toBeNull();
  });

  test('as long as a call waits at most, on a clock with fractions of a millisecond → the call waits', async () => {
    const { acquire, answered, clock } = makeLimiter();
    // An hour after this moment, less this moment, is an hour and a billionth of a millisecond.
    await clock.advance(1_352_060.274606436 - clock.now());
    await answered(1, { status: 429, retryAfterMs: 3_600_000 });
    const call = acquire({ maxPauseMs: 3_600_000 });
    await settled();
    expect(call.state).toBe('waiting');
  });

  test.each([
    ['a timestamp', 1_763_650_000_000],
    ['the largest number', Number.MAX_VALUE],
  ])(
    'with %s as its delay → a pause of one hour, and then the service is asked again',
    async (_title, ms) => {
      const { acquire, answered, clock, limiter } = makeLimiter();
      await answered(1, { status: 429, retryAfterMs: ms });
      expect(limiter.snapshot(bucket)?.pausedUntil).toBe(clock.wallNow() + 3_600_000);
      const call = acquire();
      await clock.advance(3_599_999);
      expect(call.state).toBe('waiting');
      await clock.advance(1);
      expect(call.state).toBe('granted');
    },
  );

  test('several in flight at once → the latest end counts, whatever the order of the answers', async () => {
    const { acquire, clock, sent } = makeLimiter();
    const permits = await sent(3);
    permits[0]?.report({ status: 429, retryAfterMs: 3_000 });
    permits[1]?.report({ status: 429, retryAfterMs: 8_000 });
    permits[2]?.report({ status: 429, retryAfterMs: 1_000 });
    const call = acquire();
    await clock.advance(7_999);
    expect(call.state).toBe('waiting');
    await clock.advance(1);
    expect(call.state).toBe('granted');
  });

  test('then a shorter Retry-After later → the pause still lasts to its first end', async () => {
    const { acquire, clock, sent } = makeLimiter();
    const [first, second] = await sent(2);
    first?.report({ status: 429, retryAfterMs: 10_000 });
    await clock.advance(1_000);
    second?.report({ status: 429, retryAfterMs: 0 });
    const call = acquire();
    await clock.advance(8_999);
    expect(call.state).toBe('waiting');
    await clock.advance(1);
    expect(call.state).toBe('granted');
  });

  test('then a late 200 → the pause stands', async () => {
    const { acquire, clock, sent } = makeLimiter();
    const [first, second] = await sent(2);
    first?.report({ status: 429, retryAfterMs: 10_000 });
    await clock.advance(1_000);
    second?.report({ status: 200 });
    const call = acquire();
    await clock.advance(8_999);
    expect(call.state).toBe('waiting');
  });

  test('that arrives while others wait → they are held as well, and then served', async () => {
    const { acquire, clock, sent } = makeLimiter();
    const permits = await sent(3);
    const waiting = [acquire(), acquire(), acquire()];
    for (const permit of permits) permit.report({ status: 429, retryAfterMs: 20_000 });
    await clock.advance(19_999);
    expect(countGranted(waiting)).toBe(0);
    await clock.advance(1_000);
    expect(countGranted(waiting)).toBe(3);
  });

  test('of the bulk endpoint → other endpoints go on', async () => {
    const { acquire, answered } = makeLimiter();
    const bulk = { ...bucket, endpoint: 'trackers.createBulk' };
    await answered(1, { status: 429, retryAfterMs: 60_000 }, { bucket: bulk });
    const elsewhere = acquire();
    await settled();
    expect(elsewhere.state).toBe('granted');
  });

  test('pausing for a minute → the snapshot tells the wall-clock time of its end', async () => {
    const { answered, clock, limiter } = makeLimiter();
    await answered(1, { status: 429, retryAfterMs: 60_000 });
    const endsAt = clock.wallNow() + 60_000;
    await clock.advance(10_000);
    expect(limiter.snapshot(bucket)?.pausedUntil).toBe(endsAt);
    await clock.advance(50_000);
    expect(limiter.snapshot(bucket)?.pausedUntil).toBeNull();
  });

  test('503 with a delay → no pause, only a 429 makes one', async () => {
    const { acquire, answered } = makeLimiter();
    await answered(1, { status: 503, retryAfterMs: 60_000 });
    const call = acquire();
    await settled();
    expect(call.state).toBe('granted');
  });
});

describe('a call that sits out pauses of up to 2 s', () => {
  test.each([
    [2_000, 'waiting'],
    [2_001, 'rejected'],
  ])('asked for in a pause of %d ms → %s', async (retryAfterMs, state) => {
    const { acquire, answered } = makeLimiter();
    await answered(1, { status: 429, retryAfterMs });
    const call = acquire({ maxPauseMs: 2_000 });
    await settled();
    expect(call.state).toBe(state);
  });

  test.each([
    [2_000, 'waiting'],
    [2_001, 'rejected'],
  ])('in the queue when a pause of %d ms begins → %s', async (retryAfterMs, state) => {
    const { acquire, sent } = makeLimiter();
    const [first] = await sent(3);
    const call = acquire({ maxPauseMs: 2_000 });
    first?.report({ status: 429, retryAfterMs });
    await settled();
    expect(call.state).toBe(state);
  });

  test('asked for when 5 s of a pause are left → the error tells them', async () => {
    const { acquire, answered, clock } = makeLimiter();
    await answered(1, { status: 429, retryAfterMs: 6_000 });
    await clock.advance(1_000);
    const call = acquire({ maxPauseMs: 2_000 });
    await settled();
    expect(call.error).toMatchObject({ name: 'LongPauseError', pausedForMs: 5_000 });
  });
});
