import type { AcquireOptions, Settlement, Ticket } from '../../src/limiter/limiter.ts';
import { TokenBucketLimiter, type TokenBucketLimiterOptions } from '../../src/limiter/token-bucket.ts';
import { ManualClock, settled } from './manual-clock.ts';

/** A call under observation. */
export interface Call {
  state: 'waiting' | 'granted' | 'rejected';
  /** When it was granted or rejected. */
  doneAt: number | undefined;
  ticket: Ticket | undefined;
  error: unknown;
}

export const bucket = {
  baseUrl: 'https://api.example.test/v1',
  account: 'account-1',
  endpoint: 'trackers.get',
} as const;

/** A limiter on a manual clock, and short ways to use it. The limit is 3 unless a call says otherwise. */
export function makeLimiter(options: TokenBucketLimiterOptions = {}) {
  const clock = new ManualClock();
  const limiter = new TokenBucketLimiter({ clock, ...options });

  function acquire(overrides: Partial<AcquireOptions> = {}): Call {
    const call: Call = { state: 'waiting', doneAt: undefined, ticket: undefined, error: undefined };
    limiter.acquire({ bucket, limit: 3, priority: 'interactive', ...overrides }).then(
      (ticket) => Object.assign(call, { state: 'granted', doneAt: clock.now(), ticket }),
      (error: unknown) => Object.assign(call, { state: 'rejected', doneAt: clock.now(), error }),
    );
    return call;
  }

  /** Calls that were granted and sent at once. */
  async function sent(count: number, overrides: Partial<AcquireOptions> = {}): Promise<Ticket[]> {
    const calls = Array.from({ length: count }, () => acquire(overrides));
    await settled();
    return calls.map(({ ticket }) => {
      if (!ticket) throw new Error('Expected a token for every call, got fewer');
      ticket.send();
      return ticket;
    });
  }

  /** Calls that were granted, sent and answered at once. */
  async function answered(
    count: number,
    settlement: Partial<Settlement> = {},
    overrides: Partial<AcquireOptions> = {},
  ): Promise<void> {
    for (const ticket of await sent(count, overrides)) ticket.settle({ status: 200, ...settlement });
  }

  return { clock, limiter, acquire, sent, answered };
}

/** How many of the calls hold a ticket. */
export function grantedOf(calls: readonly Call[]): number {
  return calls.filter((call) => call.state === 'granted').length;
}
