import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import * as events from '../../src/events/index.ts';
import type { OrderableEvent } from '../../src/events/order.ts';
import { isNewerEvent, latestEvent, parseOccurrenceDatetime, sortEvents } from '../../src/index.ts';
import * as webhooks from '../../src/webhooks/index.ts';

type Order = number | null;
function event(eventId: string, occurrenceDatetime: string | null, order: Order = null): OrderableEvent {
  return { eventId, occurrenceDatetime, order };
}

function listIds(events: readonly OrderableEvent[]): string {
  return events.map(({ eventId }) => eventId).join(' ');
}

const TEN = '2021-03-04T10:00:00';
const ELEVEN = '2021-03-04T11:00:00';
const NOON = Date.UTC(2021, 2, 4, 12);

describe('parseOccurrenceDatetime', () => {
  test.each([
    ['2021-03-04', { kind: 'date', date: '2021-03-04' }],
    ['2021-03-04T12:00:00', { kind: 'local', date: '2021-03-04', timeMs: 43_200_000 }],
    [' 2021-03-04 12:00:00 ', { kind: 'local', date: '2021-03-04', timeMs: 43_200_000 }],
  ])('%j has no time zone → its parts, without an instant', (text, parsed) => {
    expect(parseOccurrenceDatetime(text)).toEqual(parsed);
  });

  test.each([
    ['2021-03-04T12:00:00Z', NOON],
    ['0021-03-04T12:00:00Z', Date.parse('0021-03-04T12:00:00Z')],
  ])('%s → the instant in milliseconds since the epoch', (text, epochMs) => {
    expect(parseOccurrenceDatetime(text)).toMatchObject({ kind: 'utc', offsetMinutes: 0, epochMs });
  });

  test.each([
    ['+02:00', -120, 120],
    ['-03:30', 210, -210],
    ['+02', -120, 120],
    ['-00:00', 0, 0],
    ['+23:59', -1439, 1439],
  ])('offset %s → the instant and the offset', (offset, shiftMinutes, offsetMinutes) => {
    expect(parseOccurrenceDatetime(`2021-03-04T12:00:00${offset}`)).toMatchObject({
      kind: 'offset',
      date: '2021-03-04',
      offsetMinutes,
      epochMs: NOON + shiftMinutes * 60_000,
    });
  });

  test.each([
    ['12:00:00.5', 43_200_500],
    ['12:00:00.123456', 43_200_123],
    ['12:59', 46_740_000],
    ['12:00:60', 43_260_000],
    ['24:00:00', 86_400_000],
    ['24:00:00.000', 86_400_000],
    ['23:59:60.5', 86_400_500],
  ])('time %s → the time of day in milliseconds since midnight', (time, timeMs) => {
    expect(parseOccurrenceDatetime(`2021-03-04T${time}`)).toMatchObject({ timeMs });
  });

  test.each([
    ...['yesterday', '2021-02-30', '2021-13-01', '2021-00-10'],
    ...['2021-03-04T24:00:01', '2021-03-04T12:60', '2021-03-04T12:00:61'],
    ...['2021-03-04T24:00:00.5', '2021-03-04T24:00:00.0004', '2021-03-04T24:01', '2021-03-04T25:00'],
    ...['+99:99', '-23:75', '+24:00', '-00:60', '+9959', '-24'].map((offset) => `2021-03-04T12:00${offset}`),
  ])('%j is no date or an impossible one → undefined', (text) => {
    expect(parseOccurrenceDatetime(text)).toBeUndefined();
  });
});

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

/** Writes a time of 2021-03-04 or later, as a date or a local time in UTC, or at an offset in minutes. */
function writeMoment(hours: number, form: 'date' | 'local' | number): string {
  const offset = typeof form === 'number' ? form : 0;
  const text = new Date(Date.UTC(2021, 2, 4, hours, offset)).toISOString();
  if (form === 'date') return text.slice(0, 10);
  if (form === 'local') return text.slice(0, 19);
  const [h, m] = [Math.floor(Math.abs(offset) / 60), Math.abs(offset) % 60].map((part) =>
    `${part}`.padStart(2, '0'),
  );
  return `${text.slice(0, 19)}${offset < 0 ? '-' : '+'}${h}:${m}`;
}

describe('sortEvents', () => {
  test.each(['UTC', 'America/Los_Angeles', 'Pacific/Kiritimati'])(
    'times of every kind, in time zone %s → the same order',
    (zone) => {
      vi.stubEnv('TZ', zone);
      expect(new Intl.DateTimeFormat().resolvedOptions().timeZone).toBe(zone);
      expect(listIds(sortEvents([...MIXED].reverse()))).toEqual(listIds(MIXED));
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

  test('equal times, orders and ids → the order of the input is kept', () => {
    const events = ['Arrived', 'Left', 'Delivered'].map((status) => ({ eventId: null, status }));
    expect(sortEvents(events)).toEqual(events);
    const atTen = ['', 'Z', '+00:00', ''].map((zone, index) => ({
      occurrenceDatetime: `${TEN}${zone}`,
      index,
    }));
    expect(sortEvents(atTen)).toEqual(atTen);
  });

  test('any events → all of them, and those with known instants in the order of the instants', () => {
    fc.assert(
      fc.property(fc.array(anyEvent), (events) => {
        const sorted = sortEvents(events);
        const instants = sorted.flatMap(({ occurrenceDatetime }) => {
          const read = parseOccurrenceDatetime(occurrenceDatetime ?? '');
          return read !== undefined && 'epochMs' in read ? [read.epochMs] : [];
        });
        expect(instants).toEqual(instants.toSorted((a, b) => a - b));
        expect(new Set(sorted)).toEqual(new Set(events));
      }),
      { numRuns: 500 },
    );
  });

  /** How a courier in UTC, and couriers elsewhere, write the times of one shipment. */
  const written = fc.constantFrom<'date' | 'local' | number>('date', 'local', -720, -480, 0, 330, 840);
  const timeline = fc
    .array(fc.record({ hours: fc.nat(80), form: written }), { maxLength: 12 })
    .map((steps) =>
      steps
        .toSorted((a, b) => a.hours - b.hours)
        .map(({ hours, form }, order) => event(`e${order}`, writeMoment(hours, form), order)),
    );

  test('any timeline in which times and `order` agree → the order of `order`', () => {
    fc.assert(
      fc.property(timeline, (events) => {
        expect(listIds(sortEvents([...events].reverse()))).toBe(listIds(events));
      }),
      { numRuns: 500 },
    );
  });

  test.each<[name: string, sorted: string, events: OrderableEvent[]]>([
    ['equal times and orders → the event id decides', 'a b', [event('b', TEN, 1), event('a', TEN, 1)]],
    ['equal times → `order` decides, not the event id', 'b a', [event('a', TEN, 2), event('b', TEN, 1)]],
    ['different times → `order` is ignored', 'a b', [event('b', ELEVEN, 1), event('a', TEN, 2)]],
    [
      'a day with a date-only event → `order` orders the whole day, its timed events too',
      'first second third next',
      [
        event('third', '2021-03-04T08:00:00', 3),
        event('second', '2021-03-04', 2),
        event('first', '2021-03-04T10:00:00', 1),
        event('next', '2021-03-05T01:00:00', 0),
      ],
    ],
    [
      'a date-only event without `order` → at the start of its day',
      'date timed',
      [event('timed', '2021-03-04T00:00:01'), event('date', '2021-03-04')],
    ],
    [
      'an event without `order` on a day with a date-only event → keeps its place',
      'first timed second',
      [
        event('second', '2021-03-04', 2),
        event('timed', '2021-03-04T08:00:00'),
        event('first', '2021-03-04T09:00:00', 1),
      ],
    ],
    [
      'known instants and a date between them by `order` → the instants keep their order',
      'east date west',
      [
        event('west', '2021-03-04T01:00:00-08:00', 3),
        event('date', '2021-03-04', 2),
        event('east', '2021-03-04T09:00:00+08:00', 1),
      ],
    ],
    [
      'known instants whose `order` contradicts them → the instants decide, and the date goes before a higher order',
      'date early late',
      [event('late', `${TEN}Z`, 1), event('early', `${TEN}+01:00`, 3), event('date', '2021-03-04', 2)],
    ],
    [
      'a date of the next day at +14:00, and a later instant with a higher order → `order` decides',
      'date instant',
      [event('instant', '2021-03-04T12:00:00Z', 2), event('date', '2021-03-05', 1)],
    ],
    [
      'a date and an instant that cannot be on its day → `order` is ignored',
      'before date after',
      [
        event('after', '2021-03-05T12:00:00Z', 1),
        event('date', '2021-03-04', 2),
        event('before', '2021-03-03T09:59:59Z', 3),
      ],
    ],
    [
      'a date without `order` among known instants → before the first that was written on its day or later',
      'yesterday date today',
      [
        event('date', '2021-03-04'),
        event('today', '2021-03-04T08:00:00+14:00', 2),
        event('yesterday', '2021-03-03T07:00:00-10:00', 1),
      ],
    ],
    [
      'a local time among known instants on a day without dates → counts as UTC, whatever its order',
      'early local late',
      [event('late', `${ELEVEN}Z`, 1), event('local', TEN, 9), event('early', `${TEN}+01:00`, 3)],
    ],
    [
      'a local time with `order` among known instants on a day with a date → `order` decides',
      'date local instant',
      [event('instant', `${TEN}Z`, 3), event('local', ELEVEN, 2), event('date', '2021-03-04', 1)],
    ],
    [
      'an event without a readable time → last',
      'timed unreadable none',
      [event('unreadable', 'soon', 0), event('none', null, 1), event('timed', '2021-03-04', 2)],
    ],
  ])('%s (%s)', (_name, sorted, events) => {
    expect(listIds(sortEvents(events))).toBe(sorted);
  });

  test('deprecated fields → ignored, and the input array is not changed', () => {
    const events = [
      { ...event('b', ELEVEN), datetime: '2020-01-01T00:00:00Z', utcOffset: '-12:00' },
      { ...event('a', TEN), datetime: '2022-01-01T00:00:00Z', utcOffset: '+12:00' },
    ];
    expect(listIds(sortEvents(events))).toBe('a b');
    expect(listIds(events)).toBe('b a');
  });
});

test.each([
  ['time', { occurrenceDatetime: 5 }, event('known', '2021-03-04', 2), false],
  ['order', { ...event('odd', TEN), order: '3' }, event('known', TEN, 2), true],
  ['id', { eventId: 7 }, event('known', null), true],
])(
  'an event with a %s of an unexpected type → sorted as if the field were missing',
  (_field, sent, known, isFirst) => {
    const odd = sent as unknown as OrderableEvent; // Field values that the service may send.
    expect(sortEvents([odd, known])).toEqual(isFirst ? [odd, known] : [known, odd]);
    expect(isNewerEvent(odd, known)).toBe(false);
  },
);

describe('latestEvent', () => {
  test('events in any order → the newest event with a readable time', () => {
    expect(latestEvent([...MIXED].reverse())?.eventId).toBe('delivered');
  });

  test('known instants and a date of the same day with the highest order of the first → the last instant', () => {
    const events = [
      event('east', '2021-03-04T23:00:00+08:00', 3),
      event('west', '2021-03-04T10:00:00-08:00', 1),
      event('date', '2021-03-04', 2),
    ];
    expect(latestEvent(events)?.eventId).toBe('west');
  });

  test('only events without a readable time → the event with the highest order', () => {
    const events = [event('c', null, 3), event('b', null, 2), event('a', 'soon', 1)];
    expect(latestEvent(events)?.eventId).toBe('c');
  });

  test('no events → undefined', () => {
    expect(latestEvent([])).toBeUndefined();
  });
});

describe('isNewerEvent', () => {
  test('any events with a time → one comparison after another ends at an event as new as latestEvent', () => {
    const timed = anyEvent.filter(({ occurrenceDatetime }) => /T\d/.test(occurrenceDatetime ?? ''));
    fc.assert(
      fc.property(fc.array(timed, { minLength: 1 }), (events) => {
        const [first, ...rest] = events;
        const folded = rest.reduce((known, next) => (isNewerEvent(next, known) ? next : known), first);
        expect(isNewerEvent(latestEvent(events) ?? {}, folded)).toBe(false);
      }),
    );
  });

  test('any event and its copy, or itself → false', () => {
    fc.assert(
      fc.property(anyEvent, (each) => {
        expect([isNewerEvent({ ...each }, each), isNewerEvent(each, each)]).toEqual([false, false]);
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
  ])('%s → $2', (_, arrived, expected) => {
    expect(isNewerEvent(arrived, known)).toBe(expected);
  });

  test.each([undefined, null])('any event and no known event (%s) → true', (nothing) => {
    expect(isNewerEvent(event('first', null), nothing)).toBe(true);
  });

  test('an event with a time and a known event without one → true', () => {
    expect(isNewerEvent(known, event('unreadable', null, 9))).toBe(true);
  });
});

test('the entry point of the receiver → exports nothing that the entry point of events exports', () => {
  expect(Object.keys(events).filter((name) => name in webhooks)).toEqual([]);
});
