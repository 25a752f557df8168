import { expect, test } from 'vitest';
import type { Priority } from '../../src/limiter/limiter.ts';
import { CallQueue } from '../../src/limiter/queue.ts';

/** A queue in which calls of these priorities wait, and what they were rejected with. */
function makeQueue(...priorities: readonly Priority[]) {
  const queue = new CallQueue({ endpoint: 'trackers.get', maxQueue: 1, onAbort: () => {} });
  const reasons: unknown[] = [];
  const reject = (reason: unknown) => reasons.push(reason);
  for (const priority of priorities)
    queue.append({ priority, signal: undefined, maxPauseMs: undefined, resolve: () => {}, reject }, 0);
  return { queue, reasons };
}

test('one of three waiting calls is interactive → counted apart', () => {
  const { queue } = makeQueue('background', 'interactive', 'background');
  expect(queue).toMatchObject({ size: 3, interactiveSize: 1 });
});

test('all are rejected → each with a reason of its own, and nobody waits', () => {
  const { queue, reasons } = makeQueue('background', 'interactive');
  let count = 0;
  queue.rejectAll(() => {
    count += 1;
    return count;
  });
  expect(reasons).toEqual([1, 2]);
  expect(queue.size).toBe(0);
});

test('two more wait than may → the two latest are rejected, of whatever lane', () => {
  const { queue, reasons } = makeQueue('background', 'interactive', 'background');
  queue.rejectExcess();
  expect(reasons).toMatchObject([{ name: 'QueueFullError' }, { name: 'QueueFullError' }]);
  expect(queue.take(1, 0)?.priority).toBe('background');
});
