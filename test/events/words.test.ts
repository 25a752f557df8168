import { expect, test } from 'vitest';
import { describeMilestone, MILESTONE_WORDS, STATUS_MILESTONES } from '../../src/events/index.ts';

test('each known milestone → a text of its own', () => {
  expect(Object.keys(MILESTONE_WORDS)).toEqual([...STATUS_MILESTONES]);
  expect(new Set(STATUS_MILESTONES.map((milestone) => describeMilestone(milestone))).size).toBe(8);
  expect(describeMilestone('in_transit')).toBe('On its way');
});

test.each([
  ['held_at_customs', 'Held at customs'],
  ['lost', 'Lost'],
  ['returned-to__sender', 'Returned to sender'],
  ['constructor', 'Constructor'],
  ['', ''],
])('a milestone without a text, %j → %j', (milestone, words) => {
  expect(describeMilestone(milestone)).toBe(words);
});

test('words of the caller → replace all words', () => {
  const words = { delivered: 'Zugestellt', weighed: 'Gewogen' };
  expect(
    ['delivered', 'weighed', 'in_transit'].map((milestone) => describeMilestone(milestone, words)),
  ).toEqual(['Zugestellt', 'Gewogen', 'In transit']);
});
