import { expect } from 'vitest';
import type { AcquireOptions, Permit, RateLimitFeedback } from '../../src/limiter/limiter.ts';
import { TokenBucketLimiter, type TokenBucketLimiterOptions } from '../../src/limiter/token-bucket.ts';
import { settled } from '../support/settled.ts';
import { clock, useVirtualTime } from '../support/virtual-time.ts';

/** A call under observation. */
export interface Call {
  state: 'waiting' | 'granted' | 'rejected';
  /** When it was granted or rejected. */
  doneAt: number | undefined;
  permit: Permit | undefined;
  error: unknown;
}

export const bucket = {
  baseUrl: 'https://api.example.test/v1',
  account: 'account-1',
  endpoint: 'trackers.get',
} as const;

/** Follows a call of `acquire` until it is granted or rejected. */
export function observe(acquiring: Promise<Permit>): Call {
  const call: Call = { state: 'waiting', doneAt: undefined, permit: undefined, error: undefined };
  acquiring.then(
    (permit) => Object.assign(call, { state: 'granted', doneAt: clock.now(), permit }),
    (error: unknown) => Object.assign(call, { state: 'rejected', doneAt: clock.now(), error }),
  );
  return call;
}

/** A limiter in virtual time, and short ways to use it. The limit is 3 unless a call says otherwise. */
export function makeLimiter(options: TokenBucketLimiterOptions = {}) {
  useVirtualTime();
  const limiter = new TokenBucketLimiter(options);

  function acquire(overrides: Partial<AcquireOptions> = {}): Call {
    return observe(limiter.acquire({ bucket, limit: 3, priority: 'interactive', ...overrides }));
  }

  /** Calls that were granted and sent at once. */
  async function sent(count: number, overrides: Partial<AcquireOptions> = {}): Promise<Permit[]> {
    const calls = Array.from({ length: count }, () => acquire(overrides));
    await settled();
    return calls.map(({ permit }) => {
      if (!permit) throw new Error('Expected a token for every call, got fewer');
      permit.send();
      return permit;
    });
  }

  /** Calls that were granted, sent and got their response at once. */
  async function respond(
    count: number,
    feedback: Partial<RateLimitFeedback> = {},
    overrides: Partial<AcquireOptions> = {},
  ): Promise<void> {
    for (const permit of await sent(count, overrides)) permit.report({ status: 200, ...feedback });
  }

  /** Returns the state of a new call: granted at once, waiting, or rejected. */
  async function tryAcquire(overrides: Partial<AcquireOptions> = {}): Promise<Call['state']> {
    const call = acquire(overrides);
    await settled();
    return call.state;
  }

  return { clock, limiter, acquire, tryAcquire, sent, respond };
}

/** Expects that a call waits until so many milliseconds from now, and that it is granted then. */
export async function expectGrantAfter(ms: number, call: Call): Promise<void> {
  await clock.advance(ms - 1);
  expect(call.state).toBe('waiting');
  await clock.advance(1);
  expect(call.state).toBe('granted');
}

/** Counts the calls that hold a permit. */
export function countGranted(calls: readonly Call[]): number {
  return calls.filter((call) => call.state === 'granted').length;
}
