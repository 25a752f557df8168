import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { expect } from 'vitest';
import type { Claim, DedupeStore } from '../../src/webhooks/dedupe-store.ts';
import { ModelStore } from './model-dedupe-store.ts';

/** A clock that store and model share. */
export interface SharedClock {
  now(): number;
  pass(ms: number): void;
}

const RETAIN_MS = 30 * 24 * 60 * 60 * 1000;

const keys = fc.subarray(['a', 'b'], { minLength: 1 });
const token = fc.constantFrom('alice', 'bob', 'carol');
const leaseMs = fc.constantFrom(50, 100);
const anyStep = fc.oneof(
  { weight: 4, arbitrary: fc.record({ verb: fc.constant('claim' as const), keys, token, leaseMs }) },
  { weight: 1, arbitrary: fc.record({ verb: fc.constant('commit' as const), keys }) },
  {
    weight: 2,
    arbitrary: fc.record({ verb: fc.constant('release' as const), keys, token, uncounted: fc.boolean() }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ verb: fc.constant('pass' as const), ms: fc.constantFrom(1, 49, 50) }),
  },
);

function describeClaim(claim: Claim): string {
  return claim.status === 'acquired' ? `acquired ${claim.attempt}` : claim.status;
}

/** Any sequence of claims, commits, releases and waits: the store does the same as the model. */
export async function expectAgreementWithModel(
  store: DedupeStore,
  clock: SharedClock,
  numRuns: number,
): Promise<void> {
  const property = fc.asyncProperty(fc.array(anyStep, { maxLength: 25 }), async (steps) => {
    const model = new ModelStore(() => clock.now());
    const run = randomUUID();
    for (const step of steps) {
      if (step.verb === 'pass') {
        clock.pass(step.ms);
        continue;
      }
      const named = step.keys.map((key) => `${run}:${key}`);
      if (step.verb === 'commit') {
        await Promise.all([store, model].map((each) => each.commit(named, { retainMs: RETAIN_MS })));
      } else if (step.verb === 'release') {
        await Promise.all([store, model].map((each) => each.release(named, step)));
      } else {
        const both = await Promise.all([store, model].map((each) => each.claim(named, step)));
        const [actual, expected] = both.map((claims) => claims.map(describeClaim));
        expect(actual).toEqual(expected);
      }
    }
  });
  await fc.assert(property, { numRuns });
}
