import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { DedupeStore } from '../../src/webhooks/index.ts';
import { post, SECRET } from './make-handler.ts';
import { deferred, makeSignalInbox, payload, tracking } from './support.ts';

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal('navigator', { userAgent: 'Cloudflare-Workers' });
  vi.resetModules();
});
afterEach(() => {
  // Before the timers, of which a test may have stubbed the fake ones.
  vi.unstubAllGlobals();
  vi.useRealTimers();
  vi.resetModules();
});

const webhook = (eventId: string) => post(payload(tracking('t1', eventId)));

/** A receiver that takes itself to be on a Worker, whose store writes down the keys of each claim. */
async function onWorker(handle: (event: unknown, context: { signal: AbortSignal }) => unknown) {
  const { createWebhookHandler, MemoryDedupeStore, WebhookInbox } = await import(
    '../../src/webhooks/index.ts'
  );
  const memory = new MemoryDedupeStore();
  const claims: (readonly string[])[] = [];
  const answers: Promise<void>[] = [];
  const store: DedupeStore = {
    claim: async (keys, options) => {
      claims.push(keys);
      await answers.shift();
      return memory.claim(keys, options);
    },
    commit: (keys, options) => memory.commit(keys, options),
    release: (keys, options) => memory.release(keys, options),
  };
  const inbox = new WebhookInbox({ store, onError: () => {} });
  const receive = createWebhookHandler({ secret: SECRET, inbox, onEvent: handle, onRefused: () => {} });
  return { receive, claims, answers };
}

describe('on a Worker', () => {
  test('a claim under way that never ends → the next webhook sends its own and is handled', async () => {
    const { receive, claims, answers } = await onWorker(() => {});
    answers.push(new Promise(() => {}));
    void receive(webhook('e1'));
    await vi.advanceTimersByTimeAsync(1);
    expect((await receive(webhook('e2'))).status).toBe(200);
    expect(claims.map(({ length }) => length)).toEqual([1, 1]);
  });

  test('a duplicate of an event under way → asks the store, not the other webhook, and is handled once', async () => {
    const work = deferred();
    const handle = vi.fn(() => work.promise);
    const { receive, claims } = await onWorker(handle);
    const first = receive(webhook('e1'));
    await vi.advanceTimersByTimeAsync(1);
    const second = receive(webhook('e1'));
    await vi.advanceTimersByTimeAsync(1);
    expect(claims).toHaveLength(2);
    work.resolve();
    await vi.advanceTimersByTimeAsync(12_000);
    expect([(await first).status, (await second).status]).toEqual([200, 200]);
    expect(handle).toHaveBeenCalledOnce();
  });

  test('a forced shutdown → the work of every webhook under way is aborted', async () => {
    const signals: AbortSignal[] = [];
    const { receive } = await onWorker((_event, { signal }) => {
      signals.push(signal);
      return new Promise(() => {});
    });
    void receive(webhook('e1'));
    void receive(webhook('e2'));
    await vi.advanceTimersByTimeAsync(1);
    const closing = receive.close({ timeoutMs: 100 });
    await vi.advanceTimersByTimeAsync(10_000);
    await closing;
    expect(new Set(signals).size).toBe(2);
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
  });

  test('timers that are numbers, as they are there → a handler that takes its time is waited for', async () => {
    const { setTimeout: start } = globalThis;
    vi.stubGlobal('setTimeout', (callback: () => void, delayMs: number) => Number(start(callback, delayMs)));
    const work = deferred();
    const { receive } = await onWorker(() => work.promise);
    const answer = receive(webhook('e1'));
    await vi.advanceTimersByTimeAsync(1_000);
    work.resolve();
    expect((await answer).status).toBe(200);
  });

  test('a forced shutdown → the signal of a webhook that was done before is left alone', async () => {
    const { createWebhookHandler } = await import('../../src/webhooks/index.ts');
    const { signals, inbox } = makeSignalInbox();
    const handle = vi
      .fn()
      .mockReturnValue(new Promise(() => {}))
      .mockReturnValueOnce(undefined);
    const receive = createWebhookHandler({ secret: SECRET, inbox, onEvent: handle });
    await receive(webhook('e1'));
    void receive(webhook('e2'));
    await vi.advanceTimersByTimeAsync(1);
    const closing = receive.close({ timeoutMs: 100 });
    await vi.advanceTimersByTimeAsync(10_000);
    await closing;
    expect(signals.map((signal) => signal?.aborted)).toEqual([false, true]);
  });

  test('a handler is made → no AbortController, which a Worker forbids outside of a request', async () => {
    const made = vi.fn();
    const Real = globalThis.AbortController;
    vi.stubGlobal(
      'AbortController',
      class extends Real {
        constructor() {
          super();
          made();
        }
      },
    );
    await onWorker(() => {});
    expect(made).not.toHaveBeenCalled();
  });
});
