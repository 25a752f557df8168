import { getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import { Cancellation } from '../../src/webhooks/callbacks.ts';

test('a signal first looked at after the callback → nothing of it stays with the parent', () => {
  const parent = new AbortController();
  const cancellation = new Cancellation(parent.signal);
  cancellation.end();
  cancellation.signal;
  expect(getEventListeners(parent.signal, 'abort')).toHaveLength(0);
});

test('a signal looked at twice → one signal, which hears of an abort of the parent', () => {
  const parent = new AbortController();
  const cancellation = new Cancellation(parent.signal);
  const { signal } = cancellation;
  expect(cancellation.signal).toBe(signal);
  parent.abort();
  expect(signal.aborted).toBe(true);
});

const reason = new Error('took too long');
describe('isReason', () => {
  test.each<[string, boolean, unknown[], unknown]>([
    ['nothing aborted, and no error', false, [], undefined],
    ['aborted, and its reason', true, [reason], reason],
    ['aborted, and another error', false, [reason], new Error('out of stock')],
    ['aborted twice, and the first reason', true, [reason, new Error('late')], reason],
  ])('%s → %o', (_title, expected, aborts, error) => {
    const cancellation = new Cancellation(undefined);
    for (const given of aborts) cancellation.abort(given);
    expect(cancellation.isReason(error)).toBe(expected);
  });
});
