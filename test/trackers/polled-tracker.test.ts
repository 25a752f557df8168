import { getEventListeners } from 'node:events';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { diffEvents, PolledTracker } from '../../src/trackers/polled-tracker.ts';
import { callerOf } from './caller-of.ts';
import { BROKEN, results } from './polled-service.ts';

function idsOf(events: readonly { eventId: string }[]): string[] {
  return events.map(({ eventId }) => eventId);
}

function answer(ids: readonly string[]) {
  return ids.map((eventId) => ({ eventId }));
}

test('any answers in any order → every event is new exactly once', () => {
  const answers = fc.array(fc.array(fc.string({ maxLength: 3 }), { maxLength: 12 }), { maxLength: 20 });
  fc.assert(
    fc.property(answers, (all) => {
      let seen = '';
      const yielded: string[] = [];
      for (const ids of all) {
        const diff = diffEvents(seen, answer(ids));
        seen = diff.seen;
        yielded.push(...idsOf(diff.newEvents));
      }
      expect(yielded).toEqual([...new Set(all.flat())]);
    }),
  );
});

test('two events of one id in an answer → the first is the one that is new', () => {
  const { newEvents } = diffEvents('', [
    { eventId: 'a', status: 'first' },
    { eventId: 'a', status: 'second' },
  ]);
  expect(newEvents).toEqual([{ eventId: 'a', status: 'first' }]);
});

test('an event → costs 16 bytes, however long its id is', () => {
  const ids = Array.from({ length: 20 }, (_, index) => `${'x'.repeat(500)}${index}`);
  expect(diffEvents('', answer(ids)).seen).toHaveLength(20 * 16);
});

test('a service that invents events for ever → what is remembered stays bounded', () => {
  let seen = '';
  for (let poll = 0; poll < 120; poll += 1) {
    const ids = Array.from({ length: 50 }, (_, index) => `${poll}-${index}`);
    seen = diffEvents(seen, answer(ids)).seen;
  }
  expect(seen).toHaveLength((50 + 1000) * 16);
});

test.each([[[]], [['one that stays']]])(
  '1,000 events vanish beside %j and return → none is new',
  (others) => {
    const ids = [...others, ...Array.from({ length: 1000 }, (_, index) => `event-${index}`)];
    const { seen } = diffEvents('', answer(ids));
    const without = diffEvents(seen, answer(others));
    expect(diffEvents(without.seen, answer(ids)).newEvents).toEqual([]);
  },
);

test('an answer with more events than are remembered of vanished ones → all of it is remembered', () => {
  const ids = Array.from({ length: 2500 }, (_, index) => `event-${index}`);
  const { seen } = diffEvents('', answer(ids));
  expect(idsOf(diffEvents(seen, answer(['new', ...ids])).newEvents)).toEqual(['new']);
});

test.each([
  ['a poll', results([])],
  ['a poll that failed', BROKEN],
])('%s → leaves no listener on the signal of its stream, which may go on for months', async (_, answer) => {
  const { signal } = new AbortController();
  const settings = { maxConsecutiveErrors: 5, request: { retry: false } } as const;
  const run = { caller: callerOf(answer), settings, turn: async () => {} };
  await new PolledTracker('tracker-1').poll(run, signal);
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});
