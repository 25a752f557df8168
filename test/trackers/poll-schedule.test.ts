import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Due, DueHeap, nextPollAt } from '../../src/trackers/poll-schedule.ts';

test.each([
  ['on time', { dueAt: 5000, startedAt: 5000, endedAt: 5200 }, 6000],
  ['a little late', { dueAt: 5000, startedAt: 5090, endedAt: 5300 }, 6000],
  ['held up', { dueAt: 5000, startedAt: 5400, endedAt: 5500 }, 6400],
  ['an answer as long as the interval', { dueAt: 5000, startedAt: 5000, endedAt: 6000 }, 6000],
  ['a slower answer', { dueAt: 5000, startedAt: 5000, endedAt: 6001 }, 7000],
  ['held up and a slower answer', { dueAt: 5000, startedAt: 5400, endedAt: 7500 }, 8400],
])('%s → the next poll counts from the right moment', (_, poll, next) => {
  expect(nextPollAt(poll, 1000)).toBe(next);
});

test('a day of polls, each a second late → not one second of drift', () => {
  let dueAt = 0;
  for (let poll = 0; poll < 96; poll += 1) {
    dueAt = nextPollAt({ dueAt, startedAt: dueAt + 1000, endedAt: dueAt + 3000 }, 900_000);
  }
  expect(dueAt).toBe(96 * 900_000);
});

test('any poll → the next is not in the past, and never much sooner than an interval after the last start', () => {
  const times = fc.tuple(
    fc.integer({ min: 0, max: 1e9 }),
    fc.integer({ min: 0, max: 1e7 }),
    fc.integer({ min: 0, max: 1e7 }),
    fc.integer({ min: 1000, max: 1e7 }),
  );
  fc.assert(
    fc.property(times, ([dueAt, lateMs, tookMs, intervalMs]) => {
      const startedAt = dueAt + lateMs;
      const endedAt = startedAt + tookMs;
      const next = nextPollAt({ dueAt, startedAt, endedAt }, intervalMs);
      expect(next).toBeGreaterThanOrEqual(endedAt);
      expect(next - startedAt).toBeGreaterThanOrEqual(0.9 * intervalMs);
      expect(next).toBeLessThanOrEqual(Math.max(endedAt, startedAt + intervalMs) + intervalMs);
    }),
  );
});

interface Item extends Due {
  readonly name: number;
}

function item(name: number, dueAt: number): Item {
  return { name, dueAt, place: 0, turn: 0 };
}

/** Empties the heap in its order. */
function drain(heap: DueHeap<Item>): Item[] {
  const order: Item[] = [];
  for (let { first } = heap; first !== undefined; first = heap.first) {
    order.push(first);
    heap.remove(first);
  }
  return order;
}

test('any pushes and removals → comes out sorted, first come first for equal times', () => {
  const steps = fc.array(
    fc.record({ dueAt: fc.integer({ min: 0, max: 20 }), removes: fc.option(fc.nat({ max: 60 })) }),
    { maxLength: 60 },
  );
  fc.assert(
    fc.property(steps, (all) => {
      const heap = new DueHeap<Item>();
      const inside: Item[] = [];
      for (const [name, { dueAt, removes }] of all.entries()) {
        const pushed = item(name, dueAt);
        heap.push(pushed);
        inside.push(pushed);
        const removed = removes === null ? undefined : inside.splice(removes % inside.length, 1)[0];
        if (removed !== undefined) heap.remove(removed);
      }
      const expected = inside.toSorted((one, other) => one.dueAt - other.dueAt || one.name - other.name);
      expect(drain(heap)).toEqual(expected);
    }),
  );
});

test('any removals from the middle of a large heap → comes out sorted', () => {
  const priorities = fc.uniqueArray(fc.nat({ max: 1000 }), { minLength: 10, maxLength: 80 });
  const cases = priorities.chain((all) => fc.tuple(fc.constant(all), fc.shuffledSubarray([...all.keys()])));
  fc.assert(
    fc.property(cases, ([all, removed]) => {
      const heap = new DueHeap<Item>();
      const items = all.map((dueAt, name) => item(name, dueAt));
      for (const one of items) heap.push(one);
      const gone = new Set(removed);
      for (const one of items) if (gone.has(one.name)) heap.remove(one);
      const kept = items.filter(({ name }) => !gone.has(name));
      expect(drain(heap)).toEqual(kept.toSorted((one, other) => one.dueAt - other.dueAt));
    }),
  );
});

test('removing what is not in → changes nothing', () => {
  const heap = new DueHeap<Item>();
  const inside = [item(1, 10), item(2, 20)];
  for (const one of inside) heap.push(one);
  for (const place of [-1, 0, 1, 2]) heap.remove({ ...item(3, 5), place });
  expect(drain(heap)).toEqual(inside);
});

test('removed twice → the second time does nothing', () => {
  const heap = new DueHeap<Item>();
  const [one, other] = [item(1, 10), item(2, 20)];
  heap.push(one);
  heap.push(other);
  heap.remove(one);
  heap.remove(one);
  expect(drain(heap)).toEqual([other]);
});

test('cleared → is empty, and its items can come back', () => {
  const heap = new DueHeap<Item>();
  const one = item(1, 10);
  heap.push(one);
  heap.clear();
  expect(heap.first).toBeUndefined();
  heap.push(one);
  expect(drain(heap)).toEqual([one]);
});

test('10,000 items → a push or removal moves no more than 15 of them', () => {
  let moves = 0;
  const heap = new DueHeap<Item>();
  const counted = (dueAt: number): Item => {
    let place = 0;
    return {
      name: dueAt,
      dueAt,
      turn: 0,
      get place() {
        return place;
      },
      set place(next) {
        moves += 1;
        place = next;
      },
    };
  };
  const items = Array.from({ length: 10_000 }, (_, index) => counted((index * 7919) % 10_007));
  for (const one of items) heap.push(one);
  const most = { push: 0, remove: 0 };
  for (const one of items.slice(0, 500)) {
    moves = 0;
    heap.remove(one);
    most.remove = Math.max(most.remove, moves);
    moves = 0;
    heap.push(counted(one.dueAt - 5000));
    most.push = Math.max(most.push, moves);
  }
  // 14 levels, and the one that is put down.
  expect(most.push).toBeLessThanOrEqual(15);
  // Down, and the one from the end is put down twice.
  expect(most.remove).toBeLessThanOrEqual(16);
});
