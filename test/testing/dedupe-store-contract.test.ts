import { describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { dedupeStoreContract } from '../../src/testing/dedupe-store-contract.ts';
import { MemoryDedupeStore } from '../../src/webhooks/index.ts';
import { expectAgreementWithModel } from './model-agreement.ts';
import { ModelStore } from './model-dedupe-store.ts';

/** Names of the cases that a store with one fault fails, in virtual time. */
async function findFailures(fault?: string): Promise<string[]> {
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

  test('any sequence of calls → the same results as the model', () =>
    expectAgreementWithModel(createStore(), clock, 300));
});

describe('dedupeStoreContract', () => {
  test('a store that keeps the contract → every case passes', async () => {
    expect(await findFailures()).toEqual([]);
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

  test('a failing case → an error with the expected and the actual value', async () => {
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

  test('no `wait` option → leases end in real time', async () => {
    const contract = dedupeStoreContract({
      createStore: () => new ModelStore(() => performance.now()),
      shortLeaseMs: 5,
    });
    const expiring = contract.find(({ name }) => name.startsWith('a lease that ended'));
    await expect(expiring?.run()).resolves.toBeUndefined();
  });

  test('stores with one fault each → every fault is found, and every case finds one', async () => {
    await findFailures();
    const failed = new Set<string>();
    for (const fault of ModelStore.faults) {
      const failures = await findFailures(fault);
      expect(failures, fault).not.toEqual([]);
      for (const name of failures) failed.add(name);
    }
    expect(ModelStore.faults.size).toBeGreaterThan(30);
    const names = dedupeStoreContract({ createStore: () => new ModelStore(() => 0) }).map(({ name }) => name);
    expect(names.filter((name) => !failed.has(name))).toEqual([]);
  });
});
