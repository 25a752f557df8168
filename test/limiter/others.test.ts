import { describe, expect, test } from 'vitest';
import type { AcquireOptions, RateLimitFeedback } from '../../src/limiter/limiter.ts';
import { TokenBucketLimiter } from '../../src/limiter/token-bucket.ts';
import { bucket, type Call, grantedOf, makeLimiter } from './make-limiter.ts';
import { ManualClock, settled } from './manual-clock.ts';

const limit = 10;

/** A limiter with a limit of 10, and short ways to use it. */
function makeShared() {
  const { acquire, answered, clock, sent } = makeLimiter();
  const ask = (count: number) => Array.from({ length: count }, () => acquire({ limit }));
  return {
    clock,
    ask,
    sent: (count: number) => sent(count, { limit }),
    answered: (feedback: Partial<RateLimitFeedback> = {}, options: Partial<AcquireOptions> = {}) =>
      answered(1, feedback, { limit, ...options }),
    /** How many of ten calls that ask now go at once; nothing of them stays. */
    async free(): Promise<number> {
      const controller = new AbortController();
      const calls = Array.from({ length: 10 }, () => acquire({ limit, signal: controller.signal }));
      await settled();
      controller.abort();
      for (const { permit } of calls) permit?.cancel();
      return grantedOf(calls);
    },
  };
}

/** The same a while after its first call. */
async function makeOpened() {
  const made = makeShared();
  await made.answered();
  await made.clock.advance(1_010);
  return made;
}

describe('what a success says is left', () => {
  test('3, after one request of ours → three more go at once, the fourth when a token is back', async () => {
    const { answered, ask, clock } = await makeOpened();
    await answered({ remaining: 3 });
    const calls = ask(9);
    await settled();
    expect(grantedOf(calls)).toBe(3);
    await clock.advance(1_010);
    expect(grantedOf(calls)).toBe(4);
  });

  test('0, after a whole window of ours → the next window is used whole', async () => {
    const { clock, free, sent } = await makeOpened();
    for (const [index, permit] of (await sent(10)).entries())
      permit.report({ status: 200, remaining: 9 - index });
    await clock.advance(1_010);
    expect(await free()).toBe(10);
  });

  test('0 in a response that took 5 s, nine more of ours having left meanwhile → nothing waits', async () => {
    const { clock, free, sent } = await makeOpened();
    const [slow] = await sent(1);
    for (const permit of await sent(9)) permit.report({ status: 200, remaining: 1 });
    await clock.advance(5_000);
    slow?.report({ status: 200, remaining: 0 });
    expect(await free()).toBe(10);
  });

  test('0 every time, with one request of ours out → one a second', async () => {
    const { ask, clock } = await makeOpened();
    const startedAt = clock.now();
    const times: number[] = [];
    for (let count = 0; count < 4; count += 1) {
      const [call] = ask(1);
      await clock.advance(count === 0 ? 0 : 1_010);
      call?.permit?.send();
      call?.permit?.report({ status: 200, remaining: 0, resetMs: 1_000 });
      times.push((call?.doneAt ?? Number.NaN) - startedAt);
    }
    expect(times).toEqual([0, 1_010, 2_020, 3_030]);
  });

  test('nothing, as without the headers → the limit alone counts', async () => {
    const { answered, free } = await makeOpened();
    await answered();
    expect(await free()).toBe(9);
  });

  test('1, and nothing more for 3 s → the whole limit again', async () => {
    const { answered, ask, clock } = await makeOpened();
    await answered({ remaining: 1 });
    await clock.advance(2_000);
    const calls = ask(10);
    await clock.advance(999);
    expect(grantedOf(calls)).toBe(2);
    await clock.advance(1);
    expect(grantedOf(calls)).toBe(10);
  });

  test('never less than 4 more than are used, for 3 s → half of them are taken', async () => {
    const { answered, ask, clock } = await makeOpened();
    await answered({ remaining: 1 });
    await clock.advance(2_000);
    await answered({ remaining: 5 });
    await clock.advance(1_010);
    const calls = ask(10);
    await clock.advance(1_000);
    expect(grantedOf(calls)).toBe(4);
  });

  test('the whole limit again, for 3 s → all of it is taken', async () => {
    const { answered, ask, clock } = await makeOpened();
    await answered({ remaining: 1 });
    await clock.advance(2_000);
    await answered({ remaining: 9 });
    await clock.advance(1_010);
    const calls = ask(10);
    await settled();
    expect(grantedOf(calls)).toBe(10);
  });

  test('2, a second ago → grants are spread', async () => {
    const { answered, ask, clock } = await makeOpened();
    await answered({ remaining: 2 });
    await clock.advance(1_000);
    const calls = ask(3);
    await settled();
    expect(grantedOf(calls)).toBe(1);
  });

  test('on one endpoint → the others keep their limit', async () => {
    const { answered, free } = await makeOpened();
    await answered({ remaining: 0 }, { bucket: { ...bucket, endpoint: 'couriers.list' } });
    expect(await free()).toBe(10);
  });
});

describe('a window of the service that is longer than ours', () => {
  test.each([
    ['30 s → nothing goes before', 30_000, undefined, 30_000],
    ['a day, at a longest pause of a minute → the minute', 86_400_000, 60_000, 60_000],
    ['2 s, as a timestamp in whole seconds says where it means one → one window', 2_000, undefined, 1_010],
  ])('nothing left for %s', async (_title, resetMs, maxPauseMs, waitsMs) => {
    const { answered, ask, clock } = await makeOpened();
    await answered({ remaining: 0, resetMs }, { maxPauseMs });
    const [call] = ask(1);
    await clock.advance(waitsMs - 1);
    expect(call?.state).toBe('waiting');
    await clock.advance(1);
    expect(call?.state).toBe('granted');
  });

  test('3 left for 30 s → these go at once', async () => {
    const { answered, free } = await makeOpened();
    await answered({ remaining: 3, resetMs: 30_000 });
    expect(await free()).toBe(3);
  });

  test('nothing left for 30 s, by ten requests of ours → one window', async () => {
    const { clock, free, sent } = await makeOpened();
    for (const permit of await sent(10)) permit.report({ status: 200, remaining: 0, resetMs: 30_000 });
    await clock.advance(1_010);
    expect(await free()).toBe(10);
  });
});

describe('a 429 that says what is left', () => {
  test('0, with four requests of ours out → three from then on', async () => {
    const { ask, clock, sent } = await makeOpened();
    const [refused] = await sent(4);
    refused?.report({ status: 429, retryAfterMs: 1_000, remaining: 0 });
    await clock.advance(1_600);
    const calls = ask(4);
    await clock.advance(1_000);
    expect(grantedOf(calls)).toBe(3);
  });

  test('0, again and again while others use the account → the spacing stays that of the first', async () => {
    const { answered, ask, clock } = await makeOpened();
    for (let count = 0; count < 5; count += 1) {
      await answered({ status: 429, retryAfterMs: 0, remaining: 0 });
      await clock.advance(3_010);
    }
    const [first, second] = ask(2);
    await clock.advance(1_000);
    expect((second?.doneAt ?? Number.NaN) - (first?.doneAt ?? Number.NaN)).toBe(112);
  });
});

describe('the first calls of a bucket', () => {
  test('20 at a limit of 10 → five; one more when they are answered; the rest when that one is', async () => {
    const { ask } = makeShared();
    const calls = ask(20);
    await settled();
    expect(grantedOf(calls)).toBe(5);
    await answerAll(calls);
    expect(grantedOf(calls)).toBe(6);
    await answerAll(calls);
    expect(grantedOf(calls)).toBe(10);
  });

  test('answered only after 250 ms → the rest follows at once', async () => {
    const { ask, clock } = makeShared();
    const calls = ask(20);
    await settled();
    for (const { permit } of calls) permit?.send();
    await clock.advance(250);
    await answerAll(calls);
    expect(grantedOf(calls)).toBe(10);
  });

  test('not answered for a second → the rest follows', async () => {
    const { ask, clock } = makeShared();
    const calls = ask(20);
    await settled();
    for (const { permit } of calls) permit?.send();
    await clock.advance(999);
    expect(grantedOf(calls)).toBe(5);
    await clock.advance(1);
    expect(grantedOf(calls)).toBe(10);
  });

  test('answered with less left than they explain → the rest waits for their tokens, and is spread over the window', async () => {
    const { ask, clock } = makeShared();
    const calls = ask(20);
    await settled();
    await answerAll(calls, 0);
    await clock.advance(1_009);
    expect(grantedOf(calls)).toBe(5);
    await clock.advance(1);
    expect(grantedOf(calls)).toBe(6);
    await clock.advance(4 * 160);
    expect(grantedOf(calls)).toBe(10);
  });

  test('not all answered for a second, the limit having risen meanwhile → the rest follows', async () => {
    const { ask, clock } = makeShared();
    const calls = ask(30);
    await settled();
    for (const { permit } of calls) permit?.send();
    const [first, second] = calls;
    first?.permit?.report({ status: 200, remaining: 9 });
    second?.permit?.report({ status: 200, announcedLimit: 20 });
    await clock.advance(1_000);
    expect(grantedOf(calls)).toBe(20);
  });

  test('at a limit of 9 → all at once', async () => {
    const { acquire } = makeLimiter();
    const calls = Array.from({ length: 20 }, () => acquire({ limit: 9 }));
    await settled();
    expect(grantedOf(calls)).toBe(9);
  });
});

describe('200 calls at 10 per second, each 0 to 80 ms on its way', () => {
  test.each([
    ['one limiter, looking back → no refusal, at 98% or more', 1, 'sliding', 0, 98],
    [
      'two that know nothing of each other, looking back → at most 6 refusals, at 85% or more',
      2,
      'sliding',
      6,
      85,
    ],
    ['one limiter, windows on full seconds → no refusal, at 98% or more', 1, 'fixed', 0, 98],
    ['two, windows on full seconds → at most 6 refusals, at 85% or more', 2, 'fixed', 6, 85],
  ] as const)('%s', async (_title, processes, windows, mostRefused, leastPercent) => {
    const { refused, percent } = await driveLimiters(processes, windows);
    expect(refused).toBeLessThanOrEqual(mostRefused);
    expect(percent).toBeGreaterThanOrEqual(leastPercent);
  });
});

/** Sends what is granted, and answers all of it. */
async function answerAll(calls: readonly Call[], remaining?: number): Promise<void> {
  for (const { permit } of calls) permit?.send();
  for (const { permit } of calls) permit?.report({ status: 200, remaining });
  await settled();
}

/** Lets limiters share an account until all their calls are accepted. */
async function driveLimiters(processes: number, windows: 'fixed' | 'sliding') {
  const clock = new ManualClock();
  clock.block(300);
  const startedAt = clock.now();
  const calls = 200;
  let counted: number[] = [];
  let refused = 0;
  let accepted = 0;
  let seed = 1;
  const uplinkMs = () => {
    seed = (seed * 1_664_525 + 1_013_904_223) % 2 ** 32;
    return (80 * seed) / 2 ** 32;
  };
  const call = async (limiter: TokenBucketLimiter): Promise<void> => {
    const permit = await limiter.acquire({ bucket, limit, priority: 'interactive' });
    permit.send();
    await new Promise<void>((resolve) => clock.setTimeout(resolve, uplinkMs()));
    const windowStart = windows === 'fixed' ? clock.now() - (clock.now() % 1_000) : clock.now() - 1_000;
    counted = counted.filter((countedAt) => countedAt >= windowStart);
    const isAccepted = counted.length < limit;
    if (isAccepted) counted.push(clock.now());
    const remaining = limit - counted.length;
    permit.report({ status: isAccepted ? 200 : 429, retryAfterMs: 1_000, remaining, resetMs: 1_000 });
    if (isAccepted) accepted += 1;
    else refused += 1;
    if (!isAccepted) await call(limiter);
  };
  for (let process = 0; process < processes; process += 1) {
    const limiter = new TokenBucketLimiter({ clock });
    for (let count = 0; count < calls / processes; count += 1) void call(limiter);
  }
  await settled();
  while (accepted < calls) await clock.moveTo(clock.nextTimerAt ?? Number.NaN);
  return { refused, percent: (100 * calls) / (limit * ((clock.now() - startedAt) / 1_000)) };
}
