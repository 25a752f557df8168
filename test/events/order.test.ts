import fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import type { OrderableEvent } from '../../src/events/order.ts';
import { isNewerEvent, latestEvent, sortEvents } from '../../src/index.ts';

const ZONE = process.env['TZ'];
afterEach(() => {
  if (ZONE === undefined) delete process.env['TZ'];
  else process.env['TZ'] = ZONE;
});

function event(
  eventId: string,
  occurrenceDatetime: string | null,
  order: number | null = null,
): OrderableEvent {
  return { eventId, occurrenceDatetime, order };
}

function idsOf(events: readonly OrderableEvent[]): unknown[] {
  return events.map(({ eventId }) => eventId);
}

/** Local, offset, UTC and date-only times of one shipment, oldest first. */
const MIXED = [
  event('ordered', '2021-03-03', 1),
  event('packed', '2021-03-03', 2),
  event('handed over', '2021-03-04T01:30:00+02:00', 3),
  event('departed', '2021-03-04T00:10:00Z', 4),
  event('arrived', '2021-03-04T09:00:00', 5),
  event('cleared', '2021-03-05T08:00:00', 6),
  event('on hold', '2021-03-05', 7),
  event('released', '2021-03-05T06:00:00-08:00', 8),
  event('delivered', '2021-03-06T10:00:00Z', null),
  event('no time', null, 9),
];

const moment = fc.oneof(
  fc.constant(null),
  fc.constantFrom('2021-03-04', '2021-03-05', 'unreadable'),
  fc
    .tuple(
      fc.constantFrom('2021-03-04', '2021-03-05'),
      fc.constantFrom('00:00:00', '08:30:00', '23:59:59'),
      fc.constantFrom('', 'Z', '+02:00', '-08:00', '+14:00'),
    )
    .map(([date, time, zone]) => `${date}T${time}${zone}`),
);
const anyEvent = fc.record({
  eventId: fc.option(fc.constantFrom(...'abcdefgh')),
  occurrenceDatetime: moment,
  order: fc.option(fc.integer({ min: 1, max: 4 })),
});

describe('sortEvents', () => {
  test.each(['UTC', 'America/Los_Angeles', 'Pacific/Kiritimati'])(
    'local, offset, UTC and date-only times mixed, under %s → one order',
    (zone) => {
      process.env['TZ'] = zone;
      expect(new Intl.DateTimeFormat().resolvedOptions().timeZone).toBe(zone);
      expect(idsOf(sortEvents([...MIXED].reverse()))).toEqual(idsOf(MIXED));
    },
  );

  test('events with ids of their own, in any order → the same output', () => {
    const shuffled = fc
      .uniqueArray(anyEvent, { maxLength: 8, selector: ({ eventId }) => eventId })
      .chain((events) =>
        fc.tuple(fc.constant(events), fc.shuffledSubarray(events, { minLength: events.length })),
      );
    fc.assert(
      fc.property(shuffled, ([events, others]) => {
        expect(sortEvents(others)).toEqual(sortEvents(events));
      }),
    );
  });

  test('equal times, orders and ids → the order of the input', () => {
    const [a, b] = [
      { eventId: null, status: 'Arrived' },
      { eventId: null, status: 'Left' },
    ];
    expect(sortEvents([a, b])).toEqual([a, b]);
    expect(sortEvents([b, a])).toEqual([b, a]);
  });

  test('equal times and orders → the event id decides', () => {
    const events = [event('b', '2021-03-04T10:00:00', 1), event('a', '2021-03-04T10:00:00', 1)];
    expect(idsOf(sortEvents(events))).toEqual(['a', 'b']);
  });

  test('instants → ordered by instant, not by what is written', () => {
    const later = event('later', '2021-03-04T10:00:00Z');
    const earlier = event('earlier', '2021-03-04T11:00:00+02:00');
    expect(idsOf(sortEvents([later, earlier]))).toEqual(['earlier', 'later']);
  });

  test('equal times → `order` decides', () => {
    const events = [event('b', '2021-03-04T10:00:00', 2), event('a', '2021-03-04T10:00:00', 1)];
    expect(idsOf(sortEvents(events))).toEqual(['a', 'b']);
  });

  test('equal times, `order` against event ids → `order` decides', () => {
    const events = [event('a', '2021-03-04T10:00:00', 2), event('b', '2021-03-04T10:00:00', 1)];
    expect(idsOf(sortEvents(events))).toEqual(['b', 'a']);
  });

  test('different times → `order` decides nothing', () => {
    const events = [event('late', '2021-03-04T11:00:00', 1), event('early', '2021-03-04T10:00:00', 2)];
    expect(idsOf(sortEvents(events))).toEqual(['early', 'late']);
  });

  test('a day with a date-only event → `order` orders the whole day, its timed events too', () => {
    const events = [
      event('third', '2021-03-04T08:00:00', 3),
      event('second', '2021-03-04', 2),
      event('first', '2021-03-04T10:00:00', 1),
      event('next day', '2021-03-05T01:00:00', 0),
    ];
    expect(idsOf(sortEvents(events))).toEqual(['first', 'second', 'third', 'next day']);
  });

  test('a date-only event without `order` → at the start of its day', () => {
    const events = [event('timed', '2021-03-04T00:00:01'), event('date', '2021-03-04')];
    expect(idsOf(sortEvents(events))).toEqual(['date', 'timed']);
  });

  test('an event without `order` on a day with a date-only event → keeps its place', () => {
    const events = [
      event('second', '2021-03-04', 2),
      event('timed', '2021-03-04T08:00:00'),
      event('first', '2021-03-04T09:00:00', 1),
    ];
    expect(idsOf(sortEvents(events))).toEqual(['first', 'timed', 'second']);
  });

  test('no readable time → last', () => {
    const events = [event('unreadable', 'soon', 0), event('none', null, 1), event('timed', '2021-03-04', 2)];
    expect(idsOf(sortEvents(events))).toEqual(['timed', 'unreadable', 'none']);
  });

  test('deprecated fields → not looked at', () => {
    const events = [
      { ...event('b', '2021-03-04T11:00:00'), datetime: '2020-01-01T00:00:00Z', utcOffset: '-12:00' },
      { ...event('a', '2021-03-04T10:00:00'), datetime: '2022-01-01T00:00:00Z', utcOffset: '+12:00' },
    ];
    expect(idsOf(sortEvents(events))).toEqual(['a', 'b']);
  });

  test('the given array → not changed', () => {
    const events = [event('b', '2021-03-05'), event('a', '2021-03-04')];
    sortEvents(events);
    expect(idsOf(events)).toEqual(['b', 'a']);
  });
});

test('a time, an order and an id of other kinds, as a webhook may bring them → sorted as if they were missing', () => {
  const odd = { occurrenceDatetime: 5, order: '1', eventId: 7 } as unknown as OrderableEvent; // What the service may send.
  const known = { occurrenceDatetime: '2021-03-04', order: 2, eventId: 'e1' };
  expect(sortEvents([odd, known])).toEqual([known, odd]);
  expect(isNewerEvent(odd, known)).toBe(false);
});

test('an order that is text beside a number, at the same moment → sorted as if it were missing', () => {
  const odd = { ...event('odd', '2021-03-04T10:00:00'), order: '3' } as unknown as OrderableEvent; // What the service may send.
  const known = event('known', '2021-03-04T10:00:00', 2);
  expect(sortEvents([known, odd])).toEqual([odd, known]);
});

describe('latestEvent', () => {
  test('events in any order → the newest that has a readable time', () => {
    expect(latestEvent([...MIXED].reverse())?.eventId).toBe('delivered');
  });

  test('only events without a readable time → the one with the highest order', () => {
    const events = [event('c', null, 3), event('b', null, 2), event('a', 'soon', 1)];
    expect(latestEvent(events)?.eventId).toBe('c');
  });

  test('no events → undefined', () => {
    expect(latestEvent([])).toBeUndefined();
  });
});

describe('isNewerEvent', () => {
  test('any two events → agrees with sortEvents', () => {
    fc.assert(
      fc.property(anyEvent, anyEvent, (a, b) => {
        const isTimed = (each: OrderableEvent) => /^\d/.test(each.occurrenceDatetime ?? '');
        fc.pre(isTimed(a) === isTimed(b));
        const newest = sortEvents([b, a]).at(-1);
        if (isNewerEvent(a, b)) expect(newest).toBe(a);
        if (isNewerEvent(b, a)) expect(newest).toBe(b);
      }),
    );
  });

  const known = event('known', '2021-03-04T09:00:00', 5);

  test.each([
    ['a later event', event('later', '2021-03-04T10:00:00', 6), true],
    ['an older event that arrives later', event('older', '2021-03-04T08:00:00', 4), false],
    ['an event of the same moment with a higher order', event('a', '2021-03-04T09:00:00', 6), true],
    ['a date alone of the same day with a lower order', event('a', '2021-03-04', 4), false],
    ['a date alone of the same day with a higher order', event('a', '2021-03-04', 6), true],
    ['an event without a readable time', event('unreadable', 'soon', 9), false],
  ])('%s → %o', (_, given, expected) => {
    expect(isNewerEvent(given, known)).toBe(expected);
  });

  test.each([undefined, null])('any event where nothing is known (%s) → true', (nothing) => {
    expect(isNewerEvent(event('first', null), nothing)).toBe(true);
  });

  test('an event with a time where the known one has none → true', () => {
    expect(isNewerEvent(known, event('unreadable', null, 9))).toBe(true);
  });
});
