import { expectSame, LONG_LEASE_MS, type ScenarioCase } from './scenario.ts';

/** Who may work on a key, and for how long. */
export const leaseCases: readonly ScenarioCase[] = [
  {
    name: 'a key never seen → acquired, first attempt',
    check: async (scenario) => {
      expectSame(await scenario.claim('alice', 'a'), 'acquired 1');
    },
  },
  {
    name: 'a key leased by another token → busy',
    check: async (scenario) => {
      await scenario.claim('alice', 'a');
      expectSame(await scenario.claim('bob', 'a'), 'busy');
    },
  },
  {
    name: 'a busy key → retryAfterMs is what is left of the lease',
    check: async (scenario) => {
      await scenario.claim('alice', 'a');
      const [found] = await scenario.store.claim(scenario.keys(['a']), { token: 'bob', leaseMs: 1 });
      const retryAfterMs = found?.status === 'busy' ? found.retryAfterMs : Number.NaN;
      const plausible = retryAfterMs > LONG_LEASE_MS / 2 && retryAfterMs <= LONG_LEASE_MS;
      if (!plausible) throw new Error(`Expected retryAfterMs to be just under 60000, got ${retryAfterMs}`);
    },
  },
  {
    name: 'the same token again → acquired, the same attempt',
    check: async (scenario) => {
      await scenario.claim('alice', 'a');
      expectSame(await scenario.claim('alice', 'a'), 'acquired 1');
    },
  },
  {
    name: 'the same token again → the lease is renewed',
    check: async (scenario) => {
      await scenario.claimBriefly('alice', 'a');
      await scenario.claim('alice', 'a');
      await scenario.leasesEnd();
      expectSame(await scenario.claim('bob', 'a'), 'busy');
    },
  },
  {
    name: 'the same token after its lease ended, not taken over → acquired, the same attempt',
    check: async (scenario) => {
      await scenario.claimBriefly('alice', 'a');
      await scenario.leasesEnd();
      expectSame(await scenario.claim('alice', 'a'), 'acquired 1');
    },
  },
  {
    name: 'a lease that ended → another token acquires, next attempt',
    check: async (scenario) => {
      await scenario.claimBriefly('alice', 'a');
      await scenario.leasesEnd();
      expectSame(await scenario.claim('bob', 'a'), 'acquired 2');
    },
  },
  {
    name: 'a lease taken over → busy for the token that had it',
    check: async (scenario) => {
      await scenario.claimBriefly('alice', 'a');
      await scenario.leasesEnd();
      await scenario.claim('bob', 'a');
      expectSame(await scenario.claim('alice', 'a'), 'busy');
    },
  },
  {
    name: 'leases that end one after the other → attempts go on counting',
    check: async (scenario) => {
      await scenario.claimBriefly('alice', 'a');
      await scenario.leasesEnd();
      await scenario.claimBriefly('bob', 'a');
      await scenario.leasesEnd();
      expectSame(await scenario.claim('carol', 'a'), 'acquired 3');
    },
  },
];
