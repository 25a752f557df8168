import { describe, expect, it } from 'vitest';
import { codeOf, makeFake, NUMBER } from '../make-fake.ts';

describe('GET /trackers/{trackerId}', () => {
  it('a tracker id → 200 and the tracker', async () => {
    const { call, createId } = makeFake();
    const id = await createId();
    const { status, body } = await call('GET', `/trackers/${id}`);
    expect([status, body.data.tracker.trackerId]).toEqual([200, id]);
  });

  it('searchBy=clientTrackerId → the tracker with that id', async () => {
    const { call, createId } = makeFake();
    const id = await createId({ clientTrackerId: 'order/7 é' });
    const path = `/trackers/${encodeURIComponent('order/7 é')}?searchBy=clientTrackerId`;
    expect((await call('GET', path)).body.data.tracker.trackerId).toBe(id);
  });

  it('searchBy=trackerId → found by its own id', async () => {
    const { call, createId } = makeFake();
    expect((await call('GET', `/trackers/${await createId()}?searchBy=trackerId`)).status).toBe(200);
  });

  it('a client tracker id without searchBy → 404 tracker_not_found', async () => {
    const { call, create } = makeFake();
    await create({ clientTrackerId: 'mine' });
    const response = await call('GET', '/trackers/mine');
    expect([response.status, codeOf(response)]).toEqual([404, 'tracker_not_found']);
  });

  it('an unknown id → 404 tracker_not_found', async () => {
    const { call } = makeFake();
    expect(codeOf(await call('GET', '/trackers/nobody'))).toBe('tracker_not_found');
  });

  it('another searchBy → 400 validation_error', async () => {
    const { call, createId } = makeFake();
    const response = await call('GET', `/trackers/${await createId()}?searchBy=trackingNumber`);
    expect([response.status, codeOf(response)]).toEqual([400, 'validation_error']);
  });

  it('tracking stopped → isTracked false', async () => {
    const { fake, call, createId } = makeFake();
    const id = await createId();
    fake.shipment(NUMBER).stopTracking();
    expect((await call('GET', `/trackers/${id}`)).body.data.tracker.isTracked).toBe(false);
  });
});
