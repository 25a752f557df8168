// Test runners fake timers in different ways: vitest, jest and sinon also fake `performance`, node:test does not.
import { mock } from 'node:test';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { MemoryDedupeStore } from '../../src/webhooks/index.ts';
import { settled } from '../support/settled.ts';
import { makeHandler, webhook } from './make-handler.ts';
import { E1, makeInbox, ScriptedStore } from './support.ts';

/** Advances in steps, because a wait may begin only when an earlier one has ended. */
async function pass(ms: number): Promise<void> {
  for (let step = 0; step < ms / 50; step += 1) {
    mock.timers.tick(50);
    await settled();
  }
}

beforeEach(() => mock.timers.enable({ apis: ['setTimeout', 'Date'] }));
afterEach(() => mock.timers.reset());

test('busyTimeoutMs of 2 s under timers of node:test → busy after 2 s', async () => {
  const store = new ScriptedStore();
  await store.lease('e1');
  const onDone = vi.fn();
  const processing = makeInbox({ store, busyTimeoutMs: 2_000 })
    .process(E1, () => {})
    .finally(onDone);
  await pass(1_900);
  expect(onDone).not.toHaveBeenCalled();
  await pass(200);
  expect((await processing).outcome).toBe('busy');
});

test('a store that hangs under timers of node:test → unavailable after 4.5 s', async () => {
  const store = new ScriptedStore();
  store.on('claim', () => new Promise(() => {}));
  const processing = makeInbox({ store }).process(E1, () => {});
  await pass(4_500);
  expect((await processing).outcome).toBe('unavailable');
});

test('a callback that hangs under timers of node:test → 503 after 12 s', async () => {
  const responding = makeHandler({ onEvent: () => new Promise(() => {}) })(webhook('e1'));
  await pass(12_000);
  expect((await responding).status).toBe(503);
});

test('a memory store with `now: Date.now` under timers of node:test → a lease ends with the mocked time', async () => {
  const store = new MemoryDedupeStore({ now: Date.now });
  await store.claim(['key'], { token: 'dead', leaseMs: 60_000 });
  mock.timers.tick(60_000);
  expect(await store.claim(['key'], { token: 'mine', leaseMs: 60_000 })).toEqual([
    { status: 'acquired', attempt: 2 },
  ]);
});
