import type { DedupeStore } from '../webhooks/dedupe-store.ts';

/** A lease that does not end while a case runs, in milliseconds. */
const LONG_LEASE_MS = 60_000;
const RETAIN_MS = 30 * 24 * 60 * 60 * 1000;

type Labels = string | readonly string[];

/** A store and what the cases do with it; labels become keys that belong to this run alone. */
export class Scenario {
  readonly store: DedupeStore;
  readonly #shortLeaseMs: number;
  readonly #wait: (ms: number) => void | Promise<void>;
  readonly #run = globalThis.crypto.randomUUID();

  constructor(store: DedupeStore, shortLeaseMs: number, wait: (ms: number) => void | Promise<void>) {
    this.store = store;
    this.#shortLeaseMs = shortLeaseMs;
    this.#wait = wait;
  }

  keys(labels: Labels): string[] {
    return [labels].flat().map((label) => `tracking/events:${this.#run}:${label}`);
  }

  /** Claims, with a long lease unless told otherwise; the response in words, as `acquired 2, busy, done`. */
  async claim(token: string, labels: Labels, lease: 'long' | 'brief' = 'long'): Promise<string> {
    const leaseMs = lease === 'long' ? LONG_LEASE_MS : this.#shortLeaseMs;
    const claims = await this.store.claim(this.keys(labels), { token, leaseMs });
    return claims
      .map((claim) => (claim.status === 'acquired' ? `acquired ${claim.attempt}` : claim.status))
      .join(', ');
  }

  async release(token: string, labels: Labels): Promise<void> {
    await this.store.release(this.keys(labels), { token });
  }

  async commit(labels: Labels): Promise<void> {
    await this.store.commit(this.keys(labels), { retainMs: RETAIN_MS });
  }

  /** Waits until brief leases have ended; a little more, for timers fire early and stores may count whole milliseconds. */
  async briefLeasesEnd(): Promise<void> {
    await this.#wait(this.#shortLeaseMs + 20);
  }
}

type Step = (scenario: Scenario) => Promise<void>;

function expectSame(actual: string, expected: string): void {
  if (actual !== expected) throw new Error(`Expected the store to answer "${expected}", got "${actual}"`);
}

/** Claims with a long lease, and compares the response unless nothing is expected. */
function claims(token: string, labels: Labels, expected?: string): Step {
  return async (scenario) => {
    const actual = await scenario.claim(token, labels);
    if (expected !== undefined) expectSame(actual, expected);
  };
}

function claimsBriefly(token: string, labels: Labels): Step {
  return async (scenario) => void (await scenario.claim(token, labels, 'brief'));
}

function releases(token: string, labels: Labels): Step {
  return (scenario) => scenario.release(token, labels);
}

function commits(labels: Labels): Step {
  return (scenario) => scenario.commit(labels);
}

const leasesEnd: Step = (scenario) => scenario.briefLeasesEnd();

const MANY = Array.from({ length: 100 }, (_, index) => `event-${index}`);
const SEVERAL = MANY.slice(0, 20);
const CLAIMANTS = Array.from({ length: 8 }, (_, index) => `token-${index}`);

/** The same labels in another order for every claimant, so that a store that locks key by key meets itself halfway. */
function shuffledFor(claimant: number): string[] {
  const turned = [...SEVERAL.slice(claimant), ...SEVERAL.slice(0, claimant)];
  return claimant % 2 === 0 ? turned : turned.reverse();
}

function allNew(count: number): string {
  return Array.from({ length: count }, () => 'acquired 1').join(', ');
}

const retryAfterIsLeft: Step = async (scenario) => {
  const [found] = await scenario.store.claim(scenario.keys('a'), { token: 'bob', leaseMs: 1 });
  const retryAfterMs = found?.status === 'busy' ? found.retryAfterMs : Number.NaN;
  const isPlausible = retryAfterMs > LONG_LEASE_MS / 2 && retryAfterMs <= LONG_LEASE_MS;
  if (!isPlausible) throw new Error(`Expected retryAfterMs to be just under 60000, got ${retryAfterMs}`);
};

const eachAcquiredOnce: Step = async (scenario) => {
  const owners = new Map<string, number>();
  const claimAll = async (token: string, index: number) => {
    const labels = shuffledFor(index);
    const found = await scenario.claim(token, labels);
    for (const [position, status] of found.split(', ').entries()) {
      const label = labels[position] ?? '';
      if (status.startsWith('acquired')) owners.set(label, (owners.get(label) ?? 0) + 1);
    }
  };
  await Promise.all(CLAIMANTS.map(claimAll));
  expectSame(SEVERAL.map((label) => owners.get(label) ?? 0).join(), SEVERAL.map(() => 1).join());
};

const sameTokenAtOnce: Step = async (scenario) => {
  const found = await Promise.all(CLAIMANTS.map(() => scenario.claim('alice', 'a')));
  expectSame(found.join(', '), allNew(CLAIMANTS.length));
};

const everythingAtOnce: Step = async (scenario) => {
  await Promise.all(
    CLAIMANTS.flatMap((token, index) => [
      scenario.claim(token, shuffledFor(index)),
      scenario.release(token, shuffledFor(index + 1)),
      scenario.commit(shuffledFor(index + 2)),
    ]),
  );
};

const ABC = ['a', 'b', 'c'];
const LONG_KEY = 'x'.repeat(4_999);
// As a driver, a pattern or a format might read `a%b_c*d`.
const LIKE_A_PATTERN = ['a%b_c*', 'aXb_c*d', 'a%bXc*d', 'a%b_cXd', "a%b_c*d'", '{a}%b_c*d'];
// JSON allows half a pair (`"\\ud800"`), and most drivers send every one as the same replacement character.
const HALF_PAIRS = ['a\ud801', 'a\udbff', 'a\udc00', 'a\ufffd', 'a\ud800'];

/** What every store must do, step by step; each name reads "input → outcome". */
export const dedupeStoreCases: Readonly<Record<string, readonly Step[]>> = {
  // Who may work on a key, and for how long.
  'a key never seen → acquired, first attempt': [claims('alice', 'a', 'acquired 1')],
  'a key leased by another token → busy': [claims('alice', 'a'), claims('bob', 'a', 'busy')],
  'a busy key → retryAfterMs is what is left of the lease': [claims('alice', 'a'), retryAfterIsLeft],
  'the same token again → acquired, the same attempt': [
    claims('alice', 'a'),
    claims('alice', 'a', 'acquired 1'),
  ],
  'the same token again → the lease is renewed': [
    claimsBriefly('alice', 'a'),
    claims('alice', 'a'),
    leasesEnd,
    claims('bob', 'a', 'busy'),
  ],
  'the same token after its lease ended, not taken over → acquired, the same attempt': [
    claimsBriefly('alice', 'a'),
    leasesEnd,
    claims('alice', 'a', 'acquired 1'),
  ],
  'a lease that ended → another token acquires, next attempt': [
    claimsBriefly('alice', 'a'),
    leasesEnd,
    claims('bob', 'a', 'acquired 2'),
  ],
  'a lease taken over → busy for the token that had it': [
    claimsBriefly('alice', 'a'),
    leasesEnd,
    claims('bob', 'a'),
    claims('alice', 'a', 'busy'),
  ],
  'leases that end one after the other → attempts go on counting': [
    claimsBriefly('alice', 'a'),
    leasesEnd,
    claimsBriefly('bob', 'a'),
    leasesEnd,
    claims('carol', 'a', 'acquired 3'),
  ],
  // What releasing keys does, and to whom.
  'a released key → acquired at once, next attempt': [
    claims('alice', 'a'),
    releases('alice', 'a'),
    claims('bob', 'a', 'acquired 2'),
  ],
  'a released key claimed by the same token → a new attempt': [
    claims('alice', 'a'),
    releases('alice', 'a'),
    claims('alice', 'a', 'acquired 2'),
  ],
  'a release by another token → the lease stands': [
    claims('alice', 'a'),
    releases('bob', 'a'),
    claims('bob', 'a', 'busy'),
  ],
  'a stale release after the lease was taken over → the new lease stands': [
    claimsBriefly('alice', 'a'),
    leasesEnd,
    claims('bob', 'a'),
    releases('alice', 'a'),
    claims('carol', 'a', 'busy'),
  ],
  'a release after the commit → still done': [
    claims('alice', 'a'),
    commits('a'),
    releases('alice', 'a'),
    claims('bob', 'a', 'done'),
  ],
  'a release of a key never claimed → nothing remembered': [
    releases('alice', 'a'),
    claims('alice', 'a', 'acquired 1'),
  ],
  'a release of some keys → the others stay leased': [
    claims('alice', ABC),
    releases('alice', ['a', 'c']),
    claims('bob', ABC, 'acquired 2, busy, acquired 2'),
  ],
  // What is remembered as handled.
  'a committed key → done for every token': [
    claims('alice', 'a'),
    commits('a'),
    claims('alice', 'a', 'done'),
    claims('bob', 'a', 'done'),
  ],
  'a committed key after its lease would have ended → still done': [
    claimsBriefly('alice', 'a'),
    commits('a'),
    leasesEnd,
    claims('bob', 'a', 'done'),
  ],
  'a commit after the lease ended → done': [
    claimsBriefly('alice', 'a'),
    leasesEnd,
    commits('a'),
    claims('bob', 'a', 'done'),
  ],
  'a stale commit after the lease was taken over → done for the new owner too': [
    claimsBriefly('alice', 'a'),
    leasesEnd,
    claims('bob', 'a'),
    commits('a'),
    claims('bob', 'a', 'done'),
  ],
  'a commit after a release → done': [
    claims('alice', 'a'),
    releases('alice', 'a'),
    commits('a'),
    claims('bob', 'a', 'done'),
  ],
  'a commit of a key never claimed → done': [commits('a'), claims('alice', 'a', 'done')],
  'a commit repeated → done': [claims('alice', 'a'), commits('a'), commits('a'), claims('bob', 'a', 'done')],
  'a commit of some keys → the others stay leased': [
    claims('alice', ABC),
    commits(['a', 'c']),
    claims('bob', ABC, 'done, busy, done'),
  ],
  // Many keys at once, keys that look alike, and receivers that come at the same time.
  'new, busy and done keys together → one answer a key, in the order asked': [
    claims('alice', 'm'),
    commits('b'),
    claims('bob', ['z', 'm', 'b', 'a'], 'acquired 1, busy, done, acquired 1'),
  ],
  '100 keys at once → all acquired, and all done after one commit': [
    claims('alice', MANY, allNew(MANY.length)),
    commits(MANY),
    claims('bob', MANY, MANY.map(() => 'done').join(', ')),
  ],
  'no keys → no answers': [commits([]), releases('alice', []), claims('alice', [], '')],
  'keys that differ in case or by a space → independent': [
    commits('Event'),
    claims('alice', ['event', 'Event ', ' Event'], allNew(3)),
  ],
  'keys that a pattern or a format would change → independent': [
    commits('a%b_c*d'),
    claims('alice', LIKE_A_PATTERN, allNew(LIKE_A_PATTERN.length)),
  ],
  'keys in other scripts → independent': [
    commits('é'),
    claims('alice', ['e\u0301', 'e', '包裹', '📦'], allNew(4)),
    claims('bob', ['é', '包裹'], 'done, busy'),
  ],
  'keys with control characters, as JSON allows → independent': [
    commits('a\u0000b'),
    claims('alice', ['ab', 'a\u0000', 'a\u0000b', 'a\nb'], 'acquired 1, acquired 1, done, acquired 1'),
  ],
  'keys with different halves of a surrogate pair → independent': [
    commits('a\ud800'),
    claims('alice', HALF_PAIRS, `${allNew(4)}, done`),
  ],
  'keys of 5,000 characters that differ in the last one → independent': [
    commits(`${LONG_KEY}1`),
    claims('alice', [`${LONG_KEY}1`, `${LONG_KEY}2`], 'done, acquired 1'),
  ],
  '8 tokens that claim 20 keys at once, in other orders → each key acquired by exactly one': [
    eachAcquiredOnce,
  ],
  'the same token 8 times at once → acquired every time, first attempt': [sameTokenAtOnce],
  'claims, releases and commits at once, in other orders → all end, and every key is done': [
    everythingAtOnce,
    claims('late', SEVERAL, SEVERAL.map(() => 'done').join(', ')),
  ],
};
