import { describe, expect, test } from 'vitest';
import { courierOf, daysInTransit } from '../../src/events/index.ts';
import { trackingSchema } from '../../src/index.ts';

function event(occurrenceDatetime: string | null, statusMilestone: string, courierCode?: string | null) {
  return { occurrenceDatetime, statusMilestone, courierCode };
}

describe('courierOf', () => {
  const early = event('2026-03-01', 'in_transit', 'us-post');
  const late = event('2026-03-04', 'in_transit', 'fr-post');

  test.each([
    ['events in any order', { events: [late, early] }, 'fr-post'],
    [
      'the newest event names no courier',
      { events: [early, event('2026-03-05', 'delivered', null)] },
      'us-post',
    ],
    [
      'the newest event has an empty courier',
      { events: [early, event('2026-03-05', 'delivered', '')] },
      'us-post',
    ],
    [
      'an event without a readable time names another',
      { events: [early, event('some day', 'in_transit', 'de-post'), event(null, 'in_transit', 'nl-post')] },
      'us-post',
    ],
    [
      'only an event without a time names one',
      { events: [event('2026-03-05', 'delivered'), event(null, 'in_transit', 'nl-post')] },
      'nl-post',
    ],
    ['no event names one', { events: [], tracker: { courierCode: ['de-post'] } }, 'de-post'],
    ['the code of the tracker is a text', { events: [], tracker: { courierCode: 'de-post' } }, 'de-post'],
    [
      'an event and a tracker name one',
      { events: [early], tracker: { courierCode: ['de-post'] } },
      'us-post',
    ],
    ['the tracker has two', { events: [], tracker: { courierCode: ['de-post', 'us-post'] } }, undefined],
    ['the tracker has none', { events: [], tracker: { courierCode: null } }, undefined],
    ['nothing is known', { events: [] }, undefined],
  ])('%s → %#: the courier', (_what, tracking, courier) => {
    expect(courierOf(tracking)).toBe(courier);
  });
});

describe('daysInTransit', () => {
  const announced = event('2026-03-01', 'info_received');
  const delivered = event('2026-03-05', 'delivered');

  test.each([
    ['dates', [announced, event('2026-03-02', 'in_transit'), delivered], 3],
    ['events in any order', [delivered, event('2026-03-02', 'in_transit'), announced], 3],
    ['an exception comes first', [announced, event('2026-03-02', 'exception'), delivered], 3],
    [
      'local times, late and early',
      [event('2026-03-02T23:00:00', 'in_transit'), event('2026-03-04T01:00:00', 'delivered')],
      2,
    ],
    [
      'instants 26 hours apart',
      [event('2026-03-02T23:00:00Z', 'in_transit'), event('2026-03-04T01:00:00Z', 'delivered')],
      1,
    ],
    [
      'instants with offsets, two written days and 23 hours apart',
      [event('2026-03-02T23:00:00-10:00', 'in_transit'), event('2026-03-04T08:00:00Z', 'delivered')],
      0,
    ],
    [
      'a local time and an instant, 2 hours apart if the time were UTC',
      [event('2026-03-02T23:00:00', 'in_transit'), event('2026-03-03T01:00:00Z', 'delivered')],
      1,
    ],
    [
      'pending comes first',
      [event('2026-03-01', 'pending'), event('2026-03-02', 'in_transit'), delivered],
      3,
    ],
    ['a milestone that is not known comes first', [event('2026-03-02', 'weighed'), delivered], 3],
    [
      'the first event after the announcement has no time',
      [event(null, 'in_transit'), event('2026-03-03', 'out_for_delivery'), delivered],
      2,
    ],
    ['an instant and a date', [event('2026-03-02T23:00:00Z', 'in_transit'), delivered], 3],
    [
      'a scan after the delivery',
      [event('2026-03-02', 'in_transit'), delivered, event('2026-03-09', 'delivered')],
      3,
    ],
    ['only the delivery', [delivered], 0],
    ['no delivery', [event('2026-03-02', 'in_transit')], undefined],
    ['only the announcement', [announced], undefined],
    ['a delivery without a time', [event('2026-03-02', 'in_transit'), event(null, 'delivered')], undefined],
    ['nothing', [], undefined],
  ])('%s → the whole days', (_what, events, days) => {
    expect(daysInTransit({ events })).toBe(days);
  });

  test('the delivery stands only in the statistics → counted to it', () => {
    const statistics = { timestamps: { deliveredDatetime: '2026-03-05T10:00:00' } };
    expect(daysInTransit({ events: [event('2026-03-02', 'in_transit')], statistics })).toBe(3);
  });

  test('results that the schema has read → the days', () => {
    const events = [
      { eventId: 'a', ...event('2026-03-02', 'in_transit') },
      { eventId: 'b', ...delivered },
    ];
    expect(daysInTransit(trackingSchema.parse({ events }))).toBe(3);
  });
});
