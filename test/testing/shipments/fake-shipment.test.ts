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
    const given = {
      eventId: 'mine',
      occurrenceDatetime: '2026-03-04',
      order: 9,
      status: 'Da',
      location: 'Beijing',
    };
    expect(fake.shipment(NUMBER).addEvent(given).events).toMatchObject([given]);
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

  it('stopTracking before a tracker exists → the tracker is not tracked from the start', async () => {
    const { fake, create } = makeFake();
    fake.shipment(NUMBER).stopTracking();
    expect((await create()).body.data.tracker.isTracked).toBe(false);
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
});
