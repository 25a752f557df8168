import { expectSame, LONG_LEASE_MS, type Scenario, type ScenarioCase } from './scenario.ts';

const MANY = Array.from({ length: 100 }, (_, index) => `event-${index}`);
const SEVERAL = MANY.slice(0, 20);
const CLAIMANTS = Array.from({ length: 8 }, (_, index) => `token-${index}`);

/** The same labels in another order for every claimant, so that a store that locks key by key meets itself halfway. */
function shuffledFor(claimant: number): string[] {
  const turned = [...SEVERAL.slice(claimant), ...SEVERAL.slice(0, claimant)];
  return claimant % 2 === 0 ? turned : turned.reverse();
}

/** How many tokens acquired each label when all claim at once. */
async function ownersByLabel(scenario: Scenario): Promise<Map<string, number>> {
  const owners = new Map<string, number>();
  await Promise.all(
    CLAIMANTS.map(async (token, index) => {
      const labels = shuffledFor(index);
      const claims = await scenario.store.claim(scenario.keys(labels), { token, leaseMs: LONG_LEASE_MS });
      labels.forEach((label, position) => {
        if (claims[position]?.status === 'acquired') owners.set(label, (owners.get(label) ?? 0) + 1);
      });
    }),
  );
  return owners;
}

/** Many keys at once, keys that look alike, and receivers that come at the same time. */
export const payloadCases: readonly ScenarioCase[] = [
  {
    name: 'new, busy and done keys together → one answer a key, in the order asked',
    check: async (scenario) => {
      await scenario.claim('alice', 'm');
      await scenario.commit('b');
      expectSame(await scenario.claim('bob', 'z', 'm', 'b', 'a'), 'acquired 1, busy, done, acquired 1');
    },
  },
  {
    name: '100 keys at once → all acquired, and all done after one commit',
    check: async (scenario) => {
      expectSame(await scenario.claim('alice', ...MANY), MANY.map(() => 'acquired 1').join(', '));
      await scenario.commit(...MANY);
      expectSame(await scenario.claim('bob', ...MANY), MANY.map(() => 'done').join(', '));
    },
  },
  {
    name: 'no keys → no answers',
    check: async (scenario) => {
      await scenario.commit();
      await scenario.release('alice');
      expectSame(await scenario.claim('alice'), '');
    },
  },
  {
    name: 'keys that differ in case or by a space → independent',
    check: async (scenario) => {
      await scenario.commit('Event');
      expectSame(await scenario.claim('alice', 'event', 'Event ', ' Event'), allNew(3));
    },
  },
  {
    name: 'keys that a pattern or a format would change → independent',
    check: async (scenario) => {
      await scenario.commit('a%b_c*d');
      const alike = ['a%b_c*', 'aXb_c*d', 'a%bXc*d', 'a%b_cXd', "a%b_c*d'", '{a}%b_c*d'];
      expectSame(await scenario.claim('alice', ...alike), allNew(alike.length));
    },
  },
  {
    name: 'keys in other scripts → independent',
    check: async (scenario) => {
      await scenario.commit('é');
      expectSame(await scenario.claim('alice', 'e\u0301', 'e', '包裹', '📦'), allNew(4));
      expectSame(await scenario.claim('bob', 'é', '包裹'), 'done, busy');
    },
  },
  {
    name: 'keys with control characters, as JSON allows → independent',
    check: async (scenario) => {
      await scenario.commit('a\u0000b');
      expectSame(
        await scenario.claim('alice', 'ab', 'a\u0000', 'a\u0000b', 'a\nb'),
        'acquired 1, acquired 1, done, acquired 1',
      );
    },
  },
  {
    // JSON allows half a pair (`"\\ud800"`), and most drivers send every one as the same replacement character.
    name: 'keys with different halves of a surrogate pair → independent',
    check: async (scenario) => {
      await scenario.commit('a\ud800');
      expectSame(
        await scenario.claim('alice', 'a\ud801', 'a\udbff', 'a\udc00', 'a\ufffd', 'a\ud800'),
        `${allNew(4)}, done`,
      );
    },
  },
  {
    name: 'keys of 5,000 characters that differ in the last one → independent',
    check: async (scenario) => {
      const long = 'x'.repeat(4_999);
      await scenario.commit(`${long}1`);
      expectSame(await scenario.claim('alice', `${long}1`, `${long}2`), 'done, acquired 1');
    },
  },
  {
    name: '8 tokens that claim 20 keys at once, in other orders → each key acquired by exactly one',
    check: async (scenario) => {
      const owners = await ownersByLabel(scenario);
      expectSame(SEVERAL.map((label) => owners.get(label) ?? 0).join(','), SEVERAL.map(() => 1).join(','));
    },
  },
  {
    name: 'the same token 8 times at once → acquired every time, first attempt',
    check: async (scenario) => {
      const answers = await Promise.all(CLAIMANTS.map(() => scenario.claim('alice', 'a')));
      expectSame(answers.join(', '), CLAIMANTS.map(() => 'acquired 1').join(', '));
    },
  },
  {
    name: 'claims, releases and commits at once, in other orders → all end, and every key is done',
    check: async (scenario) => {
      await Promise.all(
        CLAIMANTS.flatMap((token, index) => [
          scenario.claim(token, ...shuffledFor(index)),
          scenario.release(token, ...shuffledFor(index + 1)),
          scenario.commit(...shuffledFor(index + 2)),
        ]),
      );
      expectSame(await scenario.claim('late', ...SEVERAL), SEVERAL.map(() => 'done').join(', '));
    },
  },
];

function allNew(count: number): string {
  return Array.from({ length: count }, () => 'acquired 1').join(', ');
}
