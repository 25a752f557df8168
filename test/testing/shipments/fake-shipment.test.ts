import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ConfigurationError } from '../../../src/errors.ts';
import { deliveryEstimate } from '../../../src/events/estimate.ts';
import { parseOccurrenceDatetime } from '../../../src/events/order.ts';
import { STATUS_MILESTONES } from '../../../src/events/statuses.ts';
import type { TrackingEvent } from '../../../src/schemas/event.ts';
import type { FakeShipment, FakeTrackingService, PlayName } from '../../../src/testing/index.ts';
import { PLAY_NAMES } from '../../../src/testing/shipments/shipment.ts';
import { DAY_MS, makeFake, NUMBER, OTHER_NUMBER } from '../make-fake.ts';

const AT_ONCE = { speed: Number.POSITIVE_INFINITY };
const HOUR_MS = 3_600_000;
const CHOSEN = {
  eventId: 'mine',
  occurrenceDatetime: '2026-03-04',
  order: 9,
  status: 'Da',
  location: 'Beijing',
};
const makeRecipient = (city: string) => ({
  name: null,
  address: null,
  postCode: null,
  city,
  subdivision: null,
});

describe('fake.shipment', () => {
  it('addEvent without fields, number in any case → an event in transit at the current time of the fake', () => {
    const { fake } = makeFake();
    expect(fake.shipment(NUMBER.toLowerCase()).addEvent().trackingNumber).toBe(NUMBER);
    expect(fake.shipment(NUMBER).events).toEqual([
      {
        eventId: expect.any(String),
        trackingNumber: NUMBER,
        eventTrackingNumber: NUMBER,
        status: 'In transit',
        occurrenceDatetime: '2026-03-10T12:00:00Z',
        order: 0,
        location: null,
        sourceCode: null,
        courierCode: null,
        statusCode: 'transit_handover',
        statusCategory: 'transit',
        statusMilestone: 'in_transit',
      },
    ]);
  });

  it.each([
    [
      'a milestone → the status that fits it',
      { statusMilestone: 'exception' },
      { statusCode: 'delivery_exception', statusCategory: 'delivery', status: 'Delivery exception' },
    ],
    [
      'a code → the category that its name begins with',
      { statusMilestone: 'exception', statusCode: 'exception_lost' },
      { statusCode: 'exception_lost', statusCategory: 'exception' },
    ],
    ['no code → no category', { statusCode: null }, { statusCode: null, statusCategory: null }],
    ['an unknown milestone → kept', { statusMilestone: 'beamed_up' }, { statusMilestone: 'beamed_up' }],
    ['other fields → replace the defaults', CHOSEN, CHOSEN],
  ])('%s', (_, input, event) => {
    expect(makeFake().fake.shipment(NUMBER).addEvent(input).events).toMatchObject([event]);
  });

  it('an event without a courier → the courier of the previous event', () => {
    const { events } = makeFake().fake.shipment(NUMBER).addEvent({ courierCode: 'fr-post' }).addEvent();
    expect(events[1]).toMatchObject({ courierCode: 'fr-post', sourceCode: events[0]?.sourceCode });
  });

  it.each([
    ['a courier', { courierCode: 'fr-post' }, { courierCode: 'fr-post', sourceCode: 'fr-post-tracking' }],
    ['a source', { sourceCode: 'mine' }, { courierCode: null, sourceCode: 'mine' }],
    ['both', { courierCode: 'fr-post', sourceCode: 'mine' }, { courierCode: 'fr-post', sourceCode: 'mine' }],
    ['neither', {}, { courierCode: null, sourceCode: null }],
  ])('addEvent with %s → courier and source are different codes', (_, input, codes) => {
    expect(makeFake().fake.shipment(NUMBER).addEvent(input).events).toMatchObject([codes]);
  });

  it.each(PLAY_NAMES)('%s → sources are no courier codes', async (name) => {
    const { fake } = makeFake();
    const couriers = new Set(fake.couriers.map(({ courierCode }) => courierCode));
    for (const { courierCode, sourceCode } of fake.play(NUMBER, name, AT_ONCE).events) {
      expect(couriers).toContain(courierCode);
      expect(couriers).not.toContain(sourceCode);
    }
  });

  it('deliver → a delivered event, and tracking goes on', () => {
    const shipment = makeFake().fake.shipment(NUMBER).deliver();
    expect(shipment.events).toMatchObject([{ statusMilestone: 'delivered' }]);
    expect(shipment.isTracked).toBe(true);
  });

  it('stopTracking before a tracker exists → the first tracker stops at its first results, a later tracker is tracked', async () => {
    const { fake, create, advance } = makeFake();
    fake.shipment(NUMBER).deliver().stopTracking();
    expect((await create()).body.data.tracker.isTracked).toBe(true);
    advance(2000);
    await create({ shipmentReference: 'again' });
    advance(2000);
    expect(fake.trackers).toMatchObject([{ isTracked: false }, { isTracked: true }]);
  });

  it('stopTracking, then a new tracker of the number → the new tracker is tracked, the old tracker is not', async () => {
    const { fake, create, advance } = makeFake();
    await create();
    fake.shipment(NUMBER).deliver().stopTracking();
    await create({ shipmentReference: 'another' });
    advance(2000);
    expect(fake.trackers).toMatchObject([{ isTracked: false }, { isTracked: true }]);
  });

  it.each<[number, string, (shipment: FakeShipment) => unknown]>([
    [14, 'a delivery', (shipment) => shipment.deliver()],
    [90, 'the last event', (shipment) => shipment.addEvent()],
    [60, 'a month without events', () => {}],
  ])('%i days after %s → tracking stops by itself', async (days, _, happen) => {
    const { fake, create, advance } = makeFake();
    await create();
    advance(30 * DAY_MS);
    happen(fake.shipment(NUMBER));
    advance(days * DAY_MS - 1);
    expect(fake.shipment(NUMBER).isTracked).toBe(true);
    advance(1);
    expect(fake.shipment(NUMBER).isTracked).toBe(false);
  });

  it.each([
    [
      'true, and a courier',
      ['us'],
      { courierCode: 'us-post', settings: { restrictTrackingToCourierCode: true } },
    ],
    ['one code', ['us'], { settings: { restrictTrackingToCourierCode: 'us-post' } }],
    ['a list', ['us'], { settings: { restrictTrackingToCourierCode: ['us-post'] } }],
    ['none, and a courier', ['cn', 'us'], { courierCode: 'us-post' }],
  ])('settings.restrictTrackingToCourierCode %s → events %j', async (_, eventIds, input) => {
    const { fake, createId, advance } = makeFake();
    const trackerId = await createId(input);
    advance(2000);
    fake.shipment(NUMBER).addEvent({ eventId: 'cn', courierCode: 'cn-post' });
    fake.shipment(NUMBER).addEvent({ eventId: 'us', courierCode: 'us-post' });
    expect(fake.shipment({ trackerId }).events).toMatchObject(eventIds.map((eventId) => ({ eventId })));
  });

  it('isTracked of a number → true as long as one of its trackers is tracked; other numbers are unaffected', async () => {
    const { fake, create, createId } = makeFake();
    const id = await createId();
    await create({ shipmentReference: 'another' });
    await create({ trackingNumber: OTHER_NUMBER });
    fake.shipment({ trackerId: id }).stopTracking();
    expect(fake.shipment({ trackerId: id }).isTracked).toBe(false);
    expect(fake.shipment(NUMBER).isTracked).toBe(true);
    fake.shipment(NUMBER).stopTracking();
    expect([fake.shipment(NUMBER).isTracked, fake.shipment(OTHER_NUMBER).isTracked]).toEqual([false, true]);
  });

  it('update → sets fields of the shipment, also add-ons', async () => {
    const { fake, track } = makeFake();
    fake
      .shipment(NUMBER)
      .addEvent()
      .update({ recipient: makeRecipient('Paris') })
      .update({ delivery: { aiPredictiveDeliveryDate: { to: '2026-03-12' } } });
    const readShipment = async () => (await track()).body.data.trackings[0].shipment;
    expect(await readShipment()).toMatchObject({
      recipient: { city: 'Paris' },
      delivery: { service: null, aiPredictiveDeliveryDate: { to: '2026-03-12' } },
    });
  });

  it.each<[string, (made: ReturnType<typeof makeFake>, id: string) => unknown]>([
    ['stopTracking', ({ fake }) => fake.shipment(NUMBER).stopTracking()],
    ['a scenario at infinite speed', ({ fake }) => fake.play(NUMBER, 'delivered', AT_ONCE)],
    ['the end of a scenario', ({ fake, advance }) => [fake.play(NUMBER, 'customs'), advance(6 * DAY_MS)]],
    [
      '14 days after a delivery',
      ({ fake, advance }) => [fake.shipment(NUMBER).deliver(), advance(14 * DAY_MS)],
    ],
    ['isSubscribed: false', ({ call }, id) => call('PATCH', `/trackers/${id}`, { isSubscribed: false })],
  ])('update after %s → ConfigurationError that says why, and nothing is changed', async (_, stop) => {
    const made = makeFake();
    const trackerId = await made.createId();
    await stop(made, trackerId);
    for (const key of [NUMBER, { trackerId }]) {
      const update = () => made.fake.shipment(key).update({ recipient: makeRecipient('Rome') });
      expect(update).toThrow(ConfigurationError);
      expect(update).toThrow(`Tracking of ${NUMBER} has stopped, so \`update\` changes nothing`);
    }
    const { body } = await made.call('GET', `/trackers/${trackerId}/results`);
    expect(body.data.trackings[0].shipment.recipient).toBeNull();
  });

  it('update before a tracker exists, after a scenario at infinite speed → shown by the first tracker', async () => {
    const { fake, track } = makeFake();
    fake.play(NUMBER, 'delivered', AT_ONCE).update({ recipient: makeRecipient('Paris') });
    const [tracking] = (await track()).body.data.trackings;
    expect(tracking).toMatchObject({ shipment: { recipient: { city: 'Paris' } }, events: { length: 6 } });
  });

  it('update of a number with a stopped and a tracked tracker → changes the tracked one', async () => {
    const { fake, call, createId } = makeFake();
    const stopped = await createId();
    await createId({ shipmentReference: 'another' });
    fake.shipment({ trackerId: stopped }).stopTracking();
    fake.shipment(NUMBER).update({ recipient: makeRecipient('Paris') });
    const { trackings } = (await call('GET', `/trackers/search/${NUMBER}/results`)).body.data;
    expect(trackings.map(({ shipment }) => shipment.recipient?.city)).toEqual([undefined, 'Paris']);
  });
});

describe('the milestone of a shipment (docs/service.md 5.6)', () => {
  const at = (statusMilestone: string, time: string, more: object = {}) => ({
    statusMilestone,
    occurrenceDatetime: `2026-03-10T${time}`,
    ...more,
  });
  const DELIVERED = at('delivered', '14:02');

  it.each<[string, object[], string]>([
    ['delivered, then a late "out for delivery"', [DELIVERED, at('out_for_delivery', '14:07')], 'delivered'],
    [
      'delivered, then late scans',
      [DELIVERED, at('in_transit', '15:00'), at('failed_attempt', '16:00'), at('pending', '17:00')],
      'delivered',
    ],
    ['delivered, then ready for pickup', [DELIVERED, at('available_for_pickup', '15:00')], 'delivered'],
    [
      'delivered, then a return',
      [DELIVERED, at('exception', '15:00', { statusCode: 'exception_return' })],
      'exception',
    ],
    [
      'delivered, returned, then on its way back',
      [DELIVERED, at('exception', '15:00', { statusCode: 'exception_return' }), at('in_transit', '16:00')],
      'in_transit',
    ],
    ['an earlier scan that comes after the delivery', [DELIVERED, at('in_transit', '09:00')], 'delivered'],
    [
      'a failed attempt, then out for delivery',
      [at('failed_attempt', '09:00'), at('out_for_delivery', '10:00')],
      'out_for_delivery',
    ],
  ])('%s → $2, in results and in the last push', async (_, events, milestone) => {
    const { fake, createId, call } = makeFake();
    const id = await createId();
    for (const event of events) fake.shipment(NUMBER).addEvent(event);
    const { shipment, events: shown } = (await call('GET', `/trackers/${id}/results`)).body.data.trackings[0];
    expect(shipment.statusMilestone).toBe(milestone);
    expect(shown.find(({ statusMilestone }) => statusMilestone === milestone)).toMatchObject({
      statusCode: shipment.statusCode,
      statusCategory: shipment.statusCategory,
    });
    expect(fake.webhooks.pending.at(-1)?.item).toMatchObject({ shipment: { statusMilestone: milestone } });
  });

  it('delivered, then a milestone that this version does not know → the unknown one', async () => {
    const { fake, createId } = makeFake();
    await createId();
    fake.shipment(NUMBER).addEvent(DELIVERED, at('beamed_up', '15:00'));
    expect(fake.webhooks.pending.at(-1)?.item).toMatchObject({ shipment: { statusMilestone: 'beamed_up' } });
  });
});

describe('fake.shipment({ trackerId })', () => {
  async function withTwo() {
    const made = makeFake();
    const first = await made.createId();
    const second = await made.createId({ shipmentReference: 'another' });
    const search = async () =>
      (await made.call('GET', `/trackers/search/${NUMBER}/results`)).body.data.trackings;
    return { ...made, first, second, search };
  }

  it('addEvent and proveDelivery → no effect on another tracker of the same shipment', async () => {
    const { fake, first, second } = await withTwo();
    fake.shipment({ trackerId: first }).addEvent({ eventId: 'a' }).proveDelivery();
    expect(fake.shipment({ trackerId: first }).events).toMatchObject([{ eventId: 'a' }]);
    expect(fake.shipment({ trackerId: second }).events).toEqual([]);
    expect(new Set(fake.webhooks.pending.map(({ trackerId }) => trackerId))).toEqual(new Set([first]));
  });

  it('update → changes the shipment of that tracker only', async () => {
    const { fake, first, search } = await withTwo();
    const paris = { recipient: makeRecipient('Paris') };
    fake.shipment(NUMBER).addEvent().update(paris);
    fake.shipment({ trackerId: first }).update({ recipient: makeRecipient('Rome') });
    expect((await search()).map(({ shipment }) => shipment.recipient?.city)).toEqual(['Rome', 'Paris']);
  });

  it('a stopped tracker → no new event and no push', async () => {
    const { fake, first } = await withTwo();
    const shipment = fake.shipment({ trackerId: first }).stopTracking().addEvent().proveDelivery();
    expect([shipment.events, fake.webhooks.pending]).toEqual([[], []]);
  });
});

describe('fake.play', () => {
  it.each(STATUS_MILESTONES)(
    '%s → the shipment ends at this milestone; tracking stops if it is delivered or lost',
    async (milestone) => {
      const { fake, createId, call, advance } = makeFake();
      const id = await createId();
      fake.play(NUMBER, milestone);
      advance(7 * DAY_MS);
      const [{ tracker, shipment }] = (await call('GET', `/trackers/${id}/results`)).body.data.trackings;
      const isStopped = milestone === 'delivered' || milestone === 'exception';
      expect([shipment.statusMilestone, tracker.isTracked]).toEqual([milestone, !isStopped]);
    },
  );

  it.each([
    ['delivered', 'delivered', 6, []],
    ['exception', 'exception', 7, []],
    ['customs', 'delivered', 9, ['customs_received', 'customs_exception', 'customs_cleared']],
  ] as const)(
    '%s at infinite speed → the last event is %s, customs events are in order, and tracking stops',
    (name, milestone, count, customs) => {
      const { events, isTracked } = makeFake().fake.play(NUMBER, name, AT_ONCE);
      expect([events.length, isTracked, events.at(-1)?.statusMilestone]).toEqual([count, false, milestone]);
      const codes = events.map(({ statusCode }) => statusCode);
      expect(codes.filter((code) => code?.startsWith('customs_'))).toEqual(customs);
    },
  );

  const inWindow = (date: string) => ({
    from: `${date}T14:00:00`,
    to: `${date}T20:00:00`,
    source: 'courier',
  });
  const onDay = (date: string) => ({ from: date, to: date, source: 'service' });

  it.each<[PlayName, unknown[]]>([
    ['delivered', [onDay('2026-03-14'), onDay('2026-03-13'), inWindow('2026-03-13')]],
    [
      'exception',
      [onDay('2026-03-14'), onDay('2026-03-13'), inWindow('2026-03-13'), onDay('2026-03-14'), undefined],
    ],
    [
      'customs',
      [
        onDay('2026-03-14'),
        onDay('2026-03-13'),
        onDay('2026-03-16'),
        onDay('2026-03-15'),
        inWindow('2026-03-15'),
      ],
    ],
  ])('%s → estimates that change in webhooks, and the last one in the results', async (name, estimates) => {
    const { fake, createId, call, advance } = makeFake({ resultsDelayMs: 0 });
    const id = await createId();
    fake.play(NUMBER, name);
    advance(7 * DAY_MS);
    const told = fake.webhooks.pending.map(
      ({ item }) => 'shipment' in item && deliveryEstimate(item.shipment),
    );
    expect(told.filter((estimate, index) => !isDeepStrictEqual(estimate, told[index - 1]))).toEqual(
      estimates,
    );
    const { shipment } = (await call('GET', `/trackers/${id}/results`)).body.data.trackings[0];
    expect(deliveryEstimate(shipment)).toEqual(estimates.at(-1));
  });

  it('a scenario, and an estimate that the test has set → the estimate of the test in each webhook', async () => {
    const { fake, createId, advance } = makeFake({ resultsDelayMs: 0 });
    await createId();
    fake.shipment(NUMBER).update({ delivery: { estimatedDeliveryDate: '2026-04-01' } });
    fake.play(NUMBER, 'customs');
    advance(7 * DAY_MS);
    const dates = fake.webhooks.pending.map(
      ({ item }) => 'shipment' in item && item.shipment?.delivery?.estimatedDeliveryDate,
    );
    expect(new Set(dates)).toEqual(new Set(['2026-04-01']));
  });

  it('never-found → no event, and tracking stops after 30 days', () => {
    const { fake, advance } = makeFake();
    const shipment = fake.play(NUMBER, 'never-found');
    advance(30 * DAY_MS - 1);
    expect(shipment.isTracked).toBe(true);
    advance(1);
    expect([shipment.isTracked, shipment.events]).toEqual([false, []]);
  });

  it.each([1, 60])('speed %i → the second event comes after five hours divided by the speed', (speed) => {
    const { fake, advance } = makeFake({ speed: speed === 60 ? 1 : 60 });
    const shipment = fake.play(NUMBER, 'delivered', { speed });
    advance((5 * HOUR_MS) / speed - 1);
    expect(shipment.events).toHaveLength(1);
    advance(1);
    expect(shipment.events).toHaveLength(2);
  });

  it('a speed in the options of the fake → used by a scenario without a speed', () => {
    expect(makeFake(AT_ONCE).fake.play(NUMBER, 'delivered').isTracked).toBe(false);
  });

  it.each([1, 60, 1e6, Number.POSITIVE_INFINITY])(
    'speed %d → no event appears before its own time',
    (speed) => {
      const { fake, clock, advance } = makeFake();
      const shipment = fake.play(NUMBER, 'exception', { speed });
      const seen = new Map<string, number>();
      for (let step = 0; step < 50; step += 1) {
        for (const { occurrenceDatetime } of shipment.events)
          if (occurrenceDatetime?.endsWith('Z') && !seen.has(occurrenceDatetime))
            seen.set(occurrenceDatetime, clock.nowMs);
        advance((6 * DAY_MS) / speed / 50);
      }
      expect(seen.size).toBe(3);
      for (const [occurred, seenAtMs] of seen) expect(Date.parse(occurred)).toBeLessThanOrEqual(seenAtMs);
    },
  );

  it('the scenario delivered → times in all four forms that couriers use', () => {
    const { events } = makeFake().fake.play(NUMBER, 'delivered', AT_ONCE);
    const kinds = events.map(
      ({ occurrenceDatetime }) => parseOccurrenceDatetime(occurrenceDatetime ?? '')?.kind,
    );
    expect(new Set(kinds).size).toBe(4);
  });

  it('the scenario delivered at infinite speed → times that lie the hours of the scenario before now, in their time zone', () => {
    const { events } = makeFake().fake.play(NUMBER, 'delivered', AT_ONCE);
    const moments = events.map(({ occurrenceDatetime: text }) => text ?? '');
    const [first = '', second = ''] = moments;
    expect([first, second].map((text) => text.slice(19))).toEqual(['+08:00', '+08:00']);
    expect(Date.parse(second) - Date.parse(first)).toBe(5 * HOUR_MS);
    const delivered = moments.at(-1) ?? '';
    expect(delivered.slice(19)).toBe('Z');
    // 72 hours lie between the label and the door.
    expect(Date.parse(delivered) - Date.parse(first)).toBe(76 * HOUR_MS);
  });

  it.each(PLAY_NAMES)(
    '%s, begun at any hour of the day → results in the order of the events',
    async (name) => {
      for (let hour = 0; hour < 24; hour += 1) {
        const { fake, createId, call, advance } = makeFake(AT_ONCE);
        const id = await createId();
        advance(hour * HOUR_MS);
        fake.play(NUMBER, name);
        const { body } = await call('GET', `/trackers/${id}/results`);
        const orders = body.data?.trackings[0].events.map(({ order }) => order) ?? [];
        expect(orders).toEqual([...orders.keys()].reverse());
      }
    },
  );

  it.each<[string, (fake: FakeTrackingService) => unknown]>([
    ['a number of two letters', (fake) => fake.shipment('AB')],
    ['an id that no tracker has', (fake) => fake.shipment({ trackerId: 'nobody' })],
    ['a speed of 0', (fake) => fake.play(NUMBER, 'delivered', { speed: 0 })],
    ['a speed as text', (fake) => Reflect.apply(fake.play, fake, [NUMBER, 'delivered', { speed: '60' }])],
    // A caller without types could pass these.
    ['a misspelt speed', (fake) => Reflect.apply(fake.play, fake, [NUMBER, 'delivered', { sped: 60 }])],
    ['an unknown scenario', (fake) => Reflect.apply(fake.play, fake, [NUMBER, 'hamlet'])],
  ])('%s → ConfigurationError', (_, use) => {
    expect(() => use(makeFake().fake)).toThrow(ConfigurationError);
  });
});

describe('the courier of the events of a scenario', () => {
  const readCouriers = async ({ call }: ReturnType<typeof makeFake>, id: string) => {
    const { events } = (await call('GET', `/trackers/${id}/results`)).body.data.trackings[0];
    return new Set(events.map(({ courierCode, sourceCode }) => `${courierCode} ${sourceCode}`));
  };
  const ROUTE = ['us-post us-post-tracking', 'cn-post cn-post-tracking'];

  it.each<[string, object, string[]]>([
    ['no courier', {}, ROUTE],
    ['one courier', { courierCode: 'fr-post' }, ['fr-post fr-post-tracking']],
    ['a courier that the fake does not have', { courierCode: 'dhl' }, ['dhl dhl-tracking']],
    ['both couriers of the route', { courierCode: ['cn-post', 'us-post'] }, ROUTE],
    [
      'one courier of the route, and another',
      { courierCode: ['fr-post', 'us-post'] },
      ['us-post us-post-tracking', 'fr-post fr-post-tracking'],
    ],
    [
      'a restriction',
      { courierCode: 'fr-post', settings: { restrictTrackingToCourierCode: true } },
      ['fr-post fr-post-tracking'],
    ],
    [
      'a restriction to a list',
      { settings: { restrictTrackingToCourierCode: ['dhl'] } },
      ['dhl dhl-tracking'],
    ],
  ])('a tracker with %s → couriers and sources $2', async (_, input, couriers) => {
    const before = makeFake();
    before.fake.play(NUMBER, 'delivered', AT_ONCE);
    const early = await before.createId(input);
    before.advance(10_000);
    const after = makeFake();
    const late = await after.createId(input);
    after.fake.play(NUMBER, 'delivered', AT_ONCE);
    expect(await readCouriers(before, early)).toEqual(new Set(couriers));
    expect(await readCouriers(after, late)).toEqual(new Set(couriers));
    const pushed = after.fake.webhooks.pending.flatMap(({ item }) => ('events' in item ? item.events : []));
    expect(new Set(pushed.map((event) => `${event.courierCode} ${event.sourceCode}`))).toEqual(
      new Set(couriers),
    );
  });

  it('two trackers of a number with different couriers → each has events of its own courier, with the same ids', async () => {
    const { fake, call, create } = makeFake();
    await create({ courierCode: 'fr-post' });
    await create({ courierCode: 'us-post' });
    fake.play(NUMBER, 'delivered', AT_ONCE);
    const { trackings } = (await call('GET', `/trackers/search/${NUMBER}/results`)).body.data;
    const couriers = trackings.map(({ events }) => new Set(events.map(({ courierCode }) => courierCode)));
    expect(couriers).toEqual([new Set(['fr-post']), new Set(['us-post'])]);
    const [ids, otherIds] = trackings.map(({ events }) => events.map(({ eventId }) => eventId));
    expect(ids).toEqual(otherIds);
  });

  it('events of the test after those of a scenario → a named courier stays, otherwise the courier of the tracker', async () => {
    const made = makeFake();
    const trackerId = await made.createId({ courierCode: 'fr-post' });
    made.fake.play(NUMBER, 'delivered');
    made.advance(HOUR_MS);
    made.fake.shipment(NUMBER).addEvent().addEvent({ courierCode: 'nl-post' }).addEvent();
    expect(made.fake.shipment({ trackerId }).events.map(({ courierCode }) => courierCode)).toEqual([
      'fr-post',
      'fr-post',
      'nl-post',
      'nl-post',
    ]);
  });

  it('a per-call search with a courier → events of this courier', async () => {
    const { fake, call } = makeFake({ plans: { perCall: true } });
    fake.play(NUMBER, 'delivered', AT_ONCE);
    const input = { trackingNumber: NUMBER, courierCode: 'fr-post' };
    const { events } = (await call('POST', '/tracking/search', input)).body.data.trackings[0];
    expect(new Set(events.map(({ courierCode }) => courierCode))).toEqual(new Set(['fr-post']));
  });
});

describe('the sample numbers of the service', () => {
  const STOPPED: readonly string[] = ['delivered', 'exception'];
  const toNumber = (milestone: string, digits = '000') =>
    `SHIP24_SAMPLE_${milestone.toUpperCase()}_${digits}`;
  /** The parts of events that do not depend on the number. */
  const describeEvents = (events: readonly TrackingEvent[]) =>
    events.map(({ occurrenceDatetime, statusMilestone, statusCode, status, location, courierCode }) =>
      [occurrenceDatetime, statusMilestone, statusCode, status, location, courierCode].join(' '),
    );

  it.each(STATUS_MILESTONES)(
    '%s → pending until there are results, then the whole history of the scenario, which ends with it',
    async (milestone) => {
      const { fake, create, call, advance } = makeFake({ play: 'customs' });
      const trackingNumber = toNumber(milestone);
      const { trackerId } = (await create({ trackingNumber })).body.data.tracker;
      const read = async () => (await call('GET', `/trackers/${trackerId}/results`)).body.data.trackings[0];
      expect(await read()).toMatchObject({
        tracker: { isTracked: true },
        shipment: { statusMilestone: 'pending' },
        events: [],
      });
      advance(2000);
      const { tracker, shipment, events } = await read();
      expect([shipment.statusMilestone, tracker.isTracked]).toEqual([
        milestone,
        !STOPPED.includes(milestone),
      ]);
      expect(events[0]?.statusMilestone).toBe(milestone === 'pending' ? undefined : milestone);
      expect(fake.webhooks.pending).toHaveLength(events.length);
      const played = makeFake().fake.play(NUMBER, milestone, AT_ONCE);
      expect(describeEvents(events.toReversed())).toEqual(describeEvents(played.events));
    },
  );

  it.each(STATUS_MILESTONES)(
    '%s with other last digits, or another payload → another tracker with the same history',
    async (milestone) => {
      const { fake, track, clock } = makeFake();
      const inputs = [
        { trackingNumber: toNumber(milestone) },
        { trackingNumber: toNumber(milestone, '742').toLowerCase() },
        { trackingNumber: toNumber(milestone), shipmentReference: 'another' },
      ];
      const histories: string[][] = [];
      for (const input of inputs) {
        const [{ tracker, events }] = (await track(input)).body.data.trackings;
        histories.push([`${tracker.isTracked}`, ...describeEvents(events)]);
        for (const { occurrenceDatetime } of events)
          expect(Date.parse(occurrenceDatetime ?? '')).toBeLessThanOrEqual(clock.nowMs);
      }
      const [history] = histories;
      expect(histories).toEqual([history, history, history]);
      expect(history?.[0]).toBe(`${!STOPPED.includes(milestone)}`);
      expect(fake.trackers).toHaveLength(3);
    },
  );

  it('a month later → the same events, and no new ones', async () => {
    const { track, advance } = makeFake();
    const input = { trackingNumber: toNumber('out_for_delivery') };
    const [{ events }] = (await track(input)).body.data.trackings;
    advance(30 * DAY_MS);
    expect((await track(input)).body.data.trackings[0].events).toEqual(events);
  });

  it.each(['SHIP24_SAMPLE_LOST_000', 'SHIP24_SAMPLE_DELIVERED_00', 'MY_SHIP24_SAMPLE_DELIVERED_000'])(
    '%s, which is no sample number → no events',
    async (trackingNumber) => {
      const [tracking] = (await makeFake().track({ trackingNumber })).body.data.trackings;
      expect(tracking.events).toEqual([]);
    },
  );

  it('a sample number → uses quota like any other number; a per-call search finds it, too', async () => {
    const { call, track } = makeFake({ plans: { perShipment: { quota: 1 }, perCall: true } });
    const input = { trackingNumber: 'SHIP24_SAMPLE_EXCEPTION_001' };
    expect((await track(input)).status).toBe(201);
    expect((await track({ trackingNumber: 'SHIP24_SAMPLE_EXCEPTION_002' })).status).toBe(403);
    const { trackings } = (await call('POST', '/tracking/search', input)).body.data;
    expect(trackings).toMatchObject([{ shipment: { statusMilestone: 'exception' }, events: { length: 7 } }]);
  });
});

describe('the option `play`', () => {
  it('any number of shipments that begin at any times → events in the order of their times, then of the shipments', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(3), { maxLength: 30 }), async (pauses) => {
        const { fake, create, advance } = makeFake({ play: 'delivered' });
        const numbers = pauses.map((_, index) => `RR${100_000_000 + index}CN`);
        for (const [index, trackingNumber] of numbers.entries()) {
          advance(pauses[index] ?? 0);
          await create({ trackingNumber });
        }
        advance(4 * DAY_MS);
        const pushes = fake.webhooks.pending.map(({ item: { metadata, tracker } }) => ({
          at: Date.parse(metadata?.generatedAt ?? ''),
          place: numbers.indexOf(tracker.trackingNumber ?? ''),
        }));
        expect(pushes).toHaveLength(6 * numbers.length);
        expect(pushes).toEqual(pushes.toSorted((a, b) => a.at - b.at || a.place - b.place));
      }),
      { numRuns: 30 },
    );
  });

  it('never-found at infinite speed → tracking stops at the time of the first results', async () => {
    const { fake, create, advance } = makeFake({ play: 'never-found', ...AT_ONCE });
    await create();
    expect(fake.trackers).toMatchObject([{ isTracked: true }]);
    advance(2000);
    expect(fake.trackers).toMatchObject([{ isTracked: false }]);
  });

  it('two scenarios and three new numbers → the scenarios take turns', async () => {
    const { fake, create } = makeFake({ play: ['exception', 'never-found'], ...AT_ONCE });
    const numbers = [NUMBER, 'LA680658838NL', 'LA680658839NL'];
    for (const trackingNumber of numbers) await create({ trackingNumber });
    const milestones = numbers.map((number) => fake.shipment(number).events.at(-1)?.statusMilestone);
    expect(milestones).toEqual(['exception', undefined, 'exception']);
  });

  it('a shipment that the test has used → no events of a scenario', async () => {
    const { fake, create } = makeFake({ play: 'delivered' });
    fake.shipment(NUMBER).update({});
    await create();
    expect(fake.shipment(NUMBER).events).toEqual([]);
  });
});
