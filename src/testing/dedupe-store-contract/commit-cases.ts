import { expectSame, type ScenarioCase } from './scenario.ts';

/** What is remembered as handled. */
export const commitCases: readonly ScenarioCase[] = [
  {
    name: 'a committed key → done for every token',
    check: async (scenario) => {
      await scenario.claim('alice', 'a');
      await scenario.commit('a');
      expectSame(await scenario.claim('alice', 'a'), 'done');
      expectSame(await scenario.claim('bob', 'a'), 'done');
    },
  },
  {
    name: 'a committed key after its lease would have ended → still done',
    check: async (scenario) => {
      await scenario.claimBriefly('alice', 'a');
      await scenario.commit('a');
      await scenario.leasesEnd();
      expectSame(await scenario.claim('bob', 'a'), 'done');
    },
  },
  {
    name: 'a commit after the lease ended → done',
    check: async (scenario) => {
      await scenario.claimBriefly('alice', 'a');
      await scenario.leasesEnd();
      await scenario.commit('a');
      expectSame(await scenario.claim('bob', 'a'), 'done');
    },
  },
  {
    name: 'a stale commit after the lease was taken over → done for the new owner too',
    check: async (scenario) => {
      await scenario.claimBriefly('alice', 'a');
      await scenario.leasesEnd();
      await scenario.claim('bob', 'a');
      await scenario.commit('a');
      expectSame(await scenario.claim('bob', 'a'), 'done');
    },
  },
  {
    name: 'a commit after a release → done',
    check: async (scenario) => {
      await scenario.claim('alice', 'a');
      await scenario.release('alice', 'a');
      await scenario.commit('a');
      expectSame(await scenario.claim('bob', 'a'), 'done');
    },
  },
  {
    name: 'a commit of a key never claimed → done',
    check: async (scenario) => {
      await scenario.commit('a');
      expectSame(await scenario.claim('alice', 'a'), 'done');
    },
  },
  {
    name: 'a commit repeated → done',
    check: async (scenario) => {
      await scenario.claim('alice', 'a');
      await scenario.commit('a');
      await scenario.commit('a');
      expectSame(await scenario.claim('bob', 'a'), 'done');
    },
  },
  {
    name: 'a commit of some keys → the others stay leased',
    check: async (scenario) => {
      await scenario.claim('alice', 'a', 'b', 'c');
      await scenario.commit('a', 'c');
      expectSame(await scenario.claim('bob', 'a', 'b', 'c'), 'done, busy, done');
    },
  },
];
