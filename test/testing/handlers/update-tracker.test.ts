import { describe, expect, it } from 'vitest';
import { codeOf, DAY_MS, makeFake, NUMBER, OTHER_NUMBER, START_MS } from '../make-fake.ts';

async function withTracker(input: object = {}) {
  const fake = makeFake();
  const id = await fake.createId(input);
  return { ...fake, id, patch: (body: unknown) => fake.call('PATCH', `/trackers/${id}`, body) };
}

describe('PATCH /trackers/{trackerId}', () => {
  it('other couriers → 200 and the changed tracker', async () => {
    const { patch } = await withTracker();
    const { status, body } = await patch({ courierCode: ['us-post'] });
    expect([status, body.data.tracker.courierCode]).toEqual([200, ['us-post']]);
  });

  it('a changed field → takes part in duplicate matching', async () => {
    const { patch, create, id } = await withTracker();
    await patch({ destinationCountryCode: 'USA' });
    const { body } = await create({ destinationCountryCode: 'US' });
    expect(body.data.tracker.trackerId).toBe(id);
  });

  it('isSubscribed false → archived, and not tracked any more', async () => {
    const { patch } = await withTracker();
    const { body } = await patch({ isSubscribed: false });
    expect(body.data.tracker).toMatchObject({ isSubscribed: false, isTracked: false });
  });

  it('isSubscribed true after archiving → tracked again', async () => {
    const { patch } = await withTracker({ clientTrackerId: 'mine' });
    await patch({ isSubscribed: false });
    expect((await patch({ isSubscribed: true })).body.data.tracker.isTracked).toBe(true);
  });

  it('isSubscribed true when its client tracker id was taken meanwhile → 400 tracker_conflict', async () => {
    const { patch, create } = await withTracker({ clientTrackerId: 'mine' });
    await patch({ isSubscribed: false });
    await create({ clientTrackerId: 'mine', trackingNumber: OTHER_NUMBER });
    const response = await patch({ isSubscribed: true });
    expect([response.status, codeOf(response)]).toEqual([400, 'tracker_conflict']);
  });

  it('a hint after data was gathered → 400 tracker_not_updatable', async () => {
    const { fake, patch } = await withTracker();
    fake.shipment(NUMBER).addEvent();
    const response = await patch({ originCountryCode: 'CN' });
    expect([response.status, codeOf(response)]).toEqual([400, 'tracker_not_updatable']);
  });

  it('the post code after data was gathered → 200', async () => {
    const { fake, patch } = await withTracker();
    fake.shipment(NUMBER).addEvent();
    expect((await patch({ destinationPostCode: '94901' })).status).toBe(200);
  });

  it('isSubscribed true after a stop without archiving → still stopped', async () => {
    const { fake, patch } = await withTracker();
    fake.shipment(NUMBER).stopTracking();
    expect((await patch({ isSubscribed: true })).body.data.tracker.isTracked).toBe(false);
  });

  it('archived before its first results, then active again → they come as late as for a new tracker', async () => {
    const { fake, call, patch, id, advance } = await withTracker();
    await patch({ isSubscribed: false });
    fake.shipment(NUMBER).addEvent();
    advance(10_000);
    await patch({ isSubscribed: true });
    expect((await call('GET', `/trackers/${id}/results`)).status).toBe(404);
    advance(2000);
    expect((await call('GET', `/trackers/${id}/results`)).status).toBe(200);
  });

  it('isSubscribed after data was gathered → 200', async () => {
    const { fake, patch } = await withTracker();
    fake.shipment(NUMBER).addEvent();
    expect((await patch({ isSubscribed: false })).status).toBe(200);
  });

  it.each([
    ['no field', {}],
    ['isSubscribed as text', { isSubscribed: 'no' }],
    ['a country that does not exist', { originCountryCode: 'XX' }],
  ])('%s → 400 validation_error', async (_, body) => {
    const { patch } = await withTracker();
    const response = await patch(body);
    expect([response.status, codeOf(response)]).toEqual([400, 'validation_error']);
  });

  it.each([
    ['a field nobody knows', { insuredValue: 12 }],
    ['a field that only a creation has', { trackingNumber: OTHER_NUMBER }],
  ])('%s alone → ignored, and the tracker stays as it is', async (_, body) => {
    const { fake, patch } = await withTracker();
    const [before] = fake.trackers;
    const response = await patch(body);
    expect([response.status, response.body.data.tracker]).toEqual([200, before]);
  });

  it('archived, and its client tracker id not taken → still found by it', async () => {
    const { call, patch, id } = await withTracker({ clientTrackerId: 'mine' });
    await patch({ isSubscribed: false });
    const { status, body } = await call('GET', '/trackers/mine?searchBy=clientTrackerId');
    expect([status, body.data.tracker.trackerId]).toEqual([200, id]);
  });

  it('archived, and its client tracker id taken → the other tracker is found by it', async () => {
    const { call, patch, createId } = await withTracker({ clientTrackerId: 'mine' });
    await patch({ isSubscribed: false });
    const takenBy = await createId({ clientTrackerId: 'mine', trackingNumber: OTHER_NUMBER });
    const { body } = await call('GET', '/trackers/mine?searchBy=clientTrackerId');
    expect(body.data.tracker.trackerId).toBe(takenBy);
  });

  it('two archived trackers of one client tracker id → the one that is made active again is found by it', async () => {
    const { call, patch, createId, id } = await withTracker({ clientTrackerId: 'mine' });
    await patch({ isSubscribed: false });
    const takenBy = await createId({ clientTrackerId: 'mine', trackingNumber: OTHER_NUMBER });
    await call('PATCH', `/trackers/${takenBy}`, { isSubscribed: false });
    await patch({ isSubscribed: true });
    const { body } = await call('GET', '/trackers/mine?searchBy=clientTrackerId');
    expect(body.data.tracker.trackerId).toBe(id);
  });

  it('a date older than 180 days → 400 shipping_date_outdated', async () => {
    const { patch } = await withTracker();
    const shippingDate = new Date(START_MS - 181 * DAY_MS).toISOString();
    expect(codeOf(await patch({ shippingDate }))).toBe('shipping_date_outdated');
  });

  it('an unknown tracker → 404 tracker_not_found', async () => {
    const { call } = makeFake();
    expect(codeOf(await call('PATCH', '/trackers/nobody', { isSubscribed: false }))).toBe(
      'tracker_not_found',
    );
  });

  it('searchBy=clientTrackerId → changes the tracker with that id', async () => {
    const { call } = await withTracker({ clientTrackerId: 'mine' });
    const response = await call('PATCH', '/trackers/mine?searchBy=clientTrackerId', { isSubscribed: false });
    expect(response.body.data.tracker.isSubscribed).toBe(false);
  });

  it('the field a courier asked for → its results come', async () => {
    const { fake, call, patch, id } = await withTracker({
      courierCode: 'nl-post',
      destinationCountryCode: 'US',
    });
    fake.shipment(NUMBER).addEvent();
    expect((await call('GET', `/trackers/${id}/results`)).status).toBe(404);
    await patch({ destinationPostCode: '94901' });
    expect((await call('GET', `/trackers/${id}/results`)).status).toBe(200);
    expect(fake.webhooks.pending).toHaveLength(1);
  });
});
