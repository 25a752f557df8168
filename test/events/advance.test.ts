import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  advanceStatus,
  type ShipmentStatus,
  STATUS_MILESTONES,
  type StatusNews,
} from '../../src/events/index.ts';
import { TrackingClient } from '../../src/index.ts';
import { createFakeTrackingService, createWebhookSender } from '../../src/testing/index.ts';
import { createWebhookHandler, MemoryDedupeStore } from '../../src/webhooks/index.ts';

const NOON = '2026-03-04T12:00:00.000Z';
const ONE = '2026-03-04T13:00:00.000Z';

function webhook(
  statusMilestone: string | null,
  generatedAt: string | null = NOON,
  more: object = {},
): StatusNews {
  return { metadata: { generatedAt }, shipment: { statusMilestone, statusCode: null }, ...more };
}

function results(
  statusMilestone: string | null,
  readAt: string | undefined = NOON,
  more: object = {},
): StatusNews {
  return { tracking: { shipment: { statusMilestone }, ...more }, readAt };
}

function advanceAll(news: readonly StatusNews[], saved?: ShipmentStatus): ShipmentStatus | undefined {
  // Stored as JSON between two pieces of news.
  return news.reduce<ShipmentStatus | undefined>((status, one) => {
    const next = advanceStatus(status, one).status;
    return next && JSON.parse(JSON.stringify(next));
  }, saved);
}

describe('the first news', () => {
  test('a webhook → its status, with the time at which it was generated', () => {
    const message = {
      ...webhook('delivered'),
      shipment: { statusMilestone: 'delivered', statusCode: 'delivery_delivered' },
      statistics: { timestamps: { deliveredDatetime: '2026-03-04T11:55:00' } },
    };
    expect(advanceStatus(undefined, message)).toEqual({
      status: {
        milestone: 'delivered',
        code: 'delivery_delivered',
        reachedAt: '2026-03-04T11:55:00',
        at: NOON,
        source: 'webhook',
      },
      changed: true,
      previous: undefined,
    });
  });

  test('results with the time of the call → their status', () => {
    const status = { milestone: 'in_transit', at: NOON, source: 'results' };
    expect(advanceStatus(null, results('in_transit'))).toEqual({
      status,
      changed: true,
      previous: undefined,
    });
  });

  test.each([
    ['out_for_delivery', { outForDeliveryDatetime: '2026-03-04' }],
    ['available_for_pickup', { availableForPickupDatetime: '2026-03-04' }],
    ['exception', { exceptionDatetime: '2026-03-04' }],
  ])('%s with statistics → reached at their time', (milestone, timestamps) => {
    const { status } = advanceStatus(undefined, webhook(milestone, NOON, { statistics: { timestamps } }));
    expect(status?.reachedAt).toBe('2026-03-04');
  });

  test('no statistics → reached at the first event with the milestone', () => {
    const events = ['2026-03-03', '2026-03-02', '2026-03-01'].map((occurrenceDatetime, index) => ({
      occurrenceDatetime,
      statusMilestone: index === 2 ? 'info_received' : 'in_transit',
    }));
    expect(advanceStatus(undefined, results('in_transit', NOON, { events })).status?.reachedAt).toBe(
      '2026-03-02',
    );
  });

  test('events that are not objects → left out when the first event with the milestone is searched', () => {
    const event = { statusMilestone: 'delivered', occurrenceDatetime: '2026-03-04T11:55:00' };
    // A program without types may have such events.
    const more: object = { events: [null, 5, event, 'text'] };
    expect(advanceStatus(null, webhook('delivered', NOON, more)).status).toMatchObject({
      reachedAt: event.occurrenceDatetime,
    });
    expect(advanceStatus(null, webhook('delivered', NOON, { events: [null] })).status).toMatchObject({
      milestone: 'delivered',
    });
  });
});

describe('later news', () => {
  const saved: ShipmentStatus = { milestone: 'in_transit', at: NOON, source: 'webhook' };

  test('a newer time and another milestone → changed, with the status before', () => {
    const { status, changed, previous } = advanceStatus(saved, webhook('delivered', ONE));
    expect({ status, changed, previous }).toMatchObject({
      status: { milestone: 'delivered', at: ONE },
      changed: true,
    });
    expect(previous).toBe(saved);
  });

  test('a newer time and an earlier milestone → changed, nothing is sticky', () => {
    const delivered: ShipmentStatus = { milestone: 'delivered', at: NOON };
    expect(advanceStatus(delivered, results('in_transit', ONE))).toMatchObject({
      status: { milestone: 'in_transit' },
      changed: true,
    });
  });

  test('a newer time and the same milestone → the new time, not changed', () => {
    expect(advanceStatus(saved, webhook('in_transit', ONE))).toMatchObject({
      status: { at: ONE },
      changed: false,
    });
  });

  test.each<[what: string, news: StatusNews]>([
    ['an older time', webhook('delivered', '2026-03-04T11:59:59.999Z')],
    ['an older instant in another zone', webhook('delivered', '2026-03-04T13:30:00+02:00')],
    ['no milestone', webhook(null, ONE)],
    ['an empty milestone', webhook('', ONE)],
    ['no shipment', { metadata: { generatedAt: ONE } }],
    ['no time', webhook('delivered', null)],
    ['a time without a zone', webhook('delivered', '2026-03-04T13:00:00')],
    ['an unreadable time', webhook('delivered', 'yesterday')],
    ['results without the time of the call', { tracking: { shipment: { statusMilestone: 'delivered' } } }],
    ['an update without results', { tracking: undefined, readAt: ONE }],
    ['the same news again', webhook('in_transit')],
  ])('%s → nothing changes', (_what, news) => {
    expect(advanceStatus(saved, news)).toEqual({ status: saved, changed: false, previous: saved });
  });

  test('a stored time that cannot be read → replaced by any news', () => {
    const broken: ShipmentStatus = { milestone: 'pending', at: '' };
    expect(advanceStatus(broken, webhook('delivered'))).toMatchObject({
      status: { at: NOON },
      changed: true,
    });
  });
});

describe('two pieces of news of the same time', () => {
  test.each<[what: string, winner: StatusNews, other: StatusNews]>([
    ['a webhook and results', webhook('in_transit'), results('delivered')],
    ['two webhooks', webhook('delivered'), webhook('in_transit')],
    ['two results', results('exception'), results('delivered')],
    ['a known and an unknown milestone', webhook('pending'), webhook('weighed')],
    [
      'the same instant, written in two ways',
      webhook('in_transit', '2026-03-04T14:00:00+02:00'),
      results('delivered'),
    ],
  ])('%s → the same winner in both orders', (_what, winner, other) => {
    const { status } = advanceStatus(undefined, winner);
    expect(advanceAll([winner, other])).toEqual(status);
    expect(advanceAll([other, winner])).toEqual(status);
  });
});

test('any order and any repetition of the same news → the same status', () => {
  const time = fc.constantFrom(NOON, ONE, '2026-03-04T14:00:00+02:00', '2026-03-04T12:00:00Z', 'x');
  const milestone = fc.constantFrom(...STATUS_MILESTONES, 'weighed', 'measured', null);
  const more = fc.constantFrom({}, { statistics: { timestamps: { deliveredDatetime: '2026-03-04' } } });
  const make = fc.constantFrom(webhook, results);
  const news = fc.tuple(make, milestone, time, more).map(([build, one, at, extra]) => build(one, at, extra));
  const orders = fc
    .array(news, { minLength: 1, maxLength: 6 })
    .chain((list) =>
      fc.tuple(fc.constant(list), fc.shuffledSubarray([...list, ...list], { minLength: list.length * 2 })),
    );
  fc.assert(
    fc.property(orders, ([list, again]) => {
      expect(advanceAll(again)).toEqual(advanceAll(list));
    }),
  );
});

test('updates of polls, items of resultsMany, results of a call and messages of webhooks → the status of the shipment', async () => {
  const fake = createFakeTrackingService({ resultsDelayMs: 0, limits: false });
  const { baseUrl, apiKey, fetch } = fake;
  const { trackers } = new TrackingClient({ baseUrl, apiKey, fetch });
  const { trackerId } = await trackers.create({ trackingNumber: 'RR123456785CN' });
  fake.shipment('RR123456785CN').deliver();
  const statuses: Record<string, ShipmentStatus | undefined> = {};
  const add = (name: string, news: StatusNews) => {
    statuses[name] = advanceStatus(undefined, news).status;
  };
  add('pollOnce', await trackers.pollOnce(trackerId));
  for await (const item of trackers.resultsMany([trackerId])) add('resultsMany', item);
  for await (const update of trackers.pollMany([trackerId], { initialDelayMs: 0 })) {
    add('pollMany', update);
    break;
  }
  for await (const update of trackers.poll(trackerId, { initialDelayMs: 0 })) {
    add('poll', update);
    break;
  }
  const readAt = new Date().toISOString();
  add('results', { tracking: await trackers.results(trackerId), readAt });
  const target = createWebhookHandler({
    secret: 'whsec',
    store: new MemoryDedupeStore(),
    onEvents: (message) => add('webhook', message),
  });
  await createWebhookSender({ target, secret: 'whsec', fake }).flush();
  const names = ['pollOnce', 'resultsMany', 'pollMany', 'poll', 'results', 'webhook'];
  expect(Object.keys(statuses)).toEqual(names);
  for (const name of names)
    expect(statuses[name]).toMatchObject({
      milestone: 'delivered',
      reachedAt: expect.any(String),
      source: name === 'webhook' ? 'webhook' : 'results',
    });
});
