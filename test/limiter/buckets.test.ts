import { describe, expect, test, vi } from 'vitest';
import type { AcquireOptions } from '../../src/limiter/limiter.ts';
import { settled } from '../support/settled.ts';
import { bucket, type Call, makeLimiter } from './make-limiter.ts';

type Acquire = (overrides: Partial<AcquireOptions>) => Call;

/** Uses so many other accounts once each that the limiter looks for buckets to forget. */
async function crowd(acquire: Acquire): Promise<void> {
  for (let account = 0; account < 256; account += 1) {
    const call = acquire({ bucket: { ...bucket, account: `account-${account}-of-the-crowd` } });
    await settled();
    call.permit?.cancel();
  }
}

describe('many accounts', () => {
  test('nothing out, nobody waiting → forgotten', async () => {
    const { acquire, limiter } = makeLimiter();
    await crowd(acquire);
    acquire();
    expect(limiter.snapshot({ ...bucket, account: 'account-0-of-the-crowd' })).toBeUndefined();
  });

  test('tokens out though nobody waits → not forgotten, the next call waits', async () => {
    const { acquire, sent, tryAcquire } = makeLimiter();
    await sent(3);
    await crowd(acquire);
    expect(await tryAcquire()).toBe('waiting');
  });

  test('paused, with all tokens back → not forgotten, the next call waits', async () => {
    const { acquire, answered, clock, tryAcquire } = makeLimiter();
    await answered(1, { status: 429, retryAfterMs: 60_000 });
    await clock.advance(55_000);
    await crowd(acquire);
    expect(await tryAcquire()).toBe('waiting');
  });

  test('a call waiting whose token came back unnoticed → not forgotten', async () => {
    const { acquire, answered, clock, limiter } = makeLimiter();
    await answered(3);
    acquire();
    vi.spyOn(performance, 'now').mockReturnValue(clock.now() + 2_000);
    await crowd(acquire);
    expect(limiter.snapshot(bucket)).toMatchObject({ inUse: 0, queued: 1 });
  });

  test('others use the account → not forgotten, the second of two calls waits', async () => {
    const { acquire, answered, clock, tryAcquire } = makeLimiter();
    await answered(1, { remaining: 1 }, { limit: 10 });
    await clock.advance(1_500);
    await crowd(acquire);
    expect([await tryAcquire(), await tryAcquire()]).toEqual(['granted', 'waiting']);
  });

  test('thousands of accounts, one after the other → idle buckets are forgotten, a waiting one is not', async () => {
    const { acquire, clock, limiter } = makeLimiter();
    const busy = { ...bucket, account: 'busy' };
    for (let call = 0; call < 3; call += 1) acquire({ bucket: busy, limit: 1 });
    for (let account = 0; account < 2_000; account += 1) {
      const call = acquire({ bucket: { ...bucket, account: `account-${account}` } });
      await settled();
      call.permit?.cancel();
      if (account === 1_000) await clock.advance(10);
    }
    const known = Array.from({ length: 2_000 }, (_, account) =>
      limiter.snapshot({ ...bucket, account: `account-${account}` }),
    ).filter((snapshot) => snapshot !== undefined);
    expect(known.length).toBeLessThan(600);
    expect(limiter.snapshot(busy)?.queued).toBe(2);
  });
});
