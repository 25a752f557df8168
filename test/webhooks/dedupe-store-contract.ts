import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { DedupeStore } from '../../src/webhooks/dedupe-store.ts';

/** Waits until the store's clock has advanced by `ms`. */
type Wait = (ms: number) => unknown;

/** Length of the leases that the cases let expire. */
const SHORT_LEASE_MS = 100;
const LONG_LEASE_MS = 60_000;
const SHORT_RETENTION_MS = 1_000;
const RETAIN_MS = 30 * 24 * 60 * 60 * 1000;
const MANY = Array.from({ length: 100 }, (_, index) => `event-${index}`);
const SEVERAL = MANY.slice(0, 20);
const LIKE_PATTERNS = ['a%b_c*d', 'a%b_c*', 'aXb_c*d', 'a%bXc*d', 'a%b_cXd', "a%b_c*d'", '{a}%b_c*d'];
/** JSON allows half a surrogate pair, and most drivers send every such half as the same replacement character. */
const HALVES_OF_PAIRS = ['a\ud800', 'a\ud801', 'a\udbff', 'a\udc00', 'a\ufffd'];
const LONG_KEYS = [1, 2].map((last) => 'x'.repeat(4_999) + last);
const CLAIMANTS = Array.from({ length: 8 }, (_, index) => `token-${index}`);

/** Turns labels into keys of this run alone, because the store may be shared. */
class Scenario {
  readonly store: DedupeStore;
  readonly #wait: Wait;
  readonly #run = randomUUID();

  constructor(store: DedupeStore, wait: Wait) {
    this.store = store;
    this.#wait = wait;
  }

  keys(labels: readonly string[]): string[] {
    return labels.map((label) => `tracking/events:${this.#run}:${label}`);
  }

  async claim(token: string, labels: readonly string[], leaseMs = LONG_LEASE_MS): Promise<string> {
    const claims = await this.store.claim(this.keys(labels), { token, leaseMs });
    return claims
      .map((claim) => (claim.status === 'acquired' ? `acquired ${claim.attempt}` : claim.status))
      .join(', ');
  }

  release(token: string, labels: readonly string[], uncounted?: true): Promise<void> {
    return this.store.release(this.keys(labels), { token, ...(uncounted && { uncounted }) });
  }

  commit(labels: readonly string[], retainMs = RETAIN_MS): Promise<void> {
    return this.store.commit(this.keys(labels), { retainMs });
  }

  wait(ms: number): unknown {
    return this.#wait(ms);
  }

  /** Carries out steps such as `alice claims a b: acquired 1, busy`; the expected response follows the colon. */
  async play(steps: string): Promise<void> {
    for (const step of steps.split('; ')) {
      const [action = '', expected] = step.split(': ');
      const [token = '', verb, ...labels] = action.replace(' briefly', '').split(' ');
      // Wait a little longer than the lease, because timers may fire early and stores may count whole milliseconds.
      if (action === 'leases end') await this.#wait(SHORT_LEASE_MS + 20);
      else if (verb === 'commits') await this.commit(labels);
      else if (verb === 'releases') await this.release(token, labels);
      else if (verb === 'uncounts') await this.release(token, labels, true);
      else {
        const leaseMs = action.endsWith(' briefly') ? SHORT_LEASE_MS : LONG_LEASE_MS;
        const response = await this.claim(token, labels, leaseMs);
        if (expected !== undefined) expect(response, step).toBe(expected);
      }
    }
  }
}

/** Gives each claimant the same labels in another order, so that a store that locks key by key collides halfway. */
function shuffledFor(claimant: number): string[] {
  const turned = [...SEVERAL.slice(claimant), ...SEVERAL.slice(0, claimant)];
  return claimant % 2 === 0 ? turned : turned.reverse();
}

function repeated(status: string, count: number): string {
  return Array.from({ length: count }, () => status).join(', ');
}

async function expectIndependent(scenario: Scenario, [done = '', ...others]: readonly string[]) {
  await scenario.commit([done]);
  const labels = [...others, done];
  expect(await scenario.claim('alice', labels)).toBe(`${repeated('acquired 1', others.length)}, done`);
  expect(await scenario.claim('bob', labels)).toBe(`${repeated('busy', others.length)}, done`);
}

/** A text holds steps for `play`, a list holds keys that look alike but are independent, a function runs its own checks. */
type Check = string | readonly string[] | ((scenario: Scenario) => Promise<void>);

const CASES: Readonly<Record<string, Check>> = {
  'a key never seen → acquired, first attempt': 'alice claims a: acquired 1',
  'a key leased by another token → busy': 'alice claims a; bob claims a: busy',
  'a busy key → retryAfterMs is what is left of the lease': async (scenario) => {
    await scenario.play('alice claims a');
    const [found] = await scenario.store.claim(scenario.keys(['a']), { token: 'bob', leaseMs: 1 });
    const retryAfterMs = found?.status === 'busy' ? found.retryAfterMs : Number.NaN;
    expect(retryAfterMs).toBeGreaterThan(LONG_LEASE_MS / 2);
    expect(retryAfterMs).toBeLessThanOrEqual(LONG_LEASE_MS);
  },
  'the same token again → acquired, the same attempt': 'alice claims a; alice claims a: acquired 1',
  'the same token again → the lease is renewed':
    'alice claims a briefly; alice claims a; leases end; bob claims a: busy',
  'a renewal together with a claim by another token, in either order → only the renewal is acquired': async (
    scenario,
  ) => {
    await scenario.play('alice claims a');
    for (const tokens of [
      ['alice', 'bob'],
      ['bob', 'alice'],
      ['bob', 'carol', 'alice', 'alice'],
    ]) {
      const found = await Promise.all(tokens.map((token) => scenario.claim(token, ['a'])));
      expect(found).toEqual(tokens.map((token) => (token === 'alice' ? 'acquired 1' : 'busy')));
    }
  },
  'a renewal together with a claim by another token → the lease is renewed': async (scenario) => {
    await scenario.claim('alice', ['a'], LONG_LEASE_MS / 2);
    await Promise.all([scenario.claim('bob', ['a']), scenario.claim('alice', ['a'])]);
    const [found] = await scenario.store.claim(scenario.keys(['a']), { token: 'bob', leaseMs: 1 });
    expect(found?.status === 'busy' ? found.retryAfterMs : 0).toBeGreaterThan(LONG_LEASE_MS / 2);
  },
  'the same token after its lease ended, not taken over → acquired, the same attempt':
    'alice claims a briefly; leases end; alice claims a: acquired 1',
  'a lease that ended → another token acquires, next attempt':
    'alice claims a briefly; leases end; bob claims a: acquired 2',
  'a lease taken over → busy for the token that had it':
    'alice claims a briefly; leases end; bob claims a; alice claims a: busy',
  'leases that end one after the other → attempts go on counting':
    'alice claims a briefly; leases end; bob claims a briefly; leases end; carol claims a: acquired 3',
  'a released key → acquired at once, next attempt':
    'alice claims a; alice releases a; bob claims a: acquired 2',
  'a released key claimed by the same token → a new attempt':
    'alice claims a; alice releases a; alice claims a: acquired 2',
  'a release by another token → the lease stands': 'alice claims a; bob releases a; bob claims a: busy',
  'a stale release after the lease was taken over → the new lease stands':
    'alice claims a briefly; leases end; bob claims a; alice releases a; carol claims a: busy',
  'a release after the commit → still done':
    'alice claims a; alice commits a; alice releases a; bob claims a: done',
  'a release of a key never claimed → nothing remembered': 'alice releases a; alice claims a: acquired 1',
  'a release of some keys → the others stay leased':
    'alice claims a b c; alice releases a c; bob claims a b c: acquired 2, busy, acquired 2',
  'a first attempt released uncounted → the next claim is the first attempt again':
    'alice claims a; alice uncounts a; bob claims a: acquired 1',
  'a second attempt released uncounted → the next claim is the second attempt again':
    'alice claims a; alice releases a; bob claims a: acquired 2; bob uncounts a; carol claims a: acquired 2',
  'a renewed lease released uncounted → one attempt is given back':
    'alice claims a; alice releases a; bob claims a; bob claims a; bob uncounts a; carol claims a: acquired 2',
  'an uncounted release repeated → one attempt is given back':
    'alice claims a; alice releases a; bob claims a; bob uncounts a; bob uncounts a; carol claims a: acquired 2',
  'an uncounted release by another token → the lease and its attempt stand':
    'alice claims a; bob uncounts a; carol claims a: busy; alice releases a; bob claims a: acquired 2',
  'an uncounted release after the commit → still done':
    'alice claims a; alice commits a; alice uncounts a; bob claims a: done',
  'some keys released uncounted → the others count':
    'alice claims a b c; alice uncounts a c; alice releases b; bob claims a b c: acquired 1, acquired 2, acquired 1',
  'a committed key → done for every token':
    'alice claims a; alice commits a; alice claims a: done; bob claims a: done',
  'a committed key after its lease would have ended → still done':
    'alice claims a briefly; alice commits a; leases end; bob claims a: done',
  'a commit after the lease ended → done':
    'alice claims a briefly; leases end; alice commits a; bob claims a: done',
  'a stale commit after the lease was taken over → done for the new owner too':
    'alice claims a briefly; leases end; bob claims a; alice commits a; bob claims a: done',
  'a commit after a release → done': 'alice claims a; alice releases a; alice commits a; bob claims a: done',
  'a commit of a key never claimed → done': 'alice commits a; alice claims a: done',
  'a claim with retainMs that finds keys done → remembered for at least that long, and never shorter': async (
    scenario,
  ) => {
    await scenario.commit(['extended', 'not extended'], SHORT_RETENTION_MS);
    await scenario.commit(['long']);
    const claim = (labels: readonly string[], retainMs?: number) =>
      scenario.store.claim(scenario.keys(labels), { token: 'alice', leaseMs: LONG_LEASE_MS, retainMs });
    expect(await claim(['extended'], RETAIN_MS)).toEqual([{ status: 'done' }]);
    expect(await claim(['not extended'])).toEqual([{ status: 'done' }]);
    expect(await claim(['long'], SHORT_RETENTION_MS)).toEqual([{ status: 'done' }]);
    // Stores may count whole seconds.
    await scenario.wait(SHORT_RETENTION_MS + 1_000);
    expect(await scenario.claim('bob', ['extended', 'not extended', 'long'])).toBe('done, acquired 1, done');
  },
  'a claim with retainMs of keys that are not done → leases and attempts are as without': async (
    scenario,
  ) => {
    const claim = async (token: string, labels: readonly string[]) => {
      const options = { token, leaseMs: LONG_LEASE_MS, retainMs: RETAIN_MS };
      return scenario.store.claim(scenario.keys(labels), options);
    };
    await scenario.play('alice claims busy failed; alice releases failed');
    expect(await claim('bob', ['new', 'busy', 'failed'])).toMatchObject([
      { status: 'acquired', attempt: 1 },
      { status: 'busy' },
      { status: 'acquired', attempt: 2 },
    ]);
    await scenario.play('bob releases new; carol claims new: acquired 2');
  },
  'a commit repeated → done': 'alice claims a; alice commits a; alice commits a; bob claims a: done',
  'a commit of some keys → the others stay leased':
    'alice claims a b c; alice commits a c; bob claims a b c: done, busy, done',
  'new, busy and done keys together → one claim for each key, in the order of the keys':
    'alice claims m; alice commits b; bob claims z m b a: acquired 1, busy, done, acquired 1',
  '100 keys at once → all acquired, and all done after one commit': async (scenario) => {
    expect(await scenario.claim('alice', MANY)).toBe(repeated('acquired 1', MANY.length));
    await scenario.commit(MANY);
    expect(await scenario.claim('bob', MANY)).toBe(repeated('done', MANY.length));
  },
  'no keys → no claims': async (scenario) => {
    await scenario.commit([]);
    await scenario.release('alice', []);
    expect(await scenario.claim('alice', [])).toBe('');
  },
  'keys that differ in case or by a space → independent': ['Event', 'event', 'Event ', ' Event'],
  'keys that a pattern or a format would change → independent': LIKE_PATTERNS,
  'keys in other scripts → independent': ['é', 'e\u0301', 'e', '包裹', '📦'],
  'keys with control characters, as JSON allows → independent': ['a\u0000b', 'ab', 'a\u0000', 'a\nb'],
  'keys with different halves of a surrogate pair → independent': HALVES_OF_PAIRS,
  'keys of 5,000 characters that differ in the last one → independent': LONG_KEYS,
  '8 tokens that claim 20 keys at once → each key acquired by exactly one': async (scenario) => {
    const acquired: string[] = [];
    const claimAll = async (token: string, index: number) => {
      const labels = shuffledFor(index);
      const statuses = (await scenario.claim(token, labels)).split(', ');
      acquired.push(...labels.filter((_, position) => statuses[position]?.startsWith('acquired')));
    };
    await Promise.all(CLAIMANTS.map(claimAll));
    expect(acquired.sort().join()).toBe([...SEVERAL].sort().join());
  },
  'the same token 8 times at once → acquired every time, first attempt': async (scenario) => {
    const responses = await Promise.all(CLAIMANTS.map(() => scenario.claim('alice', ['a'])));
    expect(responses.join(', ')).toBe(repeated('acquired 1', CLAIMANTS.length));
  },
  'claims, releases and commits at once → all end, and every key is done': async (scenario) => {
    await Promise.all(
      CLAIMANTS.flatMap((token, index) => [
        scenario.claim(token, shuffledFor(index)),
        scenario.release(token, shuffledFor(index + 1)),
        scenario.commit(shuffledFor(index + 2)),
      ]),
    );
    expect(await scenario.claim('late', SEVERAL)).toBe(repeated('done', SEVERAL.length));
  },
};

/** Defines tests that check whether a store neither loses webhooks nor lets them be handled twice. */
export function testDedupeStoreContract(getStore: () => DedupeStore, wait: Wait = sleep): void {
  test.each(Object.entries(CASES))('%s', async (_title, check) => {
    const scenario = new Scenario(getStore(), wait);
    if (typeof check === 'string') await scenario.play(check);
    else if (typeof check === 'function') await check(scenario);
    else await expectIndependent(scenario, check);
  });
}
