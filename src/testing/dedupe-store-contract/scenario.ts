import type { Claim, DedupeStore } from '../../webhooks/dedupe-store.ts';

/** A lease that does not end while a case runs, in milliseconds. */
export const LONG_LEASE_MS = 60_000;
const RETAIN_MS = 30 * 24 * 60 * 60 * 1000;

/** One case: a name that reads "input → outcome", and what to do with a store. */
export interface ScenarioCase {
  readonly name: string;
  readonly check: (scenario: Scenario) => Promise<void>;
}

/** What a scenario needs from outside. */
export interface ScenarioOptions {
  readonly store: DedupeStore;
  readonly shortLeaseMs: number;
  readonly wait: (ms: number) => void | Promise<void>;
}

/** A store and the verbs the cases are written in; labels become keys that belong to this run alone. */
export class Scenario {
  readonly store: DedupeStore;
  readonly #options: ScenarioOptions;
  readonly #run = globalThis.crypto.randomUUID();

  constructor(options: ScenarioOptions) {
    this.store = options.store;
    this.#options = options;
  }

  keys(labels: readonly string[]): string[] {
    return labels.map((label) => `tracking/events:${this.#run}:${label}`);
  }

  /** Claims with a long lease; the answer in words, as `acquired 2, busy, done`. */
  async claim(token: string, ...labels: string[]): Promise<string> {
    const claims = await this.store.claim(this.keys(labels), { token, leaseMs: LONG_LEASE_MS });
    return claims.map(inWords).join(', ');
  }

  /** Claims with a lease that `leasesEnd` outlasts. */
  async claimBriefly(token: string, ...labels: string[]): Promise<void> {
    await this.store.claim(this.keys(labels), { token, leaseMs: this.#options.shortLeaseMs });
  }

  async commit(...labels: string[]): Promise<void> {
    await this.store.commit(this.keys(labels), { retainMs: RETAIN_MS });
  }

  async release(token: string, ...labels: string[]): Promise<void> {
    await this.store.release(this.keys(labels), { token });
  }

  /** Waits until brief leases have ended; a little more, for timers fire early and stores may count whole milliseconds. */
  async leasesEnd(): Promise<void> {
    await this.#options.wait(this.#options.shortLeaseMs + 20);
  }
}

function inWords(claim: Claim): string {
  return claim.status === 'acquired' ? `acquired ${claim.attempt}` : claim.status;
}

/** Throws when a store did something else than the contract says. */
export function expectSame(actual: unknown, expected: unknown): void {
  if (actual !== expected) throw new Error(`Expected the store to answer "${expected}", got "${actual}"`);
}
