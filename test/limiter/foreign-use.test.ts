import { describe, expect, test } from 'vitest';
import { TokenBucketLimiter } from '../../src/limiter/token-bucket.ts';
import { makeCounter } from '../support/counting.ts';
import { settled } from '../support/settled.ts';
import { settleInVirtualTime, useVirtualTime } from '../support/virtual-time.ts';
import { type Call, countGranted, makeLimiter, toAcquire } from './make-limiter.ts';

/** A new limiter with a limit of 10. */
function makeShared() {
  const { acquire, respond, sent, ...others } = makeLimiter({ limit: 10 });
  const ask = (count: number) => Array.from({ length: count }, () => acquire());
  return {
    ...others,
    ask,
    respond: (count: number, feedback: Parameters<typeof respond>[1]) => respond(count, feedback),
    sent: (count: number) => sent(count),
  };
}

function sendAll(calls: readonly Call[]): void {
  for (const { permit } of calls) permit?.send();
}

describe('responses that show requests of other clients', () => {
  test('one request of ours and 3 of 10 left → five tokens, spread over the window', async () => {
    const { respond, ask, clock } = makeShared();
    await respond(1, { remaining: 3 });
    const calls = ask(10);
    await clock.advance(159);
    expect(countGranted(calls)).toBe(0);
    await clock.advance(1);
    expect(countGranted(calls)).toBe(1);
    await clock.advance(3 * 160);
    expect(countGranted(calls)).toBe(4);
  });

  test('ten requests of ours and a 429 with nothing left → five tokens from then on', async () => {
    const { ask, clock, sent } = makeShared();
    const permits = await sent(10);
    permits.forEach((permit, index) => {
      permit.noteResponse({ status: index < 5 ? 200 : 429, retryAfterMs: 1_000, remaining: 0 });
    });
    const calls = ask(10);
    await clock.advance(1_010 + 10 * 160);
    expect(countGranted(calls)).toBe(5);
  });

  test.each([
    ['a reset in 400 ms', 400, 400],
    ['no reset', undefined, 1_000],
    ['a reset in 5 s, which is longer than a window', 5_000, 1_000],
  ])('nothing left, and %s → no call for $2 ms', async (_title, resetMs, waitMs) => {
    const { respond, ask, clock } = makeShared();
    await respond(1, { remaining: 0, resetMs });
    const calls = ask(5);
    await clock.advance(waitMs - 1);
    expect(countGranted(calls)).toBe(0);
    await clock.advance(1);
    expect(countGranted(calls)).toBe(1);
  });

  test('a second drop within 2.5 s → still half of the limit', async () => {
    const { respond, ask, clock } = makeShared();
    await respond(1, { remaining: 3 });
    await clock.advance(1_200);
    await respond(1, { remaining: 0 });
    await clock.advance(1_200);
    const calls = ask(10);
    await clock.advance(4 * 160 + 1);
    expect(countGranted(calls)).toBe(5);
  });

  test('a drop in the next period → our share shrinks by half at most', async () => {
    const { respond, ask, clock } = makeShared();
    await respond(1, { remaining: 3 });
    await clock.advance(2_501);
    await respond(1, { remaining: 5 });
    await clock.advance(200);
    await respond(1, { remaining: 0 });
    await clock.advance(1_010);
    const calls = ask(10);
    await clock.advance(1_000);
    expect(countGranted(calls)).toBe(3);
  });

  test('tokens that nobody used for a period → half of them are added to our share', async () => {
    const { respond, ask, clock } = makeShared();
    await respond(1, { remaining: 8 });
    await clock.advance(1_100);
    await respond(1, { remaining: 8 });
    await clock.advance(1_500);
    const calls = ask(20);
    await clock.advance(1_000);
    // The share of five, and half of the four tokens that were idle.
    expect(countGranted(calls)).toBe(7);
  });

  test('a period without use by other clients → the full limit at once', async () => {
    const { respond, ask, clock } = makeShared();
    await respond(1, { remaining: 3 });
    await clock.advance(2_501);
    await respond(1, { remaining: 9 });
    await clock.advance(2_501);
    const calls = ask(20);
    await settled();
    expect(countGranted(calls)).toBe(10);
  });

  test('a small share that is used up → one more token after a period', async () => {
    const { respond, ask, clock } = makeShared();
    for (const afterMs of [2_600, 2_600, 2_600]) {
      await respond(1, { remaining: 0 });
      await clock.advance(afterMs);
    }
    const before = ask(1);
    await settled();
    sendAll(before);
    before[0]?.permit?.noteResponse({ status: 200, remaining: 1 });
    await clock.advance(2_600);
    const calls = ask(10);
    await clock.advance(1_000);
    expect(countGranted(calls)).toBe(3);
  });
});

describe('responses that show our own requests only', () => {
  test('ten requests of ours, each response with the rest → the full limit stays', async () => {
    const { ask, clock, sent } = makeShared();
    for (const [index, permit] of (await sent(10)).entries())
      permit.noteResponse({ status: 200, remaining: 9 - index });
    await clock.advance(1_010);
    const calls = ask(10);
    await settled();
    expect(countGranted(calls)).toBe(10);
  });

  test('a late response with nothing left, after nine tokens became free → the full limit stays', async () => {
    const { ask, clock, sent } = makeShared();
    const [slow, ...quick] = await sent(10);
    for (const permit of quick) permit.noteResponse({ status: 200, remaining: 0 });
    await clock.advance(1_200);
    const calls = ask(4);
    slow?.noteResponse({ status: 200, remaining: 0 });
    calls.push(...ask(5));
    await settled();
    expect(countGranted(calls)).toBe(9);
  });

  test('a 429 that arrives after its token became free → the full limit stays', async () => {
    const { ask, clock, sent } = makeShared();
    const [late] = await sent(1);
    await clock.advance(1_510);
    const permits = await sent(10);
    late?.noteResponse({ status: 429, retryAfterMs: 0 });
    for (const [index, permit] of permits.entries())
      permit.noteResponse({ status: 200, remaining: 9 - index });
    await clock.advance(1_010);
    const calls = ask(10);
    await settled();
    expect(countGranted(calls)).toBe(10);
  });

  test('nothing left in a response that arrives after its token became free → the full limit stays', async () => {
    const { ask, clock, sent } = makeShared();
    const [late] = await sent(1);
    await clock.advance(1_510);
    late?.noteResponse({ status: 200, remaining: 0 });
    const calls = ask(10);
    await settled();
    expect(countGranted(calls)).toBe(10);
  });

  test('a 429 without `Remaining` → a pause, and then the full limit', async () => {
    const { respond, ask, clock } = makeShared();
    await respond(1, { status: 429, retryAfterMs: 2_000 });
    const calls = ask(10);
    await clock.advance(2_000);
    expect(countGranted(calls)).toBe(10);
  });
});

test('20 calls of a new limiter → the tenth token becomes free 250 ms after the other nine', async () => {
  const { ask, clock, sent } = makeShared();
  for (const permit of await sent(10)) permit.noteResponse({ status: 200 });
  const calls = ask(10);
  await clock.advance(1_259);
  expect(countGranted(calls)).toBe(9);
  await clock.advance(1);
  expect(countGranted(calls)).toBe(10);
});

describe('200 calls at 10 per second, each 0 to 80 ms on its way', () => {
  test.each(['sliding', 'fixed'] as const)(
    'one limiter, %s window → no 429, at 97% of the limit or more',
    async (mode) => {
      const { refused, percent } = await drive(1, mode);
      expect(refused).toBe(0);
      expect(percent).toBeGreaterThanOrEqual(97);
    },
  );

  test.each(['sliding', 'fixed'] as const)(
    'two independent limiters, %s window → at most 30 429s, 75% of the limit or more, neither starves',
    async (mode) => {
      const { refused, percent, doneFirst } = await drive(2, mode);
      expect(refused).toBeLessThanOrEqual(30);
      expect(percent).toBeGreaterThanOrEqual(75);
      // When the first limiter is done with its 100 calls, the other has done at least a third.
      expect(Math.min(...doneFirst)).toBeGreaterThanOrEqual(33);
    },
  );
});

/** Lets limiters that know nothing of each other share an account until all their calls are accepted. */
async function drive(processes: number, mode: 'fixed' | 'sliding') {
  const clock = useVirtualTime();
  const limit = 10;
  const calls = 200 / processes;
  const counter = makeCounter(mode, limit);
  const startedAt = clock.now();
  const done = Array.from({ length: processes }, () => 0);
  let doneFirst = done;
  let refused = 0;
  let seed = 1;
  const uplinkMs = () => {
    seed = (seed * 1_664_525 + 1_013_904_223) % 2 ** 32;
    return (80 * seed) / 2 ** 32;
  };
  const call = async (limiter: TokenBucketLimiter, process: number): Promise<void> => {
    const permit = await limiter.acquire(toAcquire(limit));
    permit.send();
    await new Promise<void>((resolve) => {
      setTimeout(resolve, uplinkMs());
    });
    const isAccepted = counter.tryCount(clock.now());
    const remaining = counter.remaining(clock.now());
    permit.noteResponse({ status: isAccepted ? 200 : 429, retryAfterMs: 1_000, remaining, resetMs: 1_000 });
    if (!isAccepted) {
      refused += 1;
      return call(limiter, process);
    }
    done[process] = (done[process] ?? 0) + 1;
    if (done[process] === calls && doneFirst === done) doneFirst = [...done];
  };
  const all = done.map((_count, process) => {
    const limiter = new TokenBucketLimiter();
    return Array.from({ length: calls }, () => call(limiter, process));
  });
  await settleInVirtualTime(() => Promise.all(all.flat()));
  const seconds = (clock.now() - startedAt) / 1_000;
  return { refused, percent: (100 * 200) / (limit * seconds), doneFirst };
}
