import { describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { dedupeStoreContract } from '../../src/testing/dedupe-store-contract.ts';
import { MemoryDedupeStore } from '../../src/webhooks/index.ts';
import { expectAgreementWithModel } from './model-agreement.ts';
import { ModelStore } from './model-dedupe-store.ts';

/** Names of the cases that a store with one fault fails, in virtual time. */
async function failuresWith(fault?: string): Promise<string[]> {
  let now = 1_000_000;
  const contract = dedupeStoreContract({
    createStore: () => new ModelStore(() => now, fault),
    wait: (ms) => {
      now += ms;
    },
  });
  const failures: string[] = [];
  for (const { name, run } of contract) {
    await run().catch((error: unknown) => {
      expect(error).toBeInstanceOf(Error);
      failures.push(name);
    });
  }
  return failures;
}

describe('MemoryDedupeStore', () => {
  let now = 0;
  const clock = {
    now: () => now,
    pass: (ms: number) => {
      now += ms;
    },
  };
  const createStore = () => new MemoryDedupeStore({ now: clock.now });
  for (const { name, run } of dedupeStoreContract({ createStore, wait: clock.pass })) test(name, run);

  test('any sequence of calls → the same answers as the model', () =>
    expectAgreementWithModel(createStore(), clock, 300));
});

describe('dedupeStoreContract', () => {
  test('a store that keeps the contract → every case passes', async () => {
    expect(await failuresWith()).toEqual([]);
  });

  test.each<[string, object]>([
    ['no createStore', {}],
    ['a store in place of createStore', { createStore: new ModelStore(() => 0) }],
    ['a wait that is no function', { createStore: () => new ModelStore(() => 0), wait: 5 }],
    ['a lease of 0', { createStore: () => new ModelStore(() => 0), shortLeaseMs: 0 }],
    ['a misspelt option', { createStore: () => new ModelStore(() => 0), leaseMs: 5 }],
  ])('%s → ConfigurationError', (_title, options) => {
    // The wrong type on purpose: JavaScript callers have no compiler.
    expect(() => dedupeStoreContract(options as never)).toThrow(ConfigurationError);
  });

  test('names of the cases → unique', () => {
    const names = dedupeStoreContract({ createStore: () => new ModelStore(() => 0) }).map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  });

  test('a failing case → the error tells what was expected and what came', async () => {
    const contract = dedupeStoreContract({ createStore: () => new ModelStore(() => 0, 'never busy') });
    const failing = contract.find(({ name }) => name === 'a key leased by another token → busy');
    await expect(failing?.run()).rejects.toThrow('Expected the store to respond "busy", got "acquired 2"');
  });

  test('a store that rejects → the case rejects with its error', async () => {
    const down = new Error('the store is down');
    const store = new ModelStore(() => 0);
    store.claim = () => Promise.reject(down);
    const [first] = dedupeStoreContract({ createStore: () => store });
    await expect(first?.run()).rejects.toBe(down);
  });

  test('no wait given → leases end in real time', async () => {
    const contract = dedupeStoreContract({
      createStore: () => new ModelStore(() => performance.now()),
      shortLeaseMs: 5,
    });
    const expiring = contract.find(({ name }) => name.startsWith('a lease that ended'));
    await expect(expiring?.run()).resolves.toBeUndefined();
  });

  const caught: readonly [fault: string, name: string][] = [
    ['first attempt is zero', 'a key never seen → acquired, first attempt'],
    ['never busy', 'a key leased by another token → busy'],
    ['no time left to wait', 'a busy key → retryAfterMs is what is left of the lease'],
    ['own lease is busy', 'the same token again → acquired, the same attempt'],
    ['renewal counts', 'the same token again → acquired, the same attempt'],
    ['renewal does not extend', 'the same token again → the lease is renewed'],
    [
      'renewal after the end counts',
      'the same token after its lease ended, not taken over → acquired, the same attempt',
    ],
    ['lease never ends', 'a lease that ended → another token acquires, next attempt'],
    ['old owner keeps access', 'a lease taken over → busy for the token that had it'],
    ['attempts start again', 'leases that end one after the other → attempts go on counting'],
    ['release does nothing', 'a released key → acquired at once, next attempt'],
    ['release forgets attempts', 'a released key → acquired at once, next attempt'],
    ['release keeps the token', 'a released key claimed by the same token → a new attempt'],
    ['release ignores the token', 'a release by another token → the lease stands'],
    ['release ignores the token', 'a stale release after the lease was taken over → the new lease stands'],
    ['release undoes done', 'a release after the commit → still done'],
    ['release counts unknown keys', 'a release of a key never claimed → nothing remembered'],
    ['release takes all of the token', 'a release of some keys → the others stay leased'],
    ['commit does nothing', 'a committed key → done for every token'],
    ['done ends with the lease', 'a committed key after its lease would have ended → still done'],
    ['commit needs a live lease', 'a commit after the lease ended → done'],
    [
      'commit loses against a new owner',
      'a stale commit after the lease was taken over → done for the new owner too',
    ],
    ['commit needs a live lease', 'a commit after a release → done'],
    ['commit needs a row', 'a commit of a key never claimed → done'],
    ['commit only once', 'a commit repeated → done'],
    ['commit takes the first key', 'a commit of some keys → the others stay leased'],
    ['answers are sorted', 'new, busy and done keys together → one answer a key, in the order asked'],
    ['commit takes the first key', '100 keys at once → all acquired, and all done after one commit'],
    ['no keys are an error', 'no keys → no answers'],
    ['keys are folded', 'keys that differ in case or by a space → independent'],
    ['keys are patterns', 'keys that a pattern or a format would change → independent'],
    ['keys are plain letters', 'keys in other scripts → independent'],
    ['keys lose control characters', 'keys with control characters, as JSON allows → independent'],
    ['keys lose broken surrogates', 'keys with different halves of a surrogate pair → independent'],
    ['keys are cut', 'keys of 5,000 characters that differ in the last one → independent'],
    [
      'reads before it writes',
      '8 tokens that claim 20 keys at once, in other orders → each key acquired by exactly one',
    ],
    [
      'locks in the order given',
      '8 tokens that claim 20 keys at once, in other orders → each key acquired by exactly one',
    ],
    ['inserts collide', 'the same token 8 times at once → acquired every time, first attempt'],
    [
      'locks in the order given',
      'claims, releases and commits at once, in other orders → all end, and every key is done',
    ],
  ];

  test.each(caught)('a store whose fault is "%s" → fails "%s"', async (fault, name) => {
    expect(await failuresWith(fault)).toContain(name);
  });

  test('every case → some fault is known that it catches', () => {
    const names = dedupeStoreContract({ createStore: () => new ModelStore(() => 0) }).map(({ name }) => name);
    expect([...new Set(caught.map(([, name]) => name))].sort()).toEqual([...names].sort());
  });
});
