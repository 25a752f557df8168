import { expect, test } from 'vitest';
import type { Priority } from '../../src/limiter/limiter.ts';
import { CallQueue } from '../../src/limiter/queue.ts';
import { ManualClock } from './manual-clock.ts';

/** A queue in which calls of these priorities wait, and what they were rejected with. */
function makeQueue(...priorities: readonly Priority[]) {
  const clock = new ManualClock();
  const queue = new CallQueue({ name: 'trackers.get', maxQueue: 10, clock, onAbort: () => {} });
  const reasons: unknown[] = [];
  const reject = (reason: unknown) => reasons.push(reason);
  for (const priority of priorities) queue.append({ priority, resolve: () => {}, reject }, 0);
  return { queue, reasons };
}

test('one of three waiting calls is interactive → counted apart', () => {
  const { queue } = makeQueue('background', 'interactive', 'background');
  expect(queue).toMatchObject({ size: 3, interactive: 1 });
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
