import { describe, expect, test } from 'vitest';
import { settled } from '../support/settled.ts';
import { bucket, makeLimiter } from './make-limiter.ts';

describe('many accounts', () => {
  test.each<[what: string, use: (limiter: ReturnType<typeof makeLimiter>) => Promise<unknown>]>([
    ['tokens in use', ({ sent }) => sent(3)],
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
      await respond(1, { announcedLimit: 2 }, { bucket: { ...bucket, account: `account-${account}` } });
      if (account % 100 === 0) await clock.advance(1_010);
    }
    // A bucket that was deleted has the limit of the table again.
    const known = Array.from({ length: 2_000 }, (_, account) =>
      limiter.snapshot({ ...bucket, account: `account-${account}` }),
    ).filter(({ limit }) => limit === 2);
    expect(known.length).toBeLessThan(600);
    expect(limiter.snapshot(busy)?.queued).toBe(2);
  });
});
