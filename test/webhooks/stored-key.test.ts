import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { PostgresDedupeStore } from '../../src/postgres/index.ts';
import { MemoryDedupeStore } from '../../src/webhooks/index.ts';
import { anyText } from '../support/any-text.ts';

/** Makes a store; the function commits a key and returns the text that the database got. */
function makeStore() {
  let stored: unknown;
  const query = async (_text: string, [keys]: unknown[] = []) => {
    stored = Array.isArray(keys) ? keys[0] : undefined;
    return { rows: [] };
  };
  const store = new PostgresDedupeStore({ pool: { query } });
  return async (key: string) => {
    await store.commit([key], { retainMs: 1 });
    return String(stored);
  };
}

const SHA_256 = /^sha256:[0-9a-f]{64}$/;

test.each([
  ['short plain ASCII → stored as itself', 'tracking/events:t-1:4f2c~ e', /^tracking.events:t-1:4f2c~ e$/],
  ['300 characters → stored as itself', 'x'.repeat(300), /^x{300}$/],
  ['301 characters → stored as its SHA-256', 'x'.repeat(301), SHA_256],
  ['101 characters of three bytes → stored as its SHA-256', '包'.repeat(101), SHA_256],
  ['text with a NUL → stored as its SHA-256', 'tracking/events:t1:a\u0000b', SHA_256],
  ['another script → stored as its SHA-256', 'tracking/events:t1:包裹', SHA_256],
  ['text that looks like a hash → stored as its SHA-256', 'sha256:abc', SHA_256],
])('a key of %s', async (_title, key, stored) => {
  expect(await makeStore()(key)).toMatch(stored);
});

test('any two keys → stored as printable ASCII of at most 300 bytes, equal only for equal keys', async () => {
  const storedAs = makeStore();
  const key = fc.oneof(anyText({ maxLength: 3 }), anyText({ maxLength: 400 }), fc.string({ maxLength: 400 }));
  await fc.assert(
    fc.asyncProperty(key, key, async (a, b) => {
      const [storedA, storedB] = [await storedAs(a), await storedAs(b)];
      expect(storedA).toMatch(/^[\x20-\x7e]{0,300}$/);
      expect(storedA === storedB).toBe(a === b);
    }),
  );
});

/** Bytes of the heap that are in use after a garbage collection. */
function measureHeap(): number {
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('gc');
  if (typeof collect === 'function') collect();
  return process.memoryUsage().heapUsed;
}

test('long keys in a MemoryDedupeStore → remembered, but their text is not', async () => {
  const store = new MemoryDedupeStore();
  const buildKey = (index: number) => `${index}:`.padEnd(1_000_000, 'x');
  const before = measureHeap();
  for (let index = 0; index < 40; index += 1) {
    await store.claim([buildKey(index)], { token: 'mine', leaseMs: 60_000 });
    if (index % 2 === 0) await store.commit([buildKey(index)], { retainMs: 60_000 });
  }
  expect(measureHeap() - before).toBeLessThan(15_000_000);
  const claims = await store.claim([0, 1, 40].map(buildKey), { token: 'other', leaseMs: 1 });
  expect(claims.map(({ status }) => status)).toEqual(['done', 'busy', 'acquired']);
});
