import { describe, test } from 'vitest';
import { MemoryDedupeStore } from '../../src/webhooks/index.ts';
import { testDedupeStoreContract } from './dedupe-store-contract.ts';
import { expectAgreementWithModel } from './model-agreement.ts';

describe('MemoryDedupeStore', () => {
  let now = 0;
  const clock = {
    now: () => now,
    pass: (ms: number) => {
      now += ms;
    },
  };
  const createStore = () => new MemoryDedupeStore({ now: clock.now });
  testDedupeStoreContract(createStore, clock.pass);

  test('any sequence of calls → the same results as the model', () =>
    expectAgreementWithModel(createStore(), clock, 300));
});
