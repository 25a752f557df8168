import { getEventListeners } from 'node:events';
import { expect, test } from 'vitest';
import { Cancellation } from '../../src/webhooks/callbacks.ts';

test('a signal first looked at after the callback → nothing of it stays with the parent', () => {
  const parent = new AbortController();
  const cancellation = new Cancellation(parent.signal);
  cancellation.end();
  cancellation.signal;
  expect(getEventListeners(parent.signal, 'abort')).toHaveLength(0);
});
