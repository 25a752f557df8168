import { describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import type { LimiterOptions } from '../../src/limiter/limiter.ts';
import { TokenBucketLimiter } from '../../src/limiter/token-bucket.ts';
import { settled } from '../support/settled.ts';
import { bucket, countGranted, expectGrantAfter, makeLimiter } from './make-limiter.ts';

describe('granting', () => {
  test('four calls at a limit of 3 → three granted at once, each with the number of free tokens; the fourth waits', async () => {
    const { acquire } = makeLimiter();
    const calls = [acquire(), acquire(), acquire(), acquire()];
    await settled();
    expect(calls.map((call) => call.state)).toEqual(['granted', 'granted', 'granted', 'waiting']);
    expect(calls.map((call) => call.permit?.tokensLeft)).toEqual([2, 1, 0, undefined]);
  });
});

describe('when a token becomes free again', () => {
  test.each([
    ['a response', 200, 1_210],
    ['a response', 499, 1_509],
    ['no response', 5_000, 1_510],
  ])('a send, %s within %d ms → free after %d ms', async (_title, responseAfterMs, freeAfterMs) => {
    const { acquire, sent, clock } = makeLimiter({ limit: 1 });
    const [permit] = await sent(1);
    const waiting = acquire();
    const passedMs = Math.min(responseAfterMs, freeAfterMs - 1);
    await clock.advance(passedMs);
    if (responseAfterMs < freeAfterMs) permit?.noteResponse({ status: 200 });
    await expectGrantAfter(freeAfterMs - passedMs, waiting);
  });

  test.each([200, 404, 429, 503])('status %d → the token becomes free as usual', async (status) => {
    const { respond, limiter, clock } = makeLimiter();
    await respond(1, { status, retryAfterMs: 0 });
    await clock.advance(1_009);
    expect(limiter.snapshot(bucket)?.inUse).toBe(1);
    await clock.advance(1);
    expect(limiter.snapshot(bucket)?.inUse).toBe(0);
  });

  test('a permit that is cancelled before sending → the next call is granted at once', async () => {
    const { acquire } = makeLimiter({ limit: 1 });
    const first = acquire();
    const second = acquire();
    await settled();
    expect(second.state).toBe('waiting');
    first.permit?.cancel();
    await settled();
    expect(second.state).toBe('granted');
  });

  test('a permit that is cancelled after sending → the token stays in use', async () => {
    const { sent, limiter } = makeLimiter();
    const [permit] = await sent(1);
    permit?.cancel();
    expect(limiter.snapshot(bucket)?.inUse).toBe(1);
  });

  test('a send while another call waits → that call is granted when the token is free, not after a minute', async () => {
    const { acquire } = makeLimiter({ limit: 1 });
    const first = acquire();
    const second = acquire();
    await settled();
    first.permit?.send();
    await expectGrantAfter(1_510, second);
  });
});

describe('buckets', () => {
  test.each([
    ['endpoint', { ...bucket, endpoint: 'trackers.get' }],
    ['account', { ...bucket, account: 'account-2' }],
    ['base URL', { ...bucket, baseUrl: 'https://other.example.test/v1' }],
  ])('another %s → a bucket of its own', async (_what, other) => {
    const { acquire } = makeLimiter();
    const calls = [1, 2, 3, 4].map(() => acquire());
    const elsewhere = acquire({ bucket: other });
    await settled();
    expect(countGranted(calls)).toBe(3);
    expect(elsewhere.state).toBe('granted');
  });

  test.each([
    ['the limit of the table', {}, 3],
    ['the limit of the caller', { 'trackers.createBulk': 7 }, 7],
  ])('no call yet → %s, nothing in use', (_what, limits, limit) => {
    const { limiter } = makeLimiter({ limits });
    expect(limiter.snapshot(bucket)).toEqual({ limit, inUse: 0, queued: 0, pausedUntil: null });
  });

  test('a path outside the table → a limit of 10', () => {
    const { limiter } = makeLimiter();
    expect(limiter.snapshot({ ...bucket, endpoint: 'request' }).limit).toBe(10);
  });

  test('five calls at a limit of 3 → the snapshot counts three in use, two queued', async () => {
    const { acquire, limiter } = makeLimiter();
    for (let call = 0; call < 5; call += 1) acquire();
    await settled();
    expect(limiter.snapshot(bucket)).toEqual({ limit: 3, inUse: 3, queued: 2, pausedUntil: null });
  });
});

describe('many accounts', () => {
  test.each<[what: string, use: (limiter: ReturnType<typeof makeLimiter>) => Promise<unknown>]>([
    [
      'tokens that were granted and not sent yet',
      async ({ acquire, clock }) => {
        for (let call = 0; call < 3; call += 1) acquire();
        await clock.advance(20_000);
      },
    ],
    [
      'an announced limit of 2, used five seconds ago',
      async ({ respond, clock }) => {
        await respond(1, { limit: 2 });
        await clock.advance(5_000);
      },
    ],
    [
      'a paused endpoint and all tokens free',
      async ({ respond, clock }) => {
        await respond(1, { status: 429, retryAfterMs: 60_000 });
        await clock.advance(55_000);
      },
    ],
  ])('a bucket with %s → kept, so the last of three calls waits', async (_what, use) => {
    const limiter = makeLimiter();
    await use(limiter);
    for (let account = 0; account < 256; account += 1) {
      const call = limiter.acquire({ bucket: { ...bucket, account: `account-${account}-of-the-crowd` } });
      await settled();
      call.permit?.cancel();
    }
    const calls = [limiter.acquire(), limiter.acquire(), limiter.acquire()];
    await settled();
    expect(calls.at(-1)?.state).toBe('waiting');
  });

  test('thousands of accounts, one after the other → idle buckets are deleted, a bucket with a waiting call is kept', async () => {
    const { acquire, clock, limiter, respond } = makeLimiter();
    const busy = { ...bucket, account: 'busy' };
    for (let call = 0; call < 5; call += 1) acquire({ bucket: busy });
    for (let account = 0; account < 2_000; account += 1) {
      await respond(1, { limit: 2 }, { bucket: { ...bucket, account: `account-${account}` } });
      if (account % 100 === 0) await clock.advance(10_010);
    }
    // A bucket that was deleted has the limit of the table again.
    const known = Array.from({ length: 2_000 }, (_, account) =>
      limiter.snapshot({ ...bucket, account: `account-${account}` }),
    ).filter(({ limit }) => limit === 2);
    expect(known.length).toBeLessThan(600);
    expect(limiter.snapshot(busy)?.queued).toBe(2);
  });
});

describe('options', () => {
  test.each<[string, LimiterOptions]>([
    ['maxQueue', { maxQueue: -1 }],
    ['maxQueue', { maxQueue: 1.5 }],
    ['maxQueue', { maxQueue: Number.NaN }],
    ['limits["trackers.get"]', { limits: { 'trackers.get': 0 } }],
    ['limits["trackers.get"]', { limits: { 'trackers.get': 1.5 } }],
    // Safe cast: callers without types may pass such values.
    ['options', null as unknown as LimiterOptions],
  ])('options $1 → ConfigurationError that names $0', (name, options) => {
    expect(() => new TokenBucketLimiter(options)).toThrow(ConfigurationError);
    expect(() => new TokenBucketLimiter(options)).toThrow(`Expected \`${name}\` to be a`);
  });

  test('maxQueue Infinity, as in the default → accepted', () => {
    expect(new TokenBucketLimiter({ maxQueue: Number.POSITIVE_INFINITY }).spansProcesses).toBe(false);
  });

  test('an unknown option → ConfigurationError that names it', () => {
    // @ts-expect-error: what a caller without types may pass
    expect(() => new TokenBucketLimiter({ reserve: 1 })).toThrow('`reserve`');
  });
});
