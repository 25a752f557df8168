import { expect, test, vi } from 'vitest';
import { E1, makeInbox, ScriptedStore, useFakeTimers } from '../support.ts';

useFakeTimers();

test('renewals that fail for two minutes → one line a minute, and the next line counts those left out', async () => {
  const error = vi.fn();
  const store = new ScriptedStore();
  const logger = { debug() {}, info() {}, warn() {}, error };
  const inbox = makeInbox({ store, leaseMs: 3_000, onError: undefined, logger });
  const processing = inbox.process(E1, () => new Promise((resolve) => setTimeout(resolve, 119_000)));
  await vi.advanceTimersByTimeAsync(1);
  store.on('claim', () => Promise.reject(new Error('read ECONNRESET')));
  await vi.advanceTimersByTimeAsync(120_000);
  await processing;
  expect(store.operations.length).toBeGreaterThan(100);
  expect(error.mock.calls.map(([line]) => line)).toEqual(
    Array(2).fill(expect.stringContaining('read ECONNRESET')),
  );
  const fields: unknown[] = error.mock.calls.map(([, given]) => given);
  expect(fields[1]).toMatchObject({ similarLinesLeftOut: expect.any(Number) });
});
