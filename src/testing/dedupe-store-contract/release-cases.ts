import { expectSame, type ScenarioCase } from './scenario.ts';

/** What giving keys back does, and to whom. */
export const releaseCases: readonly ScenarioCase[] = [
  {
    name: 'a released key → acquired at once, next attempt',
    check: async (scenario) => {
      await scenario.claim('alice', 'a');
      await scenario.release('alice', 'a');
      expectSame(await scenario.claim('bob', 'a'), 'acquired 2');
    },
  },
  {
    name: 'a released key claimed by the same token → a new attempt',
    check: async (scenario) => {
      await scenario.claim('alice', 'a');
      await scenario.release('alice', 'a');
      expectSame(await scenario.claim('alice', 'a'), 'acquired 2');
    },
  },
  {
    name: 'a release by another token → the lease stands',
    check: async (scenario) => {
      await scenario.claim('alice', 'a');
      await scenario.release('bob', 'a');
      expectSame(await scenario.claim('bob', 'a'), 'busy');
    },
  },
  {
    name: 'a stale release after the lease was taken over → the new lease stands',
    check: async (scenario) => {
      await scenario.claimBriefly('alice', 'a');
      await scenario.leasesEnd();
      await scenario.claim('bob', 'a');
      await scenario.release('alice', 'a');
      expectSame(await scenario.claim('carol', 'a'), 'busy');
    },
  },
  {
    name: 'a release after the commit → still done',
    check: async (scenario) => {
      await scenario.claim('alice', 'a');
      await scenario.commit('a');
      await scenario.release('alice', 'a');
      expectSame(await scenario.claim('bob', 'a'), 'done');
    },
  },
  {
    name: 'a release of a key never claimed → nothing remembered',
    check: async (scenario) => {
      await scenario.release('alice', 'a');
      expectSame(await scenario.claim('alice', 'a'), 'acquired 1');
    },
  },
  {
    name: 'a release of some keys → the others stay leased',
    check: async (scenario) => {
      await scenario.claim('alice', 'a', 'b', 'c');
      await scenario.release('alice', 'a', 'c');
      expectSame(await scenario.claim('bob', 'a', 'b', 'c'), 'acquired 2, busy, acquired 2');
    },
  },
];
