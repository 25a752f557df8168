import { describe, expect, test, vi } from 'vitest';
import { type DedupeStore, MemoryDedupeStore, WebhookInbox } from '../../../src/webhooks/index.ts';
import { buildKey, TWO, useFakeTimers } from '../support.ts';

const failure = new Error('a step failed');

/** A signal that throws at the `failing`th time that something of it is read. */
function makeSignal(failing: number) {
  let reads = 0;
  const signal = new Proxy(new AbortController().signal, {
    get(target, name) {
      reads += 1;
      if (reads === failing) throw failure;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  return { signal, countReads: () => reads };
}

async function run(failing: number, callback: () => unknown) {
  const store = new MemoryDedupeStore();
  const inbox = new WebhookInbox({ store, onError: () => {}, maxAttempts: 1, onDeadLetter: () => {} });
  const { signal, countReads } = makeSignal(failing);
  const report = await inbox.process(TWO, callback, { signal }).catch((error: unknown) => error);
  return { store, report, hasThrown: countReads() >= failing };
}

describe('a signal that throws once', () => {
  useFakeTimers();

  test.each<[string, () => unknown]>([
    ['succeeds', () => {}],
    ['fails', () => Promise.reject(new Error('no database'))],
  ])(
    'at each step, and the callback %s → every lease is released, and no timer is left',
    async (_title, callback) => {
      let steps = 0;
      for (let hasThrown = true; hasThrown; steps += 1) {
        const result = await run(steps + 1, callback);
        hasThrown = result.hasThrown;
        const keys = [buildKey('e1'), buildKey('e2')];
        const claims = await result.store.claim(keys, { token: 'other', leaseMs: 60_000 });
        // An event is done, or free at once.
        expect(claims.map(({ status }) => status)).not.toContain('busy');
        expect(vi.getTimerCount()).toBe(0);
      }
      expect(steps).toBeGreaterThan(5);
    },
  );
});

test.each<[string, unknown]>([
  ['a controller', new AbortController()],
  ['a function', () => {}],
  ['text', 'SIGTERM'],
  ['null', null],
  ['an event target', new EventTarget()],
  [
    'an object with fields of other types',
    { aborted: 'no', addEventListener: true, removeEventListener: true },
  ],
])('signal that is %s → ConfigurationError, and nothing is claimed', async (_title, signal) => {
  const claim = vi.fn<DedupeStore['claim']>();
  const inbox = new WebhookInbox({ store: { claim, commit: async () => {}, release: async () => {} } });
  // The wrong types on purpose: JavaScript callers have no compiler.
  const processing = inbox.process(TWO, () => {}, { signal: signal as AbortSignal });
  await expect(processing).rejects.toThrow(/^Expected `signal` to be an AbortSignal, got /);
  await expect(processing).rejects.toMatchObject({ name: 'ConfigurationError', option: 'signal' });
  expect(claim).not.toHaveBeenCalled();
});
