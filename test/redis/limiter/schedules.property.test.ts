import fc from 'fast-check';
import { expect, test } from 'vitest';
import { findOverfullWindow, play, schedule } from './schedules.ts';

test('any calls, slow commands, lost replies, commands that run twice, and an outage → every call gets a token, no window exceeds the limit', async () => {
  await fc.assert(
    fc.asyncProperty(schedule, async (input) => {
      const { countedAt, unfinished } = await play(input);
      expect(findOverfullWindow(countedAt, input.limit)).toBeUndefined();
      expect(unfinished).toBe(0);
    }),
    { numRuns: 40, endOnFailure: true },
  );
});
