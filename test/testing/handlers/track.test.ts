import { describe, expect, it } from 'vitest';
import { makeFake, NUMBER } from '../make-fake.ts';

describe('POST /trackers/track', () => {
  it('a number couriers know → 201 with the tracker and its results at once', async () => {
    const { fake, track } = makeFake();
    fake.shipment(NUMBER).deliver();
    const { status, body } = await track();
    expect(status).toBe(201);
    expect(body.data.trackings).toMatchObject([
      { tracker: { trackingNumber: NUMBER }, events: [{ statusMilestone: 'delivered' }] },
    ]);
  });

  it('the same payload again → 200, the same tracker with fresh results', async () => {
    const { fake, track } = makeFake();
    const first = await track();
    fake.shipment(NUMBER).deliver();
    const second = await track();
    expect(second.status).toBe(200);
    expect(second.body.data.trackings[0].tracker.trackerId).toBe(
      first.body.data.trackings[0].tracker.trackerId,
    );
    expect(second.body.data.trackings[0].events).toHaveLength(1);
  });

  it('a courier that can not be asked synchronously → the tracker without events, which come later', async () => {
    const { fake, track, advance } = makeFake();
    fake.shipment(NUMBER).deliver({ courierCode: 'cn-post' });
    const first = await track({ courierCode: 'cn-post' });
    advance(10_000);
    const later = await track({ courierCode: 'cn-post' });
    expect(first.body.data.trackings[0]).toMatchObject({ tracker: { isTracked: true }, events: [] });
    expect(later.body.data.trackings[0].events).toHaveLength(1);
  });

  it('no courier named, and the one that carries it can not be asked synchronously → no events yet', async () => {
    const { fake, track } = makeFake();
    fake.shipment(NUMBER).deliver({ courierCode: 'cn-post' });
    expect((await track()).body.data.trackings[0].events).toEqual([]);
  });

  it('one of two couriers can be asked synchronously → results at once', async () => {
    const { fake, track } = makeFake();
    fake.shipment(NUMBER).deliver({ courierCode: 'cn-post' });
    expect((await track({ courierCode: ['cn-post', 'us-post'] })).body.data.trackings[0].events).toHaveLength(
      1,
    );
  });

  it('a number nobody knows → the tracker, pending, without events', async () => {
    const { track } = makeFake();
    const [tracking] = (await track()).body.data.trackings;
    expect(tracking).toMatchObject({ shipment: { statusMilestone: 'pending' }, events: [] });
  });

  it('a courier added by the test → asked like the others', async () => {
    const { fake, track } = makeFake();
    fake.couriers.push({ courierCode: 'slow-post', supportsSynchronousFetch: false });
    fake.shipment(NUMBER).deliver();
    expect((await track({ courierCode: 'slow-post' })).body.data.trackings[0].events).toEqual([]);
  });
});
