import fc from 'fast-check';
import type { Permit } from '../../src/limiter/limiter.ts';
import { TokenBucketLimiter } from '../../src/limiter/token-bucket.ts';
import { bucketOf } from '../limiter/make-limiter.ts';
import type { Made } from '../support/made.ts';
import { must } from './harness.ts';
import { Problems, pause, scheduleProperty } from './virtual-time.ts';

const WINDOW_MS = 1_000;
const MAX_UPLINK_MS = 500;
/** If the body of a 429 takes longer than this, its headers decide. */
const MAX_BODY_DELAY_MS = 500;
/** Longer than any schedule takes. */
const LIMIT_MS = 600_000;

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

/** Schedules without 429s and announced limits are tighter, and shrink to less. */
const schedule = fc.record({
  limit: fc.constantFrom<(1 | 3 | 10)[]>(1, 3, 10, 10),
  refuses: fc.boolean(),
  announces: fc.boolean(),
  plans: fc.array(plan, { minLength: 1, maxLength: 80, size: 'max' }),
});
type Schedule = Made<typeof schedule>;

/** A request that was counted, and what the limiter knew when it granted the token. */
export interface Counted {
  readonly order: number;
  readonly knownLimit: number;
  readonly countedAt: number;
}

interface Pause {
  readonly from: number;
  readonly until: number;
}

/**
 * Finds a window that holds more requests than the limit which the limiter knew when it granted the last of them. Of all these
 * requests, only the last one was granted when all others had a token.
 */
export function findOwnRefusal(counted: readonly Counted[]): string | undefined {
  const inOrder = counted.toSorted((a, b) => a.countedAt - b.countedAt);
  for (const [index, first] of inOrder.entries()) {
    const rest = inOrder.slice(index).filter(({ countedAt }) => countedAt - first.countedAt < WINDOW_MS);
    const last = rest.reduce((a, b) => (a.order > b.order ? a : b));
    if (rest.length > last.knownLimit)
      return `${rest.length} requests from ${first.countedAt} ms on, with a limit of ${last.knownLimit}`;
  }
  return undefined;
}

/** Plays a schedule; rejects if a request would get a 429, was granted in a pause, or overtook another one of its priority. */
async function play({ limit, refuses, announces, plans }: Schedule): Promise<void> {
  const problems = new Problems();
  const limiter = new TokenBucketLimiter();
  const bucket = bucketOf(limit);
  const counted: Counted[] = [];
  const pauses: Pause[] = [];
  const grants: number[] = [];
  const arrived = { interactive: 0, background: 0 };
  const lastGranted = { interactive: 0, background: 0 };
  const notePause = (until: number) => pauses.push({ from: performance.now(), until });

  const respond = async (permit: Permit, call: Plan): Promise<void> => {
    const { bodyMs, isQuotaUsedUp, remaining, resetMs } = call;
    const refusedForMs = refuses ? call.refusedForMs : undefined;
    const announced = announces ? call.announced : undefined;
    const now = performance.now();
    const until = now + (refusedForMs ?? 0);
    if (refusedForMs !== undefined) notePause(Math.min(until, now + WINDOW_MS));
    permit.noteResponse({
      status: refusedForMs === undefined ? 200 : 429,
      retryAfterMs: refusedForMs,
      limit: announced === undefined ? undefined : Math.ceil(limit * announced),
      remaining: announces ? remaining : undefined,
      resetMs,
    });
    if (refusedForMs === undefined) return;
    await pause(Math.min(bodyMs, MAX_BODY_DELAY_MS));
    if (bodyMs > MAX_BODY_DELAY_MS) notePause(until);
    await pause(Math.max(0, bodyMs - MAX_BODY_DELAY_MS));
    if (!isQuotaUsedUp) notePause(until);
    permit.settlePause(isQuotaUsedUp);
  };
  const run = async (call: Plan, signal: AbortSignal): Promise<void> => {
    const { priority, sendMs, uplinkMs, respondMs } = call;
    arrived[priority] += 1;
    const place = arrived[priority];
    const permit = await limiter.acquire({ bucket, priority, signal }).catch(() => undefined);
    problems.note(permit !== undefined || signal.aborted, () => 'a call was rejected without an abort');
    if (permit === undefined) return;
    problems.note(place > lastGranted[priority], () => `a ${priority} call was overtaken`);
    lastGranted[priority] = place;
    const order = grants.push(performance.now());
    const knownLimit = limiter.snapshot(bucket).limit;
    await pause(sendMs);
    if (signal.aborted) return permit.cancel();
    permit.send();
    await pause(uplinkMs);
    counted.push({ order, knownLimit, countedAt: performance.now() });
    await pause(respondMs);
    // If the call is aborted, its response never comes.
    if (!signal.aborted) await respond(permit, call);
  };
  const start = async (call: Plan): Promise<void> => {
    await pause(call.arrivesMs);
    const controller = new AbortController();
    const abort = async (ms: number) => {
      await pause(ms);
      controller.abort();
    };
    await Promise.all([
      run(call, controller.signal),
      call.abortMs === undefined ? undefined : abort(call.abortMs),
    ]);
  };

  await Promise.all(plans.map(start));
  problems.check();
  const refusal = findOwnRefusal(counted);
  must(refusal === undefined, () => `an own 429: ${refusal}`);
  for (const { from, until } of pauses) {
    const early = grants.find((grantedAt) => grantedAt > from && grantedAt < until);
    must(early === undefined, () => `a grant at ${early} ms in the pause from ${from} to ${until} ms`);
  }
}

/**
 * Any arrivals, delays, aborts, 429s and announced limits cause no 429, no grant in a pause or out of turn, and no call that waits
 * for ever.
 */
export const limiterSchedules = scheduleProperty('limiter', 100, schedule, play, {
  limitMs: LIMIT_MS,
  endsTimers: true,
});
