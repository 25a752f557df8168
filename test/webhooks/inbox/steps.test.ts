import { describe, expect, test, vi } from 'vitest';
import {
  type DedupeStore,
  MemoryDedupeStore,
  WebhookInbox,
  type WebhookInboxOptions,
} from '../../../src/webhooks/index.ts';
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

/** Returns a function that throws when it is called first. */
const throwOnce = () => {
  let hasThrown = false;
  return () => {
    if (hasThrown) return;
    hasThrown = true;
    throw failure;
  };
};

describe('a step that throws once', () => {
  useFakeTimers();

  /** Makes one step throw once. */
  type Break = (parts: {
    readonly store: MemoryDedupeStore;
    readonly fail: () => void;
    readonly body: { readonly events: Record<string, unknown>[] };
  }) => Partial<WebhookInboxOptions> | undefined;

  const failStore =
    (operation: 'claim' | 'commit', failingCall = 1): Break =>
    ({ store, fail }) => {
      let calls = 0;
      // Sound: the spy only adds an error, and then calls the method itself.
      const original = store[operation].bind(store) as (...parameters: unknown[]) => Promise<never>;
      vi.spyOn(store, operation).mockImplementation(async (...parameters: unknown[]) => {
        calls += 1;
        if (calls === failingCall) fail();
        return original(...parameters);
      });
      return undefined;
    };

  const failField =
    (name: string): Break =>
    ({ body, fail }) => {
      Object.defineProperty(body.events[0], name, {
        enumerable: true,
        get: () => {
          fail();
          return undefined;
        },
      });
      return undefined;
    };

  test.each<[string, Break]>([
    ['the first claim', failStore('claim')],
    ['a renewal', failStore('claim', 2)],
    ['a commit', failStore('commit')],
    ['onError', ({ fail }) => ({ onError: fail })],
    ['onDeadLetter', ({ fail }) => ({ maxAttempts: 1, onDeadLetter: fail })],
    [
      'the logger',
      ({ fail }) => ({ onError: undefined, logger: { debug() {}, info() {}, warn() {}, error: fail } }),
    ],
    ['a getter of the event for its time', failField('occurrenceDatetime')],
    ['a getter of the event for its place', failField('order')],
    [
      'the clock after a claim',
      ({ store, fail }) => {
        const claim = store.claim.bind(store);
        vi.spyOn(store, 'claim').mockImplementationOnce(async (...parameters) => {
          const claims = await claim(...parameters);
          vi.spyOn(performance, 'now').mockImplementationOnce(() => {
            fail();
            return 0;
          });
          return claims;
        });
        return undefined;
      },
    ],
  ])('%s → no key stays leased, and no timer is left', async (_title, breakStep) => {
    const store = new MemoryDedupeStore();
    const body = { trackerId: 't1', events: [{ eventId: 'e1' }, { eventId: 'e2' }] };
    const fail = vi.fn(throwOnce());
    const options = breakStep({ store, fail, body });
    const inbox = new WebhookInbox({ store, onError: () => {}, ...options });
    // The callback fails for one event, so that every step of a failure is taken, too, and outlasts a renewal.
    const processing = inbox
      .process(body, async ({ eventId }) => {
        await new Promise((resolve) => setTimeout(resolve, 25_000));
        if (eventId === 'e2') throw new Error('no database');
      })
      .catch(() => {})
      // At once, because a lease ends by itself later.
      .then(() => store.claim([buildKey('e1'), buildKey('e2')], { token: 'other', leaseMs: 60_000 }));
    await vi.advanceTimersByTimeAsync(120_000);
    const claims = await processing;
    expect(fail).toHaveBeenCalled();
    expect(vi.getTimerCount()).toBe(0);
    expect(claims.map(({ status }) => status)).not.toContain('busy');
  });
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
