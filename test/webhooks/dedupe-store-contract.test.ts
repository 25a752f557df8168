import { describe } from 'vitest';
import { MemoryDedupeStore } from '../../src/webhooks/index.ts';
import { testDedupeStoreContract } from './dedupe-store-contract.ts';

describe('MemoryDedupeStore', () => {
  let now = 0;
  testDedupeStoreContract(
    () => new MemoryDedupeStore({ now: () => now }),
    (ms) => {
      now += ms;
    },
  );
});
