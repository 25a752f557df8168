import { describe, expect, it } from 'vitest';
import { ConfigurationError } from '../../../src/errors.ts';
import { makeFake, NUMBER, OTHER_NUMBER } from '../make-fake.ts';

describe('fake.shipment', () => {
  it('a number in lower case → the same shipment', () => {
    const { fake } = makeFake();
    fake.shipment(NUMBER.toLowerCase()).addEvent();
    expect(fake.shipment(NUMBER).events).toHaveLength(1);
  });

  it.each(['', 'AB', '12345', 'with space'])(
    '%j, which is no tracking number → ConfigurationError',
    (number) => {
      expect(() => makeFake().fake.shipment(number)).toThrow(ConfigurationError);
    },
  );

  it('addEvent without fields → an event in transit, now, on the clock of the fake', () => {
    const { fake } = makeFake();
    expect(fake.shipment(NUMBER).addEvent().events).toEqual([
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

  it('a milestone → code, category and text that fit it', () => {
    const { fake } = makeFake();
    expect(fake.shipment(NUMBER).addEvent({ statusMilestone: 'exception' }).events).toMatchObject([
      { statusCode: 'delivery_exception', statusCategory: 'exception', status: 'Delivery exception' },
    ]);
  });

  it('a milestone nobody knows yet → kept', () => {
    const { fake } = makeFake();
    const { events } = fake.shipment(NUMBER).addEvent({ statusMilestone: 'beamed_up' });
    expect(events).toMatchObject([{ statusMilestone: 'beamed_up' }]);
  });

  it('given fields → win over all defaults', () => {
    const { fake } = makeFake();
    const fields = {
      eventId: 'mine',
      occurrenceDatetime: '2026-03-04',
      order: 9,
      status: 'Da',
      location: 'Beijing',
    };
    expect(fake.shipment(NUMBER).addEvent(fields).events).toMatchObject([fields]);
  });

  it('an event without a courier → that of the event before', () => {
    const { fake } = makeFake();
    const { events } = fake.shipment(NUMBER).addEvent({ courierCode: 'fr-post' }).addEvent();
    expect(events[1]).toMatchObject({ courierCode: 'fr-post', sourceCode: 'fr-post' });
  });

  it('deliver → a delivered event, and tracking goes on', () => {
    const { fake } = makeFake();
    const shipment = fake.shipment(NUMBER).deliver();
    expect(shipment.events).toMatchObject([{ statusMilestone: 'delivered' }]);
    expect(shipment.isTracked).toBe(true);
  });

  it('stopTracking before a tracker exists → the first one stops with its first results, a later one is tracked', async () => {
    const { fake, create, advance } = makeFake();
    fake.shipment(NUMBER).deliver().stopTracking();
    expect((await create()).body.data.tracker.isTracked).toBe(true);
    advance(2000);
    await create({ shipmentReference: 'again' });
    advance(2000);
    expect(fake.trackers).toMatchObject([{ isTracked: false }, { isTracked: true }]);
  });

  it('isTracked of a number → true as long as one of its trackers is', async () => {
    const { fake, create, createId } = makeFake();
    const id = await createId();
    await create({ shipmentReference: 'another' });
    fake.shipment({ trackerId: id }).stopTracking();
    expect([fake.shipment({ trackerId: id }).isTracked, fake.shipment(NUMBER).isTracked]).toEqual([
      false,
      true,
    ]);
    fake.shipment(NUMBER).stopTracking();
    expect(fake.shipment(NUMBER).isTracked).toBe(false);
  });

  it('stopTracking → other numbers are tracked on', async () => {
    const { fake, create } = makeFake();
    await create({ trackingNumber: OTHER_NUMBER });
    fake.shipment(NUMBER).stopTracking();
    expect(fake.trackers).toMatchObject([{ isTracked: true }]);
  });

  it('update → fields of the shipment, add-ons included', async () => {
    const { fake, track } = makeFake();
    fake
      .shipment(NUMBER)
      .addEvent()
      .update({ recipient: { city: 'Paris' } })
      .update({ delivery: { aiPredictiveDeliveryDate: '2026-03-12' } });
    const [{ shipment }] = (await track()).body.data.trackings;
    expect(shipment.recipient).toEqual({ city: 'Paris' });
    expect(shipment.delivery).toMatchObject({ service: null, aiPredictiveDeliveryDate: '2026-03-12' });
  });

  it('update of a tracker that has stopped → nothing new', async () => {
    const { fake, call, createId } = makeFake();
    const id = await createId();
    fake
      .shipment(NUMBER)
      .addEvent()
      .update({ recipient: { city: 'Paris' } })
      .stopTracking();
    fake.shipment(NUMBER).update({ recipient: { city: 'Rome' } });
    const [{ shipment }] = (await call('GET', `/trackers/${id}/results`)).body.data.trackings;
    expect(shipment.recipient).toEqual({ city: 'Paris' });
  });
});

describe('fake.shipment({ trackerId })', () => {
  async function withTwo() {
    const made = makeFake();
    const first = await made.createId();
    const second = await made.createId({ shipmentReference: 'another' });
    return { ...made, first, second };
  }

  it('a verb → nothing for another tracker of the same shipment', async () => {
    const { fake, first, second } = await withTwo();
    fake.shipment({ trackerId: first }).addEvent({ eventId: 'a' }).proveDelivery();
    expect(fake.shipment({ trackerId: first }).events).toMatchObject([{ eventId: 'a' }]);
    expect(fake.shipment({ trackerId: second }).events).toEqual([]);
    expect(new Set(fake.webhooks.pending.map(({ trackerId }) => trackerId))).toEqual(new Set([first]));
  });

  it('update → the shipment of that tracker only', async () => {
    const { fake, first, call } = await withTwo();
    fake
      .shipment(NUMBER)
      .addEvent()
      .update({ recipient: { city: 'Paris' } });
    fake.shipment({ trackerId: first }).update({ recipient: { city: 'Rome' } });
    const { trackings } = (await call('GET', `/trackers/search/${NUMBER}/results`)).body.data;
    expect(trackings.map(({ shipment }) => shipment.recipient?.city)).toEqual(['Rome', 'Paris']);
  });

  it('a stopped tracker → learns nothing', async () => {
    const { fake, first } = await withTwo();
    const shipment = fake.shipment({ trackerId: first }).stopTracking().addEvent().proveDelivery();
    expect([shipment.events, fake.webhooks.pending]).toEqual([[], []]);
  });

  it('an id that no tracker has → ConfigurationError', async () => {
    const { fake } = await withTwo();
    expect(() => fake.shipment({ trackerId: 'nobody' })).toThrow(ConfigurationError);
  });

  it('trackers that agree on courier, countries and date → one shipment with the same eventIds', async () => {
    const { fake, call } = await withTwo();
    fake.shipment(NUMBER).addEvent();
    const [first, second] = (await call('GET', `/trackers/search/${NUMBER}/results`)).body.data.trackings;
    expect(second?.shipment.shipmentId).toBe(first.shipment.shipmentId);
    expect(second?.events).toEqual(first.events);
  });
});
