import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ConfigurationError, TrackingError } from '../../src/errors.ts';
import { MemoryDedupeStore } from '../../src/webhooks/index.ts';
import { testDedupeStoreContract } from './dedupe-store-contract.ts';

const DAY_MS = 86_400_000;
const lease = { token: 'me', leaseMs: 60_000 };
const otherLease = { token: 'other', leaseMs: 60_000 };
const retention = { retainMs: 30 * DAY_MS };

/** A store on a clock that the test moves. */
function makeStore(maxKeys?: number) {
  let time = 1_000;
  const store = new MemoryDedupeStore({ now: () => time, ...(maxKeys === undefined ? {} : { maxKeys }) });
  const readStatus = async (key: string, options = lease) => (await store.claim([key], options))[0]?.status;
  return {
    store,
    readStatus,
    pass: (ms: number) => {
      time += ms;
    },
    commit: (...keys: string[]) => store.commit(keys, retention),
  };
}

describe('contract', () => {
  const { store, pass } = makeStore();
  testDedupeStoreContract(() => store, pass);
});

describe('time', () => {
  test('a retention that ends → done until its last millisecond, then acquired, attempt 1', async () => {
    const { store, commit, pass, readStatus } = makeStore();
    await commit('a');
    pass(30 * DAY_MS - 1);
    expect(await readStatus('a')).toBe('done');
    pass(1_000);
    expect(await store.claim(['a'], lease)).toEqual([{ status: 'acquired', attempt: 1 }]);
  });

  test('a key that expired after more keys than one call deletes → acquired, attempt 1', async () => {
    const { store, commit, pass } = makeStore();
    await commit(...Array.from({ length: 100 }, (_, index) => `old-${index}`));
    pass(30 * DAY_MS);
    expect(await store.claim(['old-99'], lease)).toEqual([{ status: 'acquired', attempt: 1 }]);
  });
});

describe('bounds', () => {
  test('a store full of live leases → a further claim rejects and leases nothing', async () => {
    const { store, readStatus } = makeStore(2);
    await store.claim(['a', 'b'], lease);
    await expect(store.claim(['c'], otherLease)).rejects.toThrow(TrackingError);
    expect(await readStatus('a', otherLease)).toBe('busy');
    expect(store.size).toBe(2);
  });

  test.each<[what: string, end: (made: ReturnType<typeof makeStore>) => unknown]>([
    ['a lease that has ended', ({ pass }) => pass(60_000)],
    ['a lease that was released', ({ store }) => store.release(['a'], lease)],
  ])('a full store with %s → forgotten for a new key', async (_what, end) => {
    const made = makeStore(1);
    await made.store.claim(['a'], lease);
    await end(made);
    expect(await made.readStatus('b')).toBe('acquired');
    expect(made.store.size).toBe(1);
  });

  test('keys that are done in a claim → not deleted for the new keys of that claim', async () => {
    const { store, commit } = makeStore(2);
    await commit('a', 'b');
    expect(await store.claim(['a', 'c'], lease)).toMatchObject([{ status: 'done' }, { status: 'acquired' }]);
    expect(await store.claim(['a'], lease)).toMatchObject([{ status: 'done' }]);
  });

  test('a store full of failed keys, one claimed again with a new key → the other failed key is deleted', async () => {
    const { store } = makeStore(2);
    await store.claim(['a', 'b'], lease);
    await store.release(['a', 'b'], lease);
    expect(await store.claim(['a', 'c'], lease)).toEqual([
      { status: 'acquired', attempt: 2 },
      { status: 'acquired', attempt: 1 },
    ]);
    expect(store.size).toBe(2);
  });

  test('a full store, and a failed key claimed with a new key beside a live lease → rejects, no key is deleted', async () => {
    const { store } = makeStore(2);
    await store.claim(['a'], lease);
    await store.release(['a'], lease);
    await store.claim(['b'], otherLease);
    await expect(store.claim(['a', 'c'], lease)).rejects.toThrow(
      'The MemoryDedupeStore is full (`maxKeys` is ',
    );
    expect(store.size).toBe(2);
  });

  test.each(['expired keys', 'failures that are a week old'])(
    '100 %s → deleted by later calls, at most 64 per call so that no call is slow',
    async (title) => {
      const { store, commit, pass, readStatus } = makeStore();
      const keys = Array.from({ length: 100 }, (_, index) => `old-${index}`);
      if (title === 'expired keys') {
        await commit(...keys);
        pass(30 * DAY_MS);
      } else {
        await store.claim(keys, lease);
        await store.release(keys, lease);
        pass(7 * DAY_MS);
      }
      await readStatus('new');
      expect(store.size).toBe(37);
      await readStatus('new');
      expect(store.size).toBe(1);
    },
  );

  test('any commits, claims and expiries with room for three → the same keys as a list in order of use', async () => {
    const key = fc.constantFrom('a', 'b', 'c', 'd', 'e');
    const step = fc.oneof(
      { weight: 9, arbitrary: fc.record({ operation: fc.constantFrom('commit', 'look'), key }) },
      { weight: 1, arbitrary: fc.record({ operation: fc.constant('expire'), key: fc.constant('') }) },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const { store, commit, pass, readStatus } = makeStore(3);
        let model: string[] = [];
        for (const { operation, key: name } of steps) {
          if (operation === 'expire') {
            pass(31 * DAY_MS);
            model = [];
          } else if (operation === 'commit') {
            await commit(name);
            model = [...model.filter((other) => other !== name), name].slice(-3);
            expect(store.size).toBe(model.length);
          } else if (model.includes(name)) {
            expect(await readStatus(name)).toBe('done');
            model = [...model.filter((other) => other !== name), name];
          }
        }
        for (const name of model) expect(await readStatus(name)).toBe('done');
      }),
    );
  });
});

test.each([{ maxKeys: 0 }, { maxKeys: '10' }, { maxkeys: 5 }, { now: 5 }, 'fast'])(
  'options %j → ConfigurationError',
  (options) => {
    // The wrong type on purpose: JavaScript callers have no compiler.
    expect(() => new MemoryDedupeStore(options as never)).toThrow(ConfigurationError);
  },
);
