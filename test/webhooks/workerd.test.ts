// In a Worker, a request must not wait for another one, timers are numbers, and an AbortController belongs to a request.
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { makeHandler, webhook } from './make-handler.ts';
import { deferred, ScriptedStore } from './support.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  // Before the timers, because a test may have stubbed the fake ones.
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

test('a claim under way that never ends → the next webhook sends its own and is handled', async () => {
  const store = new ScriptedStore();
  store.before = () => new Promise(() => {});
  const receive = makeHandler({ store });
  void receive(webhook('e1'));
  await vi.advanceTimersByTimeAsync(1);
  store.before = () => {};
  expect((await receive(webhook('e2'))).status).toBe(200);
  expect(store.operations).toEqual(['claim', 'claim', 'commit']);
});

test('a duplicate of an event under way → asks the store, not the other webhook, and is handled once', async () => {
  const store = new ScriptedStore();
  const work = deferred();
  const onEvent = vi.fn(() => work.promise);
  const receive = makeHandler({ store, onEvent });
  const responses = [receive(webhook('e1')), receive(webhook('e1'))];
  await vi.advanceTimersByTimeAsync(1);
  expect(store.operations).toEqual(['claim', 'claim']);
  work.resolve();
  await vi.advanceTimersByTimeAsync(12_000);
  expect((await Promise.all(responses)).map(({ status }) => status)).toEqual([200, 200]);
  expect(onEvent).toHaveBeenCalledOnce();
});

test('timers that are numbers → a callback that takes its time is waited for', async () => {
  const { setTimeout: start } = globalThis;
  vi.stubGlobal('setTimeout', (callback: () => void, delayMs: number) => Number(start(callback, delayMs)));
  const work = deferred();
  const responding = makeHandler({ onEvent: () => work.promise })(webhook('e1'));
  await vi.advanceTimersByTimeAsync(1_000);
  work.resolve();
  expect((await responding).status).toBe(200);
});

test('a handler is made → no AbortController is made outside of a request', () => {
  const made = vi.fn();
  vi.stubGlobal('AbortController', made);
  makeHandler();
  expect(made).not.toHaveBeenCalled();
});
