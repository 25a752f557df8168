import type { EventInput } from 'tracking-client/testing';
import { describe, expect, test } from 'vitest';
import { contractFake, NUMBER } from './support/contract-fake.ts';
import { at, fieldsAt } from './support/reach.ts';

/** Oldest first. */
const STORY: readonly EventInput[] = [
  { eventId: 'label', statusMilestone: 'info_received', occurrenceDatetime: '2026-03-01T08:00:00Z' },
  { eventId: 'hub', statusMilestone: 'in_transit', occurrenceDatetime: '2026-03-02T08:00:00Z' },
  { eventId: 'van', statusMilestone: 'out_for_delivery', occurrenceDatetime: '2026-03-03T07:00:00Z' },
  { eventId: 'door', statusMilestone: 'delivered', occurrenceDatetime: '2026-03-03T12:00:00Z' },
];

/** The results of a tracker whose events came in one call, or one after another. */
async function resultsAfter(events: readonly EventInput[], oneByOne: boolean): Promise<unknown> {
  const { fake, call, createFetched } = contractFake();
  const id = await createFetched();
  const shipment = fake.shipment(NUMBER);
  if (oneByOne) for (const event of events) shipment.addEvent(event);
  else shipment.addEvent(...events);
  const { body } = await call('GET', `/trackers/${id}/results`);
  return at(body, 'data', 'trackings', 0);
}

const LATE: Readonly<Record<string, readonly EventInput[]>> = {
  'the last event first': STORY.toReversed(),
  'a late hub scan': STORY.filter(({ eventId }) => eventId !== 'hub').concat(STORY[1] ?? []),
  'in order': STORY,
};

describe.each(Object.entries(LATE))('%s', (_name, events) => {
  test.each([
    ['in one call', false],
    ['one by one', true],
  ])('%s → newest first by time', async (_how, oneByOne) => {
    const tracking = await resultsAfter(events, oneByOne);
    expect(fieldsAt(tracking, 'eventId', 'events')).toEqual(['door', 'van', 'hub', 'label']);
  });

  test('shipment and statistics → the status of the newest event, and when each milestone was reached', async () => {
    const tracking = await resultsAfter(events, true);
    expect(at(tracking, 'shipment')).toMatchObject({
      statusMilestone: 'delivered',
      statusCode: 'delivery_delivered',
      statusCategory: 'delivery',
    });
    expect(at(tracking, 'statistics', 'timestamps')).toMatchObject({
      infoReceivedDatetime: '2026-03-01T08:00:00Z',
      inTransitDatetime: '2026-03-02T08:00:00Z',
      outForDeliveryDatetime: '2026-03-03T07:00:00Z',
      deliveredDatetime: '2026-03-03T12:00:00Z',
    });
  });
});

describe('what decides the order', () => {
  test('different offsets → the instant', async () => {
    const tracking = await resultsAfter(
      [
        { eventId: 'later', occurrenceDatetime: '2026-03-03T10:00:00Z' },
        { eventId: 'sooner', occurrenceDatetime: '2026-03-03T12:00:00+08:00' },
      ],
      true,
    );
    expect(fieldsAt(tracking, 'eventId', 'events')).toEqual(['later', 'sooner']);
  });

  test('two dates without a time → `order`, lower is older', async () => {
    const tracking = await resultsAfter(
      [
        { eventId: 'second', occurrenceDatetime: '2026-03-03', order: 2 },
        { eventId: 'first', occurrenceDatetime: '2026-03-03', order: 1 },
      ],
      true,
    );
    expect(fieldsAt(tracking, 'eventId', 'events')).toEqual(['second', 'first']);
  });

  test('a late event → its push shows the shipment as delivered', async () => {
    const { fake, createFetched } = contractFake();
    await createFetched();
    for (const event of STORY.toReversed()) fake.shipment(NUMBER).addEvent(event);
    const milestones = fake.webhooks.pending.map(({ item }) => at(item, 'shipment', 'statusMilestone'));
    expect(new Set(milestones)).toEqual(new Set(['delivered']));
  });
});
