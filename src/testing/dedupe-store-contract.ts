import { checkKnownOptions, checkTimeoutMs, refuseOption } from '../common/option-checks.ts';
import { sleep } from '../common/timing.ts';
import type { DedupeStore } from '../webhooks/dedupe-store.ts';
import { checkFunction } from '../webhooks/function-check.ts';
import { dedupeStoreCases, Scenario } from './dedupe-store-cases.ts';

const OPTION_NAMES = [
  'createStore',
  'wait',
  'shortLeaseMs',
] as const satisfies readonly (keyof DedupeStoreContractOptions)[];

/** Options of {@link dedupeStoreContract}. */
export interface DedupeStoreContractOptions {
  /**
   * Gives the store to check, once a case. It may give the same one every time, and the store may hold other keys: each case makes
   * up keys of its own.
   */
  readonly createStore: () => DedupeStore | Promise<DedupeStore>;
  /** Lets milliseconds pass for the store. Default: real time; give the advance of a fake clock to wait no time at all. */
  readonly wait?: ((ms: number) => void | Promise<void>) | undefined;
  /** Length in milliseconds of the leases that are left to end. Default: 100. */
  readonly shortLeaseMs?: number | undefined;
}

/** One test of the contract, for any test runner. */
export interface DedupeStoreContractCase {
  /** Reads "input → outcome"; unique in the list. */
  readonly name: string;
  /** Rejects with an error that says what was expected and what the store answered. */
  readonly run: () => Promise<void>;
}

/**
 * What every `DedupeStore` must do so that webhooks are neither lost nor handled twice, as tests for vitest, jest, node:test or any
 * other runner. The cases do not depend on each other and may run in any order. They do not check that a store forgets.
 *
 * @param options - see `DedupeStoreContractOptions`; `createStore` is required
 * @returns the cases; give each to your runner's `test`
 * @throws ConfigurationError when an option makes no sense; a case rejects with what `createStore` throws, or an error that tells what the store did
 * @example
 * import { test } from 'node:test';
 * import { dedupeStoreContract } from 'tracking-client/testing';
 *
 * for (const { name, run } of dedupeStoreContract({ createStore: () => new MyStore() })) test(name, run);
 */
export function dedupeStoreContract(options: DedupeStoreContractOptions): readonly DedupeStoreContractCase[] {
  checkKnownOptions('options', options, OPTION_NAMES);
  const { createStore, wait = sleep, shortLeaseMs = 100 } = options;
  if (typeof createStore !== 'function') refuseOption('createStore', 'a function', createStore);
  checkFunction('wait', wait);
  checkTimeoutMs('shortLeaseMs', shortLeaseMs);
  return Object.entries(dedupeStoreCases).map(([name, steps]) => ({
    name,
    run: async () => {
      const scenario = new Scenario(await createStore(), shortLeaseMs, wait);
      for (const step of steps) await step(scenario);
    },
  }));
}
