import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { MemoryDedupeStore } from '../../src/webhooks/index.ts';
import { makeInbox, payload, ScriptedStore, tracking } from './support.ts';

const keyOf = (eventId: string) => `tracking/events:t1:${eventId}`;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** When the store is asked for an event that another receiver holds, in milliseconds after the first time. */
async function claimTimes(leaseMs: number, busyTimeoutMs: number): Promise<number[]> {
  const store = new ScriptedStore();
  await store.claim([keyOf('e1')], { token: 'other', leaseMs });
  const startedAt = performance.now();
  const times: number[] = [];
  store.before = (operation) => {
    if (operation === 'claim') times.push(Math.round(performance.now() - startedAt));
  };
  const processing = makeInbox({ store, busyTimeoutMs }).process(payload(tracking('t1', 'e1')), () => {});
  await vi.advanceTimersByTimeAsync(busyTimeoutMs);
  await processing;
  return times;
}

test('a long wait → pauses that grow up to 400 ms, and one last look when the time is up', async () => {
  expect(await claimTimes(60_000, 2_000)).toEqual([0, 50, 150, 350, 750, 1_150, 1_550, 1_950, 2_000]);
});

test('no time to wait → one look', async () => {
  expect(await claimTimes(60_000, 0)).toEqual([0]);
});

test('a lease that ends → claimed at the next look, and no look after it', async () => {
  expect(await claimTimes(120, 4_000)).toEqual([0, 50, 150]);
});

test.each([
  ['first', 'e1'],
  ['last', 'e2'],
])('two leases, of which the %s ends first → retryAfterMs is when that one ends', async (_title, soonest) => {
  const store = new MemoryDedupeStore();
  for (const eventId of ['e1', 'e2']) {
    const leaseMs = eventId === soonest ? 10_000 : 42_000;
    await store.claim([keyOf(eventId)], { token: 'other', leaseMs });
  }
  const inbox = makeInbox({ store, busyTimeoutMs: 0 });
  const report = await inbox.process(payload(tracking('t1', 'e1', 'e2')), () => {});
  expect(report.retryAfterMs).toBe(10_000);
});

test('one event handled, the lease of another one ends later → retryAfterMs is when that one ends', async () => {
  const store = new MemoryDedupeStore();
  await store.claim([keyOf('e1')], { token: 'other', leaseMs: 42_000 });
  const inbox = makeInbox({ store, busyTimeoutMs: 0 });
  const report = await inbox.process(payload(tracking('t1', 'e1', 'e2')), () => {});
  expect(report).toMatchObject({ handled: 1, retryAfterMs: 42_000 });
});
