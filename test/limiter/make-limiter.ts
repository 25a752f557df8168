import { expect } from 'vitest';
import type {
  AcquireOptions,
  BucketId,
  LimiterOptions,
  Permit,
  ResponseFacts,
} from '../../src/limiter/limiter.ts';
import { TokenBucketLimiter } from '../../src/limiter/token-bucket.ts';
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

/** An endpoint of the table for each limit. */
const ENDPOINTS = { 1: 'couriers.list', 3: 'trackers.createBulk', 10: 'trackers.get' } as const;
type Limit = keyof typeof ENDPOINTS;

/** The bucket of an endpoint with this limit. */
export function bucketOf(limit: Limit): BucketId {
  return { baseUrl: 'https://api.example.test/v1', account: 'account-1', endpoint: ENDPOINTS[limit] };
}

export const bucket = bucketOf(3);

type Overrides = Partial<AcquireOptions>;

/** The options of an interactive call of an endpoint with this limit. */
export function toAcquire(limit: Limit, overrides: Overrides = {}): AcquireOptions {
  return { bucket: bucketOf(limit), priority: 'interactive', ...overrides };
}

/** Follows a call of `acquire` until it is granted or rejected. */
export function observe(acquiring: Promise<Permit>): Call {
  const call: Call = { state: 'waiting', doneAt: undefined, permit: undefined, error: undefined };
  acquiring.then(
    (permit) => Object.assign(call, { state: 'granted', doneAt: clock.now(), permit }),
    (error: unknown) => Object.assign(call, { state: 'rejected', doneAt: clock.now(), error }),
  );
  return call;
}

/** A limiter in virtual time, and short ways to use it. Calls are of an endpoint with the limit 3, or `limit`. */
export function makeLimiter({ limit = 3, ...options }: LimiterOptions & { readonly limit?: Limit } = {}) {
  useVirtualTime();
  const limiter = new TokenBucketLimiter(options);

  function acquire(overrides?: Overrides): Call {
    return observe(limiter.acquire(toAcquire(limit, overrides)));
  }

  /** Calls that were granted and sent at once. */
  async function sent(count: number, overrides: Overrides = {}): Promise<Permit[]> {
    const calls = Array.from({ length: count }, () => acquire(overrides));
    await settled();
    return calls.map(({ permit }) => {
      if (!permit) throw new Error('Expected a token for every call, got fewer');
      permit.send();
      return permit;
    });
  }

  /** Calls that were granted, sent and got their response at once, with a body that names no used-up quota. */
  async function respond(
    count: number,
    response: Partial<ResponseFacts> = {},
    overrides: Overrides = {},
  ): Promise<void> {
    for (const permit of await sent(count, overrides)) {
      permit.noteResponse({ status: 200, ...response });
      permit.settlePause(false);
    }
  }

  /** Returns the state of a new call: granted at once, waiting, or rejected. */
  async function tryAcquire(overrides: Overrides = {}): Promise<Call['state']> {
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
