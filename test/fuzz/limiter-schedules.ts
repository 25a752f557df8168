import FakeTimers from '@sinonjs/fake-timers';
import fc from 'fast-check';
import type { Permit } from '../../src/limiter/limiter.ts';
import { TokenBucketLimiter } from '../../src/limiter/token-bucket.ts';
import { findOverfullWindow, play, schedule } from '../redis/limiter/schedules.ts';
import type { Made } from '../support/made.ts';
import { settled } from '../support/settled.ts';
import { must, property } from './harness.ts';

const WINDOW_MS = 1_000;
const MAX_UPLINK_MS = 500;
/** If the body of a 429 takes longer than this, its headers decide. */
const MAX_BODY_DELAY_MS = 500;
/** Longer than any schedule takes. */
const GIVE_UP_MS = 600_000;

/** An endpoint of the table for each limit. */
const ENDPOINTS = { 1: 'couriers.list', 3: 'trackers.createBulk', 10: 'trackers.get' } as const;

const seldom = <T>(arbitrary: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 4, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary });

/** One call: when it arrives, is sent, is counted, gets its response and its body, or is aborted. */
const plan = fc.record({
  arrivesMs: fc.oneof(fc.constant(0), fc.nat(5_000)),
  priority: fc.constantFrom<('interactive' | 'background')[]>('interactive', 'interactive', 'background'),
  sendMs: fc.oneof(fc.constant(0), fc.nat(300)),
  uplinkMs: fc.oneof(fc.nat(20), fc.nat(MAX_UPLINK_MS)),
  respondMs: fc.oneof(fc.nat(50), fc.nat(3_000)),
  abortMs: seldom(fc.nat(3_000)),
  /** The response is a 429 that asks for this wait. */
  refusedForMs: seldom(fc.oneof(fc.nat(1_500), fc.nat(5_000))),
  bodyMs: fc.oneof(fc.constant(0), fc.nat(700)),
  isQuotaUsedUp: fc.boolean(),
  /** The limit that the response announces, as a multiple of the limit in the table. */
  announced: seldom(fc.constantFrom(0.3, 0.5, 1, 2, 5)),
  remaining: seldom(fc.nat(10)),
  resetMs: fc.constantFrom(1_000, 1_000, 60_000),
});
type Plan = Made<typeof plan>;

const input = fc.record({
  limit: fc.constantFrom<(1 | 3 | 10)[]>(1, 3, 10, 10),
  plans: fc.array(plan, { minLength: 1, maxLength: 80, size: 'max' }),
});

/** A request that was counted, and what the limiter knew when it granted the token. */
interface Counted {
  readonly grantedAt: number;
  readonly order: number;
  readonly knownLimit: number;
  readonly countedAt: number;
}

interface Pause {
  readonly from: number;
  readonly until: number;
}

/** Plays a schedule in virtual time, and records each grant, each counted request and each pause. */
async function playOnBucket({ limit, plans }: Made<typeof input>) {
  const clock = FakeTimers.install({ toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'] });
  try {
    const limiter = new TokenBucketLimiter();
    const bucket = { baseUrl: 'https://api.example.test/v1', account: 'a', endpoint: ENDPOINTS[limit] };
    const counted: Counted[] = [];
    const pauses: Pause[] = [];
    const grants: number[] = [];
    let unfinished = plans.length;
    const later = (ms: number, happen: () => void) => void setTimeout(happen, ms);
    const pause = (until: number) => pauses.push({ from: performance.now(), until });

    const respond = (call: Plan, permit: Permit) => {
      const { refusedForMs, bodyMs, announced, isQuotaUsedUp, remaining, resetMs } = call;
      const until = performance.now() + (refusedForMs ?? 0);
      if (refusedForMs !== undefined) pause(Math.min(until, performance.now() + WINDOW_MS));
      permit.noteResponse({
        status: refusedForMs === undefined ? 200 : 429,
        retryAfterMs: refusedForMs,
        limit: announced === undefined ? undefined : Math.ceil(limit * announced),
        remaining,
        resetMs,
      });
      if (refusedForMs === undefined) return;
      if (bodyMs > MAX_BODY_DELAY_MS) later(MAX_BODY_DELAY_MS, () => pause(until));
      later(bodyMs, () => {
        if (!isQuotaUsedUp) pause(until);
        permit.settlePause(isQuotaUsedUp);
      });
    };
    const begin = (call: Plan) => {
      const controller = new AbortController();
      const { signal } = controller;
      if (call.abortMs !== undefined) later(call.abortMs, () => controller.abort());
      limiter.acquire({ bucket, priority: call.priority, signal }).then(
        (permit) => {
          unfinished -= 1;
          const grantedAt = performance.now();
          const order = grants.push(grantedAt);
          const knownLimit = limiter.snapshot(bucket).limit;
          later(call.sendMs, () => {
            if (signal.aborted) return permit.cancel();
            permit.send();
            later(call.uplinkMs, () =>
              counted.push({ grantedAt, order, knownLimit, countedAt: performance.now() }),
            );
            // If the call is aborted, its response never comes.
            later(call.uplinkMs + call.respondMs, () => signal.aborted || respond(call, permit));
          });
        },
        () => {
          unfinished -= 1;
        },
      );
    };
    for (const call of plans) later(call.arrivesMs, () => begin(call));
    while (clock.countTimers() > 0 && performance.now() < GIVE_UP_MS) {
      clock.next();
      await settled();
    }
    return { counted, pauses, grants, unfinished };
  } finally {
    clock.uninstall();
  }
}

/**
 * Finds a window that holds more requests than the limit which the limiter knew when it granted the last of them. Of all these
 * requests, only the last one was granted when all others had a token.
 */
function findOwnRefusal(counted: readonly Counted[]): string | undefined {
  const inOrder = counted.toSorted((a, b) => a.countedAt - b.countedAt);
  for (const [index, first] of inOrder.entries()) {
    const rest = inOrder.slice(index).filter(({ countedAt }) => countedAt - first.countedAt < WINDOW_MS);
    const last = rest.reduce((a, b) => (a.order > b.order ? a : b));
    if (rest.length > last.knownLimit)
      return `${rest.length} requests from ${first.countedAt} ms on, with a limit of ${last.knownLimit}`;
  }
  return undefined;
}

/** Any arrivals, delays, aborts, 429s and announced limits cause no 429, no grant in a pause, and no call that waits for ever. */
export const limiterSchedules = property('limiter', 100, input, async () => ({
  async check(schedule) {
    const { counted, pauses, grants, unfinished } = await playOnBucket(schedule);
    const refusal = findOwnRefusal(counted);
    must(refusal === undefined, () => `an own 429: ${refusal}`);
    for (const { from, until } of pauses) {
      const early = grants.find((grantedAt) => grantedAt > from && grantedAt < until);
      must(early === undefined, () => `a grant at ${early} ms in the pause from ${from} to ${until} ms`);
    }
    must(unfinished === 0, () => `${unfinished} calls still wait`);
  },
  async stop() {},
}));

/** Slow commands, lost replies, commands that run twice, and outages cause no 429, and no call that waits for ever. */
export const redisLimiterSchedules = property('redis-limiter', 10, schedule, async () => ({
  async check(input) {
    const { countedAt, unfinished } = await play(input);
    const refusal = findOverfullWindow(countedAt, input.limit);
    must(refusal === undefined, () => `an own 429: ${refusal}`);
    must(unfinished === 0, () => `${unfinished} calls still wait`);
  },
  async stop() {},
}));
