import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { TokenBucketLimiter } from '../../src/limiter/token-bucket.ts';
import type { Made } from '../support/made.ts';
import { settled } from '../support/settled.ts';
import { useVirtualTime } from '../support/virtual-time.ts';
import { toAcquire } from './make-limiter.ts';

const WINDOW_MS = 1_000;
const MAX_UPLINK_MS = 500;

/** One call: when it arrives, is sent, is counted, gets its response or is aborted. */
interface Plan {
  readonly arrivesAfterMs: number;
  readonly priority: 'interactive' | 'background';
  readonly sendAfterMs: number;
  readonly uplinkMs: number;
  readonly respondAfterMs: number;
  readonly status: 200 | 429 | 500;
  readonly retryAfterMs: number;
  /** When the caller loses interest, counted from its arrival. */
  readonly abortAfterMs: number | undefined;
}

const plan: fc.Arbitrary<Plan> = fc.record({
  arrivesAfterMs: fc.oneof(fc.constant(0), fc.nat(900)),
  priority: fc.constantFrom('interactive', 'background'),
  sendAfterMs: fc.oneof(fc.constant(0), fc.nat(300)),
  uplinkMs: fc.nat(MAX_UPLINK_MS),
  respondAfterMs: fc.oneof(fc.nat(200), fc.nat(4_000)),
  status: fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom(200, 500) },
    { weight: 1, arbitrary: fc.constant(429) },
  ),
  retryAfterMs: fc.nat(3_000),
  abortAfterMs: fc.oneof(
    { weight: 4, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary: fc.nat(3_000) },
  ),
} as const);

const scenario = fc.record({
  limit: fc.constantFrom(1, 3, 10) satisfies fc.Arbitrary<1 | 3 | 10>,
  plans: fc.array(plan, { minLength: 1, maxLength: 60, size: 'max' }),
});

/** Runs every call to its end and reports what the service counted and who was granted, in order. */
async function play({ limit, plans }: Made<typeof scenario>) {
  const clock = useVirtualTime();
  const limiter = new TokenBucketLimiter();
  const countedAt: number[] = [];
  const grantedOrder: number[] = [];
  const outcomes: ('waiting' | 'granted' | 'aborted')[] = plans.map(() => 'waiting');

  const later = (ms: number, happen: () => void) => void setTimeout(happen, ms);

  let arrivesAt = 0;
  plans.forEach((call, index) => {
    arrivesAt += call.arrivesAfterMs;
    later(arrivesAt, () => {
      const controller = new AbortController();
      if (call.abortAfterMs !== undefined) later(call.abortAfterMs, () => controller.abort(index));
      limiter.acquire(toAcquire(limit, { priority: call.priority, signal: controller.signal })).then(
        (permit) => {
          outcomes[index] = 'granted';
          grantedOrder.push(index);
          later(call.sendAfterMs, () => {
            if (controller.signal.aborted) return permit.cancel();
            permit.send();
            later(call.uplinkMs, () => countedAt.push(clock.now()));
            later(call.uplinkMs + call.respondAfterMs, () => {
              // A call that was aborted in flight never gets the response.
              if (controller.signal.aborted) return;
              permit.noteResponse({
                status: call.status,
                retryAfterMs: call.status === 429 ? call.retryAfterMs : undefined,
              });
            });
          });
        },
        () => {
          outcomes[index] = 'aborted';
        },
      );
    });
  });

  // A timer that is left over would fire after an hour; waiting calls are served long before.
  const giveUpAt = clock.now() + 60 * 60_000;
  while (vi.getTimerCount() > 0 && clock.now() < giveUpAt) {
    vi.advanceTimersToNextTimer();
    await settled();
  }
  return { countedAt, grantedOrder, outcomes, timersLeft: clock.timerCount };
}

test('any arrivals, delays, aborts and 429s → no window exceeds the limit, calls are granted in turn, no timer is left', async () => {
  await fc.assert(
    fc.asyncProperty(scenario, async (input) => {
      const { countedAt, grantedOrder, outcomes, timersLeft } = await play(input);
      const sorted = countedAt.toSorted((a, b) => a - b);
      // `limit + 1` requests within less than one window would overfill the window that begins with the first of them.
      for (let last = input.limit; last < sorted.length; last += 1) {
        const first = sorted[last - input.limit] ?? Number.NaN;
        expect((sorted[last] ?? Number.NaN) - first).toBeGreaterThanOrEqual(WINDOW_MS);
      }
      outcomes.forEach((outcome, index) => {
        const abortable = input.plans[index]?.abortAfterMs !== undefined;
        expect(abortable ? ['granted', 'aborted'] : ['granted']).toContain(outcome);
      });
      for (const priority of ['interactive', 'background']) {
        const lane = grantedOrder.filter((index) => input.plans[index]?.priority === priority);
        expect(lane).toEqual(lane.toSorted((a, b) => a - b));
      }
      expect(timersLeft).toBe(0);
    }),
    { numRuns: 150 },
  );
});
